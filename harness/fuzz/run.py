"""A run: batch after batch, one node first, then each arm in turn, everything drawn from the seed."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.arms import Arm
from harness.child.keeper import Keeper
from harness.environments import ArmEnvironment
from harness.errors import NotComparable
from harness.fuzz.check import Checker
from harness.fuzz.judge import Judged, judge, signature, sort_keys
from harness.fuzz.minimise import Minimiser
from harness.fuzz.model import BAD, ArmTally, Case, Finding, FuzzResult, FuzzSettings, Verdict
from harness.fuzz.options import Options, sample_options
from harness.fuzz.queries import make_query
from harness.fuzz.session import Answer, FuzzSession, Place
from harness.fuzz.tables import DataTable, make_tables
from harness.fuzz.tree import Query
from harness.model import Status

TABLES = 4
"""Tables of a batch."""

MAX_FINDINGS = 60
"""Findings kept per arm, shrunk or not; each holds its tables, some ten kilobytes. The rest is counted."""

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - scratch space of this run, in memory where there is such a thing

Say = Callable[[str], None]
Found = Callable[[Finding], None]


@dataclass(frozen=True)
class Batch:
    """What one batch is made of. Drawn from the seed and the number of the batch, nothing else."""

    number: int
    tables: tuple[DataTable, ...]
    options: Options
    queries: tuple[Query, ...]


def make_batch(settings: FuzzSettings, number: int, size: int) -> Batch:
    """The batch `number` of a run, with `size` queries."""
    rng = random.Random(f"{settings.seed}/{number}")  # noqa: S311 - repeatable, not secret
    tables = tuple(make_tables(rng, TABLES))
    options = sample_options(rng)
    if settings.distributed_config:
        options = options.model_copy(update={"distributed": {**options.distributed, **settings.distributed_config}})
    queries = tuple(
        make_query(random.Random(f"{settings.seed}/{number}/{index}"), list(tables))  # noqa: S311
        for index in range(size)
    )
    return Batch(number, tables, options, queries)


@dataclass
class _State:
    tallies: dict[str, ArmTally]
    findings: list[Finding] = field(default_factory=list)
    shrinks: dict[str, int] = field(default_factory=dict)
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

    `found` is told of each finding as soon as it is shrunk. `before` is the result of a run that stopped early: its
    figures are added to, and the batches that it has done are left out. `checkpoint` is given the result so far after
    every batch: a run that is killed loses one batch at most.

    Raises:
        HarnessFault: an arm cannot be started.
        NotComparable: an arm has another engine than in `before`.
    """
    begun = time.monotonic()
    state = _start(settings, arms, before)
    stopped = f"all {settings.queries} queries were run"
    with ExitStack() as stack:
        scratch = stack.enter_context(_scratch())
        keeper = stack.enter_context(Keeper())
        local = stack.enter_context(_session(keeper, oracle, environments, scratch / "oracle", settings))
        sessions = [
            stack.enter_context(_session(keeper, arm, environments, scratch / arm.name, settings)) for arm in arms
        ]
        engine = {session.arm.name: session.fingerprint for session in sessions}
        _same_engine(engine, before)

        def result(why: str) -> FuzzResult:
            return FuzzResult(
                settings=settings,
                engine=engine,
                arms=state.tallies,
                findings=tuple(state.findings),
                batches=state.batches,
                elapsed_s=state.elapsed_s + time.monotonic() - begun,
                queries_per_s=state.compared / state.comparing_s if state.comparing_s else 0.0,
                stopped_because=why,
            )

        for number, size in enumerate(_sizes(settings)):
            if number < state.batches:
                continue
            if settings.minutes is not None and time.monotonic() - begun > settings.minutes * 60:
                stopped = f"the time limit of {settings.minutes:g} minutes was reached"
                break
            _run_batch(make_batch(settings, number, size), local, sessions, scratch, settings, state, found)
            state.batches = number + 1
            say(_progress(state, number))
            checkpoint(result("it was stopped from outside"))
    return result(stopped)


def _start(settings: FuzzSettings, arms: list[Arm], before: FuzzResult | None) -> _State:
    if before is None:
        return _State({arm.name: ArmTally(seed=settings.seed) for arm in arms})
    shrinks = {arm.name: sum(found.arm == arm.name and found.shrunk for found in before.findings) for arm in arms}
    rate = before.queries_per_s
    compared = sum(tally.run for tally in before.arms.values())
    return _State(
        dict(before.arms), list(before.findings), shrinks, compared, compared / rate if rate else 0.0, before.batches,
        before.elapsed_s,
    )  # fmt: skip


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


