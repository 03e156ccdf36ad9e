"""Curves beside the table of times: what the boundary costs against rows, memory reading by reading, scaling.

The boundary is the difference between two strategies that plan alike and bind differently, so the ratio is theirs, from
paired rounds. Memory is read in warm-ups and at both ends of a life only; there are no readings between them to draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from harness.errors import NotComparable, UserError
from harness.model import Frozen, Phase, ProcessUse, Role, Sample, Status
from harness.stats import query_verdict

if TYPE_CHECKING:
    from reports.model import Report
    from reports.tables import Cells, RunData

FFI_ARM, LINKED_ARM = "decorator", "inline"
"""The strategy whose batches and plans cross a boundary, and the one that has the same engine without any."""


class TaxPoint(Frozen):
    """One query: rows of its answer, and time over FFI against linked with its 95 % interval."""

    query: str
    rows: int
    batches: int | None = None
    value: float
    low: float
    high: float
    n: int


class BoundaryTax(Frozen):
    """Time of `new` over `base` per query; queries that one of them cannot contribute are left out and named."""

    new: str
    base: str
    points: list[TaxPoint]
    left_out: list[str] = Field(default_factory=list)


class MemoryTrack(Frozen):
    """Proportional memory of one process of an arm, a value per reading; null: not read."""

    role: Role
    index: int
    pss_bytes: list[int | None]


class MemoryTracks(Frozen):
    """All readings of one arm in order: its start, each warm-up, its stop."""

    arm: str
    readings: list[str] = Field(description="`start`, the query of a warm-up, or `stop`")
    tracks: list[MemoryTrack]


def boundary_tax(data: RunData, cells: Cells) -> BoundaryTax | None:
    """The tax of the boundary from a run that has both strategies; None otherwise."""
    if not {FFI_ARM, LINKED_ARM} <= set(data.arms):
        return None
    points, left_out = [], []
    for query in data.queries:
        base, new = cells[LINKED_ARM][query], cells[FFI_ARM][query]
        timed = [s for s in data.samples if s.arm == FFI_ARM and s.query == query and s.phase is Phase.TIMED]
        rows = next((sample.rows for sample in timed if sample.rows is not None), None)
        good = all(cell.valid and cell.distributed for cell in (base, new)) and rows is not None
        ratio = query_verdict(base.times_ms, new.times_ms, sf=data.scale_factor, seed=data.seed).ratio if good else None
        if ratio is None or rows is None:
            left_out.append(query)
            continue
        batches = next((sample.batches for sample in timed if sample.batches is not None), None)
        points.append(
            TaxPoint(
                query=query, rows=rows, batches=batches, value=ratio.value, low=ratio.low, high=ratio.high, n=ratio.n
            )
        )
    return BoundaryTax(new=FFI_ARM, base=LINKED_ARM, points=points, left_out=left_out) if points else None


def memory_tracks(
    samples: Sequence[Sample], events: Sequence[Mapping[str, Any]], arms: Sequence[str]
) -> list[MemoryTracks]:
    """Readings per arm in the order in which they were taken; arms without any are left out."""
    found = (_tracks(arm, list(_readings(arm, samples, events))) for arm in arms)
    return [entry for entry in found if entry is not None]


def _readings(
    arm: str, samples: Sequence[Sample], events: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, tuple[ProcessUse, ...]]]:
    own = [event for event in events if event.get("arm") == arm and event.get("phase") == Phase.TIMED.value]
    lives = {
        kind: [
            tuple(ProcessUse.model_validate(use) for use in event.get("processes") or [])
            for event in own
            if event.get("kind") == kind
        ]
        for kind in ("start", "stop")
    }
    # A run that was resumed has several lives; their warm-ups cannot be told apart, so only the outer ends are shown.
    yield from (("start", processes) for processes in lives["start"][:1])
    warm = [s for s in samples if s.arm == arm and s.phase is Phase.WARMUP and s.status is Status.OK]
    yield from ((sample.query, sample.processes) for sample in sorted(warm, key=lambda sample: sample.sequence))
    yield from (("stop", processes) for processes in lives["stop"][-1:])


def _tracks(arm: str, readings: Sequence[tuple[str, tuple[ProcessUse, ...]]]) -> MemoryTracks | None:
    told = [(name, {(use.role, use.index): use.pss_bytes for use in uses}) for name, uses in readings]
    told = [(name, found) for name, found in told if any(value is not None for value in found.values())]
    if not told:
        return None
    seen = sorted({key for _, found in told for key in found})
    return MemoryTracks(
        arm=arm,
        readings=[name for name, _ in told],
        tracks=[
            MemoryTrack(role=role, index=index, pss_bytes=[found.get((role, index)) for _, found in told])
            for role, index in seen
        ],
    )


def boundary_of_checks(conformance: Any) -> dict[str, Any] | None:
    """Time per batch through the boundary, as the check of the streams measured it; None if it did not run."""
    results = conformance.get("results", []) if isinstance(conformance, Mapping) else []
    arms: dict[str, dict[str, Any]] = {}
    for result in results:
        if result.get("check") == "stream.cost":
            for size, figures in result.get("figure", {}).items():
                if isinstance(figures, Mapping) and "microseconds_per_batch" in figures:
                    arms.setdefault(result["arm"], {})[f"us per batch, {size}"] = figures["microseconds_per_batch"]
    return {"arms": arms} if arms else None


def scaling(reports: Sequence[Report]) -> dict[str, Any]:
    """Time over the single node of the same run, per arm and number of workers, in the form of `scaling.json`.

    Every point is a ratio within one run, so that the drift of the machine between runs does not enter.

    Raises:
        UserError: fewer than two different numbers of workers.
        NotComparable: the runs differ in something else than the number of workers.
    """
    counts = sorted({report.settings.workers for report in reports})
    if len(counts) < 2:
        msg = f"a scaling curve needs runs with different numbers of workers, these have {counts}"
        raise UserError(msg)
    first = _conditions(reports[0])
    for report in reports[1:]:
        other = _conditions(report)
        differing = [name for name, value in first.items() if other[name] != value]
        if differing:
            names = ", ".join(differing)
            msg = f"runs {reports[0].provenance.run_id} and {report.provenance.run_id} differ in {names}"
            raise NotComparable(msg)
    points, missing = [], []
    for report in sorted(reports, key=lambda report: report.settings.workers):
        for arm in report.arms:
            entry = report.comparison(arm.name, "local")
            if not arm.distributed or arm.kind == "aa":
                continue
            where = {"arm": arm.name, "workers": report.settings.workers, "run": report.provenance.run_id}
            if entry is None or entry.suite.ratio is None:
                reason = "stock was not in this run" if entry is None else entry.suite.reason or "not comparable"
                missing.append({**where, "reason": reason})
                continue
            ratio = entry.suite.ratio
            cover = {"counted": entry.counted, "planned": entry.planned}
            points.append({**where, "value": ratio.value, "low": ratio.low, "high": ratio.high, **cover})
    arms = dict.fromkeys(point["arm"] for point in points)
    summary = {
        arm: {f"workers_{point['workers']}": point["value"] for point in points if point["arm"] == arm} for arm in arms
    }
    return {"schema_version": 1, "summary": summary, "points": points, "missing": missing}


def _conditions(report: Report) -> dict[str, Any]:
    """What must be the same in all runs of a scaling curve."""
    settings, run = report.settings, report.provenance
    return {
        "scale factor": settings.scale_factor,
        "query set": (run.query_set_hash, settings.form, settings.queries),
        "cache": settings.cache,
        "configuration": settings.config,
        "data": run.data.fingerprint,
        "machine": run.host.host_id,
        "engine": sorted({arm.fingerprint for arm in report.arms if arm.fingerprint}),
    }
