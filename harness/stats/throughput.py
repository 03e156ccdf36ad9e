"""Figures of a throughput run: how much several streams get done together, and whether each gets its share.

They resemble the power and throughput tests of TPC-H and are named after what they are. They are no TPC results: no
refresh functions run, query orders are seeded instead of the standard's, and nothing was audited.
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from pydantic import Field

from harness.model import Frozen, Status, Validation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DISCLAIMER = (
    "single-stream and multi-stream figures of this harness; not TPC results: no refresh functions, seeded query "
    "orders, not audited"
)
"""Stands beside the figures wherever they are shown."""


class StreamExecution(Frozen):
    """One query in one stream."""

    stream: int = Field(ge=0)
    position: int = Field(ge=0, description="Place in the order of this stream")
    query: str
    status: Status
    reason: str | None = None
    started_s: float | None = Field(default=None, description="Seconds since all streams began")
    latency_ms: float | None = Field(
        default=None, description="From request to answer as the stream saw it, writing of the answer included"
    )
    elapsed_ms: float | None = Field(default=None, description="From the call that parses to the last batch")
    rows: int | None = None
    remote_tasks: int | None = Field(default=None, description="Single stream only: several cannot be told apart")
    validation: Validation = Validation.NOT_VALIDATED


class ThroughputUnit(Frozen):
    """One arm in one round: first one stream alone, then all of them together."""

    round: int = Field(ge=0)
    arm: str
    single: tuple[StreamExecution, ...]
    together: tuple[StreamExecution, ...]
    interval_s: float | None = Field(description="From the common start to the end of the last stream")
    reason: str | None = Field(default=None, description="Why nothing ran")

    def trouble(self) -> str | None:
        """Why no figure may be made of it: a failure, or an answer nobody compared; None if all is well."""
        if self.reason is not None:
            return self.reason
        for execution in (*self.single, *self.together):
            sure = execution.validation in (Validation.VALIDATED, Validation.VACUOUS)
            if execution.status is not Status.OK or not sure:
                word = execution.status.value if execution.status is not Status.OK else "not validated"
                return f"{execution.query} in stream {execution.stream}: {word}, {execution.reason or 'no reason'}"
        return None if self.together else "nothing ran"


class StreamFigures(Frozen):
    """Latencies of one stream over all rounds, in milliseconds."""

    stream: int
    total_s: float = Field(description="Median over rounds of the time from the first request to the last answer")
    median_ms: float
    p95_ms: float
    max_ms: float


class ThroughputFigures(Frozen):
    """What one arm reached; null with a reason unless every execution of every round was right."""

    arm: str
    rounds: int
    streams: int
    queries: int
    single_stream_per_hour: float | None = Field(
        default=None, description="3600 s / geometric mean of one stream's times, times the scale factor"
    )
    multi_stream_per_hour: float | None = Field(
        default=None, description="Queries of all streams per hour, times the scale factor; median over rounds"
    )
    multi_stream_range: tuple[float, float] | None = Field(default=None, description="Least and most over rounds")
    interval_s: float | None = Field(default=None, description="Median over rounds")
    fairness: float | None = Field(
        default=None, description="Jain's index of the streams' speeds: 1 is equal, 1/streams is one for all"
    )
    slowest_over_fastest: float | None = Field(default=None, description="Total time of the streams")
    per_stream: tuple[StreamFigures, ...] = ()
    reason: str | None = None


def throughput(units: Iterable[ThroughputUnit], *, arm: str, streams: int, sf: float) -> ThroughputFigures:
    """Summarise one arm. A round with a failure gives no figure: what is left of it would be a selection."""
    mine = [unit for unit in units if unit.arm == arm]
    queries = len({execution.query for unit in mine for execution in unit.together})
    plain = {"arm": arm, "rounds": len(mine), "streams": streams, "queries": queries}
    trouble = next((f"round {unit.round + 1}: {words}" for unit in mine if (words := unit.trouble())), None)
    if trouble or not mine:
        return ThroughputFigures.model_validate({**plain, "reason": trouble or "nothing ran"})
    intervals = [unit.interval_s or math.nan for unit in mine]
    rates = [len(unit.together) * 3600 / seconds * sf for unit, seconds in zip(mine, intervals, strict=True)]
    totals = [[_total_s(_of(unit, stream)) for stream in range(streams)] for unit in mine]
    singles = [execution.elapsed_ms or math.nan for unit in mine for execution in unit.single]
    return ThroughputFigures.model_validate(
        {
            **plain,
            "single_stream_per_hour": 3600 * sf / statistics.geometric_mean(time / 1000 for time in singles),
            "multi_stream_per_hour": statistics.median(rates),
            "multi_stream_range": (min(rates), max(rates)),
            "interval_s": statistics.median(intervals),
            "fairness": statistics.median(jain([1 / total for total in row]) for row in totals),
            "slowest_over_fastest": statistics.median(max(row) / min(row) for row in totals),
            "per_stream": tuple(_stream(mine, stream, [row[stream] for row in totals]) for stream in range(streams)),
        }
    )


def jain(shares: Sequence[float]) -> float:
    """Jain's fairness index of positive shares: 1 when all are equal, 1/n when one has everything.

    Source: R. Jain, D. Chiu, W. Hawe, DEC Research Report TR-301 (1984).
    """
    return sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))


def _of(unit: ThroughputUnit, stream: int) -> list[StreamExecution]:
    return [execution for execution in unit.together if execution.stream == stream]


def _total_s(executions: Sequence[StreamExecution]) -> float:
    ends = [(execution.started_s or 0.0) + (execution.latency_ms or 0.0) / 1000 for execution in executions]
    return max(ends) - min(execution.started_s or 0.0 for execution in executions)


def _stream(units: Sequence[ThroughputUnit], stream: int, totals: Sequence[float]) -> StreamFigures:
    times = sorted(execution.latency_ms or 0.0 for unit in units for execution in _of(unit, stream))
    return StreamFigures(
        stream=stream,
        total_s=statistics.median(totals),
        median_ms=statistics.median(times),
        p95_ms=times[min(len(times) - 1, math.ceil(0.95 * len(times)) - 1)],
        max_ms=times[-1],
    )
