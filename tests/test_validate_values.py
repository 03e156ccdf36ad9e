"""Values: floats within tolerance, NaN, zero, NULL, and matching of rows that are only nearly equal."""

from __future__ import annotations

import math
import time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import Validation
from harness.validate import Tolerance, compare
from harness.validate.encode import combine, encode
from harness.validate.match import match
from harness.validate.model import FLOAT_ABSOLUTE, FLOAT_RELATIVE
from harness.validate.schema import Approx
from validate_helpers import PROPERTY, assert_verdict, table

NAN, INF = math.nan, math.inf


def floats(*values: float | None) -> pa.Table:
    """One column of doubles."""
    return table({"x": pa.array(values, pa.float64())})


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (NAN, NAN),
        (0.0, -0.0),
        (INF, INF),
        (None, None),
        (1e300, 1e300 * (1 + 1e-12)),
        (0.0, FLOAT_ABSOLUTE / 2),
        (5e-324, 0.0),
    ],
)
def test_floats_that_are_equal(left: float | None, right: float | None) -> None:
    assert_verdict(compare(floats(left), floats(right)), Validation.VALIDATED)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (NAN, None), (None, 0.0), (NAN, 0.0), (INF, -INF), (INF, NAN), (INF, 1.7e308), (-1.7e308, 1.7e308),
        (1.0, 1.0 + 3 * FLOAT_RELATIVE), (0.0, 3 * FLOAT_ABSOLUTE), (0.0, 0.01),
    ],
)  # fmt: skip
def test_floats_that_are_unequal(left: float | None, right: float | None) -> None:
    assert_verdict(compare(floats(left), floats(right)), Validation.MISMATCH, "column 0 'x'")
    assert_verdict(compare(floats(right), floats(left)), Validation.MISMATCH, "column 0 'x'")


def test_null_equals_only_null_in_every_position() -> None:
    expected = table({"a": pa.array([None, 1]), "b": pa.array(["", None])})
    assert_verdict(compare(expected, expected.take([1, 0])), Validation.VALIDATED)
    for wrong in (
        {"a": pa.array([0, 1]), "b": pa.array(["", None])},
        {"a": pa.array([None, 1]), "b": pa.array(["", ""])},
    ):
        assert_verdict(compare(expected, table(wrong)), Validation.MISMATCH)


def test_an_average_may_be_a_truncated_decimal_in_one_engine() -> None:
    """DataFusion cuts the average of a decimal off after four more digits, DuckDB gives a double."""
    decimal = table({"avg": pa.array([Decimal("25.333333")], pa.decimal128(19, 6))})
    assert_verdict(compare(floats(25.333333999).rename_columns(["avg"]), decimal), Validation.VALIDATED)
    assert_verdict(compare(floats(25.333335).rename_columns(["avg"]), decimal), Validation.MISMATCH)


def test_a_sum_as_decimal_gets_no_slack_of_its_own() -> None:
    decimal = table({"x": pa.array([Decimal("100.00")], pa.decimal128(17, 2))})
    assert_verdict(compare(floats(100.0 + 1e-8), decimal), Validation.VALIDATED)
    assert_verdict(compare(floats(100.01), decimal), Validation.MISMATCH)


def test_the_tolerance_can_be_set() -> None:
    loose = Tolerance(relative=0.01)
    assert_verdict(compare(floats(100.0), floats(100.9), tolerance=loose), Validation.VALIDATED)
    assert_verdict(compare(floats(100.0), floats(102.0), tolerance=loose), Validation.MISMATCH)
    assert_verdict(
        compare(floats(1.0), floats(1.0 + 1e-15), tolerance=Tolerance(relative=0, absolute=0)), Validation.MISMATCH
    )


def test_rows_are_not_mistaken_when_noise_changes_their_order() -> None:
    """Sorting both sides by the first column would pair the wrong rows here."""
    expected = table({"x": pa.array([1.0, 1.0 + 1e-13]), "y": pa.array([10.0, 20.0])})
    actual = table({"x": pa.array([1.0 + 2e-13, 1.0]), "y": pa.array([10.0, 20.0])})
    assert_verdict(compare(expected, actual), Validation.VALIDATED)
    wrong = table({"x": pa.array([1.0 + 2e-13, 1.0]), "y": pa.array([10.0, 10.0])})
    assert_verdict(compare(expected, wrong), Validation.MISMATCH, "column 1 'y': expected 20.0, got 10.0")


def _covers(edges: list[list[bool]]) -> bool:
    """Whether every row finds a column of its own, by trying everything."""

    def place(row: int, used: frozenset[int]) -> bool:
        if row == len(edges):
            return True
        return any(place(row + 1, used | {i}) for i, edge in enumerate(edges[row]) if edge and i not in used)

    return place(0, frozenset())


