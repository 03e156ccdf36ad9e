"""Q14 Promotion Effect."""

from __future__ import annotations

from datetime import date
from typing import Any

from tpch.frames._common import revenue, within


def query(ctx: Any, df: Any) -> Any:
    """Percentage of one month's revenue that came from promoted parts."""
    col, lit, f = df.col, df.lit, df.functions
    lines = ctx.table("lineitem").filter(within(df, "l_shipdate", date(1995, 9, 1), date(1995, 10, 1)))
    promoted = f.when(f.starts_with(col("p_type"), lit("PROMO")), revenue(df)).otherwise(lit(0))
    return (
        lines.join(ctx.table("part"), left_on="l_partkey", right_on="p_partkey")
        .aggregate([], [f.sum(promoted).alias("promoted"), f.sum(revenue(df)).alias("total")])
        .select((lit(100.0) * col("promoted") / col("total")).alias("promo_revenue"))
    )
