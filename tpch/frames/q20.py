"""Q20 Potential Part Promotion."""

from __future__ import annotations

from datetime import date
from typing import Any

from tpch.frames._common import within


def query(ctx: Any, df: Any) -> Any:
    """Canadian suppliers that hold more of a forest part than half of what was shipped of it in one year."""
    col, lit, f = df.col, df.lit, df.functions
    forest = ctx.table("part").filter(f.starts_with(col("p_name"), lit("forest")))
    shipped = (
        ctx.table("lineitem")
        .filter(within(df, "l_shipdate", date(1994, 1, 1), date(1995, 1, 1)))
        .aggregate(["l_partkey", "l_suppkey"], [f.sum(col("l_quantity")).alias("quantity")])
    )
    excess = (
        ctx.table("partsupp")
        .join(forest, left_on="ps_partkey", right_on="p_partkey", how="semi")
        .join(shipped, left_on=["ps_partkey", "ps_suppkey"], right_on=["l_partkey", "l_suppkey"])
        .filter(col("ps_availqty") > lit(0.5) * col("quantity"))
    )
    canadian = ctx.table("nation").filter(col("n_name") == lit("CANADA"))
    return (
        ctx.table("supplier")
        .join(canadian, left_on="s_nationkey", right_on="n_nationkey")
        .join(excess, left_on="s_suppkey", right_on="ps_suppkey", how="semi")
        .select("s_name", "s_address")
        .sort("s_name")
    )
