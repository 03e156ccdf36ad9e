"""A run: batches in lanes, everything drawn from the seed, results added up in the order of the batches."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.arms import Arm
from harness.child.keeper import Keeper
from harness.environments import ArmEnvironment
from harness.errors import NotComparable
from harness.fuzz.batch import BatchLane, Outcome, Shrinks
from harness.fuzz.lanes import in_lanes
from harness.fuzz.model import ArmTally, Finding, FuzzResult, FuzzSettings
from harness.fuzz.session import FuzzSession

MAX_FINDINGS = 60
"""Findings kept per arm, shrunk or not; each holds its tables, some ten kilobytes. The rest is counted."""

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - scratch space of this run, in memory where there is such a thing

Say = Callable[[str], None]
Found = Callable[[Finding], None]


@dataclass
class _State:
    tallies: dict[str, ArmTally]
    engine: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    compared: int = 0
    comparing_s: float = 0.0
    batches: int = 0
    elapsed_s: float = 0.0


def run_fuzz(
    settings: FuzzSettings, arms: list[Arm], oracle: Arm, environments: Mapping[str, ArmEnvironment], *,
    before: FuzzResult | None = None, say: Say = lambda _: None, found: Found = lambda _: None,
    checkpoint: Callable[[FuzzResult], None] = lambda _: None,
) -> FuzzResult:  # fmt: skip
    """Run generated queries on `arms` and compare every answer with the single-node arm `oracle`.

    `found` is told of each finding with its batch. `before` is the result of a run that stopped early: its figures are
    added to, and the batches that it has done are left out. `checkpoint` is given the result so far after every batch:
    a run that is killed loses what its lanes were at.

    Raises:
        HarnessFault: an arm cannot be started.
        NotComparable: an arm has another engine than in `before`.
    """
    begun = time.monotonic()
    state = _start(settings, arms, before)

    def result(why: str) -> FuzzResult:
        return FuzzResult(
            settings=settings,
            engine=state.engine,
            arms=state.tallies,
            findings=tuple(state.findings),
            batches=state.batches,
            elapsed_s=state.elapsed_s + time.monotonic() - begun,
            queries_per_s=_rate(state),
            stopped_because=why,
        )

    def more() -> bool:
        return settings.minutes is None or time.monotonic() - begun <= settings.minutes * 60

    jobs = [job for job in enumerate(_sizes(settings)) if job[0] >= state.batches]
    with ExitStack() as stack:
        scratch = stack.enter_context(_scratch())
        keeper = stack.enter_context(Keeper())
        lanes = _lanes(settings, arms, oracle, environments, scratch, keeper, before)
        for outcome in stack.enter_context(closing(in_lanes(lanes, jobs, more))):
            _add(state, outcome, settings, found)
            say(_progress(state, outcome.number))
            checkpoint(result("it was stopped from outside"))
    if jobs and state.batches <= jobs[-1][0]:
        return result(f"the time limit of {settings.minutes:g} minutes was reached")
    return result(f"all {settings.queries} queries were run")


def _start(settings: FuzzSettings, arms: list[Arm], before: FuzzResult | None) -> _State:
    if before is None:
        return _State({arm.name: ArmTally(seed=settings.seed) for arm in arms})
    rate = before.queries_per_s
    compared = sum(tally.run for tally in before.arms.values())
    return _State(
        dict(before.arms), dict(before.engine), list(before.findings), compared, compared / rate if rate else 0.0,
        before.batches, before.elapsed_s,
    )  # fmt: skip


def _lanes(
    settings: FuzzSettings, arms: list[Arm], oracle: Arm, environments: Mapping[str, ArmEnvironment], scratch: Path,
    keeper: Keeper, before: FuzzResult | None,
) -> list[BatchLane]:  # fmt: skip
    """Lanes, none of them started."""
    done = () if before is None else before.findings
    shrunk = {arm.name: sum(each.arm == arm.name and each.shrunk for each in done) for arm in arms}
    marks = [(each.arm, each.signature) for each in done if each.shrunk]
    shrinks = Shrinks({name: settings.shrinks - count for name, count in shrunk.items()}, marks)

    def session(arm: Arm, folder: Path) -> FuzzSession:
        return FuzzSession(keeper, arm, environments[arm.name], folder / arm.name, settings.timeout_s)

    return [
        BatchLane(
            settings, session(oracle, folder / "oracle"), [session(arm, folder) for arm in arms], scratch, shrinks,
            lambda engine: _same_engine(engine, before),
        )
        for folder in (scratch / f"lane-{number}" for number in range(settings.lanes))
    ]  # fmt: skip


def _same_engine(engine: Mapping[str, str], before: FuzzResult | None) -> None:
    """Answers of two builds are not added up."""
    for name, fingerprint in engine.items():
        old = before.engine.get(name, fingerprint) if before is not None else fingerprint
        if old != fingerprint:
            msg = (
                f"arm `{name}` has engine {fingerprint[:12]}, the run to go on with had {old[:12]}: "
                "begin a new run, answers of two builds are not added up"
            )
            raise NotComparable(msg)


def _add(state: _State, outcome: Outcome, settings: FuzzSettings, found: Found) -> None:
    """Add a batch to what came before it."""
    for one in outcome.counted:
        state.tallies[one.arm] = state.tallies[one.arm].with_one(
            one.verdict, distributed=one.distributed, vacuous=one.vacuous
        )
    for finding in outcome.findings:
        if finding.shrunk or sum(each.arm == finding.arm for each in state.findings) < MAX_FINDINGS:
            state.findings.append(finding)
            found(finding)
    state.engine.update(outcome.engine)
    state.compared += outcome.compared
    state.comparing_s += outcome.comparing_s / settings.lanes
    state.batches = outcome.number + 1


def _sizes(settings: FuzzSettings) -> Iterator[int]:
    left = settings.queries
    while left > 0:
        yield min(settings.batch, left)
        left -= settings.batch


def _rate(state: _State) -> float:
    return state.compared / state.comparing_s if state.comparing_s else 0.0


def _progress(state: _State, number: int) -> str:
    parts = [
        f"{name} {tally.equal}/{tally.run}" + (f" ({tally.run - tally.equal} bad)" if tally.run > tally.equal else "")
        for name, tally in state.tallies.items()
    ]
    return f"batch {number}: {', '.join(parts)} equal, {_rate(state):.0f} queries/s"


@contextmanager
def _scratch() -> Iterator[Path]:
    base = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="df-strategies-fuzz-", dir=base))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