@PROPERTY
@given(data=st.data())
def test_matching_agrees_with_trying_everything(data: st.DataObject) -> None:
    """Tolerance 1 and values on a grid of halves: nearly everything is nearly equal to something."""
    width = data.draw(st.integers(1, 3))
    row = st.tuples(*[st.integers(0, 6).map(lambda i: i / 2)] * width)
    actual = data.draw(st.lists(row, min_size=1, max_size=6))
    expected = data.draw(st.lists(row, min_size=len(actual), max_size=7))
    optional = data.draw(st.lists(st.booleans(), min_size=len(expected), max_size=len(expected)))
    spec = Approx(absolute=1.0, relative=0.0)
    columns = [encode(spec, [pa.array([r[i] for r in side]) for side in (expected, actual)]) for i in range(width)]
    rows = combine(columns, len(expected) + len(actual))
    found = match(rows, len(expected), np.array(optional))
    edges = [[all(abs(x - y) <= 1 for x, y in zip(a, e, strict=True)) for e in expected] for a in actual]
    needed = [[edges[a][e] for a in range(len(actual))] for e in range(len(expected)) if not optional[e]]
    assert (not len(found.actual)) == _covers(edges), (expected, actual, found)
    assert (not len(found.expected)) == _covers(needed), (expected, actual, optional, found)


def test_too_many_nearly_equal_rows_are_not_validated_rather_than_guessed() -> None:
    """A chain in which every row equals its neighbours only, in two columns, shuffled against each other."""
    chain = np.arange(2500) * 0.7
    expected = table({"x": pa.array(chain), "y": pa.array(chain)})
    actual = table({"x": pa.array(chain), "y": pa.array(np.roll(chain, 700))})
    result = compare(expected, actual, tolerance=Tolerance(absolute=1.0))
    assert_verdict(result, Validation.NOT_VALIDATED, "too alike")


def test_the_message_names_the_first_row_the_column_and_both_values() -> None:
    expected = table({"k": pa.array([1, 2, 3]), "s": pa.array(["a", "b", "c"]), "x": pa.array([1.5, 2.5, 3.5])})
    actual = table({"k": pa.array([1, 2, 3]), "s": pa.array(["a", "b", "z"]), "x": pa.array([1.5, 9.5, 9.5])})
    result = compare(expected, actual)
    assert_verdict(result, Validation.MISMATCH)
    assert result.reason == "values: row 1 (from 0), column 2 'x': expected 2.5, got 9.5; 2 of 3 rows differ"
    several = compare(expected.slice(2), actual.slice(2))
    assert several.reason == (
        "values: row 0 (from 0), column 1 's': expected 'c', got 'z' (also column 2 'x'); 1 of 1 rows differ"
    )


def test_a_long_value_is_shortened_in_the_message() -> None:
    result = compare(table({"s": pa.array(["a"])}), table({"s": pa.array(["b" * 5000])}))
    assert_verdict(result, Validation.MISMATCH, "bbb...")
    assert len(result.reason or "") < 400


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (pa.timestamp("s"), 2**62),
        (pa.timestamp("ns"), 10**18 + 1),
        (pa.timestamp("us", "Mars/Olympus"), 7),
        (pa.date32(), 2**31 - 1),
    ],
    ids=str,
)
def test_values_without_a_python_object_are_shown(dtype: pa.DataType, value: int) -> None:
    ticks = pa.array([value], pa.int32() if dtype == pa.date32() else pa.int64())
    result = compare(table({"t": ticks.view(dtype)}), table({"t": pa.array([0], ticks.type).view(dtype)}))
    assert_verdict(result, Validation.MISMATCH, "row 0 (from 0), column 0 't': expected ")


def test_an_answer_of_nothing_but_nulls_is_noted() -> None:
    result = compare(floats(None), floats(None))
    assert_verdict(result, Validation.VALIDATED)
    assert result.notes == ("every expected value is NULL, so equality proves little",)


def test_an_answer_of_40_000_rows_takes_less_than_a_second() -> None:
    """CPU time of this process, so that other load does not matter. The largest answer of TPC-H has 38 000 rows."""
    rows, rng = 40_000, np.random.default_rng(1)
    expected = table(
        {
            "key": pa.array(rng.integers(0, 500, rows)),
            "text": pa.array([f"Customer#{i % 9999:09}" for i in range(rows)]),
            "money": pa.array(rng.integers(0, 10**9, rows)).cast(pa.decimal128(38, 4)),
            "x": pa.array(rng.random(rows) * 1e6),
            "y": pa.array(np.round(rng.random(rows), 2)),
        }
    )
    shuffled = expected.take(pa.array(rng.permutation(rows)))
    noisy = shuffled.set_column(3, "x", pa.array(shuffled["x"].to_numpy() * (1 + 1e-13 * rng.standard_normal(rows))))
    for names in (expected.column_names, ["x", "y"], ["key", "y"]):
        started = time.process_time()
        result = compare(expected.select(names), noisy.select(names))
        spent = time.process_time() - started
        assert_verdict(result, Validation.VALIDATED)
        assert result.rows == rows
        assert spent < 1.0, f"compare() of columns {names}: expected < 1 s of CPU, got {spent:.2f} s"
