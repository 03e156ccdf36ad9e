"""What an arm costs beside time: CPU, memory, bytes over the wire, coordinator and workers apart; start-up in stages.

CPU, bytes and tasks come from timed executions. Memory comes from warm-ups (it is read nowhere else, so that no
reading stands beside a timed window), from starts before the timed rounds, when one arm has the machine to itself, and
from stops. Workers are added up where a sum means something (CPU, bytes) and listed one by one where it does not.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import Field

from harness.model import Frozen, Phase, ProcessUse, Role, Sample, Status
from harness.stats.estimators import Spread, spread

ALONE = "preflight"
"""Phase of the starts at which one arm is up at a time: shared pages are not divided with other arms there."""


class ProcessFigures(Frozen):
    """One process of an arm (worker 0, 1, ...). Null where nothing was read."""

    role: Role
    index: int
    idle_pss_bytes: int | None = Field(default=None, description="After opening the session, no other arm running")
    idle_anon_bytes: int | None = None
    peak_rss_bytes: int | None = Field(default=None, description="Highest of any query, each from a reset peak")
    peak_query: str | None = Field(default=None, description="The query that it belongs to")
    pss_bytes: int | None = Field(default=None, description="Highest proportional memory right after a query")
    threads: int | None = Field(default=None, description="Most at any reading")
    life_cpu_s: float | None = Field(default=None, description="CPU seconds of a life in the timed rounds (median)")


class QueryResources(Frozen):
    """One query on one arm. CPU, bytes and rows are medians over timed executions, peaks come from warm-ups."""

    query: str
    coordinator_cpu_ms: float | None = None
    workers_cpu_ms: float | None = Field(default=None, description="Sum over the workers")
    bytes_out: float | None = Field(default=None, description="Bytes that all workers sent, after compression")
    tasks: float | None = None
    rows: int | None = None
    batches: int | None = None
    coordinator_peak_rss_bytes: int | None = None
    worker_peak_rss_bytes: int | None = Field(default=None, description="Highest of any one worker")
    planning_ms: float | None = Field(default=None, description="Logical plan: parse and analyse")
    execution_ms: float | None = Field(default=None, description="Optimise, physical plan and execution")
    first_ms: float | None = Field(default=None, description="First execution in the run, in a fresh process")
    steady_ms: float | None = Field(default=None, description="Median of the timed executions but the first")


class ArmResources(Frozen):
    """One arm. Sums over the suite exist only if every query has the figure."""

    arm: str
    queries: tuple[QueryResources, ...]
    processes: tuple[ProcessFigures, ...]
    coordinator_cpu_ms: float | None = Field(default=None, description="Sum over queries of the medians")
    workers_cpu_ms: float | None = None
    bytes_out: float | None = None
    startup_ms: Spread | None = Field(default=None, description="From process start to the answer of the import")
    import_ms: Spread | None = Field(default=None, description="Importing the arm, as its process saw it")
    context_ms: Spread | None = Field(default=None, description="Making the session")
    register_ms: Spread | None = Field(default=None, description="Registering eight tables")
    cluster_ms: Spread | None = Field(default=None, description="From starting the workers until all are reachable")
    cpu_window: str | None = Field(
        default=None, description="What the coordinator's CPU covers: the timed `query`, or the whole `request`"
    )
    memory_source: str = "Pss of smaps_rollup; VmHWM, reset before each reading"


def resources(
    samples: Iterable[Sample], events: Iterable[Mapping[str, Any]], *, arm: str, queries: Sequence[str]
) -> ArmResources:
    """Collect one arm's figures from the samples and the start and stop events of a run."""
    mine = [sample for sample in samples if sample.arm == arm and sample.status is Status.OK]
    told = [event for event in events if event.get("arm") == arm]
    rows = tuple(_query(query, [sample for sample in mine if sample.query == query]) for query in queries)
    starts = [event for event in told if event.get("kind") == "start"]
    windows = {use.cpu_window for sample in mine for use in sample.processes if use.role == "coordinator"} - {None}
    return ArmResources(
        arm=arm,
        queries=rows,
        processes=tuple(_processes(mine, told)),
        coordinator_cpu_ms=_sum([row.coordinator_cpu_ms for row in rows]),
        workers_cpu_ms=_sum([row.workers_cpu_ms for row in rows]),
        bytes_out=_sum([row.bytes_out for row in rows]),
        cpu_window="/".join(sorted(str(window) for window in windows)) or None,
        startup_ms=_stage(starts, "startup_ms"),
        import_ms=_stage(starts, "import_ms"),
        context_ms=_stage(starts, "context_ms"),
        register_ms=_stage(starts, "register_ms"),
        cluster_ms=_stage(starts, "cluster_ms"),
    )


