"""Q9 Product Type Profit Measure."""

from __future__ import annotations

from typing import Any

from tpch.frames._common import revenue


def query(ctx: Any, df: Any) -> Any:
    """Profit on green parts per supplying nation and year."""
    col, lit, f = df.col, df.lit, df.functions
    parts = ctx.table("part").filter(f.contains(col("p_name"), lit("green")))
    amount = revenue(df) - col("ps_supplycost") * col("l_quantity")
    return (
        parts.join(ctx.table("lineitem"), left_on="p_partkey", right_on="l_partkey")
        .join(ctx.table("supplier"), left_on="l_suppkey", right_on="s_suppkey")
        .join(
            ctx.table("partsupp"),
            left_on=["l_suppkey", "l_partkey"],
            right_on=["ps_suppkey", "ps_partkey"],
        )
        .join(ctx.table("orders"), left_on="l_orderkey", right_on="o_orderkey")
        .join(ctx.table("nation"), left_on="s_nationkey", right_on="n_nationkey")
        .aggregate(
            [col("n_name").alias("nation"), f.date_part("year", col("o_orderdate")).alias("o_year")],
            [f.sum(amount).alias("sum_profit")],
        )
        .sort("nation", col("o_year").sort(ascending=False))
    )
