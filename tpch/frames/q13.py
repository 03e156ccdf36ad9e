"""Q13 Customer Distribution."""

from __future__ import annotations

from typing import Any


def query(ctx: Any, df: Any) -> Any:
    """How many customers have how many orders without special requests, customers without any included."""
    col, lit, f = df.col, df.lit, df.functions
    orders = ctx.table("orders").filter(~f.regexp_like(col("o_comment"), lit("special.*requests")))
    return (
        ctx.table("customer")
        .join(orders, left_on="c_custkey", right_on="o_custkey", how="left", coalesce_duplicate_keys=False)
        .aggregate(["c_custkey"], [f.count(col("o_orderkey")).alias("c_count")])
        .aggregate(["c_count"], [f.count_star().alias("custdist")])
        .sort(col("custdist").sort(ascending=False), col("c_count").sort(ascending=False))
    )