def _stage(starts: Sequence[Mapping[str, Any]], name: str) -> Spread | None:
    """One stage of start-up over all starts; None where the arm has no such stage."""
    return spread(event[name] for event in starts if event.get(name) is not None)


def _query(query: str, mine: Sequence[Sample]) -> QueryResources:
    timed = [sample for sample in mine if sample.phase is Phase.TIMED]
    ordered = sorted((sample for sample in mine if sample.phase is not Phase.RECURRENCE), key=lambda s: s.sequence)
    first = ordered[0] if ordered else None
    peaks = [use for sample in mine for use in sample.processes if use.peak_rss_bytes is not None]
    return QueryResources(
        query=query,
        coordinator_cpu_ms=_median(_total(sample, "coordinator", lambda use: use.cpu_ms) for sample in timed),
        workers_cpu_ms=_median(_total(sample, "worker", lambda use: use.cpu_ms) for sample in timed),
        bytes_out=_median(_total(sample, "worker", lambda use: use.bytes_out) for sample in timed),
        tasks=_median(sample.remote_tasks for sample in timed),
        rows=next((sample.rows for sample in timed if sample.rows is not None), None),
        batches=next((sample.batches for sample in timed if sample.batches is not None), None),
        coordinator_peak_rss_bytes=_most(use.peak_rss_bytes for use in peaks if use.role == "coordinator"),
        worker_peak_rss_bytes=_most(use.peak_rss_bytes for use in peaks if use.role == "worker"),
        planning_ms=_median(sample.planning_ms for sample in timed),
        execution_ms=_median(sample.execution_ms for sample in timed),
        first_ms=first.elapsed_ms if first else None,
        steady_ms=_median(sample.elapsed_ms for sample in timed if sample is not first),
    )


def _processes(mine: Sequence[Sample], told: Sequence[Mapping[str, Any]]) -> Iterable[ProcessFigures]:
    seen: dict[tuple[Role, int], list[tuple[str, ProcessUse]]] = defaultdict(list)
    for sample in mine:
        for use in sample.processes:
            seen[use.role, use.index].append((sample.query, use))
    lives: dict[tuple[Role, int], list[tuple[str, ProcessUse]]] = defaultdict(list)
    for event in told:
        for entry in event.get("processes") or []:
            use = ProcessUse.model_validate(entry)
            where = f"{event.get('phase')} {event.get('kind')}"
            lives[use.role, use.index].append((where, use))
    for role, index in sorted({*seen, *lives}):
        read, life = seen[role, index], lives[role, index]
        alone = [use for where, use in life if where == f"{ALONE} start"]
        stops = [use for where, use in life if where == f"{Phase.TIMED.value} stop"]
        peaks = [(use.peak_rss_bytes, query) for query, use in read if use.peak_rss_bytes is not None]
        highest = max(peaks, default=None)
        spent = _median(use.cpu_ms for use in stops)
        yield ProcessFigures(
            role=role,
            index=index,
            idle_pss_bytes=_most(use.pss_bytes for use in alone),
            idle_anon_bytes=_most(use.anon_bytes for use in alone),
            peak_rss_bytes=highest[0] if highest else None,
            peak_query=highest[1] if highest else None,
            pss_bytes=_most(use.pss_bytes for _, use in read),
            threads=_most(use.threads for _, use in [*read, *life]),
            life_cpu_s=None if spent is None else spent / 1000,
        )


def _total(sample: Sample, role: Role, figure: Callable[[ProcessUse], float | None]) -> float | None:
    """Sum over the processes of one role; None if any of them lacks the figure, or there is none."""
    return _sum([figure(use) for use in sample.processes if use.role == role])


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
