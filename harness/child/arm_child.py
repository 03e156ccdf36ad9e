"""The process in which an arm runs: reads one JSON object per line, answers with one JSON object per line.

Started as a plain file inside the arm's own environment (`python -I -u arm_child.py '{"factory": ...}'`). It imports
the standard library and the arm, nothing of the harness, so that nothing of ours sits in the process that is timed.

The real stdout is kept private: file descriptor 1 is pointed at stderr before the arm is imported, so whatever a
library prints (from Python or from native code) lands in the log and can never pass for an answer.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import importlib.util
import json
import os
import platform
import re
import signal
import sys
import time
import traceback
from typing import Any, TextIO

READS = re.compile(r"\s*(--[^\n]*\n\s*)*\(*\s*(select|with|values|table|show|explain|describe)\b", re.IGNORECASE)
"""A statement that gives rows. Anything else around it is set-up (before) or clean-up (after)."""

SETTLE_S = 0.5
"""Seconds to wait, after the timed window, for workers to finish counting the tasks of a query (a LIMIT drops some)."""

SETTLE_STEP_S = 0.005

COUNTERS = ("tasks_started", "tasks_finished", "tasks_running", "bytes_out", "streams", "requests_failed")
"""Counters of a worker's status that are handed on, as far as the worker has them."""


