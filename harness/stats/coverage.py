"""What ran, what counts, and whether a total may be printed at all.

A failed execution has no time. It is never 0, never left out silently, and never makes a total smaller: a total or a
factor exists only where both arms have valid times for exactly the same queries.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from harness.errors import EXIT_NOT_COMPARABLE, EXIT_OK, EXIT_REGRESSION
from harness.model import Frozen, Phase, Reach, Sample, Status, Validation, Verdict, VerdictKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

Side = Literal["base", "new"]

SEVERITY = (
    Status.WRONG,
    Status.CRASH,
    Status.OOM,
    Status.TIMEOUT,
    Status.ERROR,
    Status.UNSUPPORTED,
    Status.NOT_RUN,
    Status.OK,
)
"""Which status a cell shows when its rounds differ, worst first: a silent wrong answer outranks a loud failure."""

_DECLARED = (Status.UNSUPPORTED,)
"""Statuses that are announced limits, not failures."""


class Cell(Frozen):
    """One query in one arm over all timed rounds, with everything that a report's cell must say."""

    arm: str
    query: str
    times_ms: tuple[float | None, ...] = Field(description="One per round; null where the round gave no valid time")
    status: Status
    reason: str | None = Field(default=None, description="Why the cell is not ok or does not count")
    log: str | None = None
    repro: str | None = None
    validation: Validation
    reach: Reach | None
    valid: bool = Field(description="Every round has a time, the answer is as sure as asked for")

    @property
    def distributed(self) -> bool:
        """Whether it may stand in a distributed total: false once any round ran without a remote task."""
        return self.reach is not Reach.NOT_DISTRIBUTED

    @property
    def median_ms(self) -> float | None:
        """Median over rounds, or None if the cell is not valid."""
        times = [time for time in self.times_ms if time is not None]
        return statistics.median(times) if self.valid and times else None


class Gap(Frozen):
    """A query that one arm cannot contribute to a total, and why."""

    query: str
    side: Side
    status: Status
    reason: str
    log: str | None = None
    repro: str | None = None


class Total(Frozen):
    """Sum of the per-query medians. The three figures exist only if both arms are valid on the same queries."""

    base_ms: float | None = None
    new_ms: float | None = None
    factor: float | None = Field(default=None, description="new / base")
    counted: int = Field(description="k of `k of N`: queries valid in both arms and distributed where they should be")
    planned: int = Field(description="N of `k of N`")
    reason: str | None = Field(default=None, description="Why there is no figure")

    @property
    def words(self) -> str:
        """The `k of N` that every total is printed with."""
        return f"{self.counted} of {self.planned}"


class Coverage(Frozen):
    """Which queries two arms share, and the total that this allows."""

    planned: tuple[str, ...]
    base_valid: tuple[str, ...]
    new_valid: tuple[str, ...]
    common: tuple[str, ...] = Field(description="Queries of the total: valid in both arms, distributed where expected")
    not_distributed: tuple[str, ...] = Field(description="Ran without remote tasks in an arm that can distribute")
    newly_failing: tuple[Gap, ...] = Field(description="Valid in base, failing in new: stands above all numbers")
    newly_excluded: tuple[Gap, ...] = Field(description="Valid in base, in new declared unsupported or not validated")
    newly_passing: tuple[str, ...] = Field(description="Not valid in base, valid in new")
    gaps: tuple[Gap, ...] = Field(description="Every query that either arm cannot contribute")
    total: Total


class Outcome(Frozen):
    """How a comparison ends: the exit code of the command and the sentence that explains it."""

    exit_code: int
    sentence: str


