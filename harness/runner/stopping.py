"""Whether to stop before all planned rounds are done: enough precision, or no time left. Blind to who is ahead."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from harness.arms import Arm
from harness.model import Estimate, Sample
from harness.schedule import Schedule, Step, finished_rounds, should_stop
from harness.settings import RunSettings
from harness.stats import MIN_ROUNDS_FOR_VERDICT, collect, coverage, series, suite_ratio


class Stopper:
    """Asked behind every step; looks at the samples only when a round has just been finished."""

    def __init__(
        self,
        settings: RunSettings,
        schedule: Schedule,
        arms: Sequence[Arm],
        done: Callable[[], frozenset[int]],
        samples: Callable[[], list[Sample]],
    ) -> None:
        self._settings = settings
        self._schedule = schedule
        self._arms = arms
        self._done = done
        self._samples = samples
        self._begun = time.monotonic()
        self._seen = finished_rounds(schedule, done())

    def __call__(self, step: Step) -> str | None:
        """Reason to stop now, or None."""
        settings = self._settings
        if step.action != "timed" or (settings.time_cap_s is None and not settings.adaptive):
            return None
        rounds = finished_rounds(self._schedule, self._done())
        if rounds == self._seen:
            return None
        self._seen = rounds
        return should_stop(
            rounds_done=rounds,
            min_rounds=MIN_ROUNDS_FOR_VERDICT,
            rounds_planned=self._schedule.rounds,
            estimates=self._estimates(rounds) if settings.adaptive else None,
            elapsed_s=time.monotonic() - self._begun,
            time_cap_s=settings.time_cap_s,
        )

    def _estimates(self, rounds: int) -> dict[str, Estimate]:
        """Suite ratio of every arm to the first one, as far as one exists."""
        samples = self._samples()
        cells = {
            arm.name: collect(samples, arm=arm.name, queries=self._schedule.queries, rounds=rounds)
            for arm in self._arms
        }
        base, *others = cells
        found: dict[str, Estimate] = {}
        for name in others:
            # As in the report: what ran without a remote task is in neither arm's suite.
            local = coverage(cells[base], cells[name]).not_distributed
            times = [series(cells[arm], leave_out=local) for arm in (base, name)]
            try:
                found[f"{name}/{base}"] = suite_ratio(times[0], times[1], seed=self._schedule.seed).plain()
            except ValueError:
                continue
        return found
