"""Q18 Large Volume Customer."""

from __future__ import annotations

from typing import Any


def query(ctx: Any, df: Any) -> Any:
    """Find the hundred most expensive orders of more than 300 items, with their customers."""
    col, lit, f = df.col, df.lit, df.functions
    large = (
        ctx.table("lineitem")
        .aggregate([col("l_orderkey").alias("large_orderkey")], [f.sum(col("l_quantity")).alias("quantity")])
        .filter(col("quantity") > lit(300))
    )
    return (
        ctx.table("customer")
        .join(ctx.table("orders"), left_on="c_custkey", right_on="o_custkey")
        .join(ctx.table("lineitem"), left_on="o_orderkey", right_on="l_orderkey", coalesce_duplicate_keys=False)
        .join(large, left_on="o_orderkey", right_on="large_orderkey", how="semi")
        .aggregate(
            ["c_name", "c_custkey", "o_orderkey", "o_orderdate", "o_totalprice"],
            [f.sum(col("l_quantity")).alias("sum_quantity")],
        )
        .sort(col("o_totalprice").sort(ascending=False), "o_orderdate")
        .limit(100)
    )
