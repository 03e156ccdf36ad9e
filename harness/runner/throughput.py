"""The throughput mode: several clients at once on one cluster, each a process of its own with its own session.

One unit is one arm in one round: a new cluster, every client warmed up, one client alone through all queries, then all
clients together, each in its own seeded order. A unit is written in one piece when its answers have been compared, so
that a run which is killed loses the unit in flight and nothing else.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.child.outcome import ArmFailure
from harness.child.process import ArmProcess
from harness.errors import HarnessFault
from harness.model import Status, Validation
from harness.rundir import RunDirectory, append_line, disk_errors, write_atomic
from harness.runner.judge import Judge
from harness.runner.progress import RunProgress
from harness.runner.session import ArmSession, query_fields
from harness.schedule import Schedule, stream_order
from harness.settings import RunSettings
from harness.stats.throughput import (
    DISCLAIMER,
    StreamExecution,
    ThroughputFigures,
    ThroughputUnit,
    throughput,
)
from tpch.query_sets import Query

UNITS = "throughput.jsonl"
"""One `ThroughputUnit` per line."""

FIGURES = "throughput.json"
"""What the units come to, per arm."""

ALONE = -1
"""Stream number that stands for the pass of one client alone when its order is drawn."""


class Throughput:
    """Carries out a throughput run. One per run."""

    def __init__(
        self,
        run: RunDirectory,
        settings: RunSettings,
        sessions: Mapping[str, ArmSession],
        queries: Mapping[str, Query],
        judge: Judge,
        progress: RunProgress,
    ) -> None:
        self._run = run
        self._settings = settings
        self._sessions = sessions
        self._queries = queries
        self._judge = judge
        self._progress = progress
        self._answers = run.path / "streams"

    def conduct(self, schedule: Schedule) -> None:
        """Every unit that is not on disk yet, in the order in which the schedule starts clusters."""
        done = {(unit.arm, unit.round) for unit in read_units(self._run)}
        left = [
            (step.arm, step.round)
            for step in schedule.steps
            if step.action == "start_cluster" and (step.arm, step.round) not in done
        ]
        self._progress.stage(f"{self._settings.streams} streams", len(left))
        for arm, number in left:
            unit = self._unit(self._sessions[arm], number)
            with disk_errors(self._run.path):
                append_line(self._run.path / UNITS, unit.model_dump_json())
            self._progress.step(f"round {number + 1} {arm}")
        shutil.rmtree(self._answers, ignore_errors=True)
        write_atomic(self._run.path / FIGURES, json.dumps(self.figures(), indent=1))

    def figures(self) -> dict[str, Any]:
        """The content of `throughput.json`."""
        units, sf = read_units(self._run), float(self._settings.scale_factor)
        arms = {
            arm: throughput(units, arm=arm, streams=self._settings.streams, sf=sf).model_dump(mode="json")
            for arm in self._settings.arms
        }
        return {"schema_version": 1, "what": DISCLAIMER, "streams": self._settings.streams, "arms": arms}

    # -- one unit -----------------------------------------------------------------------------------------------

    def _unit(self, session: ArmSession, number: int) -> ThroughputUnit:
        arm = session.arm.name
        try:
            session.start(phase="throughput", round=number)
            clients = session.open_clients(self._settings.streams)
        except ArmFailure as failure:
            session.stop()
            reason = f"the arm did not start: {failure.reason}"
            return ThroughputUnit(round=number, arm=arm, single=(), together=(), interval_s=None, reason=reason)
        try:
            for _ in range(self._settings.warmups):
                self._pass(session, clients, number, keep=False)
            single, _ = self._pass(session, clients[:1], number, keep=True, alone=True)
            together, seconds = self._pass(session, clients, number, keep=True)
        finally:
            session.stop()
        return ThroughputUnit(round=number, arm=arm, single=single, together=together, interval_s=seconds)

    def _pass(
        self, session: ArmSession, clients: Sequence[ArmProcess], number: int, *, keep: bool, alone: bool = False
    ) -> tuple[tuple[StreamExecution, ...], float]:
        """All clients at once, each through all queries; the answers are compared when the last one has finished."""
        self._answers.mkdir(exist_ok=True)
        barrier = threading.Barrier(len(clients))
        begun: list[float] = []

        def stream(place: int) -> list[StreamExecution]:
            order = stream_order(list(self._queries), self._settings.seed, number, ALONE if alone else place)
            barrier.wait()
            begun.append(time.monotonic())
            return self._stream(session, clients[place], place, order, min(begun), keep=keep, alone=alone)

        with ThreadPoolExecutor(len(clients)) as pool:
            try:
                streams = list(pool.map(stream, range(len(clients))))
            except BaseException:
                # Otherwise leaving the block would wait for every stream to come to its end.
                for client in clients:
                    client.kill()
                raise
        seconds = time.monotonic() - min(begun)
        return tuple(self._judged(execution) if keep else execution for row in streams for execution in row), seconds

    def _stream(
        self, session: ArmSession, client: ArmProcess, place: int, order: Sequence[str], begun: float, *, keep: bool,
        alone: bool,
    ) -> list[StreamExecution]:  # fmt: skip
        """One client, one query after the other."""
        found: list[StreamExecution] = []
        dead: str | None = None
        for position, name in enumerate(order):
            about: dict[str, Any] = {"stream": place, "position": position, "query": name}
            declared = session.arm.unsupported_reason(name, self._settings.form)
            if declared or dead:
                status = Status.UNSUPPORTED if declared else Status.NOT_RUN
                found.append(StreamExecution(**about, status=status, reason=declared or dead))
                continue
            fields = query_fields(self._queries[name], self._settings.form)
            result = str(self._answer(place, name)) if keep else None
            start = time.monotonic()
            about["started_s"] = max(0.0, start - begun)
            try:
                # Several clients on one cluster: what workers count cannot be told apart, and waiting for them to
                # have nothing to do would wait for the others.
                answer = client.request("query", self._settings.timeout_s, result=result, count=alone, **fields)
            except ArmFailure as failure:
                found.append(StreamExecution(**about, status=failure.status, reason=failure.reason))
                dead = "the client of this stream had died" if failure.fatal else None
                continue
            about["latency_ms"] = (time.monotonic() - start) * 1000
            about |= {"elapsed_ms": answer.get("elapsed_ms"), "rows": answer.get("rows")}
            tasks = answer.get("remote_tasks") if alone else None
            found.append(StreamExecution(**about, status=Status.OK, remote_tasks=tasks))
        return found

    def _judged(self, execution: StreamExecution) -> StreamExecution:
        if execution.status is not Status.OK:
            return execution
        path = self._answer(execution.stream, execution.query)
        judged = self._judge.judge(self._queries[execution.query], path)
        path.unlink(missing_ok=True)
        wrong = judged.validation is Validation.MISMATCH
        return execution.model_copy(
            update={
                "validation": judged.validation,
                "status": Status.WRONG if wrong else Status.OK,
                "reason": judged.reason if judged.validation is not Validation.VALIDATED else None,
            }
        )

    def _answer(self, stream: int, query: str) -> Path:
        return self._answers / f"{stream}-{query}.arrow"


def read_units(run: RunDirectory) -> list[ThroughputUnit]:
    """All units on disk; a last line cut short by a kill is cut off.

    Raises:
        HarnessFault: another line is damaged.
    """
    path = run.path / UNITS
    data = path.read_bytes() if path.exists() else b""
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        with path.open("r+b") as stream:
            stream.truncate(len(whole))
    try:
        return [ThroughputUnit.model_validate_json(line) for line in whole.splitlines()]
    except ValidationError as error:
        msg = f"{path} is damaged: {error.errors()[0]['msg']}"
        raise HarnessFault(msg) from error


def render(figures: Mapping[str, Any]) -> str:
    """The figures as text."""
    lines = [f"{figures['streams']} streams at once: {figures['what']}"]
    for entry in figures["arms"].values():
        found = ThroughputFigures.model_validate(entry)
        if found.reason is not None or found.multi_stream_range is None:
            lines.append(f"{found.arm:>12}: no figure ({found.reason})")
            continue
        low, high = found.multi_stream_range
        lines.append(
            f"{found.arm:>12}: one stream {found.single_stream_per_hour:,.0f}/h, {found.streams} streams"
            f" {found.multi_stream_per_hour:,.0f}/h ({low:,.0f} to {high:,.0f} in {found.rounds} rounds),"
            f" fairness {found.fairness:.3f}, slowest stream {found.slowest_over_fastest:.2f}x the fastest"
        )
        lines += [
            f"{'':>12}  stream {one.stream}: {one.total_s:.2f} s in all, latency median {one.median_ms:.0f} ms,"
            f" p95 {one.p95_ms:.0f} ms, max {one.max_ms:.0f} ms"
            for one in found.per_stream
        ]
    return "\n".join(lines) + "\n"


def failed(run: RunDirectory) -> list[str]:
    """What went wrong, one line per unit."""
    return [f"{unit.arm} round {unit.round + 1}: {words}" for unit in read_units(run) if (words := unit.trouble())]
