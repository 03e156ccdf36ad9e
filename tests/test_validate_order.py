"""ORDER BY and LIMIT: sortedness with NULLs, ties in any order, and the rows tied where a LIMIT cuts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.model import Validation
from harness.validate import SortKey, compare
from validate_helpers import FLAT, PROPERTY, assert_verdict, columns, table

BY_K = (SortKey(column="k"),)
SORTABLE = [name for name in FLAT if name not in {"interval", "float16", "uint64"}]


def pairs(*rows: tuple[Any, Any]) -> pa.Table:
    """Rows of a key and a value."""
    keys, values = zip(*rows, strict=True) if rows else ((), ())
    return table({"k": pa.array(keys, pa.int64()), "v": pa.array(values, pa.string())})


def reference_order(values: list[Any], key: SortKey) -> list[int]:
    """Positions in the order that SQL asks for, by Python's own comparison; NaN is the largest number."""

    def rank(value: Any) -> Any:
        return (1, 0) if isinstance(value, float) and value != value else (0, value)

    nulls = [i for i, value in enumerate(values) if value is None]
    others = [i for i, value in enumerate(values) if value is not None]
    others.sort(key=lambda i: rank(values[i]), reverse=key.descending)
    return nulls + others if key.nulls_lead else others + nulls


@pytest.mark.parametrize("name", SORTABLE)
@PROPERTY
@given(data=st.data())
def test_sorted_answers_pass_and_a_swap_of_unequal_neighbours_is_detected(name: str, data: st.DataObject) -> None:
    kind = FLAT[name]
    values = data.draw(columns(kind, min_size=2))
    key = SortKey(
        column=0, descending=data.draw(st.booleans()), nulls_first=data.draw(st.sampled_from([None, True, False]))
    )
    ordered = [values[i] for i in reference_order(values, key)]
    expected = table({"k": kind.array(ordered)})
    assert_verdict(compare(expected, expected, order_by=[key]), Validation.VALIDATED)
    places = [i for i in range(len(ordered) - 1) if not _same(ordered[i], ordered[i + 1])]
    assume(places)
    place = data.draw(st.sampled_from(places))
    ordered[place], ordered[place + 1] = ordered[place + 1], ordered[place]
    swapped = table({"k": kind.array(ordered)})
    assert_verdict(compare(expected, swapped), Validation.VALIDATED)
    result = compare(expected, swapped, order_by=[key])
    assert_verdict(result, Validation.MISMATCH, f"order: not sorted by {key}: row {place + 1} (from 0) belongs before")


def _same(left: Any, right: Any) -> bool:
    return (
        left is right or left == right or (left is not None and right is not None and left != left and right != right)
    )


@PROPERTY
@given(data=st.data())
def test_permuted_ties_are_equal(data: st.DataObject) -> None:
    keys = sorted(data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=12)))
    rows = [(key, f"{key}-{i}") for i, key in enumerate(keys)]
    shuffled = sorted(data.draw(st.permutations(rows)), key=lambda row: row[0])
    assert_verdict(compare(pairs(*rows), pairs(*shuffled), order_by=BY_K), Validation.VALIDATED)


def test_a_value_that_moved_to_another_tie_group_is_unequal() -> None:
    result = compare(pairs((1, "a"), (2, "b")), pairs((1, "b"), (2, "a")), order_by=BY_K)
    assert_verdict(result, Validation.MISMATCH, "values: row 0", "column 1 'v'", "2 of 2 rows differ")


def test_an_unsorted_answer_is_detected_with_the_keys_shown() -> None:
    expected = pairs((1, "a"), (2, "b"), (3, "c"))
    result = compare(expected, expected.take([0, 2, 1]), order_by=BY_K)
    assert_verdict(result, Validation.MISMATCH, "row 2 (from 0) belongs before row 1: column 0 'k' is 3, then 2")


def test_several_keys_sort_lexicographically() -> None:
    keys = (SortKey(column="a", descending=True), SortKey(column="b"))
    rows = table({"a": pa.array([2, 2, 1, 1]), "b": pa.array(["x", "y", "a", "z"])})
    assert_verdict(compare(rows, rows, order_by=keys), Validation.VALIDATED)
    assert_verdict(
        compare(rows, rows.take([1, 0, 2, 3]), order_by=keys), Validation.MISMATCH, "order", "'b' is 'y', then 'x'"
    )


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [None, False, True])
def test_nulls_stand_where_the_key_says(descending: bool, nulls_first: bool | None) -> None:  # noqa: FBT001
    """NULL sorts as the largest value unless the key says otherwise."""
    key = SortKey(column="k", descending=descending, nulls_first=nulls_first)
    first = nulls_first if nulls_first is not None else descending
    lead, trail = pairs((None, "n"), (1, "a")), pairs((1, "a"), (None, "n"))
    right, wrong = (lead, trail) if first else (trail, lead)
    assert_verdict(compare(right, right, order_by=[key]), Validation.VALIDATED)
    assert_verdict(compare(right, wrong, order_by=[key]), Validation.MISMATCH, "order")


