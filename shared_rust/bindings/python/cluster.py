"""Worker processes on this machine from one line of Python, for laptops and tests."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any

from .status import WorkerStatus, worker_status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from typing_extensions import Self

__all__ = ["LocalCluster"]

START_TIMEOUT_S = 60.0
"""Seconds until a worker has said its URL. Starting takes about one; the rest is room for a cold disk."""

STOP_TIMEOUT_S = 12.0
"""Seconds between asking a worker to stop and killing it: a little more than its own time to drain."""

LOG_TAIL_BYTES = 2000


class LocalCluster:
    """`n` worker processes of this package on free loopback ports; they never outlive the process that started them.

    Examples:
        >>> with LocalCluster(2) as cluster:  # doctest: +SKIP
        ...     print(cluster.urls)
        ['http://127.0.0.1:35211', 'http://127.0.0.1:40677']

    Args:
        n: number of worker processes, 1 or more.
        allow_python_udfs: let the workers run Python functions that this process sends.
        init: `module:function` that each worker calls before it serves; see `WorkerOptions`.
        arguments: further arguments of the `worker` command.
        environment: variables to set in the workers.
        python: interpreter of the workers; the running one by default.
        start_timeout: seconds until every worker must be ready.

    Raises:
        ValueError: `n` is below 1.
    """

    def __init__(
        self,
        n: int = 2,
        *,
        allow_python_udfs: bool = False,
        init: str | None = None,
        arguments: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        python: str | None = None,
        start_timeout: float = START_TIMEOUT_S,
    ) -> None:
        """Describe the cluster; no process is started yet."""
        if n < 1:
            msg = f"a cluster needs at least one worker, got n={n}"
            raise ValueError(msg)
        self._n = n
        self._command = [python or sys.executable, "-m", __package__, "worker", "--listen", "127.0.0.1:0"]
        self._command += ["--stop-on-stdin-close"]
        self._command += ["--allow-python-udfs"] if allow_python_udfs else []
        self._command += ["--init", init] if init else []
        self._command += list(arguments)
        self._environment = {**os.environ, **(environment or {})}
        self._start_timeout = start_timeout
        self._processes: list[_Process] = []

    def start(self) -> Self:
        """Start the workers and wait until all of them listen.

        Raises:
            RuntimeError: a worker ended or did not get ready in time; the message ends with what it wrote. The others
                are stopped again.
        """
        if self._processes:
            msg = "this cluster is running already"
            raise RuntimeError(msg)
        deadline = time.monotonic() + self._start_timeout
        try:
            for _ in range(self._n):
                self._processes.append(_Process(self._command, self._environment))
            for process in self._processes:
                process.wait_ready(deadline)
        except BaseException:
            self.stop(timeout=0)
            raise
        return self

    def stop(self, timeout: float = STOP_TIMEOUT_S) -> None:
        """Stop the workers; those that are still there after `timeout` seconds are killed. Stopping twice is fine."""
        processes, self._processes = self._processes, []
        for process in processes:
            process.ask_to_stop()
        deadline = time.monotonic() + timeout
        for process in processes:
            process.end(deadline)

    @property
    def urls(self) -> list[str]:
        """URLs of the workers, in the order they were started."""
        return [process.url for process in self._processes]

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers, in the same order."""
        return [process.pid for process in self._processes]

    def status(self) -> list[WorkerStatus]:
        """Return the counters of every worker.

        Raises:
            RuntimeError: a worker does not answer.
        """
        return worker_status(self.urls)

    def __len__(self) -> int:
        """Return the number of workers."""
        return self._n

    def __iter__(self) -> Iterator[str]:
        """Iterate over the URLs."""
        return iter(self.urls)

    def __enter__(self) -> Self:
        """Start, unless it runs already."""
        return self if self._processes else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the workers; after an error at once, otherwise with time to drain."""
        self.stop(timeout=STOP_TIMEOUT_S if kind is None else 1.0)

    def __repr__(self) -> str:
        """Return size and state."""
        return f"<LocalCluster n={self._n} {' '.join(self.urls) or 'stopped'}>"


class _Process:
    """One worker process. It watches its standard input: when this end of the pipe closes, it stops by itself."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        # A file, not a pipe: nobody reads what a healthy worker logs, and a full pipe would stop it.
        # Appending, because the worker shares the file position and reading the tail moves it.
        self._log = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - closed when the process has ended
        # A session of its own: Ctrl-C interrupts the query in this process, not the workers that the next one needs.
        self._popen = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True, name="worker-ready")
        self._reader.start()
        self.url = ""

    @property
    def pid(self) -> int:
        return self._popen.pid

    def _read(self) -> None:
        """Pass the first line on and swallow the rest, so that the worker never blocks on a full pipe."""
        if self._popen.stdout is None:
            return
        self._lines.put(self._popen.stdout.readline())
        with contextlib.suppress(ValueError, OSError):
            while self._popen.stdout.read(65536):
                pass

    def wait_ready(self, deadline: float) -> None:
        try:
            line = self._lines.get(timeout=max(deadline - time.monotonic(), 0.01))
            ready: dict[str, Any] = json.loads(line) if line else {}
        except queue.Empty:
            msg = f"worker process {self.pid} was not ready in time{self._tail()}"
            raise RuntimeError(msg) from None
        except ValueError:
            msg = f"worker process {self.pid} printed {line[:200]!r} instead of its URL{self._tail()}"
            raise RuntimeError(msg) from None
        if "url" not in ready:
            self._popen.wait(timeout=STOP_TIMEOUT_S)
            msg = f"worker process {self.pid} ended with exit code {self._popen.returncode}{self._tail()}"
            raise RuntimeError(msg)
        self.url = str(ready["url"])

    def _tail(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            size = self._log.seek(0, os.SEEK_END)
            self._log.seek(max(size - LOG_TAIL_BYTES, 0))
            text = self._log.read().decode("utf-8", errors="replace").strip()
            return f":\n{text}" if text else ""
        return ""

    def ask_to_stop(self) -> None:
        with contextlib.suppress(OSError):
            if self._popen.stdin is not None:
                self._popen.stdin.close()
        with contextlib.suppress(OSError):
            self._popen.terminate()

    def end(self, deadline: float) -> None:
        try:
            self._popen.wait(timeout=max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        self._reader.join(timeout=1.0)
        if self._popen.stdout is not None:
            self._popen.stdout.close()
        self._log.close()
