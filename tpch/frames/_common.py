"""Expressions that several of the queries share."""

from __future__ import annotations

from typing import Any


def revenue(df: Any) -> Any:
    """Price of a line after its discount."""
    return df.col("l_extendedprice") * (df.lit(1) - df.col("l_discount"))


def within(df: Any, column: str, first: Any, end: Any) -> Any:
    """Half-open range, as the standard writes its dates: `first <= column < end`."""
    return (df.col(column) >= df.lit(first)) & (df.col(column) < df.lit(end))


def one_of(df: Any, column: str, values: list[Any], *, negated: bool = False) -> Any:
    """`column IN (values)` or, negated, `NOT IN`."""
    return df.functions.in_list(df.col(column), [df.lit(value) for value in values], negated=negated)
