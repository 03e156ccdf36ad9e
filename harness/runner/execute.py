"""Carries out the steps of a schedule: every execution becomes exactly one sample, whatever happens to the arm."""

from __future__ import annotations

import shlex
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.arms import Arm
from harness.child.outcome import ArmFailure
from harness.model import Phase, Reach, Sample, Status, Validation
from harness.rundir import RunDirectory
from harness.runner import cold
from harness.runner.judge import Judge
from harness.runner.session import ArmSession
from harness.runner.usage import Meter, difference
from harness.schedule import Schedule, Step
from harness.settings import RunSettings
from tpch.query_sets import Query

GIVE_UP_AFTER = 2
"""Fatal ends (crash, timeout, out of memory) of one query on one arm after which it is not tried again. One may be an
accident; each further one costs a restart and up to the whole time limit, and the query cannot count any more."""

FATAL = (Status.CRASH, Status.TIMEOUT, Status.OOM)

KEPT_ANSWERS = 3
"""Wrong answers kept per arm and query, for the person who has to find out why."""


@dataclass(frozen=True)
class Plan:
    """Size of an arm's plan for one query, from `explain` before the timed rounds."""

    stages: int | None = None
    tasks: int | None = None


class Executor:
    """Executes steps and writes their samples. One per run; sessions are kept between steps."""

    def __init__(
        self,
        run: RunDirectory,
        settings: RunSettings,
        sessions: Mapping[str, ArmSession],
        queries: Mapping[str, Query],
        judge: Judge,
        plans: Mapping[tuple[str, str], Plan],
        files: Sequence[Path],
    ) -> None:
        self._run = run
        self._settings = settings
        self._sessions = sessions
        self._queries = queries
        self._judge = judge
        self._plans = plans
        self._files = files
        self._done: set[int] = set()
        self._fatal: Counter[tuple[str, str]] = Counter()
        self._failed_starts: dict[str, list[ArmFailure]] = {}
        self._answer = run.path / "answer.arrow"
        for sample in run.samples():
            self._note(sample)

    @property
    def done(self) -> frozenset[int]:
        """Sequence numbers of all samples on disk."""
        return frozenset(self._done)

    def run_steps(
        self, schedule: Schedule, steps: Iterable[Step], after: Callable[[Step], str | None] = lambda _: None
    ) -> str | None:
        """Carry out steps in order; stops early when `after`, called behind each, gives a reason, which is returned."""
        for step in steps:
            session = self._sessions[step.arm]
            if step.action == "start_cluster" and self._settings.cold:
                continue  # Every execution starts its own.
            if step.action == "start_cluster":
                self._start(session, schedule.phase, step.round)
            elif step.action == "stop_cluster":
                session.stop()
            else:
                self._measure(schedule, step)
            if reason := after(step):
                return reason
        return None

    # -- one step -----------------------------------------------------------------------------------------------

    def _measure(self, schedule: Schedule, step: Step) -> None:
        session, query = self._sessions[step.arm], self._queries[step.query or ""]
        phase = schedule.phase if step.action == "timed" else Phase.WARMUP
        about = {
            "round": step.round, "sequence": step.sequence, "arm": step.arm, "query": step.query,
            "form": self._settings.form, "phase": phase,
        }  # fmt: skip
        sample = self._skip(session.arm, query, about) or self._attempt(session, query, step, schedule, about)
        if self._settings.cold:
            session.stop()
        if step.action == "warmup":
            session.warmed.add(query.id)
        # A resumed run warms up again; the sample of the first time stands.
        if sample.sequence not in self._done:
            self._run.append(sample)
            self._note(sample)

    def _skip(self, arm: Arm, query: Query, about: dict[str, Any]) -> Sample | None:
        declared = arm.unsupported_reason(query.id, self._settings.form)
        if declared:
            return Sample(**about, status=Status.UNSUPPORTED, reason=declared)
        ends = self._fatal[arm.name, query.id]
        if ends >= GIVE_UP_AFTER:
            reason = f"given up after {ends} fatal ends (crash, timeout or out of memory) of this query on this arm"
            return Sample(**about, status=Status.NOT_RUN, reason=reason)
        return None

    def _attempt(
        self, session: ArmSession, query: Query, step: Step, schedule: Schedule, about: dict[str, Any]
    ) -> Sample:
        started_at = time.time()
        about = {**about, "log": session.log, "repro": self._repro(session.arm, query)}
        try:
            if not session.up:
                self._restart(session, schedule.phase, step.round)
            if step.action == "timed" and query.id not in session.warmed:
                # A fresh process after a failure: its first execution would be slower for no fault of the arm.
                for _ in range(self._settings.warmups):
                    session.execute(query, None)
                session.warmed.add(query.id)
            started_at = time.time()
            self._answer.unlink(missing_ok=True)
            before = session.last_counters()
            meter = Meter(session.members(), memory=step.action == "warmup" or self._settings.cold)
            if self._settings.cold:
                share = cold.drop(self._files)
                about |= {"residency": share, "cache": cold.label(share)}
            answer = session.execute(query, self._answer)
            meter.stop()
        except ArmFailure as failure:
            return Sample(**about, status=failure.status, reason=failure.reason, started_at=started_at)
        counted = answer.get("workers") or difference(before, session.worker_counters())
        about |= {"started_at": started_at, "processes": meter.read(answer, counted)}
        return self._judged(session.arm, query, answer, about)

    def _judged(self, arm: Arm, query: Query, answer: dict[str, Any], about: dict[str, Any]) -> Sample:
        judged = self._judge.judge(query, self._answer)
        status, reason = Status.OK, None
        if judged.validation is Validation.MISMATCH:
            status, reason = Status.WRONG, judged.reason
            self._keep_answer(arm.name, query.id)
        elif judged.validation is Validation.NOT_VALIDATED:
            reason = judged.reason
        plan = self._plans.get((arm.name, query.id), Plan())
        return Sample(
            **about,
            status=status,
            reason=reason,
            elapsed_ms=answer.get("elapsed_ms"),
            planning_ms=answer.get("planning_ms"),
            execution_ms=answer.get("execution_ms"),
            rows=answer.get("rows"),
            batches=answer.get("batches"),
            stages=plan.stages,
            planned_tasks=plan.tasks,
            remote_tasks=answer.get("remote_tasks"),
            reach=reach_of(arm, answer.get("remote_tasks")),
            validation=judged.validation,
            oracles=judged.oracles,
        )

    # -- starts -------------------------------------------------------------------------------------------------

    def _start(self, session: ArmSession, phase: Phase, number: int) -> None:
        name = session.arm.name
        try:
            session.start(phase=phase.value, round=number)
            self._failed_starts.pop(name, None)
        except ArmFailure as failure:
            # The steps that need this arm say so, each in its own sample.
            self._failed_starts.setdefault(name, []).append(failure)
            self._run.event("start_failed", arm=name, reason=failure.reason, detail=failure.detail)

    def _restart(self, session: ArmSession, phase: Phase, number: int) -> None:
        name = session.arm.name
        failures = self._failed_starts.get(name, [])
        if len(failures) >= GIVE_UP_AFTER:
            reason = f"the arm did not start, {len(failures)} times in a row: {failures[-1].reason}"
            raise ArmFailure(Status.NOT_RUN, reason, fatal=True)
        self._start(session, phase, number)
        if not session.up:
            failure = self._failed_starts[name][-1]
            raise ArmFailure(failure.status, f"the arm did not start: {failure.reason}", fatal=True)

    # -- records ------------------------------------------------------------------------------------------------

    def _note(self, sample: Sample) -> None:
        self._done.add(sample.sequence)
        if sample.status in FATAL:
            self._fatal[sample.arm, sample.query] += 1

    def _keep_answer(self, arm: str, query: str) -> None:
        folder = self._run.path / "answers"
        folder.mkdir(exist_ok=True)
        kept = len(list(folder.glob(f"{arm}-{query}-*.arrow")))
        if kept < KEPT_ANSWERS and self._answer.is_file():
            shutil.copyfile(self._answer, folder / f"{arm}-{query}-{kept + 1}.arrow")

    def _repro(self, arm: Arm, query: Query) -> str:
        settings = self._settings
        words = ["df-strategies", "run", "--arms", arm.name, "--no-baselines", "--sf", settings.scale_factor]
        words += ["--query-set", settings.query_set, "--form", settings.form, "--queries", query.id, "--rounds", "1"]
        words += ["--workers", str(settings.workers), *(["--cold"] if settings.cold else [])]
        for path in settings.arm_files:
            words += ["--arm-file", path]
        for key, value in settings.config.items():
            words += ["--set", f"{key}={value}"]
        return shlex.join(words)


def reach_of(arm: Arm, remote_tasks: int | None) -> Reach | None:
    """Where an execution ran; None for an arm with workers that has no way to tell."""
    if not arm.distributed:
        return Reach.SINGLE_NODE
    if remote_tasks is None:
        return None
    return Reach.DISTRIBUTED if remote_tasks > 0 else Reach.NOT_DISTRIBUTED