def collect(
    samples: Iterable[Sample],
    *,
    arm: str,
    queries: Sequence[str],
    rounds: int,
    phase: Phase = Phase.TIMED,
    require_validated: bool = True,
    require_reach: bool = True,
) -> dict[str, Cell]:
    """Gather one arm's samples into one cell per planned query. A query without samples is `not_run`, not absent.

    `rounds` is the number of finished rounds, the same for every arm. An answer checked in any phase of the run counts
    as validated; `vacuous` is accepted and stays visible. Result files of other tools know neither answers nor where a
    query ran: for them, and only for them, set `require_validated` and `require_reach` to false.

    Raises ValueError if one (query, round) was measured twice.
    """
    timed: dict[str, dict[int, Sample]] = defaultdict(dict)
    answers: dict[str, list[Validation]] = defaultdict(list)
    for sample in samples:
        if sample.arm != arm:
            continue
        answers[sample.query].append(sample.validation)
        if sample.phase is not phase or sample.round >= rounds:
            continue
        if sample.round in timed[sample.query]:
            msg = f"expected one {phase.value} sample of {sample.query} on {arm} in round {sample.round}, got two"
            raise ValueError(msg)
        timed[sample.query][sample.round] = sample
    cells = {query: _cell(arm, query, timed[query], answers[query], rounds) for query in queries}
    return {query: _strict(cell, validated=require_validated, reach=require_reach) for query, cell in cells.items()}


def series(cells: Mapping[str, Cell], *, leave_out: Collection[str] = ()) -> dict[str, tuple[float | None, ...]]:
    """Return each query's times for the suite estimators; a cell that is not valid gives no time at all.

    `leave_out` is `Coverage.not_distributed`: those queries are in neither arm's suite.
    """
    return {
        name: cell.times_ms if cell.valid else (None,) * len(cell.times_ms)
        for name, cell in cells.items()
        if name not in leave_out
    }


def coverage(base: Mapping[str, Cell], new: Mapping[str, Cell]) -> Coverage:
    """Compare what two arms have. Give the cells of every planned query for both arms, as `collect` returns them.

    A query that ran without remote tasks in either arm is left out of both sides, so it can neither help nor hurt.

    Raises ValueError if the arms were collected for different queries.
    """
    if set(base) != set(new):
        msg = f"expected cells of the same queries for both arms, got a difference in {sorted(set(base) ^ set(new))}"
        raise ValueError(msg)
    planned = tuple(sorted(base))
    local = tuple(name for name in planned if not (base[name].distributed and new[name].distributed))
    base_valid = tuple(name for name in planned if base[name].valid)
    new_valid = tuple(name for name in planned if new[name].valid)
    lost = [_gap(new[name], "new") for name in base_valid if not new[name].valid]
    gaps = [_gap(base[name], "base") for name in planned if not base[name].valid]
    gaps += [_gap(new[name], "new") for name in planned if not new[name].valid]
    return Coverage(
        planned=planned,
        base_valid=base_valid,
        new_valid=new_valid,
        common=tuple(name for name in base_valid if name in set(new_valid) - set(local)),
        not_distributed=local,
        newly_failing=tuple(gap for gap in lost if _fails(gap.status)),
        newly_excluded=tuple(gap for gap in lost if not _fails(gap.status)),
        newly_passing=tuple(name for name in new_valid if not base[name].valid),
        gaps=tuple(gaps),
        total=_total(base, new, base_valid, new_valid, local),
    )


def outcome(cover: Coverage, verdicts: Mapping[str, Verdict], suite: Verdict | None = None) -> Outcome:
    """Say how the comparison ends. A run in which nothing ran is not a success."""
    if not cover.planned or not (cover.base_valid or cover.new_valid):
        words = f"nothing to compare: no query of {len(cover.planned)} has a valid result in either arm"
        return Outcome(exit_code=EXIT_NOT_COMPARABLE, sentence=words)
    slower = sorted(name for name, verdict in verdicts.items() if verdict.kind is VerdictKind.SLOWER)
    if suite is not None and suite.kind is VerdictKind.SLOWER:
        slower.append("the suite")
    complaints = []
    if cover.newly_failing:
        complaints.append(
            "newly failing: " + ", ".join(f"{gap.query} ({gap.status.value})" for gap in cover.newly_failing)
        )
    if slower:
        complaints.append("slower: " + ", ".join(slower))
    if complaints:
        return Outcome(exit_code=EXIT_REGRESSION, sentence="; ".join(complaints))
    if not set(cover.base_valid) & set(cover.new_valid):
        words = f"not comparable: the arms have no valid query in common ({cover.total.words})"
        return Outcome(exit_code=EXIT_NOT_COMPARABLE, sentence=words)
    return Outcome(exit_code=EXIT_OK, sentence=f"no regression found, {cover.total.words} queries in the total")


