"""One arm for generated queries: its process and its workers stay up over all batches, and come back after a crash.

Always as many workers as the largest cluster of the matrix are started; a batch that wants fewer is given fewer URLs.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from harness.arms import Arm
from harness.child.keeper import Keeper
from harness.child.outcome import ArmFailure, first_line
from harness.child.process import ArmProcess
from harness.cluster import Cluster, WorkerFailed
from harness.environments import ArmEnvironment
from harness.errors import HarnessFault
from harness.fuzz.options import MAX_WORKERS, Options
from harness.fuzz.tables import DataTable, registration
from harness.model import Status
from harness.settings import CHILD_START_TIMEOUT_S, OPEN_TIMEOUT_S

if TYPE_CHECKING:
    from typing_extensions import Self

SCRIPT = Path(__file__).with_name("fuzz_child.py")

MAX_RESTARTS = 3
"""Starts in a row without a single answer in between, after which the arm is given up."""


@dataclass(frozen=True)
class Answer:
    """What an arm made of one query. `table` is there when `status` is ok."""

    status: Status
    reason: str = ""
    table: pa.Table | None = None
    remote_tasks: int | None = None


@dataclass(frozen=True)
class Place:
    """A batch: the tables, the folder that holds their files, and the settings."""

    folder: Path
    tables: tuple[DataTable, ...]
    options: Options


@dataclass
class FuzzSession:
    """An arm that answers one query after the other. Use it as a context manager."""

    keeper: Keeper
    arm: Arm
    environment: ArmEnvironment
    scratch: Path
    timeout_s: float
    workers: int = MAX_WORKERS
    fingerprint: str = ""
    _process: ArmProcess | None = None
    _cluster: Cluster | None = None
    _place: Place | None = None
    _fruitless: int = 0
    _closed: bool = False

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self) -> None:
        """Start for the first time.

        Raises:
            HarnessFault: a worker or the process did not start.
        """
        try:
            self.start()
        except ArmFailure as failure:
            self.stop()
            msg = f"arm `{self.arm.name}` does not start: {failure.reason}"
            raise HarnessFault(msg) from failure

    def close(self) -> None:
        """Take everything down for good, also from another thread: what is asked of the arm meanwhile fails."""
        self._closed = True
        self.stop()

    def start(self) -> None:
        """Start workers and process.

        Raises:
            ArmFailure: the process did not start.
            WorkerFailed: a worker did not start.
            HarnessFault: several starts in a row led to nothing.
        """
        self.stop()
        if self._closed:
            msg = f"arm `{self.arm.name}` has been closed"
            raise HarnessFault(msg)
        self._fruitless += 1
        if self._fruitless > MAX_RESTARTS:
            msg = f"arm `{self.arm.name}` was started {MAX_RESTARTS} times without answering; see {self.scratch}"
            raise HarnessFault(msg)
        self.scratch.mkdir(parents=True, exist_ok=True)
        if self.arm.workers is not None:
            command = self.environment.fill(self.arm.workers.command)
            self._cluster = Cluster(
                self.keeper, self.arm.name, command, self.workers, logs=self.scratch, cwd=self.scratch,
                env=self.arm.env, ready_timeout_s=self.arm.workers.ready_timeout_s,
            )  # fmt: skip
            self._cluster.start()
        log = self.scratch / "child.log"
        self._process = ArmProcess(
            self.keeper, self.arm.name, self._command(), log=log, cwd=self.scratch, env=self.arm.env
        )
        hello = self._process.request("hello", CHILD_START_TIMEOUT_S)
        self.fingerprint = str(hello.get("build", {}).get("fingerprint", ""))

    def stop(self) -> None:
        """Take process and workers down."""
        process, self._process = self._process, None
        cluster, self._cluster = self._cluster, None
        if process is not None:
            process.kill()
        if cluster is not None:
            cluster.stop(grace_s=0.0)

    def open(self, place: Place) -> Answer:
        """Make a session for a batch and register its tables; the answer tells whether that went well."""
        self._place = place
        try:
            self._open(place)
        except (ArmFailure, WorkerFailed) as failure:
            return self._failed(failure, reopen=False)
        return Answer(Status.OK)

    def execute(self, sql: str) -> Answer:
        """Run one query. After a crash or a timeout the arm is started anew, with the same batch."""
        path = self.scratch / "answer.arrow"
        path.unlink(missing_ok=True)
        try:
            if self._process is None:
                self.start()
                if self._place is not None:
                    self._open(self._place)
            done = self._request("query", self.timeout_s, statements=[sql], result_statement=0, result=str(path))
        except (ArmFailure, WorkerFailed) as failure:
            return self._failed(failure, reopen=True)
        self._fruitless = 0
        with pa.OSFile(str(path), "rb") as source, pa.ipc.open_file(source) as reader:
            return Answer(Status.OK, table=reader.read_all(), remote_tasks=done.get("remote_tasks"))

    def explain(self, sql: str) -> str:
        """The physical plan as the arm shows it, or the error that came instead."""
        try:
            return str(self._request("explain", self.timeout_s, statements=[sql]).get("text", ""))
        except (ArmFailure, WorkerFailed) as failure:
            return f"no plan: {self._failed(failure, reopen=True).reason}"

    # -- parts --------------------------------------------------------------------------------------------------

    def _open(self, place: Place) -> None:
        urls = self._cluster.urls[: place.options.workers] if self._cluster else []
        config = {**place.options.config(distributed=self.arm.distributed), **self.arm.config}
        plain = {table.name: str(place.folder / table.name) for table in place.tables if table.layout == "plain"}
        self._request("open", OPEN_TIMEOUT_S, config=config, workers=urls, tables=plain)
        setup = [text for table in place.tables if (text := registration(table, place.folder / table.name))]
        if setup:
            # The last statement is the one whose rows count; the others only set up.
            self._request(
                "query", OPEN_TIMEOUT_S, statements=[*setup, "SELECT 1"], result_statement=len(setup), result=None
            )

    def _request(self, op: str, timeout_s: float, **fields: Any) -> dict[str, Any]:
        if self._process is None:
            raise ArmFailure(Status.CRASH, "the arm is down", fatal=True)
        return self._process.request(op, timeout_s, **fields)

    def _failed(self, failure: ArmFailure | WorkerFailed, *, reopen: bool) -> Answer:
        """What to say of a failure; starts the arm anew where it, or a worker, has died."""
        dead = self._cluster.failure() if self._cluster else None
        reason = first_line(str(failure) if dead is None else f"{dead} The arm said: {failure}")
        status = dead.status if dead is not None else failure.status
        if not getattr(failure, "fatal", True) and dead is None:
            self._fruitless = 0
            return Answer(status, reason)
        self.stop()
        try:
            self.start()
            if reopen and self._place is not None:
                self._open(self._place)
        except (ArmFailure, WorkerFailed) as again:
            self.stop()
            time.sleep(0.1)
            return Answer(status, f"{reason} (and could not be started again: {first_line(str(again))})")
        return Answer(status, reason)

    def _command(self) -> list[str]:
        driver = self.arm.driver
        if driver is None or driver.command is not None:
            return self.environment.fill(driver.command or [] if driver else [])
        about = {
            "factory": driver.factory,
            "probe": driver.probe,
            "namespace": driver.namespace,
            "path": self.arm.environment.path if self.arm.environment else [],
        }
        return self.environment.fill(["{python}", "-I", "-u", str(SCRIPT), json.dumps(about)])
