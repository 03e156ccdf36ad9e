"""Processes of a run: each in its own group, all of them gone when the harness goes.

A `Keeper` starts them, stops them and, when it closes (normally, by an exception, by Ctrl-C or at interpreter exit),
kills what is left. `guard.py` covers the one case in which no code of the harness runs any more: `kill -9`.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING

from harness.settings import STDERR_TAIL_LINES

if TYPE_CHECKING:
    from typing_extensions import Self

GUARD = Path(__file__).with_name("guard.py")

POLL_S = 0.005
"""Seconds between looks at a process that is stopping; only teardown waits on it, never a timed window."""

DROPPED_VARIABLES = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUNBUFFERED", "LD_PRELOAD")
"""Variables of the caller's shell that would make two machines, or two shells, run different things."""


def clean_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of every arm process: the caller's, without what steers Python, plus the arm's own."""
    kept = {key: value for key, value in os.environ.items() if key not in DROPPED_VARIABLES}
    return {**kept, **extra}


class Process:
    """One process with its own session and process group."""

    def __init__(self, keeper: Keeper, popen: subprocess.Popen[bytes]) -> None:
        self._keeper = keeper
        self.popen = popen
        self.pid = popen.pid
        self._collected = False

    def returncode(self) -> int | None:
        """Exit code, negative for a signal, or None while it runs."""
        return self.popen.poll()

    def wait(self, seconds: float) -> int | None:
        """Exit code if the process ends within `seconds`, else None."""
        deadline = time.monotonic() + seconds
        while (code := self.returncode()) is None and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group; a group that is gone is no error."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            # macOS answers with EPERM for a group that holds nothing but zombies.
            return

    def stop(self, grace_s: float) -> str:
        """End the group: SIGTERM, then SIGKILL after `grace_s` seconds. Returns `exited`, `terminated` or `killed`."""
        how = "exited"
        if self.returncode() is None:
            self.signal(signal.SIGTERM)
            how = "terminated" if self.wait(grace_s) is not None else "killed"
        self.kill()
        return how

    def kill(self) -> int:
        """End the group at once and collect the process; returns its exit code."""
        if self._collected:
            # The number may belong to somebody else by now.
            return self.popen.wait()
        # Also after the process itself has ended: what it started shares its group.
        self.signal(signal.SIGKILL)
        code = self.popen.wait()
        self._collected = True
        for stream in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            if stream is not None:
                _close_quietly(stream)
        self._keeper.forget(self)
        return code


class Keeper:
    """Starts processes and makes sure that none outlives it. Use it as a context manager, from the main thread.

    From the main thread because the kernel's "kill me when my parent dies" means the thread that started the process.
    """

    def __init__(self) -> None:
        self._alive: dict[int, Process] = {}
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARD), "watch"], stdin=subprocess.PIPE, start_new_session=True
        )
        atexit.register(self.close)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def spawn(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: int | IO[bytes] | None = subprocess.DEVNULL,
        stdout: int | IO[bytes] | None = subprocess.DEVNULL,
        stderr: int | IO[bytes] | None = None,
    ) -> Process:
        """Start `command` in a process group of its own, tied to the life of the harness."""
        tied = [sys.executable, "-I", "-S", str(GUARD), "launch", str(os.getpid()), *command]
        popen = subprocess.Popen(
            tied, cwd=cwd, env=dict(env), stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
        )
        process = Process(self, popen)
        self._alive[process.pid] = process
        self._tell(f"+{process.pid}\n")
        return process

    def forget(self, process: Process) -> None:
        """Take a process that has been collected off the list."""
        if self._alive.pop(process.pid, None) is not None:
            self._tell(f"-{process.pid}\n")

    def close(self) -> None:
        """Kill whatever is left. Safe to call again."""
        for process in list(self._alive.values()):
            process.kill()
        guard, self._guard = self._guard, None
        if guard is not None:
            if guard.stdin is not None:
                _close_quietly(guard.stdin)
            guard.wait()
        atexit.unregister(self.close)

    def _tell(self, line: str) -> None:
        if self._guard is None or self._guard.stdin is None:
            return
        try:
            self._guard.stdin.write(line.encode())
            self._guard.stdin.flush()
        except OSError:
            # Somebody killed the guard. The other safeguards still hold; a run is not lost over it.
            self._guard.stdin = None


def _close_quietly(stream: IO[bytes]) -> None:
    """Close a pipe whose other end may be gone already."""
    try:
        stream.close()
    except OSError:
        return


def tail(path: Path, start: int = 0, lines: int = STDERR_TAIL_LINES) -> str:
    """The last lines of a log, from byte `start` on; empty if there is none."""
    try:
        with path.open("rb") as stream:
            stream.seek(start)
            text = stream.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.strip().splitlines()[-lines:])
