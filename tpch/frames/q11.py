"""Q11 Important Stock Identification."""

from __future__ import annotations

from typing import Any


def query(ctx: Any, df: Any) -> Any:
    """Parts that hold more than a given fraction of the value of Germany's stock.

    The standard's fraction is 0.0001 / SF. A scale factor has 10 000 suppliers per unit, so that is one over the
    number of suppliers, and the scale factor need not be passed.
    """
    col, lit, f = df.col, df.lit, df.functions
    german = ctx.table("nation").filter(col("n_name") == lit("GERMANY"))
    stock = (
        ctx.table("partsupp")
        .join(ctx.table("supplier"), left_on="ps_suppkey", right_on="s_suppkey")
        .join(german, left_on="s_nationkey", right_on="n_nationkey")
    )
    value = f.sum(col("ps_supplycost") * col("ps_availqty"))
    total = stock.aggregate([], [value.alias("total")])
    suppliers = ctx.table("supplier").aggregate([], [f.count_star().alias("suppliers")])
    return (
        stock.aggregate(["ps_partkey"], [value.alias("value")])
        .join_on(total.join_on(suppliers, lit(value=True)), col("value") * col("suppliers") > col("total"))
        .select("ps_partkey", "value")
        .sort(col("value").sort(ascending=False))
    )
