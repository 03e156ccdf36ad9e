"""The independent re-run: queries on which two arms seem to differ run again in new processes, under a new seed.

Both tiers run again, as in the calibration: a re-run is what guards against an accident of one process, and the error
rates printed in every report hold for the procedure that has it. The pairs are those that a report judges: every arm
against the baselines, and the A/A arm against its original. A single node and a cluster differ on nearly every query;
that would double a run, says nothing about how a strategy binds, and is stated as seen in a single run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.arms import Arm
from harness.model import Sample
from harness.schedule import Schedule
from harness.settings import BASELINES
from harness.stats.coverage import Cell, collect
from harness.stats.verdicts import MARGIN, needs_recurrence, noise_margin, query_verdict

Times = Mapping[str, tuple[float | None, ...]]


def queries_to_repeat(
    samples: Sequence[Sample], schedule: Schedule, arms: Sequence[Arm], rounds: int, sf: float
) -> tuple[list[str], list[str]]:
    """Queries with a candidate difference between two arms, and the arms concerned; both empty if there is none.

    `rounds` is the number of rounds that every arm has finished. Pairs of a single node and a cluster are left out.
    """
    times = {arm.name: _times(collect(samples, arm=arm.name, queries=schedule.queries, rounds=rounds)) for arm in arms}
    raised = _margin(arms, times, sf, schedule.seed)
    originals = {arm.name: arm.copies for arm in arms}
    # Every cluster of a run has the same number of workers, so 1 stands for it.
    workers = {arm.name: int(arm.distributed) for arm in arms}
    queries: set[str] = set()
    concerned: set[str] = set()
    for base, new in pairs(arms):
        # The A/A pair is judged at the plain margin, as in the report: the raised one comes from it.
        margin = MARGIN if base in originals[new] else raised
        for query in schedule.queries:
            verdict = query_verdict(times[base][query], times[new][query], sf=sf, seed=schedule.seed, margin=margin)
            if needs_recurrence(verdict, workers=(workers[base], workers[new])):
                queries.add(query)
                concerned |= {base, new}
    return [name for name in schedule.queries if name in queries], [name for name in schedule.arms if name in concerned]


def pairs(arms: Sequence[Arm]) -> Iterator[tuple[str, str]]:
    """Base and new arm of every comparison that a report makes."""
    names = {arm.name for arm in arms}
    baselines = [*BASELINES, *(arm.name for arm in arms if arm.kind == "baseline")]
    for arm in arms:
        for base in dict.fromkeys([*baselines, *arm.copies]):
            if base in names and base != arm.name:
                yield base, arm.name


def _times(cells: Mapping[str, Cell]) -> Times:
    return {
        query: cell.times_ms if cell.valid and cell.distributed else (None,) * len(cell.times_ms)
        for query, cell in cells.items()
    }


def _margin(arms: Sequence[Arm], times: Mapping[str, Times], sf: float, seed: int) -> float:
    """The margin for one query: raised to what the A/A pair shows, when one ran."""
    pair = next((arm for arm in arms if arm.kind == "aa"), None)
    if pair is None:
        return MARGIN
    return noise_margin(times[pair.copies[0]], times[pair.name], sf=sf, seed=seed).query
