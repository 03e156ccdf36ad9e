"""Q21 Suppliers Who Kept Orders Waiting."""

from __future__ import annotations

from typing import Any


def query(ctx: Any, df: Any) -> Any:
    """Saudi suppliers that alone were late in orders of several suppliers, and how often."""
    col, lit, f = df.col, df.lit, df.functions
    late = ctx.table("lineitem").filter(col("l_receiptdate") > col("l_commitdate"))
    finished = ctx.table("orders").filter(col("o_orderstatus") == lit("F"))
    saudi = ctx.table("nation").filter(col("n_name") == lit("SAUDI ARABIA"))
    keys = [col("l_orderkey").alias("other_orderkey"), col("l_suppkey").alias("other_suppkey")]
    of_another = (col("l_orderkey") == col("other_orderkey")) & (col("l_suppkey") != col("other_suppkey"))
    return (
        ctx.table("supplier")
        .join(late, left_on="s_suppkey", right_on="l_suppkey", coalesce_duplicate_keys=False)
        .join(finished, left_on="l_orderkey", right_on="o_orderkey")
        .join(saudi, left_on="s_nationkey", right_on="n_nationkey")
        .join_on(ctx.table("lineitem").select(*keys), of_another, how="semi")
        .join_on(late.select(*keys), of_another, how="anti")
        .aggregate(["s_name"], [f.count_star().alias("numwait")])
        .sort(col("numwait").sort(ascending=False), "s_name")
        .limit(100)
    )