def test_nan_sorts_as_the_largest_number_and_minus_zero_as_zero() -> None:
    values = pa.array([-1.0, 0.0, -0.0, 0.0, 1.0, float("inf"), float("nan")])
    assert_verdict(compare(table({"k": values}), table({"k": values}), order_by=BY_K), Validation.VALIDATED)
    first = values.take(pa.array([6, 0, 1, 2, 3, 4, 5]))
    assert_verdict(compare(table({"k": values}), table({"k": first}), order_by=BY_K), Validation.MISMATCH, "order")


def test_sortedness_is_judged_by_the_answers_own_values() -> None:
    """An average of which the oracle shows fewer digits may tie there and not here."""
    expected = table(
        {"k": pa.array([Decimal("0.333333"), Decimal("0.333333")], pa.decimal128(19, 6)), "v": pa.array(["a", "b"])}
    )
    actual = table({"k": pa.array([0.3333330001, 0.3333334]), "v": pa.array(["b", "a"])})
    assert_verdict(compare(expected, actual, order_by=BY_K), Validation.VALIDATED)
    unsorted = table({"k": pa.array([0.3333334, 0.3333330001]), "v": pa.array(["b", "a"])})
    assert_verdict(compare(expected, unsorted, order_by=BY_K), Validation.MISMATCH, "order")


WHOLE = pairs((1, "a"), (2, "b"), (2, "c"), (2, "d"), (3, "e"))
CUT = WHOLE.slice(0, 3)


@pytest.mark.parametrize("tied", [("b", "c"), ("c", "b"), ("b", "d"), ("d", "c")])
def test_any_of_the_rows_tied_at_the_limit_may_be_there(tied: tuple[str, str]) -> None:
    actual = pairs((1, "a"), *((2, value) for value in tied))
    assert_verdict(compare(CUT, actual, order_by=BY_K, limit=3, boundary=WHOLE), Validation.VALIDATED)


@pytest.mark.parametrize(
    ("rows", "hint"),
    [
        ([(1, "a"), (2, "b"), (2, "x")], "limit: row 2 (from 0), column 1 'v'"),
        ([(1, "a"), (2, "b"), (2, "b")], "limit: row 2 (from 0)"),
        ([(1, "x"), (2, "b"), (2, "c")], "values: row 0 (from 0), column 1 'v': expected 'a', got 'x'"),
        ([(2, "b"), (2, "c"), (2, "d")], "values: "),
        ([(1, "a"), (2, "b"), (3, "e")], "limit: row 2 (from 0), column 0 'k': expected 2, got 3"),
        ([(1, "a"), (2, "b"), (2, "e")], "limit: row 2 (from 0)"),
    ],
    ids=[
        "no candidate",
        "a candidate twice",
        "before the tie",
        "row before the tie missing",
        "beyond the tie",
        "key changed",
    ],
)
def test_other_rows_at_the_limit_are_unequal(rows: list[tuple[int, str]], hint: str) -> None:
    assert_verdict(compare(CUT, pairs(*rows), order_by=BY_K, limit=3, boundary=WHOLE), Validation.MISMATCH, hint)


@PROPERTY
@given(data=st.data())
def test_limit_boundary_property(data: st.DataObject) -> None:
    """Whatever an engine may return passes; one changed cell in it does not."""
    keys = sorted(data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=10)))
    whole = [(key, f"{key}-{data.draw(st.integers(0, 1))}") for key in keys]
    limit = data.draw(st.integers(1, len(whole)))
    answers = [sorted(data.draw(st.permutations(whole)), key=lambda row: row[0])[:limit] for _ in range(2)]
    expected, actual = (pairs(*answer) for answer in answers)
    boundary = pairs(*whole)
    assert_verdict(compare(expected, actual, order_by=BY_K, limit=limit, boundary=boundary), Validation.VALIDATED)
    row = data.draw(st.integers(0, limit - 1))
    wrong = [*answers[1][:row], (answers[1][row][0], "wrong"), *answers[1][row + 1 :]]
    result = compare(expected, pairs(*wrong), order_by=BY_K, limit=limit, boundary=boundary)
    assert_verdict(result, Validation.MISMATCH, f"row {row} (from 0)")


