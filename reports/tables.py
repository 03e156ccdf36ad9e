"""From samples to cells, comparisons and noise: all figures come from `harness.stats`, this only arranges them."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from harness.errors import HarnessFault
from harness.model import Phase, Sample, Status, Validation, Verdict
from harness.provenance import ArmRecord
from harness.stats import (
    Cell,
    Coverage,
    Gap,
    collect,
    coverage,
    flagged,
    needs_recurrence,
    noise_margin,
    query_verdict,
    series,
    settle,
    spread,
    stated_once,
    suite_verdict,
)
from harness.stats.verdicts import MARGIN
from reports.model import ArmSummary, Comparison, GapRow, Noise, QueryCell, QueryRow, interval

BASES = ("native", "single", "local")
"""Arms that every other arm is compared with: the floor of the engine, the engine on a single node, and stock."""

Cells = Mapping[str, Mapping[str, Cell]]


class RunData(NamedTuple):
    """Samples of one run with what is needed to judge them. `rounds` counts finished rounds."""

    samples: Sequence[Sample]
    arms: Mapping[str, ArmRecord]
    queries: Sequence[str]
    rounds: int
    seed: int
    scale_factor: float


def finished_rounds(samples: Iterable[Sample], arms: Sequence[str], queries: Sequence[str], *, complete: bool) -> int:
    """Rounds that may be judged. An unfinished run counts the leading rounds that every arm has been through.

    A complete run counts all rounds seen, so that a hole in it shows as one instead of shortening the run.
    """
    seen: dict[int, set[tuple[str, str]]] = defaultdict(set)
    for sample in samples:
        if sample.phase is Phase.TIMED:
            seen[sample.round].add((sample.arm, sample.query))
    if complete:
        return max(seen, default=-1) + 1
    wanted = {(arm, query) for arm in arms for query in queries}
    finished = 0
    while wanted <= seen.get(finished, set()):
        finished += 1
    return finished


def collect_cells(data: RunData, phase: Phase = Phase.TIMED) -> dict[str, dict[str, Cell]]:
    """Cells per arm and query.

    Raises:
        HarnessFault: one execution was recorded twice.
    """
    rounds = data.rounds
    if phase is Phase.RECURRENCE:
        rounds = max((sample.round for sample in data.samples if sample.phase is phase), default=-1) + 1
    try:
        return {
            arm: collect(data.samples, arm=arm, queries=data.queries, rounds=rounds, phase=phase) for arm in data.arms
        }
    except ValueError as error:
        msg = f"the samples contradict the schedule: {error}"
        raise HarnessFault(msg) from error


def bases_of(arm: str, arms: Mapping[str, ArmRecord]) -> list[str]:
    """Arms that `arm` is compared with: the baselines, and for an A/A arm the one that it copies."""
    copied = arms[arm].copies
    wanted = [*BASES, *([copied] if copied else [])]
    return [base for base in dict.fromkeys(wanted) if base in arms and base != arm]


def judge_noise(data: RunData, cells: Cells) -> Noise:
    """Margins from the A/A pair, or the plain ones with the reason."""
    pair = next(((name, arm.copies) for name, arm in data.arms.items() if arm.kind == "aa" and arm.copies), None)
    if pair is None or pair[1] not in cells:
        reason = "no A/A arm ran: margins are not raised to the machine's own noise"
        return Noise(query_margin=MARGIN, suite_margin=MARGIN, reason=reason)
    arm, copied = pair[0], str(pair[1])
    base, new = series(cells[copied]), series(cells[arm])
    heard = noise_margin(base, new, sf=data.scale_factor, seed=data.seed)
    return Noise(
        arm=arm,
        copies=copied,
        query_margin=heard.query,
        suite_margin=heard.suite,
        worst_query=heard.worst_query,
        reason=heard.reason,
    )


def noise_flags(noise: Noise, verdicts: Mapping[tuple[str, str], Mapping[str, Verdict]]) -> Noise:
    """The noise with the queries on which the A/A pair claims a difference, at the margin before raising."""
    pair = verdicts.get((noise.arm or "", noise.copies or ""), {})
    return noise.model_copy(update={"flags": [query for query, verdict in pair.items() if flagged(verdict)]})


def query_verdicts(
    data: RunData, cells: Cells, again: Cells, noise: Noise
) -> dict[tuple[str, str], dict[str, Verdict]]:
    """Verdicts per (new, base) and query. A candidate that was run again is settled by the re-run."""
    found: dict[tuple[str, str], dict[str, Verdict]] = {}
    for new in data.arms:
        for base in bases_of(new, data.arms):
            # The A/A pair is judged at the plain margin: the raised one comes from it.
            margin = MARGIN if data.arms[new].copies == base else noise.query_margin
            alike = data.arms[base].distributed == data.arms[new].distributed
            found[new, base] = {
                query: _one_verdict(
                    data, (cells[base][query], cells[new][query]), (again[base][query], again[new][query]), margin,
                    alike=alike,
                )
                for query in data.queries
            }  # fmt: skip
    return found


def _one_verdict(
    data: RunData, first: tuple[Cell, Cell], again: tuple[Cell, Cell], margin: float, *, alike: bool
) -> Verdict:
    """One verdict. `alike`: both arms run on a cluster, or both on a single node, so a re-run is due."""
    base, new = (_times(cell) for cell in first)
    verdict = query_verdict(base, new, sf=data.scale_factor, seed=data.seed, margin=margin)
    if not needs_recurrence(verdict):
        return verdict
    base_again, new_again = (_times(cell) for cell in again)
    # Where none is due, the two sides may still have run again for the sake of other pairs; one of them alone may not.
    wanted = any if alike else all
    if base_again and wanted(time is not None for time in (*base_again, *new_again)):
        rerun = query_verdict(base_again, new_again, sf=data.scale_factor, seed=data.seed + 1, margin=margin)
        return settle(verdict, rerun)
    return verdict if alike else stated_once(verdict)


def _times(cell: Cell) -> tuple[float | None, ...]:
    return cell.times_ms if cell.valid and cell.distributed else (None,) * len(cell.times_ms)


def query_rows(
    data: RunData, cells: Cells, verdicts: Mapping[tuple[str, str], Mapping[str, Verdict]]
) -> list[QueryRow]:
    """The per-query table, every arm in every row."""
    grouped: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for sample in data.samples:
        grouped[sample.arm, sample.query].append(sample)
    rows = []
    for query in data.queries:
        row = {}
        for arm in data.arms:
            vs = {base: verdicts[arm, base][query] for base in bases_of(arm, data.arms)}
            row[arm] = _query_cell(cells[arm][query], grouped[arm, query], vs)
        rows.append(QueryRow(query=query, cells=row))
    return rows


def _query_cell(cell: Cell, samples: Sequence[Sample], vs: dict[str, Verdict]) -> QueryCell:
    timed = [sample for sample in samples if sample.phase is Phase.TIMED and sample.status is Status.OK]
    times = spread(cell.times_ms)
    ordered = sorted((s for s in samples if s.phase is not Phase.RECURRENCE), key=lambda sample: sample.sequence)
    first = ordered[0].elapsed_ms if ordered and ordered[0].status is Status.OK else None
    reason = cell.reason
    if cell.valid and not cell.distributed:
        reason = "not distributed: no worker saw a task of it in at least one round"
    return QueryCell(
        arm=cell.arm,
        status=cell.status,
        validation=cell.validation,
        reach=cell.reach,
        counts=cell.valid and cell.distributed,
        reason=reason,
        log=cell.log if reason else None,
        repro=cell.repro if reason else None,
        n=times.n if times else 0,
        median_ms=cell.median_ms,
        p95_ms=times.p95 if times and cell.valid else None,
        planning_ms=_median(sample.planning_ms for sample in timed),
        execution_ms=_median(sample.execution_ms for sample in timed),
        first_ms=first,
        rows=_same(sample.rows for sample in timed),
        stages=_same(sample.stages for sample in timed),
        planned_tasks=_same(sample.planned_tasks for sample in timed),
        remote_tasks=_same(sample.remote_tasks for sample in timed),
        vs=vs,
    )


def _median(values: Iterable[float | None]) -> float | None:
    given = [value for value in values if value is not None]
    return statistics.median(given) if given else None


def _same(values: Iterable[int | None]) -> int | None:
    """The smallest of the values: with tasks and stages, the round that did the least is the one to show."""
    given = [value for value in values if value is not None]
    return min(given) if given else None


def compare_all(
    data: RunData, cells: Cells, verdicts: Mapping[tuple[str, str], Mapping[str, Verdict]], noise: Noise
) -> list[Comparison]:
    """One comparison per (new, base), in the order of the arms."""
    return [_compare(data, cells, pair, words, noise) for pair, words in verdicts.items()]


def _compare(
    data: RunData, cells: Cells, pair: tuple[str, str], verdicts: Mapping[str, Verdict], noise: Noise
) -> Comparison:
    new, base = pair
    cover = coverage(cells[base], cells[new])
    margin = MARGIN if data.arms[new].copies == base else noise.suite_margin
    total = cover.total
    return Comparison(
        base=base,
        new=new,
        counted=total.counted,
        planned=total.planned,
        base_ms=total.base_ms,
        new_ms=total.new_ms,
        factor=total.factor,
        reason=total.reason,
        suite=_suite(data, cover, cells[base], cells[new], margin),
        words=dict(sorted(Counter(verdict.kind.value for verdict in verdicts.values()).items())),
        newly_failing=[_gap(gap, new) for gap in cover.newly_failing],
        newly_excluded=[_gap(gap, new) for gap in cover.newly_excluded],
        newly_passing=list(cover.newly_passing),
        not_distributed=list(cover.not_distributed),
    )


def _suite(data: RunData, cover: Coverage, base: Mapping[str, Cell], new: Mapping[str, Cell], margin: float) -> Verdict:
    """The suite's verdict over the queries of the total: what ran without workers is left out of both sides."""
    left_out = set(cover.not_distributed)
    left, right = (
        {query: times for query, times in series(side).items() if query not in left_out} for side in (base, new)
    )
    return suite_verdict(left, right, seed=data.seed, margin=margin)


