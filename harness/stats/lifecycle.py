"""Start-up, first execution and steady state as three figures, never one average.

A fresh process runs its first query 1.3 to 4 times slower than later ones (code pages, allocator, connections, file
listings). Mixed with steady-state times that is neither a start-up cost nor a steady time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from harness.model import Frozen, Phase, Sample, Status
from harness.stats.estimators import Spread, spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Lifecycle(Frozen):
    """Three figures of one arm (and one query, for the last two), in milliseconds; null where nothing ran."""

    startup: Spread | None = Field(description="From process start to ready, one value per process")
    first: float | None = Field(description="The first execution of the query in the run, whatever its phase")
    steady: Spread | None = Field(description="Timed executions without that first one")

    @property
    def first_over_steady(self) -> float | None:
        """How much slower the first execution was than the steady median."""
        if self.first is None or self.steady is None:
            return None
        return self.first / self.steady.median


def lifecycle(samples: Iterable[Sample], *, arm: str, query: str, startups_ms: Sequence[float] = ()) -> Lifecycle:
    """Split one arm's executions of one query by life stage. Re-runs for recurrence are other processes: left out."""
    mine = sorted(
        (
            sample
            for sample in samples
            if sample.arm == arm and sample.query == query and sample.phase is not Phase.RECURRENCE
        ),
        key=lambda sample: sample.sequence,
    )
    timed = [sample for sample in mine[1:] if sample.phase is Phase.TIMED]
    return Lifecycle(
        startup=spread(startups_ms),
        first=_ok_ms(mine[0]) if mine else None,
        steady=spread(_ok_ms(sample) for sample in timed),
    )


def _ok_ms(sample: Sample) -> float | None:
    return sample.elapsed_ms if sample.status is Status.OK else None
