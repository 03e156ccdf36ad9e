"""Q3 Shipping Priority."""

from __future__ import annotations

from datetime import date
from typing import Any

from tpch.frames._common import revenue


def query(ctx: Any, df: Any) -> Any:
    """Find the ten unshipped orders of the building segment with the highest revenue."""
    col, lit, f = df.col, df.lit, df.functions
    day = lit(date(1995, 3, 15))
    customers = ctx.table("customer").filter(col("c_mktsegment") == lit("BUILDING"))
    orders = ctx.table("orders").filter(col("o_orderdate") < day)
    lines = ctx.table("lineitem").filter(col("l_shipdate") > day)
    return (
        customers.join(orders, left_on="c_custkey", right_on="o_custkey")
        .join(lines, left_on="o_orderkey", right_on="l_orderkey")
        .aggregate(["l_orderkey", "o_orderdate", "o_shippriority"], [f.sum(revenue(df)).alias("revenue")])
        .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
        .sort(col("revenue").sort(ascending=False), "o_orderdate")
        .limit(10)
    )
