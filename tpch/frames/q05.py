"""Q5 Local Supplier Volume."""

from __future__ import annotations

from datetime import date
from typing import Any

from tpch.frames._common import revenue, within


def query(ctx: Any, df: Any) -> Any:
    """Revenue of one year per Asian nation, where customer and supplier are of the same nation."""
    col, lit, f = df.col, df.lit, df.functions
    orders = ctx.table("orders").filter(within(df, "o_orderdate", date(1994, 1, 1), date(1995, 1, 1)))
    asia = ctx.table("region").filter(col("r_name") == lit("ASIA"))
    return (
        ctx.table("customer")
        .join(orders, left_on="c_custkey", right_on="o_custkey")
        .join(ctx.table("lineitem"), left_on="o_orderkey", right_on="l_orderkey")
        .join(
            ctx.table("supplier"),
            left_on=["l_suppkey", "c_nationkey"],
            right_on=["s_suppkey", "s_nationkey"],
        )
        .join(ctx.table("nation"), left_on="s_nationkey", right_on="n_nationkey")
        .join(asia, left_on="n_regionkey", right_on="r_regionkey")
        .aggregate(["n_name"], [f.sum(revenue(df)).alias("revenue")])
        .sort(col("revenue").sort(ascending=False))
    )
