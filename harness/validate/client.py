"""The harness' end of the validating process: starts it, asks it, and survives whatever happens to it."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO, TYPE_CHECKING, Any

from harness.model import Validation
from harness.validate.model import Judgement, QueryMeta

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from typing_extensions import Self

VALIDATE_TIMEOUT_S = 120.0
"""Time for one answer. The largest of TPC-H (38 000 rows) takes under a second; the rest is for a loaded machine and
for the import of pyarrow by a process that has just been started."""

STOP_TIMEOUT_S = 5.0
"""Time to end by itself once its input is closed; it has nothing to save."""

WORKER_COMMAND = (sys.executable, "-m", "harness.validate.worker")
_STDERR_TAIL = 300


class ValidatorLostError(Exception):
    """The process died or did not answer. Internal: becomes a `not_validated` with this text as reason."""


class Validator:
    """Validates answers in another process; use as a context manager.

    The process starts with the first answer and is replaced if it dies or does not answer in time. Every failure of
    it is a `not_validated` with the reason, never an exception and never `validated`. It serves one caller at a time.
    """

    def __init__(self, *, timeout: float = VALIDATE_TIMEOUT_S, command: Sequence[str] = WORKER_COMMAND) -> None:
        """`timeout` in seconds, per answer; `command` starts a process that speaks the protocol of `worker`."""
        self.timeout = timeout
        self.command = tuple(command)
        self._process: subprocess.Popen[str] | None = None
        self._replies: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._stderr: IO[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """Process id of the running process, if any."""
        return self._process.pid if self._process else None

    def validate(
        self,
        result_path: str | os.PathLike[str],
        query_meta: QueryMeta,
        oracle_paths: Mapping[str, str | os.PathLike[str]],
        boundary_paths: Mapping[str, str | os.PathLike[str]] | None = None,
    ) -> Judgement:
        """Judges the answer in `result_path` by the oracles' answers (Arrow IPC files all of them).

        `boundary_paths` gives, per oracle, its answer without the LIMIT of the query.
        """
        request = {
            "op": "validate",
            "result": str(result_path),
            "query": query_meta.model_dump(mode="json"),
            "oracles": {name: str(path) for name, path in oracle_paths.items()},
            "boundaries": {name: str(path) for name, path in (boundary_paths or {}).items()},
        }
        try:
            reply = self._ask(request)
            if reply["ok"]:
                return Judgement.model_validate(reply["judgement"])
            reason = "validator failed with {type}: {message}".format(**reply["error"])
        except ValidatorLostError as lost:
            self._kill()
            reason = str(lost)
        except (KeyError, TypeError, ValueError) as error:
            self._kill()
            reason = f"validator gave an answer that makes no sense: {type(error).__name__}: {error}"
        unknown = dict.fromkeys(oracle_paths, Validation.NOT_VALIDATED)
        return Judgement(validation=Validation.NOT_VALIDATED, oracles=unknown, reason=reason)

    def start(self) -> None:
        """Starts the process and waits until it answers, so that no later answer pays for that.

        Does not raise: if it fails, the first `validate` says why.
        """
        try:
            self._ask({"op": "hello"})
        except (ValidatorLostError, ValueError):
            self._kill()

    def close(self) -> None:
        """Ends the process; kills it if it does not end by itself."""
        process = self._process
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                process.stdin.close()
                process.wait(STOP_TIMEOUT_S)
        self._kill()

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        deadline = time.monotonic() + self.timeout
        stdin = self._running().stdin
        if stdin is None:
            raise self._loss(what="has no input")
        try:
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
        except OSError as error:
            what = f"could not be asked: {error}"
            raise self._loss(what) from error
        try:
            line = self._replies.get(timeout=max(deadline - time.monotonic(), 0.0))
        except queue.Empty:
            msg = f"validator did not answer within {self.timeout:g} s and was stopped"
            raise ValidatorLostError(msg) from None
        if line is None:
            raise self._loss(what="died")
        reply = json.loads(line)
        if not isinstance(reply, dict):
            msg = f"expected a JSON object, got {line[:_STDERR_TAIL]!r}"
            raise TypeError(msg)
        return reply

    def _running(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._kill()
        self._stderr = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed in _kill
        try:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                text=True,
                encoding="utf-8",
            )
        except OSError as error:
            msg = f"validator could not be started with {' '.join(self.command)}: {error}"
            raise ValidatorLostError(msg) from error
        # A queue of its own per process: a late line of a killed one must not answer a later question.
        self._replies = queue.SimpleQueue()
        threading.Thread(target=_pump, args=(self._process.stdout, self._replies), daemon=True).start()
        return self._process

    def _loss(self, what: str) -> ValidatorLostError:
        """Describes the end of the process: how it exited and the last it wrote to stderr."""
        code: int | None = None
        if self._process is not None:
            try:
                code = self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                code = None
        how = "still running" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"
        tail = ""
        if self._stderr is not None:
            self._stderr.seek(0)
            tail = self._stderr.read().strip()[-_STDERR_TAIL:]
        return ValidatorLostError(f"validator {what} ({how})" + (f": {tail}" if tail else ""))

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None


def _pump(stream: IO[str], replies: queue.SimpleQueue[str | None]) -> None:
    """Passes lines on; None means that there will be no more."""
    # ValueError: `_kill` closed the stream under us.
    with contextlib.suppress(ValueError):
        for line in stream:
            replies.put(line)
    replies.put(None)
