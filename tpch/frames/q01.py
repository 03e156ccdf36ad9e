"""Q1 Pricing Summary Report."""

from __future__ import annotations

from datetime import date
from typing import Any

from tpch.frames._common import revenue


def query(ctx: Any, df: Any) -> Any:
    """Totals and averages of shipped lines per return flag and line status."""
    col, lit, f = df.col, df.lit, df.functions
    return (
        ctx.table("lineitem")
        .filter(col("l_shipdate") <= lit(date(1998, 9, 2)))
        .aggregate(
            ["l_returnflag", "l_linestatus"],
            [
                f.sum(col("l_quantity")).alias("sum_qty"),
                f.sum(col("l_extendedprice")).alias("sum_base_price"),
                f.sum(revenue(df)).alias("sum_disc_price"),
                f.sum(revenue(df) * (lit(1) + col("l_tax"))).alias("sum_charge"),
                f.avg(col("l_quantity")).alias("avg_qty"),
                f.avg(col("l_extendedprice")).alias("avg_price"),
                f.avg(col("l_discount")).alias("avg_disc"),
                f.count_star().alias("count_order"),
            ],
        )
        .sort("l_returnflag", "l_linestatus")
    )
