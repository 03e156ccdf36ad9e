"""Q15 Top Supplier."""

from __future__ import annotations

from datetime import date
from typing import Any

from tpch.frames._common import revenue, within


def query(ctx: Any, df: Any) -> Any:
    """Find the supplier, or suppliers, with the highest revenue of one quarter."""
    col, f = df.col, df.functions
    per_supplier = (
        ctx.table("lineitem")
        .filter(within(df, "l_shipdate", date(1996, 1, 1), date(1996, 4, 1)))
        .aggregate([col("l_suppkey").alias("supplier_no")], [f.sum(revenue(df)).alias("total_revenue")])
    )
    highest = per_supplier.aggregate([], [f.max(col("total_revenue")).alias("highest")])
    return (
        ctx.table("supplier")
        .join(per_supplier, left_on="s_suppkey", right_on="supplier_no")
        .join(highest, left_on="total_revenue", right_on="highest")
        .select("s_suppkey", "s_name", "s_address", "s_phone", "total_revenue")
        .sort("s_suppkey")
    )
