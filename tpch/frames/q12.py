"""Q12 Shipping Modes and Order Priority."""

from __future__ import annotations

from datetime import date
from typing import Any

from tpch.frames._common import one_of, within

URGENT = ["1-URGENT", "2-HIGH"]


def query(ctx: Any, df: Any) -> Any:
    """Late lines of one year per shipping mode, split by the urgency of their orders."""
    col, lit, f = df.col, df.lit, df.functions
    late = ctx.table("lineitem").filter(
        one_of(df, "l_shipmode", ["MAIL", "SHIP"]),
        col("l_commitdate") < col("l_receiptdate"),
        col("l_shipdate") < col("l_commitdate"),
        within(df, "l_receiptdate", date(1994, 1, 1), date(1995, 1, 1)),
    )
    urgent = f.when(one_of(df, "o_orderpriority", URGENT), lit(1)).otherwise(lit(0))
    other = f.when(one_of(df, "o_orderpriority", URGENT, negated=True), lit(1)).otherwise(lit(0))
    return (
        ctx.table("orders")
        .join(late, left_on="o_orderkey", right_on="l_orderkey")
        .aggregate(["l_shipmode"], [f.sum(urgent).alias("high_line_count"), f.sum(other).alias("low_line_count")])
        .sort("l_shipmode")
    )
