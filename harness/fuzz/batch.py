"""One batch: a set of tables and settings with its queries, run on one node first and then on each arm in turn."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from harness.fuzz.check import Checker
from harness.fuzz.judge import Judged, judge, signature, sort_keys
from harness.fuzz.minimise import Minimiser
from harness.fuzz.model import BAD, Case, Finding, FuzzSettings, Verdict
from harness.fuzz.options import Options, sample_options
from harness.fuzz.queries import make_query
from harness.fuzz.session import Answer, FuzzSession, Place
from harness.fuzz.tables import DataTable, make_tables
from harness.fuzz.tree import Query
from harness.model import Status

TABLES = 4
"""Tables of a batch."""


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


@dataclass(frozen=True)
class Counted:
    """One query on one arm, decided."""

    arm: str
    verdict: Verdict
    distributed: bool = False
    vacuous: bool = False


@dataclass
class Outcome:
    """What came out of a batch."""

    number: int
    engine: Mapping[str, str]
    counted: list[Counted] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    compared: int = 0
    comparing_s: float = 0.0


SAME_KIND = 2
"""Errors with the same text that are shrunk per arm: the third small case tells nothing that two do not."""


class Shrinks:
    """How many differences of each arm may still be shrunk; lanes share it."""

    def __init__(self, left: Mapping[str, int], done: Iterable[tuple[str, str]] = ()) -> None:
        """`done` are arms and signatures of what was shrunk before."""
        self._left = dict(left)
        self._done = Counter((arm, _text(mark)) for arm, mark in done)
        self._lock = threading.Lock()

    def take(self, arm: str, mark: str) -> bool:
        """Whether a difference with this signature may be shrunk; there is one less left then."""
        kind = (arm, _text(mark))
        with self._lock:
            if self._left.get(arm, 0) <= 0 or (self._done[kind] >= SAME_KIND and not _of_values(mark)):
                return False
            self._left[arm] -= 1
            self._done[kind] += 1
            return True


def _text(mark: str) -> str:
    """A signature without the parts of the query."""
    return mark.rpartition(": ")[0]


def _of_values(mark: str) -> bool:
    """Wrong answers have no text that tells one kind from another."""
    return mark.startswith(Verdict.MISMATCH.value)


@dataclass
class BatchLane:
    """Runs batches with processes of its own, which start with the first batch."""

    settings: FuzzSettings
    local: FuzzSession
    arms: list[FuzzSession]
    scratch: Path
    shrinks: Shrinks
    admit: Callable[[Mapping[str, str]], None]
    """Raises when the engines, by arm, are not those of the run to go on with."""
    _started: bool = False

    def run(self, job: tuple[int, int], /) -> Outcome:
        """Run the batch of a number and a size.

        Raises:
            HarnessFault: an arm cannot be started.
            NotComparable: an arm has another engine than before.
        """
        number, size = job
        if not self._started:
            for session in (self.local, *self.arms):
                session.begin()
            self._started = True
        outcome = Outcome(number, {session.arm.name: session.fingerprint for session in self.arms})
        self.admit(outcome.engine)
        batch = make_batch(self.settings, number, size)
        # A folder of its own: whatever an arm remembers of the files of another batch must not meet these.
        place = Checker(self.local, self.local, self.scratch / f"tables-{number}").place(batch.tables, batch.options)
        try:
            self._run(batch, place, outcome)
        finally:
            shutil.rmtree(place.folder, ignore_errors=True)
        return outcome

    def close(self) -> None:
        """End all processes; a batch that is running comes to nothing."""
        for session in (self.local, *self.arms):
            session.close()

    # -- parts --------------------------------------------------------------------------------------------------

    def _run(self, batch: Batch, place: Place, outcome: Outcome) -> None:
        begun = time.monotonic()
        expected = _answers(self.local, place, batch)
        outcome.comparing_s += time.monotonic() - begun
        for session in self.arms:
            begun = time.monotonic()
            suspects = list(_compare(session, place, batch, expected, outcome))
            outcome.comparing_s += time.monotonic() - begun
            checker = Checker(self.local, session, self.scratch / f"cases-{batch.number}" / session.arm.name)
            for index, judged, answer in suspects:
                self._suspect(checker, place, batch, index, judged, expected[index], answer, outcome)
            with suppress(OSError):
                checker.folder.rmdir()

    def _suspect(
        self, checker: Checker, place: Place, batch: Batch, index: int, judged: Judged, expected: Answer,
        answer: Answer, outcome: Outcome,
    ) -> None:  # fmt: skip
        """Decide whether a difference is a fault of the arm; if so, count it and shrink it."""
        name, query = checker.arm.arm.name, batch.queries[index]
        if judged.verdict is Verdict.MISMATCH and not checker.stable(place, query.sql(), expected):
            outcome.counted.append(Counted(name, Verdict.UNSTABLE))
            return
        outcome.counted.append(Counted(name, judged.verdict, distributed=bool(answer.remote_tasks)))
        seed = f"{self.settings.seed}/{batch.number}/{index}"
        if not self.shrinks.take(name, signature(judged, query.sql())):
            outcome.findings.append(_as_found(name, query, batch, judged, seed))
            return
        finding = Minimiser(checker).finding(query, batch.tables, batch.options, judged, seed, small=True)
        if finding is not None:
            outcome.findings.append(finding)


def _answers(session: FuzzSession, place: Place, batch: Batch) -> list[Answer]:
    opened = session.open(place)
    if opened.status is not Status.OK:
        return [opened] * len(batch.queries)
    return [session.execute(query.sql()) for query in batch.queries]


def _compare(
    session: FuzzSession, place: Place, batch: Batch, expected: list[Answer], outcome: Outcome
) -> Iterator[tuple[int, Judged, Answer]]:
    """Run a batch on an arm; counts what is fine and yields what is not."""
    name = session.arm.name
    opened = session.open(place)
    for index, query in enumerate(batch.queries):
        if expected[index].status is not Status.OK and opened.status is Status.OK and index % 4:
            # What one node refuses is put to the arm only now and then: it tells little and costs as much.
            outcome.counted.append(Counted(name, Verdict.UNSUPPORTED))
            continue
        answer = session.execute(query.sql()) if opened.status is Status.OK else opened
        outcome.compared += 1
        judged = judge(expected[index], answer, sort_keys(query))
        if judged.verdict in BAD:
            yield index, judged, answer
        else:
            outcome.counted.append(Counted(name, judged.verdict, bool(answer.remote_tasks), judged.vacuous))


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
