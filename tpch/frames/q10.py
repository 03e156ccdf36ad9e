"""Q10 Returned Item Reporting."""

from __future__ import annotations

from datetime import date
from typing import Any

from tpch.frames._common import revenue, within


def query(ctx: Any, df: Any) -> Any:
    """Find the twenty customers whose returned lines of one quarter cost the most revenue."""
    col, lit, f = df.col, df.lit, df.functions
    orders = ctx.table("orders").filter(within(df, "o_orderdate", date(1993, 10, 1), date(1994, 1, 1)))
    returned = ctx.table("lineitem").filter(col("l_returnflag") == lit("R"))
    return (
        ctx.table("customer")
        .join(orders, left_on="c_custkey", right_on="o_custkey")
        .join(returned, left_on="o_orderkey", right_on="l_orderkey")
        .join(ctx.table("nation"), left_on="c_nationkey", right_on="n_nationkey")
        .aggregate(
            ["c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment"],
            [f.sum(revenue(df)).alias("revenue")],
        )
        .select("c_custkey", "c_name", "revenue", "c_acctbal", "n_name", "c_address", "c_phone", "c_comment")
        .sort(col("revenue").sort(ascending=False))
        .limit(20)
    )
