"""The combined verdict over oracles; one test per trap of public harnesses that concerns validation."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import Sample, Status, Validation
from harness.validate import SortKey, compare, validate_answer
from validate_helpers import KINDS, PROPERTY, assert_verdict, columns, table

RIGHT = table({"k": pa.array([1, 2]), "v": pa.array(["a", "b"])})
WRONG = table({"k": pa.array([1, 2]), "v": pa.array(["a", "x"])})
EMPTY = RIGHT.slice(0, 0)


@PROPERTY
@given(data=st.data())
def test_validation_claimed_never_done__a_mutated_answer_must_fail(data: st.DataObject) -> None:
    """A table of several types with two oracles that agree: any one wrong cell is a mismatch with both."""
    names = data.draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=5))
    size = data.draw(st.integers(1, 6))
    values = [data.draw(columns(KINDS[name], size, size)) for name in names]

    def build(cells: list[list[object]]) -> pa.Table:
        return table([(name, KINDS[name].array(column)) for name, column in zip(names, cells, strict=True)])

    right = build(values)
    oracles = {"duckdb": right, "local": right.slice(0)}
    assert validate_answer(right, oracles)[0] is Validation.VALIDATED
    column, row = data.draw(st.integers(0, len(names) - 1)), data.draw(st.integers(0, size - 1))
    old, kind = values[column][row], KINDS[names[column]]
    new = data.draw(kind.values) if old is None else kind.change(old)
    mutated = [*values[column][:row], new, *values[column][row + 1 :]]
    verdict, each, reason = validate_answer(build([*values[:column], mutated, *values[column + 1 :]]), oracles)
    assert verdict is Validation.MISMATCH, f"{names[column]}: {old!r} -> {new!r} was {verdict.value}"
    assert each == dict.fromkeys(oracles, Validation.MISMATCH)
    assert reason is not None
    assert "row" in reason


def test_validation_claimed_never_done__nothing_defaults_to_validated() -> None:
    verdict, each, reason = validate_answer(RIGHT, {})
    assert (verdict, each) == (Validation.NOT_VALIDATED, {})
    assert reason == "no oracle has an answer to compare with"
    assert Sample.model_fields["validation"].default is Validation.NOT_VALIDATED
    assert {member.value for member in Validation} == {"validated", "mismatch", "vacuous", "not_validated"}


def test_validation_claimed_never_done__an_empty_answer_is_vacuous() -> None:
    assert_verdict(compare(EMPTY, EMPTY), Validation.VACUOUS)
    assert validate_answer(EMPTY, {"duckdb": EMPTY, "local": EMPTY})[0] is Validation.VACUOUS


def test_validation_claimed_never_done__an_empty_answer_of_another_schema_is_a_mismatch() -> None:
    assert_verdict(compare(EMPTY, EMPTY.select(["k"])), Validation.MISMATCH, "schema")


@pytest.mark.parametrize(("expected", "actual"), [(EMPTY, RIGHT), (RIGHT, EMPTY)], ids=["rows from nothing", "partial"])
def test_validation_claimed_never_done__empty_against_rows_is_a_mismatch(expected: pa.Table, actual: pa.Table) -> None:
    assert_verdict(compare(expected, actual), Validation.MISMATCH, "row_count")


def test_blank_cells_without_a_reason__every_verdict_but_validated_and_vacuous_says_why() -> None:
    undecided = compare(RIGHT, WRONG, order_by=[SortKey(column="k")], limit=2)
    for result in (compare(RIGHT, WRONG), compare(RIGHT, EMPTY), compare(RIGHT, RIGHT.select(["v", "k"])), undecided):
        assert result.validation not in {Validation.VALIDATED, Validation.VACUOUS}
        assert result.reason, result
    assert compare(RIGHT, RIGHT).reason is None
    assert compare(EMPTY, EMPTY).reason is None


def test_the_answer_is_validated_only_if_every_oracle_says_so() -> None:
    verdict, each, reason = validate_answer(RIGHT, {"duckdb": RIGHT, "local": RIGHT})
    assert (verdict, reason) == (Validation.VALIDATED, None)
    assert each == {"duckdb": Validation.VALIDATED, "local": Validation.VALIDATED}
    verdict, each, reason = validate_answer(WRONG, {"duckdb": RIGHT, "local": RIGHT})
    assert verdict is Validation.MISMATCH
    assert reason is not None
    assert "disagree" not in reason


def test_oracles_that_disagree_are_reported_as_such() -> None:
    verdict, each, reason = validate_answer(RIGHT, {"duckdb": WRONG, "local": RIGHT})
    assert verdict is Validation.MISMATCH
    assert each == {"duckdb": Validation.MISMATCH, "local": Validation.VALIDATED}
    assert reason is not None
    assert reason.startswith("oracles duckdb and local disagree with each other (values: row 1")
    assert "duckdb: values: row 1 (from 0), column 1 'v': expected 'x', got 'b'" in reason


def test_oracles_disagree_when_only_one_of_them_is_empty() -> None:
    verdict, each, reason = validate_answer(EMPTY, {"duckdb": EMPTY, "local": RIGHT})
    assert verdict is Validation.MISMATCH
    assert each == {"duckdb": Validation.VACUOUS, "local": Validation.MISMATCH}
    assert reason is not None
    assert "disagree" in reason


def test_one_doubtful_oracle_leaves_the_answer_not_validated() -> None:
    keys = [SortKey(column="k")]
    oracles = {"duckdb": RIGHT, "local": RIGHT.take([1, 0])}
    verdict, each, reason = validate_answer(RIGHT, oracles, order_by=keys, limit=2)
    assert verdict is Validation.NOT_VALIDATED
    assert each == {"duckdb": Validation.VALIDATED, "local": Validation.NOT_VALIDATED}
    assert reason is not None
    assert "local: oracle: the expected answer is not sorted" in reason


def test_every_oracle_brings_its_own_candidates() -> None:
    whole = table({"k": pa.array([1, 2, 2]), "v": pa.array(["a", "b", "c"])})
    first, second = whole.slice(0, 2), whole.take([0, 2])
    keys = [SortKey(column="k")]
    boundaries = {"duckdb": whole, "local": whole.take([0, 2, 1])}
    verdict, _, reason = validate_answer(
        second, {"duckdb": first, "local": second}, order_by=keys, limit=2, boundaries=boundaries
    )
    assert (verdict, reason) == (Validation.VALIDATED, None)
    verdict, each, _ = validate_answer(second, {"duckdb": first, "local": second}, order_by=keys, limit=2)
    assert verdict is Validation.NOT_VALIDATED
    assert each == {"duckdb": Validation.NOT_VALIDATED, "local": Validation.VALIDATED}


def test_a_mismatch_is_the_status_wrong_to_the_rest_of_the_harness() -> None:
    """The two closed enums stay apart: validation says what is known, status what became of the execution."""
    assert Status.WRONG.value not in {member.value for member in Validation}
