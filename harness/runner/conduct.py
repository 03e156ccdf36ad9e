"""Carries a run to its end: timed rounds, the re-run of likely differences, and an honest last word in any case."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.errors import HarnessFault, UserError
from harness.rundir import RunDirectory, now_utc, write_atomic
from harness.runner import cold
from harness.runner.execute import Executor
from harness.runner.judge import Judge
from harness.runner.preflight import Preflight
from harness.runner.prepare import Prepared
from harness.runner.progress import RunProgress
from harness.runner.recurrence import queries_to_repeat
from harness.runner.session import ArmSession
from harness.runner.stopping import Stopper
from harness.runner.throughput import Throughput
from harness.schedule import Schedule, Step, finished_rounds, recurrence_schedule, remaining
from harness.settings import RunSettings
from harness.stats import MIN_ROUNDS_FOR_VERDICT
from harness.validate import Validator

RECURRENCE = "recurrence.json"
"""Schedule of the re-run, written before its first step."""

TIMED_END = "timed_end.json"
"""Written when the timed rounds are over, with the reason: from then on a resumed run does not go back to them."""


class RunInterrupted(KeyboardInterrupt):
    """Somebody stopped the run; everything is taken down and on disk. `path` is what `--resume` wants."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path


@dataclass
class Conductor:
    """One run from its first (or next) step to its end. The caller holds the run's lock."""

    progress: RunProgress
    settings: RunSettings
    run: RunDirectory
    prepared: Prepared
    schedule: Schedule
    sessions: Mapping[str, ArmSession]
    found: Preflight

    def conduct(self) -> None:
        """Carry out what is left of the run.

        Raises:
            UserError: (and subclasses) it cannot go on; what was measured so far is on disk.
            RunInterrupted: by Ctrl-C or SIGTERM.
        """
        with Validator() as validator:
            validator.start()
            judge = Judge(validator, self.prepared.oracles)
            try:
                reason = self._throughput(judge) if self.settings.streams else self._timing(judge)
            except KeyboardInterrupt as interrupt:
                self._close(status="interrupted", stopped_because="stopped by the user")
                raise RunInterrupted(self.run.path) from interrupt
            except UserError as error:
                with contextlib.suppress(UserError):
                    self._close(status="interrupted", stopped_because=str(error).splitlines()[0])
                raise
            finally:
                self._stop_all()
        (self.run.path / "answer.arrow").unlink(missing_ok=True)
        self._close(status="complete", stopped_because=reason, finished_at=now_utc())

    def _timing(self, judge: Judge) -> str:
        """Timed rounds and re-run; returns why the rounds ended."""
        files = cold.data_files(self.prepared.data.tables)
        executor = Executor(
            self.run, self.settings, self.sessions, self.prepared.queries, judge, self.found.sizes(), files
        )
        reason = self._timed(executor)
        self._repeat(executor)
        return reason

    def _throughput(self, judge: Judge) -> str:
        """All rounds of a throughput run; returns why they ended."""
        work = Throughput(self.run, self.settings, self.sessions, self.prepared.queries, judge, self.progress)
        work.conduct(self.schedule)
        return f"stopped after all {self.schedule.rounds} planned rounds"

    def _stop_all(self) -> None:
        for session in self.sessions.values():
            session.stop()

    def _timed(self, executor: Executor) -> str:
        """The timed rounds; returns why they ended."""
        path = self.run.path / TIMED_END
        if path.exists():
            return str(json.loads(path.read_text(encoding="utf-8"))["stopped_because"])
        steps = remaining(self.schedule, own(self.schedule, executor.done))
        stopper = Stopper(
            self.settings,
            self.schedule,
            self.prepared.arms,
            lambda: own(self.schedule, executor.done),
            self.run.samples,
        )
        reason = executor.run_steps(self.schedule, steps, self._after("timing", steps, stopper))
        reason = reason or f"stopped after all {self.schedule.rounds} planned rounds"
        write_atomic(path, json.dumps({"stopped_because": reason}))
        return reason

    def _repeat(self, executor: Executor) -> None:
        """The independent re-run of likely differences, if there are any."""
        again = self._recurrence(executor)
        if again is None:
            return
        self._stop_all()
        steps = remaining(again, own(again, executor.done))
        executor.run_steps(again, steps, self._after("running again", steps))

    def _recurrence(self, executor: Executor) -> Schedule | None:
        path = self.run.path / RECURRENCE
        if path.exists():
            return read_schedule(path.read_text(encoding="utf-8"), self.run)
        rounds = finished_rounds(self.schedule, own(self.schedule, executor.done))
        if not self.settings.recurrence or rounds < MIN_ROUNDS_FOR_VERDICT:
            return None
        sf = float(self.settings.scale_factor)
        queries, arms = queries_to_repeat(self.run.samples(), self.schedule, self.prepared.arms, rounds, sf)
        if not queries:
            return None
        again = recurrence_schedule(self.schedule, queries, arms=arms)
        write_atomic(path, again.model_dump_json())
        self.progress.say(f"running again in fresh processes: {', '.join(queries)} on {', '.join(arms)}")
        return again

    def _after(
        self, name: str, steps: Sequence[Step], stopper: Callable[[Step], str | None] = lambda _: None
    ) -> Callable[[Step], str | None]:
        """What to do behind every step: show it, and ask whether to stop."""
        self.progress.stage(name, len(steps))

        def after(step: Step) -> str | None:
            words = [step.action.replace("_", " "), step.query or "", step.arm]
            self.progress.step(
                f"round {step.round + 1} {words[1]} {step.arm}" if step.action == "timed" else " ".join(words)
            )
            return stopper(step)

        return after

    def _close(self, **update: Any) -> None:
        self.run.write_manifest(self.run.manifest().model_copy(update=update))


def own(schedule: Schedule, done: frozenset[int]) -> frozenset[int]:
    """Those of the samples on disk that belong to this schedule: timed rounds and re-run number on in one file."""
    return frozenset(step.sequence for step in schedule.steps if step.query is not None and step.sequence in done)


def read_schedule(text: str, run: RunDirectory) -> Schedule:
    """A schedule as it was written.

    Raises:
        HarnessFault: it is damaged.
    """
    try:
        return Schedule.model_validate_json(text)
    except ValidationError as error:
        msg = f"a schedule in {run.path} is damaged: {error.errors()[0]['msg']}. The run cannot be resumed."
        raise HarnessFault(msg) from error
