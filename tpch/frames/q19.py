"""Q19 Discounted Revenue."""

from __future__ import annotations

from typing import Any

from tpch.frames._common import one_of, revenue


def query(ctx: Any, df: Any) -> Any:
    """Revenue of three kinds of parts shipped by air and delivered in person."""
    col, lit, f = df.col, df.lit, df.functions

    def kind(brand: str, containers: list[str], least: int, largest: int) -> Any:
        return (
            (col("p_brand") == lit(brand))
            & one_of(df, "p_container", containers)
            & col("l_quantity").between(lit(least), lit(least + 10))
            & col("p_size").between(lit(1), lit(largest))
        )

    lines = ctx.table("lineitem").filter(
        one_of(df, "l_shipmode", ["AIR", "AIR REG"]),
        col("l_shipinstruct") == lit("DELIVER IN PERSON"),
    )
    return (
        lines.join(ctx.table("part"), left_on="l_partkey", right_on="p_partkey")
        .filter(
            kind("Brand#12", ["SM CASE", "SM BOX", "SM PACK", "SM PKG"], 1, 5)
            | kind("Brand#23", ["MED BAG", "MED BOX", "MED PKG", "MED PACK"], 10, 10)
            | kind("Brand#34", ["LG CASE", "LG BOX", "LG PACK", "LG PKG"], 20, 15)
        )
        .aggregate([], [f.sum(revenue(df)).alias("revenue")])
    )