def test_a_limit_without_order_takes_any_rows_of_the_whole_answer() -> None:
    chosen = WHOLE.take([4, 0, 2])
    assert_verdict(compare(CUT, chosen, limit=3, boundary=WHOLE), Validation.VALIDATED)
    assert_verdict(
        compare(CUT, pairs((1, "a"), (1, "a"), (2, "b")), limit=3, boundary=WHOLE), Validation.MISMATCH, "limit"
    )


def test_without_candidates_other_tied_rows_are_not_validated() -> None:
    """They may be right, but that is not known; everything that can be known is still checked."""
    same = compare(CUT, CUT.take([0, 2, 1]), order_by=BY_K, limit=3)
    assert_verdict(same, Validation.VALIDATED)
    other = compare(CUT, pairs((1, "a"), (2, "c"), (2, "d")), order_by=BY_K, limit=3)
    assert_verdict(other, Validation.NOT_VALIDATED, "rows tied at LIMIT 3 differ", "column 1 'v'")
    before = compare(CUT, pairs((1, "x"), (2, "b"), (2, "c")), order_by=BY_K, limit=3)
    assert_verdict(before, Validation.MISMATCH, "values: row 0")
    key = compare(CUT, pairs((1, "a"), (2, "b"), (3, "c")), order_by=BY_K, limit=3)
    assert_verdict(key, Validation.MISMATCH, "values: row 2", "column 0 'k'")


def test_a_limit_that_cuts_nothing_excuses_nothing() -> None:
    wrong = pairs((1, "a"), (2, "b"), (2, "x"))
    assert_verdict(compare(CUT, wrong, order_by=BY_K, limit=10), Validation.MISMATCH, "values: row 2")
    assert_verdict(compare(CUT, wrong, order_by=BY_K, limit=3, boundary=CUT), Validation.MISMATCH, "values: row 2")


def test_float_keys_tie_within_tolerance() -> None:
    """Two sums that are equal in one engine differ in the last bit in the other."""
    whole = table({"k": pa.array([1.0, 2.0, 2.0]), "v": pa.array(["a", "b", "c"])})
    actual = table({"k": pa.array([1.0, 2.0 - 4e-16]), "v": pa.array(["a", "c"])})
    result = compare(whole.slice(0, 2), actual, order_by=BY_K, limit=2, boundary=whole)
    assert_verdict(result, Validation.VALIDATED)


def test_candidates_of_types_that_arrow_cannot_filter() -> None:
    def views(rows: pa.Table) -> pa.Table:
        return rows.set_column(1, "v", rows.column("v").cast(pa.string_view()))

    actual = pairs((1, "a"), (2, "d"), (2, "c"))
    assert_verdict(
        compare(views(CUT), views(actual), order_by=BY_K, limit=3, boundary=views(WHOLE)), Validation.VALIDATED
    )


@pytest.mark.parametrize(
    ("expected", "limit", "boundary", "hint"),
    [
        (CUT, 2, None, "has 3 rows, more than its LIMIT 2"),
        (CUT, 4, WHOLE, "has 3 rows, but the answer without LIMIT gives 4"),
        (CUT, 3, WHOLE.select(["k"]), "another schema"),
        (CUT.take([2, 0, 1]), 3, WHOLE, "is not sorted by k ASC NULLS LAST: row 1 belongs before row 0"),
    ],
    ids=["too long", "too short", "schema", "unsorted"],
)
def test_an_oracle_that_contradicts_itself_validates_nothing(
    expected: pa.Table, limit: int, boundary: pa.Table | None, hint: str
) -> None:
    result = compare(expected, CUT, order_by=BY_K, limit=limit, boundary=boundary)
    assert_verdict(result, Validation.NOT_VALIDATED, "oracle: ", hint)


@pytest.mark.parametrize(
    ("key", "hint"),
    [("nope", "is in no column"), (7, "is in no column"), ("x", r"is in columns \[0, 1\]; give a position")],
)
def test_a_sort_key_that_names_no_single_column_is_an_error(key: str | int, hint: str) -> None:
    rows = table([("x", pa.array([1])), ("X", pa.array([2]))])
    with pytest.raises(UserError, match=hint):
        compare(rows, rows, order_by=[SortKey(column=key)])


def test_a_sort_key_of_nested_type_is_not_validated() -> None:
    rows = table({"k": pa.array([[1], [2]])})
    assert_verdict(compare(rows, rows, order_by=BY_K), Validation.NOT_VALIDATED, "nested")
