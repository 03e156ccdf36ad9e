"""Tables for the tests of validation: for every Arrow type values to draw, and how to make a value wrong."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from harness.model import Validation
from harness.validate import Comparison

Values = st.SearchStrategy[Any]

EXAMPLES = int(os.environ.get("DF_STRATEGIES_EXAMPLES", "8"))
"""Examples per property and type: there are some 200 pairs of these, so thousands in all. Nightly can set more."""

PROPERTY = settings(deadline=None, max_examples=EXAMPLES)
"""No deadline, because the first example pays for imports and machines are loaded."""

EXACT = Context(prec=100)
"""Decimal arithmetic that never rounds a value that Arrow can hold."""


@dataclass(frozen=True)
class Kind:
    """One Arrow type: `values` draws Python values for it, `change` gives another value that must not compare equal."""

    dtype: pa.DataType
    values: Values
    change: Callable[[Any], Any]

    def array(self, values: Sequence[Any]) -> pa.Array:
        """An Arrow array of this type."""
        if pa.types.is_dictionary(self.dtype):
            return pa.array(values, self.dtype.value_type).dictionary_encode()
        return pa.array(values, self.dtype)


def table(columns: dict[str, pa.Array] | list[tuple[str, pa.Array]]) -> pa.Table:
    """A table; a list of pairs allows a name twice."""
    pairs = list(columns.items()) if isinstance(columns, dict) else columns
    return pa.Table.from_arrays([array for _, array in pairs], names=[name for name, _ in pairs])


def assert_verdict(result: Comparison, expected: Validation, *hints: str) -> None:
    """Fails with everything that the comparison said."""
    message = f"compare(): expected {expected.value}, got {result.validation.value}; reason: {result.reason}"
    assert result.validation is expected, message
    for hint in hints:
        assert hint in (result.reason or ""), f"compare(): expected {hint!r} in the reason, got {result.reason!r}"


def _integers(low: int, high: int) -> Values:
    # Few distinct values, so that rows repeat, and the ends of the range.
    return st.sampled_from([low, high, 0, 1, 2]) if low <= 0 else st.sampled_from([low, high])


def _step(low: int, high: int) -> Callable[[Any], Any]:
    return lambda value: value + 1 if value < high else low


def _integer(dtype: pa.DataType, low: int, high: int) -> Kind:
    return Kind(dtype, _integers(low, high), _step(low, high))


def _nudge(relative: float) -> Callable[[Any], Any]:
    """Changes a float by ten times what the tolerance admits; specials become an ordinary number."""

    def change(value: float) -> float:
        if value != value or abs(value) == float("inf"):
            return 0.5
        return value + relative * (abs(value) + 1)

    return change


FLOATS: Values = st.sampled_from([0.0, -0.0, 0.125, 1.0, -2.5, 1e6, float("nan"), float("inf"), float("-inf")])
"""Far enough apart that a nudged value meets no neighbour."""

SMALL_FLOATS: Values = st.sampled_from([0.0, -0.0, 0.125, 1.0, -2.5, 1000.0, float("nan"), float("inf")])


def _decimal(dtype: pa.DataType) -> Kind:
    unit = Decimal(1).scaleb(-dtype.scale)
    least = EXACT.multiply(Decimal(1 - 10**dtype.precision), unit)
    values = st.sampled_from([Decimal(0), unit, -unit, 7 * unit, least])
    return Kind(dtype, values, lambda value: EXACT.add(value, unit))


_TEXT = st.sampled_from(["", "a", "A", "ab", "null", "é", "a\x00b", "😀"])
_BYTES = _TEXT.map(str.encode)
_DAY_MS = 86_400_000
_FAR = 253_402_300_799
"""The last second of the year 9999."""

FLAT: dict[str, Kind] = {
    "bool": Kind(pa.bool_(), st.booleans(), lambda value: not value),
    **{
        f"int{bits}": _integer(pa.type_for_alias(f"int{bits}"), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        for bits in (8, 16, 32, 64)
    },
    **{f"uint{bits}": _integer(pa.type_for_alias(f"uint{bits}"), 0, 2**bits - 1) for bits in (8, 16, 32, 64)},
    "float16": Kind(pa.float16(), SMALL_FLOATS, _nudge(2e-2)),
    "float32": Kind(pa.float32(), FLOATS, _nudge(1e-5)),
    "float64": Kind(pa.float64(), FLOATS, _nudge(1e-8)),
    "decimal32": _decimal(pa.decimal32(7, 2)),
    "decimal64": _decimal(pa.decimal64(15, 2)),
    "decimal128": _decimal(pa.decimal128(38, 6)),
    "decimal256": _decimal(pa.decimal256(70, 20)),
    "string": Kind(pa.string(), _TEXT, lambda value: value + "x"),
    "large_string": Kind(pa.large_string(), _TEXT, lambda value: value + " "),
    "string_view": Kind(pa.string_view(), _TEXT, lambda value: value + "\x00"),
    "dictionary": Kind(pa.dictionary(pa.int32(), pa.string()), _TEXT, lambda value: value + "x"),
    "binary": Kind(pa.binary(), _BYTES, lambda value: value + b"\x00"),
    "binary_view": Kind(pa.binary_view(), _BYTES, lambda value: value + b"\xff"),
    "fixed_size_binary": Kind(
        pa.binary(2), st.sampled_from([b"ab", b"\x00\x00"]), lambda value: bytes([value[0] ^ 1, 7])
    ),
    "date32": _integer(pa.date32(), -719_162, 2_932_896),
    "date64": Kind(pa.date64(), st.sampled_from([0, _DAY_MS, -_DAY_MS]), lambda value: value + _DAY_MS),
    "time32": _integer(pa.time32("ms"), 0, _DAY_MS - 1),
    "time64": _integer(pa.time64("ns"), 0, _DAY_MS * 10**6 - 1),
    "timestamp_s": _integer(pa.timestamp("s"), -_FAR // 5, _FAR),
    "timestamp_us": _integer(pa.timestamp("us"), -_FAR * 10**5, _FAR * 10**6),
    "timestamp_ns": _integer(pa.timestamp("ns"), -(2**63) + 1, 2**63 - 1),
    "timestamp_ms_utc": _integer(pa.timestamp("ms", "UTC"), -(10**12), 10**12),
    "timestamp_us_zoned": _integer(pa.timestamp("us", "+02:00"), -(10**15), 10**15),
    "duration": _integer(pa.duration("us"), -(10**15), 10**15),
    "interval": Kind(
        pa.month_day_nano_interval(),
        st.sampled_from([pa.MonthDayNano([0, 0, 0]), pa.MonthDayNano([1, -2, 3])]),
        lambda value: pa.MonthDayNano([value.months, value.days, value.nanoseconds + 1]),
    ),
}
"""Types that have no children."""


def _list_of(item: Kind, dtype: pa.DataType, size: int | None = None) -> Kind:
    low, high = (0, 3) if size is None else (size, size)
    values = st.lists(st.none() | item.values, min_size=low, max_size=high)

    def change(value: list[Any]) -> list[Any]:
        if not value:
            return [None]
        return [item.change(value[0]) if value[0] is not None else _some(item), *value[1:]]

    return Kind(dtype, values, change)


def _some(kind: Kind) -> Any:
    """A value where there was NULL."""
    if pa.types.is_nested(kind.dtype):
        return [] if not pa.types.is_struct(kind.dtype) else {}
    return kind.change(0 if not pa.types.is_decimal(kind.dtype) else Decimal(0))


def _struct_of(fields: dict[str, Kind]) -> Kind:
    dtype = pa.struct([(name, kind.dtype) for name, kind in fields.items()])
    values = st.fixed_dictionaries({name: st.none() | kind.values for name, kind in fields.items()})

    def change(value: dict[str, Any]) -> dict[str, Any]:
        last = list(fields)[-1]
        old = value.get(last)
        return {**value, last: None if old is not None else _some(fields[last])}

    return Kind(dtype, values, change)


def _map_of(key: Kind, item: Kind) -> Kind:
    pairs = st.dictionaries(key.values, st.none() | item.values, max_size=3).map(lambda value: list(value.items()))

    def change(value: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        if not value:
            return [("new", None)]
        name, old = value[-1]
        return [*value[:-1], (name, _some(item) if old is None else item.change(old))]

    return Kind(pa.map_(key.dtype, item.dtype), pairs, change)


_DOUBLE = FLAT["float64"]
_INNER = _list_of(_DOUBLE, pa.list_(pa.float64()))
_RECORD = _struct_of({"id": FLAT["int32"], "Name": FLAT["string_view"], "parts": _INNER, "price": FLAT["decimal128"]})

NESTED: dict[str, Kind] = {
    "list": _INNER,
    "large_list": _list_of(FLAT["date32"], pa.large_list(pa.date32())),
    "fixed_size_list": _list_of(FLAT["int64"], pa.list_(pa.int64(), 2), 2),
    "list_view": _list_of(_DOUBLE, pa.list_view(pa.float64())),
    "list_of_string_view": _list_of(
        Kind(pa.string_view(), _TEXT, lambda value: f"{value}x"), pa.list_(pa.string_view())
    ),
    "list_of_lists": _list_of(_INNER, pa.list_(pa.list_(pa.float64()))),
    "list_of_structs": _list_of(_RECORD, pa.list_(_RECORD.dtype)),
    "struct": _RECORD,
    "map": _map_of(FLAT["string"], _DOUBLE),
    "map_of_lists": _map_of(FLAT["string"], _INNER),
}
"""Types with children."""

KINDS: dict[str, Kind] = FLAT | NESTED


@st.composite
def columns(draw: st.DrawFn, kind: Kind, min_size: int = 1, max_size: int = 8) -> list[Any]:
    """Values of one column, NULLs among them."""
    return draw(st.lists(st.none() | kind.values, min_size=min_size, max_size=max_size))
