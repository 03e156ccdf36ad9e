"""A plain comparison of two answers, on purpose not the product's own comparator, so that one can catch the other."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from tpch.query_sets import Query

RELATIVE = 1e-9
"""Relative difference allowed between floating-point values: sums in another order."""

Row = tuple[Any, ...]


def rows_of(answer: pa.Table) -> list[Row]:
    """Rows as Python values, in the order of the table."""
    return list(zip(*(column.to_pylist() for column in answer.columns), strict=True))


def assert_same_answer(left: pa.Table, right: pa.Table, query: Query) -> None:
    """Compare column count, rows, and values within the coarser side's last decimal; ties in any order.

    Not aware of ties across a LIMIT: TPC-H's validation parameters have none there.
    """
    assert left.num_columns == right.num_columns == len(query.columns), (query.id, left.schema, right.schema)
    assert left.num_rows == right.num_rows, f"{query.id}: {left.num_rows} and {right.num_rows} rows"
    units = [_unit(a.type, b.type) for a, b in zip(left.schema, right.schema, strict=True)]
    pairs = zip(_settle_ties(left, query), _settle_ties(right, query), strict=True)
    for number, (a, b) in enumerate(pairs):
        for column, (x, y, unit) in enumerate(zip(a, b, units, strict=True)):
            assert _same(x, y, unit), f"{query.id} row {number} column {query.columns[column]}: {x!r} and {y!r}"


def assert_sorted(answer: pa.Table, query: Query) -> None:
    """Rows come in the order of the query's ORDER BY keys."""
    rows = rows_of(answer)
    for number, (before, after) in enumerate(pairwise(rows)):
        for key in query.order_by:
            a, b = before[key.column], after[key.column]
            if a != b:
                ordered = a > b if key.descending else a < b
                assert ordered, f"{query.id} rows {number}, {number + 1}: {a!r} before {b!r}"
                break


def _settle_ties(answer: pa.Table, query: Query) -> list[Row]:
    """Rows with those that tie on the ORDER BY keys in one defined order; all other order is kept."""
    keys = [key.column for key in query.order_by]
    rows = rows_of(answer)
    groups: dict[Row, int] = {}
    places = [groups.setdefault(tuple(row[key] for key in keys), len(groups)) for row in rows]
    assert places == sorted(places), f"{query.id}: rows with equal ORDER BY keys are not next to each other"
    return [row for _, row in sorted(zip(places, rows, strict=True), key=lambda item: (item[0], repr(item[1])))]


def _unit(left: pa.DataType, right: pa.DataType) -> Decimal:
    """One unit of the coarser side's last decimal; 0 where both sides have the same one, so that nothing was cut."""
    scales = [dtype.scale for dtype in (left, right) if pa.types.is_decimal(dtype)]
    if len(scales) == len(set(scales)) and any(scales):
        return Decimal(1).scaleb(-min(scales))
    return Decimal(0)


def _same(x: Any, y: Any, unit: Decimal) -> bool:
    exact = (str, date, bool, type(None))
    if isinstance(x, exact) or isinstance(y, exact):
        return bool(x == y)
    slack = RELATIVE * abs(float(x)) if isinstance(x, float) or isinstance(y, float) else 0
    return abs(Decimal(x) - Decimal(y)) <= max(unit, Decimal(slack))
