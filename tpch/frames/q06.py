"""Q6 Forecasting Revenue Change."""

from __future__ import annotations

from datetime import date
from typing import Any

from tpch.frames._common import within


def query(ctx: Any, df: Any) -> Any:
    """Revenue that dropping small discounts on small quantities would have brought in one year."""
    col, lit, f = df.col, df.lit, df.functions
    return (
        ctx.table("lineitem")
        .filter(
            within(df, "l_shipdate", date(1994, 1, 1), date(1995, 1, 1)),
            col("l_discount").between(lit(0.05), lit(0.07)),
            col("l_quantity") < lit(24),
        )
        .aggregate([], [f.sum(col("l_extendedprice") * col("l_discount")).alias("revenue")])
    )
