"""Every arm once, before anything is timed: does it start, is it the same engine, set alike, what does it plan?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.arms import FINGERPRINT_KEY, Arm
from harness.child.outcome import ArmFailure
from harness.cluster import check_fingerprints
from harness.environments import ArmEnvironment
from harness.errors import HarnessFault, NotComparable
from harness.model import Frozen
from harness.provenance import ArmRecord, ConfigDifference
from harness.runner.config_diff import require_alike
from harness.runner.execute import Plan
from harness.runner.session import ArmSession, Started
from tpch.query_sets import Query


class PlanText(Frozen):
    """One arm's plan for one query, kept in `plans.json`; or why there is none."""

    stages: int | None = None
    tasks: int | None = None
    text: str = ""
    error: str | None = None


@dataclass(frozen=True)
class Preflight:
    """What the arms told about themselves."""

    records: dict[str, ArmRecord]
    differences: list[ConfigDifference]
    plans: dict[tuple[str, str], PlanText]
    fingerprint: str | None
    rustc: str | None

    def sizes(self) -> dict[tuple[str, str], Plan]:
        """Stages and tasks per arm and query, for the samples."""
        return {key: Plan(plan.stages, plan.tasks) for key, plan in self.plans.items()}

    def plans_json(self) -> dict[str, dict[str, Any]]:
        """The content of `plans.json`: arm, query, plan."""
        nested: dict[str, dict[str, Any]] = {}
        for (arm, query), plan in self.plans.items():
            nested.setdefault(arm, {})[query] = plan.model_dump()
        return nested


def preflight(
    sessions: Mapping[str, ArmSession], queries: Sequence[Query], tick: Callable[[str], None] = lambda _: None
) -> Preflight:
    """Start every arm, ask it about itself, plan every query, and take it down again.

    Raises:
        HarnessFault: an arm does not start; says why, with the last lines of its log.
        NotComparable: engines or settings differ without a declared reason.
    """
    records: dict[str, ArmRecord] = {}
    plans: dict[tuple[str, str], PlanText] = {}
    for name, session in sessions.items():
        tick(f"checking {name}")
        started = _start(session)
        records[name] = arm_record(session.arm, session.environment, started)
        for query in queries:
            if session.arm.unsupported_reason(query.id, session.settings.form) is None:
                plans[name, query.id] = _plan(session, query)
        session.stop()
    arms = [session.arm for session in sessions.values()]
    fingerprint = check_fingerprints(_builds(records), excused=_excused(arms, records))
    differences = require_alike(arms, {name: record.config for name, record in records.items()})
    rustc = next((str(record.build["rustc"]) for record in records.values() if record.build.get("rustc")), None)
    return Preflight(records, differences, plans, fingerprint, rustc)


def arm_record(arm: Arm, environment: ArmEnvironment, started: Started) -> ArmRecord:
    """The manifest's record of an arm."""
    return ArmRecord(
        name=arm.name,
        title=arm.title,
        kind=arm.kind,
        copies=arm.copies[0] if arm.copies else None,
        distributed=arm.distributed,
        definition=arm.model_dump(by_alias=True, mode="json"),
        python=started.hello.get("python"),
        versions=dict(started.hello.get("versions") or {}),
        build=dict(started.hello.get("build") or {}),
        worker_build=_worker_builds(started),
        wheel=environment.wheel.name if environment.wheel else None,
        wheel_sha256=environment.wheel_sha256,
        environment_key=environment.key,
        config=_settings(started.opened.get("config") or {}),
    )


def _worker_builds(started: Started) -> list[dict[str, Any]]:
    """What each worker is built from: as it told over the wire, or at least in its ready line."""
    told = [dict(status.get("build") or {}) for status in started.opened.get("workers") or []]
    told += [{} for _ in range(len(started.worker_marks) - len(told))]
    for build, mark in zip(told, started.worker_marks, strict=True):
        over_wire = build.get("fingerprint")
        if mark and over_wire and mark != over_wire:
            msg = f"a worker says {mark[:12]} in its ready line, but {over_wire[:12]} over the wire: two engines in one"
            raise NotComparable(msg)
    return [
        build if build.get("fingerprint") else {"fingerprint": mark}
        for build, mark in zip(told, started.worker_marks, strict=True)
    ]


def require_unchanged(before: Mapping[str, ArmRecord], now: Mapping[str, ArmRecord]) -> None:
    """A resumed run must go on with the very same arms.

    Raises:
        NotComparable: an arm has another engine, wheel, interpreter, package or setting than when the run started.
    """
    for name, old in before.items():
        new = now[name]
        for what in ("build", "worker_build", "wheel_sha256", "python", "versions", "config"):
            if getattr(old, what) != getattr(new, what):
                msg = (
                    f"arm `{name}` has changed since the run started ({what}: {_shorten(getattr(old, what))} "
                    f"then, {_shorten(getattr(new, what))} now), so the run cannot go on. Start a new one."
                )
                raise NotComparable(msg)


def _shorten(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else text[:119] + "…"


def _start(session: ArmSession) -> Started:
    try:
        return session.start(phase="preflight")
    except ArmFailure as failure:
        detail = _without_stack(failure.detail, failure.reason)
        msg = (
            f"arm `{session.arm.name}` does not start: {failure.reason}{detail}\nMend it, or leave it out with --arms."
        )
        raise HarnessFault(msg) from failure


def _without_stack(detail: str, reason: str) -> str:
    """What an error says beyond its first line. A Python stack belongs to the log; a log's tail is shown whole."""
    if "Traceback (most recent call last)" in detail:
        lines = detail.splitlines()
        frames = [number for number, line in enumerate(lines) if line.startswith("  ")]
        detail = "\n".join(lines[frames[-1] + 2 :]) if frames else ""
    return f"\n{detail}" if detail.strip() and detail != reason else ""


def _plan(session: ArmSession, query: Query) -> PlanText:
    try:
        if not session.up:
            _start(session)
        said = session.explain(query)
    except ArmFailure as failure:
        return PlanText(error=failure.reason)
    return PlanText(stages=said.get("stages"), tasks=said.get("tasks"), text=str(said.get("text", "")))


def _builds(records: Mapping[str, ArmRecord]) -> dict[str, dict[str, Any]]:
    builds: dict[str, dict[str, Any]] = {}
    for name, record in records.items():
        builds[name] = record.build
        for index, build in enumerate(record.worker_build):
            builds[f"{name} worker {index + 1}"] = build
    return builds


def _excused(arms: Sequence[Arm], records: Mapping[str, ArmRecord]) -> dict[str, str]:
    excused: dict[str, str] = {}
    for arm in arms:
        reason = next((entry.reason for entry in arm.differences if entry.key == FINGERPRINT_KEY), None)
        if reason is not None:
            excused[arm.name] = reason
            excused |= {f"{arm.name} worker {i + 1}": reason for i in range(len(records[arm.name].worker_build))}
    return excused


def _settings(told: Mapping[str, Any]) -> dict[str, str]:
    """Settings as an arm told them, in one spelling.

    A driver without Python says null where a session's table says nothing, and the table lists the options of an
    extension without the extension's name; the engine has one extension.
    """
    return {
        key if "." in key else f"distributed.{key}": "" if value is None else str(value) for key, value in told.items()
    }
