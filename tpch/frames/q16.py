"""Q16 Parts/Supplier Relationship."""

from __future__ import annotations

from typing import Any

from tpch.frames._common import one_of


def query(ctx: Any, df: Any) -> Any:
    """Count suppliers without complaints per brand, type and size of part."""
    col, lit, f = df.col, df.lit, df.functions
    parts = ctx.table("part").filter(
        col("p_brand") != lit("Brand#45"),
        ~f.starts_with(col("p_type"), lit("MEDIUM POLISHED")),
        one_of(df, "p_size", [49, 14, 23, 45, 19, 3, 36, 9]),
    )
    complained = ctx.table("supplier").filter(f.regexp_like(col("s_comment"), lit("Customer.*Complaints")))
    return (
        ctx.table("partsupp")
        .join(parts, left_on="ps_partkey", right_on="p_partkey")
        .join(complained, left_on="ps_suppkey", right_on="s_suppkey", how="anti")
        .aggregate(
            ["p_brand", "p_type", "p_size"],
            [f.count(col("ps_suppkey"), distinct=True).alias("supplier_cnt")],
        )
        .sort(col("supplier_cnt").sort(ascending=False), "p_brand", "p_type", "p_size")
    )