class Session:
    """What one arm process holds between requests."""

    def __init__(self, driver: dict[str, Any]) -> None:
        self.driver = driver
        self.ctx: Any = None
        self.workers: list[str] = []
        self.factory: Any = None
        self.probe: Any = None
        self.frames: Any = None
        self.namespace: Any = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carry out one request."""
        operation = request.get("op")
        if operation == "close":
            return {}
        if operation not in ("hello", "open", "query", "explain"):
            msg = f"unknown op {operation!r}"
            raise ValueError(msg)
        answer: dict[str, Any] = getattr(self, operation)(request)
        return answer

    # -- operations ---------------------------------------------------------------------------------------------

    def hello(self, request: dict[str, Any]) -> dict[str, Any]:
        """Import the arm and say what it is."""
        del request
        start = time.perf_counter_ns()
        sys.path[:0] = self.driver.get("path", [])
        factory = self.driver["factory"]
        if factory == "stock":
            importlib.import_module(self.driver.get("namespace", "datafusion"))
            self.factory = stock_context
        else:
            module, _, function = factory.partition(":")
            self.factory = getattr(importlib.import_module(module), function)
        if self.driver.get("probe"):
            self.probe = importlib.import_module(self.driver["probe"])
        took = milliseconds(start, time.perf_counter_ns())
        build = self.probe.build_info() if hasattr(self.probe, "build_info") else {}
        return {"python": platform.python_version(), "versions": versions(), "build": build, "startup_ms": took}

    def open(self, request: dict[str, Any]) -> dict[str, Any]:
        """Make the session and register the tables (a folder of Parquet files each)."""
        self.workers = list(request.get("workers", []))
        t0 = time.perf_counter_ns()
        self.ctx = self.factory(dict(request.get("config", {})), self.workers)
        t1 = time.perf_counter_ns()
        for name, folder in request["tables"].items():
            self.ctx.register_parquet(name, folder)
        t2 = time.perf_counter_ns()
        times = {"context_ms": milliseconds(t0, t1), "register_ms": milliseconds(t1, t2)}
        return {**times, "config": self.config(), "workers": self.status() or []}

    def query(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run one query, timed from the call that parses to the last batch; everything else is outside that window.

        `planning_ms` is the time to build the logical plan (parse and analyse, set-up statements included);
        `execution_ms` is optimising, physical planning and execution, which `collect` does in one call.
        """
        before = self.counters() if request.get("count", True) else None
        gc.collect()
        gc.disable()
        cpu = time.process_time_ns()
        try:
            if request.get("frame"):
                outcome = self.timed_frame(request["frame"])
            else:
                outcome = self.timed_statements(split(request))
        finally:
            gc.enable()
        cpu = time.process_time_ns() - cpu
        df, batches, t0, t1, t2 = outcome
        after = self.settled(before)
        answer = {
            "elapsed_ms": milliseconds(t0, t2),
            "planning_ms": milliseconds(t0, t1),
            "execution_ms": milliseconds(t1, t2),
            "cpu_ms": cpu / 1e6,
            "rows": sum(batch.num_rows for batch in batches),
            "batches": len(batches),
            "remote_tasks": remote_tasks(before, after),
            "workers": counted(before, after),
            "result": request.get("result"),
        }
        if request.get("result"):
            write_result(request["result"], df, batches)
        return answer

    def explain(self, request: dict[str, Any]) -> dict[str, Any]:
        """The physical plan, with its stages and tasks where the arm can tell them. Nothing is executed."""
        if request.get("frame"):
            return self.describe(self.build_frame(request["frame"]))
        setup, main, cleanup = split(request)
        try:
            self.run_all(setup)
            return self.describe(self.ctx.sql(main))
        finally:
            self.run_all(cleanup)

    # -- parts --------------------------------------------------------------------------------------------------

    def timed_statements(self, parts: tuple[list[str], str, list[str]]) -> tuple[Any, list[Any], int, int, int]:
        """Run set-up, query and clean-up; the window opens with the set-up and closes with the last batch."""
        setup, main, cleanup = parts
        try:
            t0 = time.perf_counter_ns()
            self.run_all(setup)
            df = self.ctx.sql(main)
            t1 = time.perf_counter_ns()
            batches = df.collect()
            t2 = time.perf_counter_ns()
        except BaseException:
            # A view left behind would break the next execution; the error that matters is the first one.
            try:
                self.run_all(cleanup)
            except Exception:  # noqa: BLE001
                traceback.print_exc()
            raise
        self.run_all(cleanup)
        return df, batches, t0, t1, t2

    def timed_frame(self, query: str) -> tuple[Any, list[Any], int, int, int]:
        """Build and collect one DataFrame; the query code is imported before the window opens."""
        self.load_frames()
        t0 = time.perf_counter_ns()
        df = self.build_frame(query)
        t1 = time.perf_counter_ns()
        batches = df.collect()
        return df, batches, t0, t1, time.perf_counter_ns()

    def load_frames(self) -> None:
        """Import the DataFrame queries from their folder: that one package, and nothing that lies beside it."""
        if self.frames is None:
            load_package("tpch", self.driver["tpch"])
            self.frames = importlib.import_module("tpch.frames")
            self.namespace = importlib.import_module(self.driver.get("namespace", "datafusion"))

    def build_frame(self, query: str) -> Any:
        """The lazy DataFrame of a query, made with the arm's own `col`, `lit` and `functions`."""
        self.load_frames()
        return self.frames.load_frame(query)(self.ctx, self.namespace)

    def run_all(self, statements: list[str]) -> None:
        """Run statements whose rows nobody wants."""
        for statement in statements:
            self.ctx.sql(statement).collect()

    def describe(self, df: Any) -> dict[str, Any]:
        """Plan text, stages and tasks of a DataFrame; null where the arm has no word for them."""
        if hasattr(self.probe, "plan_info"):
            info = self.probe.plan_info(df)
            return {"text": info.get("text", ""), "stages": info.get("stages"), "tasks": info.get("tasks")}
        return {"text": df.execution_plan().display_indent(), "stages": None, "tasks": None}

    def config(self) -> dict[str, str]:
        """Every setting that is in effect, as the session itself tells it."""
        if hasattr(self.probe, "effective_config"):
            return {str(key): str(value) for key, value in self.probe.effective_config(self.ctx).items()}
        table = self.ctx.sql("SELECT name, value FROM information_schema.df_settings").to_pydict()
        return {
            name: "" if value is None else str(value) for name, value in zip(table["name"], table["value"], strict=True)
        }

    def status(self) -> list[dict[str, Any]] | None:
        """What every worker says of itself, over the wire; None where the arm has no way to ask."""
        if not self.workers or not hasattr(self.probe, "worker_status"):
            return None
        return list(self.probe.worker_status(self.workers))

    def counters(self) -> list[dict[str, int]] | None:
        """The counters of every worker, or None where the arm has no way to ask."""
        rows = self.status()
        return None if rows is None else [{name: int(row[name]) for name in COUNTERS if name in row} for row in rows]

    def settled(self, before: list[dict[str, int]] | None) -> list[dict[str, int]] | None:
        """The counters once no worker runs a task any more, or when waiting for that is over."""
        if before is None:
            return None
        deadline = time.monotonic() + SETTLE_S
        after = self.counters()
        while after and total(after, "tasks_running") and time.monotonic() < deadline:
            time.sleep(SETTLE_STEP_S)
            after = self.counters()
        return after


