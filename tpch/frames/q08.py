"""Q8 National Market Share."""

from __future__ import annotations

from datetime import date
from typing import Any

from tpch.frames._common import revenue


def query(ctx: Any, df: Any) -> Any:
    """Brazil's share of the American market for one type of part, per year."""
    col, lit, f = df.col, df.lit, df.functions
    parts = ctx.table("part").filter(col("p_type") == lit("ECONOMY ANODIZED STEEL"))
    orders = ctx.table("orders").filter(
        col("o_orderdate").between(lit(date(1995, 1, 1)), lit(date(1996, 12, 31))),
    )
    american = (
        ctx.table("region")
        .filter(col("r_name") == lit("AMERICA"))
        .join(ctx.table("nation"), left_on="r_regionkey", right_on="n_regionkey")
        .select(col("n_nationkey").alias("american_key"))
    )
    supplying = ctx.table("nation").select(col("n_nationkey").alias("supp_key"), col("n_name").alias("nation"))
    volume = revenue(df)
    of_brazil = f.when(col("nation") == lit("BRAZIL"), volume).otherwise(lit(0))
    return (
        parts.join(ctx.table("lineitem"), left_on="p_partkey", right_on="l_partkey")
        .join(ctx.table("supplier"), left_on="l_suppkey", right_on="s_suppkey")
        .join(orders, left_on="l_orderkey", right_on="o_orderkey")
        .join(ctx.table("customer"), left_on="o_custkey", right_on="c_custkey")
        .join(american, left_on="c_nationkey", right_on="american_key")
        .join(supplying, left_on="s_nationkey", right_on="supp_key")
        .aggregate(
            [f.date_part("year", col("o_orderdate")).alias("o_year")],
            [f.sum(of_brazil).alias("brazil"), f.sum(volume).alias("all_nations")],
        )
        .select(col("o_year"), (col("brazil") / col("all_nations")).alias("mkt_share"))
        .sort("o_year")
    )
