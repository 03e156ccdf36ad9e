"""Q17 Small-Quantity-Order Revenue."""

from __future__ import annotations

from typing import Any


def query(ctx: Any, df: Any) -> Any:
    """Yearly revenue of lines that order less than a fifth of the average quantity of their part."""
    col, lit, f = df.col, df.lit, df.functions
    parts = ctx.table("part").filter(
        col("p_brand") == lit("Brand#23"),
        col("p_container") == lit("MED BOX"),
    )
    small = ctx.table("lineitem").aggregate(
        [col("l_partkey").alias("small_partkey")],
        [f.avg(col("l_quantity")).alias("average")],
    )
    return (
        ctx.table("lineitem")
        .join(parts, left_on="l_partkey", right_on="p_partkey")
        .join(small, left_on="l_partkey", right_on="small_partkey")
        .filter(col("l_quantity") < lit(0.2) * col("average"))
        .aggregate([], [f.sum(col("l_extendedprice")).alias("total")])
        .select((col("total") / lit(7.0)).alias("avg_yearly"))
    )
