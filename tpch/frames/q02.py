"""Q2 Minimum Cost Supplier."""

from __future__ import annotations

from typing import Any


def query(ctx: Any, df: Any) -> Any:
    """Suppliers in Europe that offer a part of size 15 at the lowest price in Europe."""
    col, lit, f = df.col, df.lit, df.functions
    suppliers = (
        ctx.table("region")
        .filter(col("r_name") == lit("EUROPE"))
        .join(ctx.table("nation"), left_on="r_regionkey", right_on="n_regionkey")
        .join(ctx.table("supplier"), left_on="n_nationkey", right_on="s_nationkey")
    )
    parts = ctx.table("part").filter(col("p_size") == lit(15), f.ends_with(col("p_type"), lit("BRASS")))
    offers = ctx.table("partsupp").join(suppliers, left_on="ps_suppkey", right_on="s_suppkey")
    lowest = offers.aggregate(
        [col("ps_partkey").alias("lowest_partkey")], [f.min(col("ps_supplycost")).alias("lowest")]
    )
    return (
        parts.join(offers, left_on="p_partkey", right_on="ps_partkey")
        .join(lowest, left_on=["p_partkey", "ps_supplycost"], right_on=["lowest_partkey", "lowest"])
        .select("s_acctbal", "s_name", "n_name", "p_partkey", "p_mfgr", "s_address", "s_phone", "s_comment")
        .sort(col("s_acctbal").sort(ascending=False), "n_name", "s_name", "p_partkey")
        .limit(100)
    )
