"""What each arm used: processor time and memory by role, and what its processes took to start."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import Field

from harness.model import Frozen, Phase, Sample, Status


class UsageRow(Frozen):
    """One arm. Times in ms, memory in bytes; a null has its reason in `reasons`, keyed by field."""

    arm: str
    queries: int = Field(description="Queries with processor times")
    coordinator_cpu_ms: float | None = Field(default=None, description="Sum over queries of the median per execution")
    worker_cpu_ms: float | None = Field(default=None, description="The same, of all workers together")
    wall_ms: float | None = Field(default=None, description="Sum over the same queries of the median elapsed time")
    coordinator_peak_bytes: int | None = Field(default=None, description="Highest resident memory in any warm-up")
    worker_peak_bytes: int | None = Field(default=None, description="The same, of the largest worker")
    pss_bytes: int | None = Field(
        default=None, description="Proportional memory of all processes together behind the warm-up that had most"
    )
    threads: int | None = Field(default=None, description="Of all processes together, most in any warm-up")
    starts: int = 0
    cluster_ms: float | None = Field(default=None, description="Median from the first worker's start to the last ready")
    import_ms: float | None = Field(default=None, description="Median of the coordinator's start and import")
    session_ms: float | None = Field(default=None, description="Median to make the session and register the tables")
    reasons: dict[str, str] = Field(default_factory=dict)


def usage_rows(
    samples: Sequence[Sample], events: Sequence[Mapping[str, Any]], arms: Mapping[str, bool]
) -> list[UsageRow]:
    """One row per arm; `arms` says of each whether it has workers."""
    return [_row(arm, workers, [s for s in samples if s.arm == arm], events) for arm, workers in arms.items()]


def _row(arm: str, workers: bool, samples: Sequence[Sample], events: Sequence[Mapping[str, Any]]) -> UsageRow:
    timed = [s for s in samples if s.phase is Phase.TIMED and s.status is Status.OK and _cpu(s) is not None]
    warm = [s for s in samples if s.phase is Phase.WARMUP and any(use.pss_bytes is not None for use in s.processes)]
    starts = [event for event in events if event.get("kind") == "start" and event.get("arm") == arm]
    per_query: dict[str, list[Sample]] = defaultdict(list)
    for sample in timed:
        per_query[sample.query].append(sample)
    reasons = {}
    if not timed:
        reasons["coordinator_cpu_ms"] = "no execution with processor times"
    if not warm:
        reasons["pss_bytes"] = "memory is read in warm-ups, and no warm-up has a reading"
    if not starts:
        reasons["cluster_ms"] = "no start was recorded"
    if not workers:
        reasons["worker_cpu_ms"] = "a single-node arm has no workers"
    return UsageRow(
        arm=arm,
        queries=len(per_query),
        coordinator_cpu_ms=_summed(per_query, lambda s: _cpu(s, "coordinator")),
        worker_cpu_ms=_summed(per_query, lambda s: _cpu(s, "worker")) if workers else None,
        wall_ms=_summed(per_query, lambda s: s.elapsed_ms),
        coordinator_peak_bytes=_most(use.peak_rss_bytes for s in warm for use in s.processes if use.role != "worker"),
        worker_peak_bytes=_most(use.peak_rss_bytes for s in warm for use in s.processes if use.role == "worker"),
        pss_bytes=_most(sum(use.pss_bytes or 0 for use in s.processes) for s in warm),
        threads=_most(sum(use.threads or 0 for use in s.processes) for s in warm),
        starts=len(starts),
        cluster_ms=_median(event.get("cluster_ms") for event in starts),
        import_ms=_median(event.get("import_ms") for event in starts),
        session_ms=_median(_session(event) for event in starts),
        reasons=reasons,
    )


def _cpu(sample: Sample, role: str | None = None) -> float | None:
    given = [use.cpu_ms for use in sample.processes if use.cpu_ms is not None and role in (None, use.role)]
    return sum(given) if given else None


def _session(event: Mapping[str, Any]) -> float | None:
    parts = [event.get(name) for name in ("context_ms", "register_ms")]
    given = [float(part) for part in parts if part is not None]
    return sum(given) if given else None


def _summed(per_query: Mapping[str, Sequence[Sample]], figure: Any) -> float | None:
    medians = [_median(figure(sample) for sample in found) for found in per_query.values()]
    given = [median for median in medians if median is not None]
    return sum(given) if given else None


def _median(values: Iterable[Any]) -> float | None:
    given = [float(value) for value in values if value is not None]
    return statistics.median(given) if given else None


def _most(values: Iterable[int | None]) -> int | None:
    given = [value for value in values if value]
    return max(given) if given else None
