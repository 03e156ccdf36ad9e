"""The kinds of values that tables and expressions have, and what each may be used for."""

from __future__ import annotations

from enum import Enum


class Kind(str, Enum):
    """Kind of a column or an expression."""

    INT = "int"
    """64-bit integer."""
    SMALL = "small"
    """32-bit integer; an expression may use it wherever it may use `INT`."""
    FLOAT = "float"
    """Double that is a multiple of 1/4: sums are exact in any order, so that it may be a key."""
    INEXACT = "inexact"
    """Double that depends on the order of evaluation in its last bits. Never a key, a predicate or a sort key."""
    DECIMAL = "decimal"
    TEXT = "text"
    BOOL = "bool"
    DATE = "date"
    TIME = "timestamp"
    """Timestamp without zone."""
    INSTANT = "instant"
    """Timestamp with zone."""
    LIST = "list"
    """List of 64-bit integers."""
    RECORD = "record"
    """Struct of `x` (64-bit integer) and `y` (text)."""


SORTABLE = frozenset(set(Kind) - {Kind.INEXACT, Kind.LIST, Kind.RECORD})
"""Kinds that order rows the same way in every engine."""

NUMBERS = (Kind.INT, Kind.SMALL, Kind.FLOAT, Kind.DECIMAL)

COLUMN_KINDS = (
    Kind.INT, Kind.SMALL, Kind.FLOAT, Kind.DECIMAL, Kind.TEXT, Kind.BOOL, Kind.DATE, Kind.TIME, Kind.INSTANT,
    Kind.LIST, Kind.RECORD,
)  # fmt: skip
"""Kinds that a table's columns can have."""
