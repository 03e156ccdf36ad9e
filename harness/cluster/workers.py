"""Worker processes of one arm: started together, checked, and always taken down."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from harness.child.keeper import Keeper, Process, clean_environment, tail
from harness.child.outcome import describe_exit, oom_kills
from harness.errors import HarnessFault
from harness.model import Status
from harness.settings import WORKER_STOP_TIMEOUT_S

if TYPE_CHECKING:
    from typing_extensions import Self

READY_POLL_S = 0.01
"""Seconds between looks at the ready file; starts are reported with this resolution."""

CONNECT_TIMEOUT_S = 5.0
"""Seconds for a TCP connection to a worker on this machine that says it is ready."""

EXIT_ADVICE = {
    1: " If its address is in use, stop what holds it or let the worker choose (port 0).",
    2: " It did not accept its arguments: compare the worker command of the arm file.",
    127: " The command of the arm file does not exist.",
}


class WorkerFailed(HarnessFault):
    """A worker did not start, or died. `status` says which kind of end it was."""

    def __init__(self, message: str, status: Status) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class WorkerInfo:
    """One worker that is ready."""

    url: str
    pid: int
    fingerprint: str | None
    ready_ms: float
    process: Process = field(repr=False)
    log: Path = field(repr=False)
    log_start: int = 0


class Cluster:
    """`count` worker processes of one arm. Use it as a context manager, or call `start` and `stop`."""

    def __init__(
        self, keeper: Keeper, name: str, command: list[str], count: int, *, logs: Path, cwd: Path,
        env: Mapping[str, str], ready_timeout_s: float,
    ) -> None:  # fmt: skip
        self.name = name
        self.command = command
        self.count = count
        self._keeper = keeper
        self._logs = logs
        self._cwd = cwd
        self._env = dict(env)
        self._ready_timeout_s = ready_timeout_s
        self._oom_before = 0
        self.workers: list[WorkerInfo] = []
        self._starting: list[tuple[Process, Path, int, int]] = []

    @property
    def urls(self) -> list[str]:
        """URLs of the ready workers, in the order of their index."""
        return [worker.url for worker in self.workers]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start all workers and wait until every one is ready and reachable.

        Raises:
            WorkerFailed: one died, said nothing in time, or said something else; all of them are stopped again.
        """
        self._oom_before = oom_kills()
        begun = time.monotonic()
        try:
            self._starting = [self._spawn(index) for index in range(self.count)]
            for index, (process, log, log_start, out_start) in enumerate(self._starting):
                ready = self._wait_ready(index, process, log, log_start, out_start, begun)
                took = (time.monotonic() - begun) * 1000
                url = str(ready["url"])
                self._connect(index, url)
                mark = ready.get("fingerprint")
                pid = int(ready.get("pid", process.pid))
                self.workers.append(WorkerInfo(url, pid, mark, took, process, log, log_start))
        except BaseException:
            self.stop(grace_s=0.0)
            raise

    def stop(self, grace_s: float = WORKER_STOP_TIMEOUT_S) -> list[str]:
        """Take all workers down; returns how each one went (`exited`, `terminated`, `killed`)."""
        processes = [entry[0] for entry in self._starting]
        self._starting, self.workers = [], []
        running = [process for process in processes if process.returncode() is None]
        for process in running:
            # All of them are asked before any is waited for: they drain side by side.
            process.signal(signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        ends = [process.stop(max(0.0, deadline - time.monotonic())) for process in processes]
        asked = {process.pid for process in running}
        return [
            "terminated" if how == "exited" and process.pid in asked else how
            for process, how in zip(processes, ends, strict=True)
        ]

    def failure(self) -> WorkerFailed | None:
        """What to say about a worker that has died, or None while all of them run."""
        for index, worker in enumerate(self.workers):
            code = worker.process.returncode()
            if code is not None:
                return self._died(index, code, worker.log, worker.log_start, "while it was in use")
        return None

    # -- parts --------------------------------------------------------------------------------------------------

    def _spawn(self, index: int) -> tuple[Process, Path, int, int]:
        command = [part.replace("{index}", str(index)) for part in self.command]
        log, out = self._logs / f"worker-{index}.log", self._logs / f"worker-{index}.out"
        # A file rather than a pipe: a worker that goes on printing can then never block on us.
        with log.open("ab") as stderr, out.open("ab") as stdout:
            log_start, out_start = os.fstat(stderr.fileno()).st_size, os.fstat(stdout.fileno()).st_size
            env = clean_environment(self._env)
            process = self._keeper.spawn(command, cwd=self._cwd, env=env, stdout=stdout, stderr=stderr)
        return process, log, log_start, out_start

    def _wait_ready(
        self, index: int, process: Process, log: Path, log_start: int, out_start: int, begun: float
    ) -> dict[str, Any]:
        while True:
            code = process.returncode()
            with log.with_suffix(".out").open("rb") as stream:
                stream.seek(out_start)
                line, newline, _ = stream.read().partition(b"\n")
            if newline:
                return self._parse_ready(index, line)
            if code is not None:
                raise self._died(index, code, log, log_start, "before it was ready")
            if time.monotonic() - begun > self._ready_timeout_s:
                said = tail(log, log_start)
                msg = f"{self._who(index)} was not ready within {self._ready_timeout_s:g} s.{_quoted(said)}"
                raise WorkerFailed(msg, Status.TIMEOUT)
            time.sleep(READY_POLL_S)

    def _parse_ready(self, index: int, line: bytes) -> dict[str, Any]:
        text = line.decode("utf-8", errors="replace").strip()
        try:
            ready = json.loads(text)
            parts = urlsplit(str(ready["url"]))
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and bool(parts.port)
        except (ValueError, KeyError, TypeError):
            usable = False
        if not usable:
            msg = (
                f"{self._who(index)} printed {text[:120]!r} first; expected one line of JSON such as "
                '{"url": "http://127.0.0.1:50051", "pid": 1, "fingerprint": "…"} with everything else on stderr'
            )
            raise WorkerFailed(msg, Status.ERROR)
        return dict(ready)

    def _connect(self, index: int, url: str) -> None:
        parts = urlsplit(url)
        try:
            socket.create_connection((str(parts.hostname), int(parts.port or 0)), CONNECT_TIMEOUT_S).close()
        except OSError as error:
            msg = f"{self._who(index)} says it is ready at {url}, but cannot be reached there: {error}"
            raise WorkerFailed(msg, Status.ERROR) from error

    def _died(self, index: int, code: int, log: Path, log_start: int, when: str) -> WorkerFailed:
        said = tail(log, log_start)
        status, how = describe_exit(code, said, oom_killed=oom_kills() > self._oom_before)
        return WorkerFailed(f"{self._who(index)} {how} {when}.{EXIT_ADVICE.get(code, '')}{_quoted(said)}", status)

    def _who(self, index: int) -> str:
        return f"worker {index + 1} of {self.count} of arm `{self.name}`"


def _quoted(said: str) -> str:
    return f" Its last words:\n{said}" if said else " It said nothing on stderr."
