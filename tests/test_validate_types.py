"""Every Arrow type: equal tables are equal in any physical form, and one wrong cell is found."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import Validation
from harness.validate import compare
from validate_helpers import KINDS, PROPERTY, assert_verdict, columns, table

UTC = timezone.utc
MOMENT = datetime(2024, 2, 29, 23, 59, 58, tzinfo=UTC)


@pytest.mark.parametrize("name", KINDS)
@PROPERTY
@given(data=st.data())
def test_permuted_rows_are_equal(name: str, data: st.DataObject) -> None:
    kind = KINDS[name]
    values = data.draw(columns(kind))
    ids = list(range(len(values)))
    order = data.draw(st.permutations(ids))
    repeated = data.draw(st.booleans())
    expected = table({"id": pa.array([0 if repeated else i for i in ids]), "value": kind.array(values)})
    shuffled = table(
        {"id": pa.array([0 if repeated else i for i in order]), "value": kind.array([values[i] for i in order])}
    )
    assert_verdict(compare(expected, shuffled), Validation.VALIDATED)


@pytest.mark.parametrize("name", KINDS)
@PROPERTY
@given(data=st.data())
def test_any_one_cell_change_is_unequal(name: str, data: st.DataObject) -> None:
    kind = KINDS[name]
    values = data.draw(columns(kind))
    row = data.draw(st.integers(0, len(values) - 1))
    old = values[row]
    to_null = old is not None and data.draw(st.booleans())
    new = data.draw(kind.values) if old is None else None if to_null else kind.change(old)
    changed = [*values[:row], new, *values[row + 1 :]]
    # Other rows that are alike must not hide the change, so half of the time nothing tells the rows apart.
    ids = pa.array(list(range(len(values))) if data.draw(st.booleans()) else [1] * len(values))
    expected = table({"id": ids, "value": kind.array(values)})
    actual = table({"id": ids, "value": kind.array(changed)})
    assert_verdict(compare(expected, actual), Validation.MISMATCH, "column 1 'value'")


@pytest.mark.parametrize("name", KINDS)
@PROPERTY
@given(data=st.data())
def test_a_row_instead_of_another_is_unequal(name: str, data: st.DataObject) -> None:
    """One row dropped and another doubled: the row count stays right."""
    kind = KINDS[name]
    values = data.draw(columns(kind, min_size=2))
    ids = list(range(len(values)))
    dropped, doubled = data.draw(st.permutations(ids))[:2]
    swapped = [doubled if i == dropped else i for i in ids]
    expected = table({"id": pa.array(ids), "value": kind.array(values)})
    actual = table({"id": pa.array(swapped), "value": kind.array([values[i] for i in swapped])})
    assert_verdict(compare(expected, actual), Validation.MISMATCH, "values: row")


@pytest.mark.parametrize("name", ["int64", "float64", "struct"])
@PROPERTY
@given(data=st.data())
def test_a_dropped_or_added_row_is_unequal(name: str, data: st.DataObject) -> None:
    kind = KINDS[name]
    values = data.draw(columns(kind))
    other = data.draw(st.sampled_from([values[:-1], [*values, values[0]]]))
    result = compare(table({"value": kind.array(values)}), table({"value": kind.array(other)}))
    assert_verdict(result, Validation.MISMATCH, f"row_count: expected {len(values)} rows, got {len(other)}")


SAME_MEANING: list[tuple[str, list[Any], pa.DataType, pa.DataType]] = [
    ("integer widths", [1, None, 100], pa.int8(), pa.int64()),
    ("signed and unsigned", [1, 2**63 - 1], pa.int64(), pa.uint64()),
    ("beyond int64", [2**64 - 1, 0], pa.uint64(), pa.decimal128(38, 0)),
    ("integer and decimal", [10, None, 0], pa.int32(), pa.decimal128(38, 0)),
    ("decimal precision", [Decimal("1.25"), Decimal("-7.00")], pa.decimal128(5, 2), pa.decimal128(38, 2)),
    ("decimal scale", [Decimal("1.25"), Decimal("-7.00")], pa.decimal128(5, 2), pa.decimal128(38, 10)),
    ("decimal widths", [Decimal("1.25"), None], pa.decimal64(10, 2), pa.decimal256(60, 30)),
    ("text layouts", ["a", None, ""], pa.string(), pa.large_string()),
    ("text views", ["a", None, ""], pa.string(), pa.string_view()),
    ("dictionary", ["a", None, "a"], pa.string(), pa.dictionary(pa.int8(), pa.string())),
    ("run ends", [1, 1, 2], pa.int32(), pa.run_end_encoded(pa.int32(), pa.int64())),
    ("binary layouts", [b"ab", None], pa.binary(), pa.binary_view()),
    ("binary widths", [b"ab", None], pa.large_binary(), pa.binary(2)),
    ("dates", [date(1, 1, 1), date(9999, 12, 31), None], pa.date32(), pa.date64()),
    ("times", [time(23, 59, 59), None], pa.time32("s"), pa.time64("ns")),
    ("timestamp units", [datetime(1969, 12, 31, 23, 59, 59), None], pa.timestamp("s"), pa.timestamp("ns")),  # noqa: DTZ001
    ("beyond nanoseconds", [datetime(1, 1, 1), datetime(9999, 1, 1)], pa.timestamp("us"), pa.timestamp("s")),  # noqa: DTZ001
    ("zones", [MOMENT, None], pa.timestamp("us", "UTC"), pa.timestamp("us", "America/New_York")),
    ("zones and units", [MOMENT], pa.timestamp("ms", "+05:30"), pa.timestamp("ns", "UTC")),
    ("durations", [timedelta(days=-3), None], pa.duration("s"), pa.duration("ns")),
    ("untyped NULL", [None, None], pa.null(), pa.int32()),
    ("untyped NULL and list", [None, None], pa.list_(pa.string()), pa.null()),
    ("list layouts", [[1, None], None, []], pa.list_(pa.int32()), pa.large_list(pa.int64())),
    ("fixed lists", [[1, 2], None], pa.list_(pa.int32(), 2), pa.list_view(pa.int16())),
    ("empty lists", [[], None], pa.list_(pa.null()), pa.list_(pa.float64())),
    (
        "struct fields",
        [{"a": 1, "b": "x"}, None],
        pa.struct([("a", pa.int8()), ("b", pa.string())]),
        pa.struct([("a", pa.int64()), ("b", pa.string_view())]),
    ),
    ("map", [[("x", 1.5)], None, []], pa.map_(pa.string(), pa.float32()), pa.map_(pa.large_string(), pa.float64())),
]


def _build(values: list[Any], dtype: pa.DataType) -> pa.Array:
    if pa.types.is_run_end_encoded(dtype):
        return pa.compute.run_end_encode(pa.array(values, dtype.value_type))
    if pa.types.is_dictionary(dtype):
        return pa.array(values, dtype.value_type).dictionary_encode()
    return pa.array(values, dtype)


@pytest.mark.parametrize(
    ("values", "left", "right"), [case[1:] for case in SAME_MEANING], ids=[c[0] for c in SAME_MEANING]
)
def test_types_that_mean_the_same_are_equal_and_noted(values: list[Any], left: pa.DataType, right: pa.DataType) -> None:
    pairs = [(left, right), (right, left)]
    for first, second in pairs:
        result = compare(table({"c": _build(values, first)}), table({"c": _build(values, second)}))
        assert_verdict(result, Validation.VALIDATED)
        assert "compared as the same kind" in result.notes[0], result.notes


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.int64(), pa.float64()),
        (pa.int64(), pa.string()),
        (pa.bool_(), pa.int8()),
        (pa.string(), pa.binary()),
        (pa.date32(), pa.timestamp("s")),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.time64("us"), pa.duration("us")),
        (pa.list_(pa.int32()), pa.list_(pa.string())),
        (pa.list_(pa.int32()), pa.int32()),
        (pa.struct([("a", pa.int32())]), pa.struct([("b", pa.int32())])),
        (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int32()), ("b", pa.int32())])),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.int32(), pa.int32())),
    ],
    ids=str,
)
def test_types_that_mean_something_else_are_a_schema_mismatch(left: pa.DataType, right: pa.DataType) -> None:
    """Even when there is no row to tell them apart."""
    result = compare(table({"c": pa.array([], left)}), table({"c": pa.array([], right)}))
    assert_verdict(result, Validation.MISMATCH, "schema: column 0 'c'")


def test_a_decimal_is_exact_at_any_scale() -> None:
    expected = table({"c": pa.array([Decimal("0.10")], pa.decimal128(38, 2))})
    close = table({"c": pa.array([Decimal("0.1000000001")], pa.decimal128(38, 10))})
    assert_verdict(compare(expected, close), Validation.MISMATCH, "expected 0.10, got 0.1000000001")


def test_the_same_wall_clock_in_another_zone_is_another_instant() -> None:
    expected = table({"c": pa.array([MOMENT], pa.timestamp("us", "UTC"))})
    shifted = table(
        {"c": pa.array([MOMENT.replace(tzinfo=timezone(timedelta(hours=1)))], pa.timestamp("us", "+01:00"))}
    )
    assert_verdict(compare(expected, shifted), Validation.MISMATCH)


def test_the_entries_of_a_map_have_no_order_but_those_of_a_list_do() -> None:
    dtype = pa.map_(pa.string(), pa.int32())
    forth, back = [("x", 1), ("y", 2)], [("y", 2), ("x", 1)]
    assert_verdict(
        compare(table({"m": pa.array([forth], dtype)}), table({"m": pa.array([back], dtype)})), Validation.VALIDATED
    )
    assert_verdict(compare(table({"l": pa.array([[1, 2]])}), table({"l": pa.array([[2, 1]])})), Validation.MISMATCH)


def test_names_are_compared_without_case_and_by_position() -> None:
    expected = table({"Revenue": pa.array([1]), "year": pa.array([2])})
    assert_verdict(compare(expected, table({"REVENUE": pa.array([1]), "Year": pa.array([2])})), Validation.VALIDATED)
    swapped = table({"year": pa.array([1]), "revenue": pa.array([2])})
    assert_verdict(
        compare(expected, swapped), Validation.MISMATCH, "column 0 'Revenue': expected this name, got 'year'"
    )


def test_duplicate_column_names_are_told_apart_by_position() -> None:
    expected = table([("x", pa.array([1, 2])), ("x", pa.array([3, 4])), ("X", pa.array(["a", "b"]))])
    assert_verdict(compare(expected, expected), Validation.VALIDATED)
    wrong = table([("x", pa.array([1, 2])), ("x", pa.array([3, 5])), ("X", pa.array(["a", "b"]))])
    assert_verdict(compare(expected, wrong), Validation.MISMATCH, "row 1 (from 0), column 1 'x': expected 4, got 5")
    assert_verdict(compare(expected, expected.select([1, 0, 2])), Validation.MISMATCH)


def test_names_that_engines_make_up_are_not_compared_but_noted() -> None:
    expected = table({"sum(l_quantity)": pa.array([1])})
    result = compare(expected, table({"sum(lineitem.l_quantity)": pa.array([1])}))
    assert_verdict(result, Validation.VALIDATED)
    assert "made-up name 'sum(lineitem.l_quantity)'" in result.notes[0]
    assert_verdict(compare(expected, table({"total": pa.array([1])})), Validation.MISMATCH, "got 'total'")


def test_another_number_of_columns_names_both_lists() -> None:
    result = compare(table({"a": pa.array([1])}), table({"a": pa.array([1]), "b": pa.array([1])}))
    assert_verdict(result, Validation.MISMATCH, "schema: expected 1 columns: ['a'], got 2: ['a', 'b']")


def test_a_type_without_rule_is_not_validated() -> None:
    union = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
    result = compare(table({"u": union}), table({"u": union}))
    assert_verdict(result, Validation.NOT_VALIDATED, "cannot be compared")


def test_a_table_in_many_chunks_equals_one_in_a_single_chunk() -> None:
    whole = table({"s": pa.array(["a", None, "b"]), "l": pa.array([[1.0], [], None])})
    parts = pa.concat_tables([whole.slice(2), whole.slice(0, 1), whole.slice(1, 1)])
    assert_verdict(compare(whole, parts), Validation.VALIDATED)