def _gap(gap: Gap, arm: str) -> GapRow:
    return GapRow(query=gap.query, arm=arm, status=gap.status, reason=gap.reason, log=gap.log, repro=gap.repro)


def arm_summaries(
    rows: Sequence[QueryRow], comparisons: Sequence[Comparison], arms: Sequence[str]
) -> dict[str, ArmSummary]:
    """The figures of every arm that machines read."""
    pairs = {(entry.new, entry.base): entry for entry in comparisons}
    summaries = {}
    for arm in arms:
        cells = [row.cells[arm] for row in rows]
        native, local = pairs.get((arm, "native")), pairs.get((arm, "local"))
        ran = [cell for cell in cells if cell.status is Status.OK]
        ratio = native.suite.ratio if native else None
        summaries[arm] = ArmSummary(
            queries=len(cells),
            ok=len(ran),
            validated=sum(cell.validation is Validation.VALIDATED for cell in ran),
            distributed=sum(cell.reach is not None and cell.reach.value == "distributed" for cell in ran),
            geomean_vs_native=interval(ratio) if ratio else None,
            geomean_vs_local=interval(local.suite.ratio) if local and local.suite.ratio else None,
            reason=None if ratio else _no_ratio(arm, native),
        )
    return summaries


def _no_ratio(arm: str, native: Comparison | None) -> str:
    if arm == "native":
        return "native is the base itself"
    if native is None:
        return "the native arm was not in this run"
    return native.suite.reason or "not comparable"
