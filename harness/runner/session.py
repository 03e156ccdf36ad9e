"""One arm at work: its cluster and its process, started, used, replaced after a failure, and taken down."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.arms import Arm
from harness.child.keeper import Keeper
from harness.child.outcome import ArmFailure, first_line
from harness.child.process import SCRIPT, ArmProcess
from harness.cluster import Cluster, WorkerFailed
from harness.environments import ArmEnvironment
from harness.errors import HarnessFault
from harness.model import Form
from harness.rundir import RunDirectory
from harness.runner.usage import Counters, Member, lifetime
from harness.settings import CHILD_START_TIMEOUT_S, OPEN_TIMEOUT_S, RunSettings
from tpch import query_sets
from tpch.query_sets import Query

STATUS_TIMEOUT_S = 10.0
"""Seconds for the command that prints a worker's counters: it connects to a process on this machine."""

DISTRIBUTED_PREFIX = "distributed."
"""Options of the distributed engine; a single-node session does not know them and must not be given them."""


def config_for(arm: Arm, settings: RunSettings) -> dict[str, str]:
    """Session options of one arm: those of the run that it can know, then its own."""
    shared = settings.config
    if not arm.distributed:
        shared = {key: value for key, value in shared.items() if not key.startswith(DISTRIBUTED_PREFIX)}
    return {**shared, **arm.config}


def query_fields(query: Query, form: Form) -> dict[str, Any]:
    """How a query is put to an arm process."""
    if form == "dataframe":
        return {"frame": query.id}
    return {
        "statements": list(query.statements),
        "result_statement": query.result_statement,
        "cleanup": list(query.cleanup),
    }


@dataclass
class Started:
    """What an arm told when it started, and how long that took (milliseconds, as the harness saw it)."""

    hello: dict[str, Any]
    opened: dict[str, Any]
    cluster_ms: float | None
    startup_ms: float
    worker_marks: list[str | None] = field(default_factory=list)


