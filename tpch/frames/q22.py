"""Q22 Global Sales Opportunity."""

from __future__ import annotations

from typing import Any

from tpch.frames._common import one_of

COUNTRY_CODES = ["13", "31", "23", "29", "30", "18", "17"]


def query(ctx: Any, df: Any) -> Any:
    """Count, per country, customers without orders whose balance is above the average positive one."""
    col, lit, f = df.col, df.lit, df.functions
    customers = (
        ctx.table("customer")
        .with_column("cntrycode", f.substring(col("c_phone"), lit(1), lit(2)))
        .filter(one_of(df, "cntrycode", COUNTRY_CODES))
    )
    average = customers.filter(col("c_acctbal") > lit(0.0)).aggregate([], [f.avg(col("c_acctbal")).alias("average")])
    return (
        customers.join_on(average, col("c_acctbal") > col("average"))
        .join(ctx.table("orders"), left_on="c_custkey", right_on="o_custkey", how="anti")
        .aggregate(
            ["cntrycode"],
            [f.count_star().alias("numcust"), f.sum(col("c_acctbal")).alias("totacctbal")],
        )
        .sort("cntrycode")
    )