def _run_batch(
    batch: Batch, local: FuzzSession, sessions: list[FuzzSession], scratch: Path, settings: FuzzSettings, state: _State,
    found: Found,
) -> None:  # fmt: skip
    # A folder of its own: whatever an arm remembers of the files of another batch must not meet these.
    checker = Checker(local, local, scratch / f"tables-{batch.number}")
    place = checker.place(batch.tables, batch.options)
    try:
        begun = time.monotonic()
        expected = _answers(local, place, batch)
        state.comparing_s += time.monotonic() - begun
        for session in sessions:
            begun = time.monotonic()
            suspects = list(_compare(session, place, batch, expected, state))
            state.comparing_s += time.monotonic() - begun
            own = Checker(local, session, scratch / f"cases-{batch.number}" / session.arm.name)
            for index, judged, answer in suspects:
                _suspect(own, place, batch, index, judged, expected[index], answer, settings, state, found)
    finally:
        shutil.rmtree(place.folder, ignore_errors=True)


def _answers(session: FuzzSession, place: Place, batch: Batch) -> list[Answer]:
    opened = session.open(place)
    if opened.status is not Status.OK:
        return [opened] * len(batch.queries)
    return [session.execute(query.sql()) for query in batch.queries]


def _compare(
    session: FuzzSession, place: Place, batch: Batch, expected: list[Answer], state: _State
) -> Iterator[tuple[int, Judged, Answer]]:
    """Run a batch on an arm; counts what is fine and yields what is not."""
    opened = session.open(place)
    for index, query in enumerate(batch.queries):
        if expected[index].status is not Status.OK and opened.status is Status.OK and index % 4:
            # What one node refuses is put to the arm only now and then: it tells little and costs as much.
            _count(state, session, Verdict.UNSUPPORTED)
            continue
        answer = session.execute(query.sql()) if opened.status is Status.OK else opened
        state.compared += 1
        judged = judge(expected[index], answer, sort_keys(query))
        if judged.verdict in BAD:
            yield index, judged, answer
        else:
            _count(state, session, judged.verdict, distributed=bool(answer.remote_tasks), vacuous=judged.vacuous)


def _suspect(
    checker: Checker, place: Place, batch: Batch, index: int, judged: Judged, expected: Answer, answer: Answer,
    settings: FuzzSettings, state: _State, found: Found,
) -> None:  # fmt: skip
    """Decide whether a difference is a fault of the arm; if so, count it and shrink it."""
    name, query = checker.arm.arm.name, batch.queries[index]
    if judged.verdict is Verdict.MISMATCH and not checker.stable(place, query.sql(), expected):
        _count(state, checker.arm, Verdict.UNSTABLE)
        return
    _count(state, checker.arm, judged.verdict, distributed=bool(answer.remote_tasks))
    done = state.shrinks.get(name, 0)
    seed = f"{settings.seed}/{batch.number}/{index}"
    if done >= settings.shrinks:
        if sum(finding.arm == name for finding in state.findings) < MAX_FINDINGS:
            _keep(state, _as_found(name, query, batch, judged, seed), found)
        return
    state.shrinks[name] = done + 1
    finding = Minimiser(checker).finding(query, batch.tables, batch.options, judged, seed, small=True)
    if finding is not None:
        _keep(state, finding, found)


def _keep(state: _State, finding: Finding, found: Found) -> None:
    state.findings.append(finding)
    found(finding)


def _as_found(name: str, query: Query, batch: Batch, judged: Judged, seed: str) -> Finding:
    """A finding for which there is no budget left to shrink it."""
    text = query.sql()
    return Finding(
        arm=name,
        verdict=judged.verdict,
        signature=signature(judged, text),
        reason=judged.reason,
        seed=seed,
        case=Case(sql=text, tables=batch.tables, options=batch.options),
        original_sql=text,
        shrunk=False,
    )


def _count(
    state: _State, session: FuzzSession, verdict: Verdict, *, distributed: bool = False, vacuous: bool = False
) -> None:
    name = session.arm.name
    state.tallies[name] = state.tallies[name].with_one(verdict, distributed=distributed, vacuous=vacuous)


def _session(
    keeper: Keeper, arm: Arm, environments: Mapping[str, ArmEnvironment], scratch: Path, settings: FuzzSettings
) -> FuzzSession:
    return FuzzSession(keeper, arm, environments[arm.name], scratch, settings.timeout_s)


def _sizes(settings: FuzzSettings) -> Iterator[int]:
    left = settings.queries
    while left > 0:
        yield min(settings.batch, left)
        left -= settings.batch


def _progress(state: _State, number: int) -> str:
    parts = [
        f"{name} {tally.equal}/{tally.run}" + (f" ({tally.run - tally.equal} bad)" if tally.run > tally.equal else "")
        for name, tally in state.tallies.items()
    ]
    rate = state.compared / state.comparing_s if state.comparing_s else 0.0
    return f"batch {number}: {', '.join(parts)} equal, {rate:.0f} queries/s"


@contextmanager
def _scratch() -> Iterator[Path]:
    base = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="df-strategies-fuzz-", dir=base))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
