"""Q7 Volume Shipping."""

from __future__ import annotations

from datetime import date
from typing import Any

from tpch.frames._common import one_of, revenue

NATIONS = ["FRANCE", "GERMANY"]


def query(ctx: Any, df: Any) -> Any:
    """Value of goods shipped between France and Germany per direction and year."""
    col, lit, f = df.col, df.lit, df.functions
    nation = ctx.table("nation").filter(one_of(df, "n_name", NATIONS))
    supplying = nation.select(col("n_nationkey").alias("supp_key"), col("n_name").alias("supp_nation"))
    buying = nation.select(col("n_nationkey").alias("cust_key"), col("n_name").alias("cust_nation"))
    lines = ctx.table("lineitem").filter(
        col("l_shipdate").between(lit(date(1995, 1, 1)), lit(date(1996, 12, 31))),
    )
    return (
        supplying.join(ctx.table("supplier"), left_on="supp_key", right_on="s_nationkey")
        .join(lines, left_on="s_suppkey", right_on="l_suppkey")
        .join(ctx.table("orders"), left_on="l_orderkey", right_on="o_orderkey")
        .join(ctx.table("customer"), left_on="o_custkey", right_on="c_custkey")
        .join(buying, left_on="c_nationkey", right_on="cust_key")
        .filter(col("supp_nation") != col("cust_nation"))
        .aggregate(
            ["supp_nation", "cust_nation", f.date_part("year", col("l_shipdate")).alias("l_year")],
            [f.sum(revenue(df)).alias("revenue")],
        )
        .sort("supp_nation", "cust_nation", "l_year")
    )