def _total(
    base: Mapping[str, Cell],
    new: Mapping[str, Cell],
    base_valid: Sequence[str],
    new_valid: Sequence[str],
    local: Sequence[str],
) -> Total:
    left, right = set(base_valid) - set(local), set(new_valid) - set(local)
    counted = len(left & right)
    if left != right:
        reason = f"valid queries differ: base {len(left)}, new {len(right)} ({', '.join(sorted(left ^ right))})"
        return Total(counted=counted, planned=len(base), reason=reason)
    if not counted:
        return Total(counted=0, planned=len(base), reason="no query is valid in both arms")
    base_ms, new_ms = (sum(_medians(cells, left)) for cells in (base, new))
    return Total(base_ms=base_ms, new_ms=new_ms, factor=new_ms / base_ms, counted=counted, planned=len(base))


def _medians(cells: Mapping[str, Cell], names: Iterable[str]) -> list[float]:
    medians = [cells[name].median_ms for name in sorted(names)]
    return [median for median in medians if median is not None]


def _cell(
    arm: str,
    query: str,
    timed: Mapping[int, Sample],
    answers: Sequence[Validation],
    rounds: int,
) -> Cell:
    ordered = [timed[position] for position in sorted(timed)]
    worst = min(ordered, key=lambda sample: SEVERITY.index(sample.status), default=None)
    validation = _validation(answers)
    status = worst.status if worst else Status.NOT_RUN
    reason = _trouble(ordered, worst, rounds)
    if reason is None and validation is Validation.MISMATCH:
        status, reason = Status.WRONG, "the answer differs from an oracle"
    return Cell(
        arm=arm,
        query=query,
        times_ms=tuple(_time(timed.get(position)) for position in range(rounds)),
        status=status,
        reason=reason,
        log=worst.log if worst else None,
        repro=worst.repro if worst else None,
        validation=validation,
        reach=_reach(ordered),
        valid=reason is None,
    )


def _strict(cell: Cell, *, validated: bool, reach: bool) -> Cell:
    if not cell.valid:
        return cell
    if validated and cell.validation is Validation.NOT_VALIDATED:
        return cell.model_copy(update={"valid": False, "reason": "the answer was not validated"})
    if reach and cell.reach is None:
        return cell.model_copy(update={"valid": False, "reason": "not recorded whether a task ran in a worker"})
    return cell


def _trouble(ordered: Sequence[Sample], worst: Sample | None, rounds: int) -> str | None:
    if worst is None:
        return "no sample: it never ran"
    if worst.status is not Status.OK:
        bad = sum(sample.status is not Status.OK for sample in ordered)
        return f"{worst.status.value} ({bad} of {rounds} rounds): {worst.reason or 'no reason was recorded'}"
    missing = rounds - sum(_time(sample) is not None for sample in ordered)
    return f"no time in {missing} of {rounds} rounds" if missing else None


def _time(sample: Sample | None) -> float | None:
    if sample is None or sample.status is not Status.OK or sample.validation is Validation.MISMATCH:
        return None
    return sample.elapsed_ms if sample.elapsed_ms is not None and sample.elapsed_ms > 0 else None


def _validation(answers: Sequence[Validation]) -> Validation:
    for kind in (Validation.MISMATCH, Validation.VALIDATED, Validation.VACUOUS):
        if kind in answers:
            return kind
    return Validation.NOT_VALIDATED


def _reach(ordered: Sequence[Sample]) -> Reach | None:
    known = [sample.reach for sample in ordered if sample.reach is not None]
    if Reach.NOT_DISTRIBUTED in known:
        return Reach.NOT_DISTRIBUTED
    return known[0] if known else None


def _gap(cell: Cell, side: Side) -> Gap:
    reason = cell.reason or "no reason was recorded"
    return Gap(query=cell.query, side=side, status=cell.status, reason=reason, log=cell.log, repro=cell.repro)


def _fails(status: Status) -> bool:
    return status is not Status.OK and status not in _DECLARED