class ArmSession:
    """The processes of one arm. `up` is false before the first start, after a fatal failure and after `stop`."""

    def __init__(
        self,
        keeper: Keeper,
        arm: Arm,
        environment: ArmEnvironment,
        settings: RunSettings,
        tables: Mapping[str, Path],
        run: RunDirectory,
    ) -> None:
        self.arm = arm
        self.environment = environment
        self.settings = settings
        self.warmed: set[str] = set()
        self._keeper = keeper
        self._tables = {name: str(folder) for name, folder in tables.items()}
        self._run = run
        self._cluster: Cluster | None = None
        self._process: ArmProcess | None = None
        self._clients: list[ArmProcess] = []
        self._about: dict[str, Any] = {}
        self._counters: Counters | None = None

    @property
    def up(self) -> bool:
        """Whether a query can be sent."""
        return self._process is not None

    @property
    def log(self) -> str:
        """Log of the arm process, relative to the run directory."""
        return str(self._run.log(self.arm.name, "child.log").relative_to(self._run.path))

    def start(self, **about: Any) -> Started:
        """Start cluster and process and open the session; `about` goes to the event that records it.

        Raises:
            ArmFailure: any of them failed; everything is taken down again.
        """
        self.stop()
        try:
            started = self._start()
        except WorkerFailed as error:
            self._down()
            raise ArmFailure(error.status, first_line(str(error)), fatal=True, detail=str(error)) from error
        except BaseException:
            self._down()
            raise
        times = {key: started.opened.get(key) for key in ("context_ms", "register_ms")}
        workers = self._cluster.workers if self._cluster else []
        self._run.event(
            "start", arm=self.arm.name, cluster_ms=started.cluster_ms, startup_ms=started.startup_ms,
            import_ms=started.hello.get("startup_ms"), worker_ready_ms=[worker.ready_ms for worker in workers],
            processes=lifetime(self.members()), **times, **about,
        )  # fmt: skip
        self._about = about
        return started

    def open_clients(self, count: int) -> list[ArmProcess]:
        """`count` processes of the started arm, its coordinator the first of them, all on the one cluster.

        Raises:
            ArmFailure: one did not start.
        """
        if self._process is None:
            msg = "the session is not up"
            raise RuntimeError(msg)
        for number in range(1, count):
            self._clients.append(self._open(f"client-{number}.log")[0])
        return [self._process, *self._clients]

    def members(self) -> list[Member]:
        """The processes of the arm: its coordinator, then its workers in order."""
        found = [Member("coordinator", 0, self._process.pid)] if self._process else []
        workers = self._cluster.workers if self._cluster else []
        return found + [Member("worker", index, worker.pid) for index, worker in enumerate(workers)]

    def worker_counters(self) -> Counters | None:
        """What every worker counts, asked by the arm's `status` command; None without one, or when it fails."""
        command = self.arm.workers.status if self.arm.workers else None
        if command is None or self._cluster is None:
            return None
        self._counters = None
        counters: list[dict[str, Any]] = []
        for url in self._cluster.urls:
            words = [word.replace("{url}", url) for word in self.environment.fill(command)]
            try:
                done = subprocess.run(words, capture_output=True, check=True, timeout=STATUS_TIMEOUT_S)
                counters.append(dict(json.loads(done.stdout)))
            except (OSError, subprocess.SubprocessError, ValueError, TypeError):
                return None
        self._counters = counters
        return counters

    def last_counters(self) -> Counters | None:
        """The workers' counters as they stood after the last execution: nobody else uses them, so nothing has moved."""
        return self._counters if self._counters is not None else self.worker_counters()

    def execute(self, query: Query, result: Path | None) -> dict[str, Any]:
        """Run one query; the answer is written to `result` as an Arrow file.

        Raises:
            ArmFailure: it failed. When it is fatal, or a worker died, the session is down afterwards.
        """
        fields = query_fields(query, self.settings.form)
        return self._request("query", self.settings.timeout_s, result=str(result) if result else None, **fields)

    def explain(self, query: Query) -> dict[str, Any]:
        """Plan one query without running it.

        Raises:
            ArmFailure: as `execute`.
        """
        return self._request("explain", self.settings.timeout_s, **query_fields(query, self.settings.form))

    def stop(self) -> None:
        """Take the process, then the cluster down, in good order."""
        if self._process is not None:
            with contextlib.suppress(HarnessFault):
                # A full disk must not keep processes alive; the next sample will say it.
                self._run.event("stop", arm=self.arm.name, processes=lifetime(self.members()), **self._about)
        process, self._process = self._process, None
        cluster, self._cluster = self._cluster, None
        self.warmed.clear()
        self._drop_clients()
        if process is not None:
            process.close()
        if cluster is not None:
            cluster.stop()

    # -- parts --------------------------------------------------------------------------------------------------

    def _start(self) -> Started:
        arm, logs = self.arm, self._run.log(self.arm.name, "child.log").parent
        cluster_ms = None
        if arm.workers is not None:
            begun = time.monotonic()
            command = self.environment.fill(arm.workers.command)
            self._cluster = Cluster(
                self._keeper, arm.name, command, self.settings.workers, logs=logs, cwd=logs, env=arm.env,
                ready_timeout_s=arm.workers.ready_timeout_s,
            )  # fmt: skip
            self._cluster.start()
            cluster_ms = (time.monotonic() - begun) * 1000
        self._process, hello, opened, startup_ms = self._open("child.log")
        marks = [worker.fingerprint for worker in self._cluster.workers] if self._cluster else []
        return Started(hello, opened, cluster_ms, startup_ms, marks)

    def _open(self, name: str) -> tuple[ArmProcess, dict[str, Any], dict[str, Any], float]:
        """A process of the arm with an open session, what it said at hello and open, and milliseconds to the first."""
        log = self._run.log(self.arm.name, name)
        process = ArmProcess(self._keeper, self.arm.name, self._command(), log=log, cwd=log.parent, env=self.arm.env)
        try:
            hello = process.request("hello", CHILD_START_TIMEOUT_S)
            startup_ms = (time.monotonic() - process.started) * 1000
            urls = self._cluster.urls if self._cluster else []
            opened = process.request(
                "open", OPEN_TIMEOUT_S, config=config_for(self.arm, self.settings), workers=urls, tables=self._tables
            )
        except BaseException:
            process.kill()
            raise
        return process, hello, opened, startup_ms

    def _command(self) -> list[str]:
        driver = self.arm.driver
        if driver is None or driver.command is not None:
            return self.environment.fill(driver.command or [] if driver else [])
        about = {
            "factory": driver.factory,
            "probe": driver.probe,
            "namespace": driver.namespace,
            "path": self.arm.environment.path if self.arm.environment else [],
            "tpch": str(Path(query_sets.__file__).parent),
        }
        return self.environment.fill(["{python}", "-I", "-u", str(SCRIPT), json.dumps(about)])

    def _request(self, op: str, timeout_s: float, **fields: Any) -> dict[str, Any]:
        if self._process is None:
            msg = "the session is not up"
            raise RuntimeError(msg)
        try:
            return self._process.request(op, timeout_s, **fields)
        except ArmFailure as failure:
            dead = self._cluster.failure() if self._cluster else None
            if failure.fatal or dead is not None:
                # Also the cluster: workers may still be busy with what the lost coordinator asked for.
                self._down()
            if dead is not None and not failure.fatal:
                reason = f"{first_line(str(dead))} The arm said: {failure.reason}"
                raise ArmFailure(dead.status, reason, fatal=True, detail=f"{dead}\n{failure.detail}") from failure
            raise

    def _down(self) -> None:
        process, self._process = self._process, None
        cluster, self._cluster = self._cluster, None
        self.warmed.clear()
        self._drop_clients()
        if process is not None:
            process.kill()
        if cluster is not None:
            cluster.stop(grace_s=0.0)

    def _drop_clients(self) -> None:
        self._counters = None
        clients, self._clients = self._clients, []
        for client in clients:
            client.kill()
