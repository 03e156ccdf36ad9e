"""The canonical hash: blind to the order of rows and to physical types, not to any value."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.validate import answer_hash
from test_validate_types import SAME_MEANING, _build
from validate_helpers import KINDS, PROPERTY, columns, table


@pytest.mark.parametrize("name", KINDS)
@PROPERTY
@given(data=st.data())
def test_the_hash_ignores_the_order_of_rows_but_no_value(name: str, data: st.DataObject) -> None:
    kind = KINDS[name]
    values = data.draw(columns(kind))
    shuffled = data.draw(st.permutations(values))
    original = answer_hash(table({"c": kind.array(values)}))
    assert answer_hash(table({"other_name": kind.array(shuffled)})) == original
    row = data.draw(st.integers(0, len(values) - 1))
    wrong = [
        *values[:row],
        data.draw(kind.values) if values[row] is None else kind.change(values[row]),
        *values[row + 1 :],
    ]
    assert answer_hash(table({"c": kind.array(wrong)})) != original
    assert answer_hash(table({"c": kind.array([*values, values[0]])})) != original


@pytest.mark.parametrize("case", [c for c in SAME_MEANING if "NULL" not in c[0]], ids=lambda case: case[0])
def test_the_hash_ignores_physical_types(case: tuple[str, list[object], pa.DataType, pa.DataType]) -> None:
    _, values, left, right = case
    assert answer_hash(table({"c": _build(values, left)})) == answer_hash(table({"c": _build(values, right)}))


def test_the_hash_keeps_columns_apart() -> None:
    """Texts that run together, and columns that change places."""
    split = table({"a": pa.array(["x:1", "2"]), "b": pa.array(["y", "z"])})
    assert answer_hash(split) != answer_hash(table({"a": pa.array(["x", "2"]), "b": pa.array([":1y", "z"])}))
    assert answer_hash(split) != answer_hash(split.select([1, 0]))
    assert answer_hash(split.slice(0, 0)) != answer_hash(split.select([0]).slice(0, 0))


def test_the_hash_takes_floats_to_nine_digits() -> None:
    def of(value: float) -> str:
        return answer_hash(table({"x": pa.array([value])}))

    assert of(0.1 + 0.2) == of(0.3)
    assert of(-0.0) == of(0.0)
    assert of(1.00000001) != of(1.0)
