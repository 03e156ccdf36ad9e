"""Puts a difference into words: the first differing row and column, what was expected and what came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from harness.validate.match import near

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from harness.validate.encode import Encoded, IntArray
    from harness.validate.match import Unmatched

MAX_SHOWN = 120
"""Characters of one value shown in a message, about a terminal line."""
_MAX_CANDIDATES = 1000
"""Unmatched expected rows searched for the likeliest partner of the first wrong row."""

_MAX_OTHERS = 3
"""Further differing columns named."""


def column_label(names: Sequence[str], position: int) -> str:
    """Column by position and name: names alone may repeat."""
    return f"column {position} {names[position]!r}"


def show(table: pa.Table, row: int, position: int) -> str:
    """One value, shortened."""
    scalar: Any = table.column(position)[row]
    try:
        value = scalar.as_py()
        text = "NULL" if value is None else value if isinstance(value, str) else str(value)
        text = repr(text) if isinstance(value, (str, bytes)) else text
    except (ValueError, OverflowError, LookupError, ImportError):
        # Nanoseconds, years past 9999 and zones that this machine does not know have no Python object.
        text = " ".join(f"{getattr(scalar, 'value', 'a value')} ({scalar.type})".split())
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."


def first_difference(
    expected: pa.Table, actual: pa.Table, columns: Sequence[Encoded], unmatched: Unmatched, *, against: IntArray | None
) -> str:
    """Names the first differing row.

    `columns` encode the expected rows followed by the actual ones. `against` lists the expected rows to compare the
    wrong row with when none is left unmatched (the candidates at a LIMIT).
    """
    total = f"{len(unmatched.actual)} of {actual.num_rows} rows differ"
    if not len(unmatched.actual):
        row = int(unmatched.expected[0])
        return f"expected row {row} (from 0) with {_row(expected, row)} is missing"
    row = int(unmatched.actual[0])
    partners = unmatched.expected if len(unmatched.expected) else against
    if partners is None or not len(partners):
        return f"row {row} (from 0) with {_row(actual, row)} is not in the expected answer; {total}"
    partner, differing = _likeliest(columns, partners[:_MAX_CANDIDATES], expected.num_rows + row, row)
    if not differing:
        return f"row {row} (from 0) with {_row(actual, row)} is there too often; {total}"
    first = differing[0]
    others = [column_label(actual.column_names, i) for i in differing[1:]]
    more = f" (also {', '.join(others[:_MAX_OTHERS])}{' and more' if others[_MAX_OTHERS:] else ''})" if others else ""
    return (
        f"row {row} (from 0), {column_label(actual.column_names, first)}: "
        f"expected {show(expected, partner, first)}, got {show(actual, row, first)}{more}; {total}"
    )


def _likeliest(columns: Sequence[Encoded], partners: IntArray, row: int, position: int) -> tuple[int, list[int]]:
    """Expected row that differs in the fewest columns, the closest in position among those; and these columns."""
    differs = np.array([~near(column, row, partners) for column in columns])
    counts = differs.sum(axis=0)
    best = int(np.lexsort((np.abs(partners - position), counts))[0])
    return int(partners[best]), np.flatnonzero(differs[:, best]).tolist()


def _row(table: pa.Table, row: int) -> str:
    text = ", ".join(show(table, row, position) for position in range(table.num_columns))
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."
