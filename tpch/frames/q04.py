"""Q4 Order Priority Checking."""

from __future__ import annotations

from datetime import date
from typing import Any

from tpch.frames._common import within


def query(ctx: Any, df: Any) -> Any:
    """Orders of one quarter with at least one line received late, counted per priority."""
    col, f = df.col, df.functions
    late = ctx.table("lineitem").filter(col("l_commitdate") < col("l_receiptdate"))
    return (
        ctx.table("orders")
        .filter(within(df, "o_orderdate", date(1993, 7, 1), date(1993, 10, 1)))
        .join(late, left_on="o_orderkey", right_on="l_orderkey", how="semi")
        .aggregate(["o_orderpriority"], [f.count_star().alias("order_count")])
        .sort("o_orderpriority")
    )
