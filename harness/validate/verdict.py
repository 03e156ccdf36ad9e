"""One verdict from several oracles: an answer is validated only if every oracle says so."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from harness.model import Validation
from harness.validate.comparator import compare
from harness.validate.model import DEFAULT_TOLERANCE, Comparison, Judgement, QueryMeta, SortKey, Tolerance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa


def validate_answer(
    actual: pa.Table,
    oracles: Mapping[str, pa.Table],
    *,
    order_by: Sequence[SortKey] = (),
    limit: int | None = None,
    boundaries: Mapping[str, pa.Table] | None = None,
    tolerance: Tolerance = DEFAULT_TOLERANCE,
) -> tuple[Validation, dict[str, Validation], str | None]:
    """Compares an answer with every oracle; see `compare` for the parameters.

    Returns the combined verdict, the verdict per oracle, and a reason unless the answer is validated or vacuous.
    `boundaries` holds, per oracle, its answer without LIMIT. If the oracles contradict each other, the reason says so
    first: then it is not known which side is wrong.

    Raises:
        UserError: A sort key does not name exactly one column.
    """
    meta = QueryMeta(order_by=tuple(order_by), limit=limit, tolerance=tolerance)
    verdict = judge(actual, oracles, meta, boundaries)
    return verdict.validation, dict(verdict.oracles), verdict.reason


def judge(
    actual: pa.Table,
    oracles: Mapping[str, pa.Table],
    meta: QueryMeta,
    boundaries: Mapping[str, pa.Table] | None = None,
    unreadable: Mapping[str, str] | None = None,
) -> Judgement:
    """As `validate_answer`, with notes and row count; `unreadable` names oracles that have no table, and why."""
    boundaries, unreadable = boundaries or {}, unreadable or {}
    results = {name: _compare(table, actual, meta, boundaries.get(name)) for name, table in oracles.items()}
    verdicts = {name: result.validation for name, result in results.items()}
    verdicts |= dict.fromkeys(unreadable, Validation.NOT_VALIDATED)
    combined = _combine(list(verdicts.values()))
    reasons = [f"{name}: {result.reason}" for name, result in results.items() if result.reason]
    reasons += [f"{name}: {reason}" for name, reason in unreadable.items()]
    if combined is not Validation.VALIDATED:
        reasons = _disagreements(oracles, meta, boundaries) + reasons
    if not verdicts:
        reasons = ["no oracle has an answer to compare with"]
    return Judgement(
        validation=combined,
        oracles=verdicts,
        reason="; ".join(reasons) or None,
        rows=actual.num_rows,
        notes=tuple(f"{name}: {note}" for name, result in results.items() for note in result.notes),
    )


def _compare(expected: pa.Table, actual: pa.Table, meta: QueryMeta, boundary: pa.Table | None) -> Comparison:
    return compare(
        expected, actual, order_by=meta.order_by, limit=meta.limit, boundary=boundary, tolerance=meta.tolerance
    )


def _combine(verdicts: Sequence[Validation]) -> Validation:
    """One mismatch is a mismatch; any doubt is `not_validated`; `vacuous` and `validated` only if unanimous."""
    if Validation.MISMATCH in verdicts:
        return Validation.MISMATCH
    unanimous = set(verdicts)
    return unanimous.pop() if len(unanimous) == 1 else Validation.NOT_VALIDATED


def _disagreements(oracles: Mapping[str, pa.Table], meta: QueryMeta, boundaries: Mapping[str, pa.Table]) -> list[str]:
    found = []
    for first, second in combinations(oracles, 2):
        result = _compare(oracles[first], oracles[second], meta, boundaries.get(first))
        if result.validation is Validation.MISMATCH:
            found.append(f"oracles {first} and {second} disagree with each other ({result.reason})")
    return found