def total(rows: list[dict[str, int]], name: str) -> int:
    """Sum of one counter over all workers."""
    return sum(row.get(name, 0) for row in rows)


def remote_tasks(before: list[dict[str, int]] | None, after: list[dict[str, int]] | None) -> int | None:
    """Tasks that workers finished meanwhile; those they started, if some never come to an end."""
    if before is None or after is None:
        return None
    name = "tasks_started" if total(after, "tasks_running") else "tasks_finished"
    return max(0, total(after, name) - total(before, name))


def counted(before: list[dict[str, int]] | None, after: list[dict[str, int]] | None) -> list[dict[str, int]] | None:
    """What each worker counted meanwhile, without the gauge of running tasks."""
    if before is None or after is None or len(before) != len(after):
        return None
    return [
        {name: new[name] - old[name] for name in new if name in old and name != "tasks_running"}
        for old, new in zip(before, after)  # noqa: B905 - lengths are compared above
    ]


def stock_context(config: dict[str, str], workers: list[str]) -> Any:
    """A plain session of the stock package; it has no workers and says so when given some."""
    if workers:
        msg = f"stock datafusion runs in one process, but {len(workers)} worker URLs were given"
        raise ValueError(msg)
    from datafusion import SessionConfig, SessionContext

    return SessionContext(SessionConfig(config))


def split(request: dict[str, Any]) -> tuple[list[str], str, list[str]]:
    """Set-up statements, the one whose rows are the answer, and clean-up statements.

    The answer is statement `result_statement`, or the last one that gives rows. `cleanup` adds statements that may be
    run at any time; what follows the answer cleans up too.
    """
    statements = request["statements"]
    chosen = request.get("result_statement")
    if chosen is None:
        reading = [index for index, text in enumerate(statements) if READS.match(text)]
        if not reading:
            msg = f"none of the {len(statements)} statements gives rows (SELECT, WITH, VALUES, ...)"
            raise ValueError(msg)
        chosen = reading[-1]
    return statements[:chosen], statements[chosen], [*statements[chosen + 1 :], *request.get("cleanup", [])]


def write_result(path: str, df: Any, batches: list[Any]) -> None:
    """Write the answer as an Arrow IPC file that is either whole or absent."""
    import pyarrow.ipc

    schema = batches[0].schema if batches else df.schema()
    partial = path + ".part"
    with pyarrow.ipc.new_file(partial, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    os.replace(partial, path)


def load_package(name: str, folder: str) -> Any:
    """Import a package from its folder without touching the import path."""
    path = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=[folder])
    if spec is None or spec.loader is None:
        msg = f"{path} is not a Python file"
        raise ImportError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def versions() -> dict[str, str]:
    """Name and version of every installed distribution."""
    from importlib import metadata

    return {
        str(dist.metadata["Name"]).lower(): dist.version for dist in metadata.distributions() if dist.metadata["Name"]
    }


def milliseconds(start: int, end: int) -> float:
    """Nanoseconds between two clock readings, as milliseconds."""
    return (end - start) / 1e6


def answer_to(session: Session, line: str) -> dict[str, Any]:
    """One answer for one request line; a failure of any kind is an answer too."""
    try:
        return {"ok": True, **session.answer(json.loads(line))}
    except BaseException as error:  # noqa: BLE001 - panics of native code are no `Exception`
        text = traceback.format_exc()
        message = str(error) or type(error).__name__
        return {"ok": False, "error": {"type": type(error).__name__, "message": message, "traceback": text}}


def private_streams() -> tuple[TextIO, TextIO]:
    """The two ends of the pipe to the harness, out of reach of everything that reads stdin or prints."""
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return requests, answers


def main() -> int:
    """Serve requests until `close` or the end of the pipe."""
    requests, answers = private_streams()
    faulthandler.enable(all_threads=True)
    # The harness asks for this before it kills a process that hangs: the stack ends up in the log.
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    session = Session(json.loads(sys.argv[1]))
    for line in requests:
        if not line.strip():
            continue
        reply = answer_to(session, line)
        answers.write(json.dumps(reply, default=str) + "\n")
        answers.flush()
        if '"close"' in line and json.loads(line).get("op") == "close":
            break
    return 0


if __name__ == "__main__":
    # Not `sys.exit`: a runtime of native threads must not be able to hold the process open after `close`.
    code = main()
    sys.stderr.flush()
    os._exit(code)
