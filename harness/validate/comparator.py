"""The comparator: one answer against one expected answer, check after check.

Order: schema, row count, sortedness, LIMIT boundary, values. A check that makes the later ones meaningless ends the
comparison. An answer that is sorted by its ORDER BY keys and equals the expected one as a multiset also equals it
inside every group of tied rows, so the values are compared as one multiset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from harness.model import Validation
from harness.validate.describe import column_label, first_difference, show
from harness.validate.encode import IntArray, combine, encode
from harness.validate.match import TooAmbiguous, Unmatched, match
from harness.validate.model import DEFAULT_TOLERANCE, Comparison, Failure, SortKey, Step, Tolerance
from harness.validate.order import compare_to_row, first_unsorted, resolve_keys
from harness.validate.schema import Approx, Spec, TypeMismatchError, Unsupported, same_name, unify

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from harness.validate.encode import Encoded


def compare(
    expected: pa.Table,
    actual: pa.Table,
    *,
    order_by: Sequence[SortKey] = (),
    limit: int | None = None,
    boundary: pa.Table | None = None,
    tolerance: Tolerance = DEFAULT_TOLERANCE,
) -> Comparison:
    """Compares an answer with the expected one.

    Args:
        expected: The answer of an oracle.
        actual: The answer to judge.
        order_by: Keys that the answer must be sorted by. Without any, rows may come in any order.
        limit: LIMIT of the query. Where it cuts through rows that are tied on the keys, any of them may be there.
        boundary: The expected answer without LIMIT (at least all its rows up to the end of the tie), which says what
            the tied rows are. Without it, other tied rows than the expected ones, if they agree on the keys, leave the
            answer `not_validated`: they may be right.
        tolerance: Slack of floating-point values.

    Raises:
        UserError: A sort key does not name exactly one column.
    """
    job = _Job(expected, actual, tuple(order_by), limit, boundary, tolerance)
    try:
        specs, notes, problems = _schema(expected, actual, tolerance)
        if problems:
            return Comparison(validation=Validation.MISMATCH, failures=tuple(problems), notes=notes)
        positions = resolve_keys(job.order_by, expected.column_names)
        found = _check(job, specs, positions)
    except (Unsupported, TooAmbiguous) as error:
        step = Step.SCHEMA if isinstance(error, Unsupported) else Step.VALUES
        return _unknown(step, str(error))
    if expected.num_rows and all(column.null_count == expected.num_rows for column in expected.columns):
        notes += ("every expected value is NULL, so equality proves little",)
    return found.model_copy(update={"notes": notes})


@dataclass(frozen=True)
class _Job:
    expected: pa.Table
    actual: pa.Table
    order_by: tuple[SortKey, ...]
    limit: int | None
    boundary: pa.Table | None
    tolerance: Tolerance

    @property
    def cut(self) -> bool:
        """Whether the LIMIT may have cut rows off the expected answer."""
        if self.limit is None or self.expected.num_rows < self.limit:
            return False
        return self.boundary is None or self.boundary.num_rows > self.expected.num_rows


def _unknown(step: Step, message: str) -> Comparison:
    return Comparison(validation=Validation.NOT_VALIDATED, failures=(Failure(step, message),))


def _mismatch(*failures: Failure, rows: int = 0) -> Comparison:
    return Comparison(validation=Validation.MISMATCH, failures=failures, rows=rows)


def _schema(
    expected: pa.Table, actual: pa.Table, tolerance: Tolerance
) -> tuple[list[Spec], tuple[str, ...], list[Failure]]:
    """Common forms of the columns, what was normalised, and what cannot be."""
    if expected.num_columns != actual.num_columns:
        names = f"{expected.column_names}, got {actual.num_columns}: {actual.column_names}"
        return [], (), [Failure(Step.SCHEMA, f"expected {expected.num_columns} columns: {names}")]
    specs: list[Spec] = []
    notes: list[str] = []
    problems: list[Failure] = []
    for position, (left, right) in enumerate(zip(expected.schema, actual.schema, strict=True)):
        label = column_label(expected.column_names, position)
        if not same_name(left.name, right.name):
            problems.append(Failure(Step.SCHEMA, f"{label}: expected this name, got {right.name!r}"))
        elif left.name.casefold() != right.name.casefold():
            notes.append(f"{label}: got the made-up name {right.name!r}; names of expressions are not compared")
        try:
            spec = unify(left.type, right.type, tolerance)
        except TypeMismatchError as error:
            problems.append(Failure(Step.SCHEMA, f"{label}: {error}"))
            continue
        specs.append(spec)
        if not left.type.equals(right.type):
            slack = (
                f", within {spec.absolute:g} absolute, {spec.relative:g} relative" if isinstance(spec, Approx) else ""
            )
            notes.append(f"{label}: {left.type} and {right.type} compared as the same kind{slack}")
    return specs, tuple(notes), problems


def _check(job: _Job, specs: Sequence[Spec], positions: Sequence[int]) -> Comparison:
    """Everything after the schema."""
    expected, actual = job.expected, job.actual
    contradiction = _contradiction(job, positions)
    if contradiction:
        return _unknown(Step.ORACLE, contradiction)
    if expected.num_rows != actual.num_rows:
        limited = f" (LIMIT {job.limit})" if job.limit is not None else ""
        return _mismatch(Failure(Step.ROW_COUNT, f"expected {expected.num_rows} rows{limited}, got {actual.num_rows}"))
    if not expected.num_rows:
        return Comparison(validation=Validation.VACUOUS)
    failures = _order_failures(job, positions)
    problem = _cut_values(job, specs, positions) if job.cut else _whole_values(job, specs)
    if problem is None and not failures:
        return Comparison(validation=Validation.VALIDATED, rows=actual.num_rows)
    if problem is not None and not failures and problem.validation is Validation.NOT_VALIDATED:
        return problem
    if problem is not None:
        failures += problem.failures
    return _mismatch(*failures, rows=actual.num_rows)


def _contradiction(job: _Job, positions: Sequence[int]) -> str | None:
    """What makes the expected side unusable, if anything."""
    if job.limit is None:
        return None
    expected, boundary = job.expected, job.boundary
    if expected.num_rows > job.limit:
        return f"the expected answer has {expected.num_rows} rows, more than its LIMIT {job.limit}"
    if boundary is not None:
        problems = _schema(expected, boundary, job.tolerance)[2]
        if problems:
            return f"the answer without LIMIT has another schema than the expected one: {problems[0].message}"
        full = min(job.limit, boundary.num_rows)
        if expected.num_rows != full:
            return f"the expected answer has {expected.num_rows} rows, but the answer without LIMIT gives {full}"
    row = first_unsorted(expected, job.order_by, positions, job.tolerance) if job.cut else -1
    if row >= 0:
        # Its last row is then not the last by key, and says nothing about where the LIMIT cut.
        return f"the expected answer is not sorted by {_keys(job)}: row {row} belongs before row {row - 1}"
    return None


def _keys(job: _Job) -> str:
    return ", ".join(str(key) for key in job.order_by)


def _order_failures(job: _Job, positions: Sequence[int]) -> tuple[Failure, ...]:
    row = first_unsorted(job.actual, job.order_by, positions, job.tolerance)
    if row < 0:
        return ()
    shown = [
        f"{column_label(job.actual.column_names, p)} is {show(job.actual, row - 1, p)}, then {show(job.actual, row, p)}"
        for p in dict.fromkeys(positions)
    ]
    where = f"row {row} (from 0) belongs before row {row - 1}: {'; '.join(shown)}"
    return (Failure(Step.ORDER, f"not sorted by {_keys(job)}: {where}"),)


def _match(
    expected: pa.Table, actual: pa.Table, specs: Sequence[Spec], side: IntArray | None = None
) -> tuple[list[Encoded], Unmatched]:
    """Encoded columns of both tables, and the rows without partner.

    `side` says of every expected row whether the answer must hold it (-1), may hold it (0) or must not (1).
    """
    columns = [encode(spec, [expected.column(i), actual.column(i)]) for i, spec in enumerate(specs)]
    rows = combine(columns, expected.num_rows + actual.num_rows)
    if side is None:
        return columns, match(rows, expected.num_rows)
    # Rows are dropped here and not in the tables, because Arrow cannot filter every type that it can hold.
    kept = np.flatnonzero(side <= 0)
    rows = rows.take(np.concatenate((kept, np.arange(expected.num_rows, len(rows)))))
    unmatched = match(rows, len(kept), side[kept] == 0)
    return columns, Unmatched(kept[unmatched.expected], unmatched.actual)


def _whole_values(job: _Job, specs: Sequence[Spec]) -> Comparison | None:
    columns, unmatched = _match(job.expected, job.actual, specs)
    if not unmatched:
        return None
    message = first_difference(job.expected, job.actual, columns, unmatched, against=None)
    return _mismatch(Failure(Step.VALUES, message))


def _cut_values(job: _Job, specs: Sequence[Spec], positions: Sequence[int]) -> Comparison | None:
    """Values of an answer whose LIMIT may cut through tied rows."""
    last = job.expected.slice(job.expected.num_rows - 1)
    if job.boundary is None:
        return _cut_without_candidates(job, specs, positions, last)
    side = compare_to_row(job.boundary, last, job.order_by, positions, job.tolerance)
    # These rows come from another execution than `expected`, so their types are looked at anew.
    pairs = zip(job.boundary.schema, job.actual.schema, strict=True)
    specs = [unify(left.type, right.type, job.tolerance) for left, right in pairs]
    columns, unmatched = _match(job.boundary, job.actual, specs, side)
    if not unmatched:
        return None
    tied = np.flatnonzero(side == 0)
    message = first_difference(job.boundary, job.actual, columns, unmatched, against=tied)
    at_boundary = not len(unmatched.expected)
    hint = f"; expected one of the {len(tied)} rows tied at LIMIT {job.limit}" if at_boundary else ""
    return _mismatch(Failure(Step.LIMIT if at_boundary else Step.VALUES, message + hint))


def _cut_without_candidates(
    job: _Job, specs: Sequence[Spec], positions: Sequence[int], last: pa.Table
) -> Comparison | None:
    columns, unmatched = _match(job.expected, job.actual, specs)
    if not unmatched:
        return None
    tied = [
        compare_to_row(table, last, job.order_by, positions, job.tolerance)[rows] == 0
        for table, rows in ((job.expected, unmatched.expected), (job.actual, unmatched.actual))
    ]
    message = first_difference(job.expected, job.actual, columns, unmatched, against=None)
    if not all(side.all() for side in tied):
        return _mismatch(Failure(Step.VALUES, message))
    explained = (
        f"rows tied at LIMIT {job.limit} differ beyond their sort keys, and the answer without LIMIT is not given"
    )
    return _unknown(Step.LIMIT, f"{explained}: {message}")
