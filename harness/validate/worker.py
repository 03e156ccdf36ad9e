"""The process that validates, apart from the harness and from everything timed.

`python -m harness.validate.worker` reads one JSON object per line on stdin and answers each with one on stdout:

    {"op": "hello"} -> {"ok": true, "pid": 1234}
    {"op": "validate", "result": path, "query": {QueryMeta}, "oracles": {name: path}, "boundaries": {name: path}}
        -> {"ok": true, "judgement": {Judgement}}
    anything that cannot be done -> {"ok": false, "error": {"type": "..", "message": ".."}}

Paths are Arrow IPC files. It ends when stdin does. Ctrl-C is left to the harness, which closes stdin in good order.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from harness.errors import UserError
from harness.model import Validation
from harness.validate.model import Judgement, QueryMeta
from harness.validate.verdict import judge

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

NICENESS = 5
"""How much the process yields, should it ever run beside something timed: a third of a normal share. With the usual 10
it starves on a machine that is busy building, and then answers come too late."""


def read_table(path: str | Path) -> pa.Table:
    """Reads a whole Arrow IPC file into memory.

    Raises:
        UserError: The file is missing, truncated or no Arrow IPC file.
    """
    try:
        with pa.OSFile(str(path), "rb") as source, pa.ipc.open_file(source) as reader:
            table = reader.read_all()
            table.validate(full=True)
            return table
    except (OSError, pa.ArrowException) as error:
        size = f"{Path(path).stat().st_size} bytes" if Path(path).exists() else "no such file"
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        msg = f"{path} ({size}) cannot be read as an Arrow IPC file: {first_line}"
        raise UserError(msg) from error


def validate_files(
    result: str, meta: QueryMeta, oracles: Mapping[str, str], boundaries: Mapping[str, str]
) -> Judgement:
    """Reads the files and judges the answer; a file that cannot be read leaves it `not_validated`."""
    started = time.perf_counter()
    try:
        actual = read_table(result)
    except UserError as error:
        return Judgement(
            validation=Validation.NOT_VALIDATED,
            oracles=dict.fromkeys(oracles, Validation.NOT_VALIDATED),
            reason=f"answer: {error}",
        )
    tables: dict[str, pa.Table] = {}
    limits: dict[str, pa.Table] = {}
    unreadable: dict[str, str] = {}
    for name, path in oracles.items():
        try:
            tables[name] = read_table(path)
            if name in boundaries:
                limits[name] = read_table(boundaries[name])
        except UserError as error:
            tables.pop(name, None)
            unreadable[name] = str(error)
    found = judge(actual, tables, meta, limits, unreadable)
    return found.model_copy(update={"elapsed_ms": (time.perf_counter() - started) * 1000})


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Serves one request; whatever goes wrong becomes part of the answer, the process lives on."""
    op = request.get("op")
    try:
        if op == "hello":
            return {"ok": True, "pid": os.getpid()}
        if op == "validate":
            meta = QueryMeta.model_validate(request["query"])
            found = validate_files(request["result"], meta, request["oracles"], request.get("boundaries") or {})
            return {"ok": True, "judgement": found.model_dump(mode="json")}
    except Exception as error:  # noqa: BLE001 - the caller must learn of every failure, and none may end the process
        return _failure(type(error).__name__, str(error))
    return _failure("UserError", f"unknown op {op!r}; expected 'hello' or 'validate'")


def _failure(kind: str, message: str) -> dict[str, Any]:
    return {"ok": False, "error": {"type": kind, "message": message}}


def serve(requests: TextIO, answers: TextIO) -> None:
    """Answers line by line until the requests end."""
    for line in requests:
        try:
            request = json.loads(line)
        except ValueError as error:
            reply = _failure("ValueError", f"not JSON: {error}")
        else:
            reply = answer(request) if isinstance(request, dict) else _failure("TypeError", f"no object: {line[:80]!r}")
        answers.write(json.dumps(reply) + "\n")
        answers.flush()
        # Between two executions this process must hold no memory that the timed ones could use.
        pa.default_memory_pool().release_unused()


def main() -> int:
    """Process entry."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    # Nothing that a library prints may get between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin, answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
