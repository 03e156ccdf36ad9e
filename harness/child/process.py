"""The harness' end of the pipe to one arm process: requests with a deadline, and a name for every way it can end."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.child.keeper import Keeper, Process, clean_environment, tail
from harness.child.outcome import ArmFailure, describe_error, describe_exit, first_line, oom_kills
from harness.model import Status
from harness.settings import CHILD_STOP_TIMEOUT_S

SCRIPT = Path(__file__).with_name("arm_child.py")

READ_BYTES = 1 << 16

STACK_DUMP_S = 0.2
"""Seconds that a hanging process gets to write its stack to the log before it is killed."""

EXIT_WAIT_S = 5.0
"""Seconds between the end of a process' output and its exit code, generously."""


class ArmProcess:
    """One arm process. After an `ArmFailure` that is `fatal`, make a new one."""

    def __init__(
        self, keeper: Keeper, name: str, command: list[str], *, log: Path, cwd: Path, env: Mapping[str, str]
    ) -> None:
        self.name = name
        self.log = log
        self._log_start = log.stat().st_size if log.exists() else 0
        self._oom_before = oom_kills()
        self._buffer = b""
        self.started = time.monotonic()
        with log.open("ab") as stderr:
            self._process: Process = keeper.spawn(
                command,
                cwd=cwd,
                env=clean_environment(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )

    @property
    def pid(self) -> int:
        """Process id, which is also its group's."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.returncode() is None

    def request(self, op: str, timeout_s: float, **fields: Any) -> dict[str, Any]:
        """Send one request and wait for its answer.

        Raises:
            ArmFailure: the arm reported an error (not fatal), or died, hung or spoke nonsense (fatal; it is killed).
        """
        self._send(json.dumps({"op": op, **fields}), op)
        line = self._read_line(time.monotonic() + timeout_s, timeout_s, op)
        try:
            answer = json.loads(line)
            answered = isinstance(answer, dict) and isinstance(answer.get("ok"), bool)
        except ValueError:
            answered = False
        if not answered:
            self.kill()
            shown = first_line(line.decode("utf-8", errors="replace"), 80)
            reason = f"`{op}` was answered with something that is not of the protocol: {shown!r}"
            raise ArmFailure(Status.ERROR, reason, fatal=True)
        if answer["ok"]:
            return dict(answer)
        error = answer.get("error") or {}
        status, reason = describe_error(str(error.get("type", "Error")), str(error.get("message", "")))
        raise ArmFailure(status, reason, fatal=False, detail=str(error.get("traceback", "")))

    def close(self) -> None:
        """Ask the process to leave; kill it when it does not."""
        try:
            self.request("close", CHILD_STOP_TIMEOUT_S)
            self._process.wait(CHILD_STOP_TIMEOUT_S)
        except ArmFailure:
            pass
        self.kill()

    def kill(self) -> int:
        """End the process and its group at once."""
        return self._process.kill()

    def _send(self, line: str, op: str) -> None:
        stdin = self._process.popen.stdin
        try:
            if stdin is None or stdin.closed:
                raise BrokenPipeError
            stdin.write(line.encode() + b"\n")
            stdin.flush()
        except OSError:
            raise self._died(op) from None

    def _read_line(self, deadline: float, timeout_s: float, op: str) -> bytes:
        stdout = self._process.popen.stdout
        if stdout is None or stdout.closed:
            raise self._died(op)
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise self._hung(op, timeout_s)
                chunk = os.read(stdout.fileno(), READ_BYTES)
                if not chunk:
                    raise self._died(op)
                self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _hung(self, op: str, timeout_s: float) -> ArmFailure:
        self._process.signal(signal.SIGUSR1)
        time.sleep(STACK_DUMP_S)
        self.kill()
        reason = f"no answer to `{op}` within {timeout_s:g} s"
        return ArmFailure(Status.TIMEOUT, reason, fatal=True, detail=tail(self.log, self._log_start))

    def _died(self, op: str) -> ArmFailure:
        code = self._process.wait(EXIT_WAIT_S)
        left = self._buffer
        self.kill()
        log = tail(self.log, self._log_start, lines=200)
        if code is None:
            # It still ran, but a process that cannot answer is of no more use than a dead one.
            status, reason = Status.CRASH, "closed its output"
        else:
            status, reason = describe_exit(code, log, oom_killed=oom_kills() > self._oom_before)
        partly = f" (after {len(left)} bytes of an unfinished answer)" if left else ""
        return ArmFailure(status, f"{reason} during `{op}`{partly}", fatal=True, detail=tail(self.log, self._log_start))
