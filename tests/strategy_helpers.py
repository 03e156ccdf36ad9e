"""Real strategies for tests: their wheels in their own environments, their workers as processes.

A test hands over a piece of Python; it runs inside the arm's environment with `make_context`, `urls` and the
namespace module `df` defined, and prints one JSON line as its last output.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STRATEGIES = ("inline", "external", "decorator")

PACKAGES = {"inline": "datafusion.distributed", "external": "datafusion_external", "decorator": "datafusion_decorator"}
NAMESPACES = {"inline": "datafusion", "external": "datafusion_external", "decorator": "datafusion"}

READY_TIMEOUT_S = 60
SCRIPT_TIMEOUT_S = 180

PREAMBLE = """
import importlib, json, os, sys
package = {package!r}
df = importlib.import_module({namespace!r})
factory = importlib.import_module(package + ".factory")
make_context, worker_status, plan_info = factory.make_context, factory.worker_status, factory.plan_info
urls = json.loads(os.environ["WORKER_URLS"])
def tasks():
    return sum(status["tasks_started"] for status in worker_status(urls))
def answer(value):
    print(json.dumps(value, default=str))
"""


OPEN = """
from importlib import import_module
import pyarrow as pa, pyarrow.compute as pc
def session(**options):
    options = {{"options": {{"distributed.file_scan_config_bytes_per_partition": "1"}}, **options}}
    config = df.SessionConfig().with_target_partitions(2)
    if package == "datafusion.distributed":
        ctx = df.SessionContext(config.with_distributed(urls, **options))
    elif package == "datafusion_external":
        ctx = df.DistributedSessionContext(workers=urls, config=config, **options)
    else:
        ctx = import_module(package).distributed(df.SessionContext(config), urls, **options)
    ctx.register_parquet("t", {table!r})
    return ctx
"""
"""A preamble that defines `session(**options)`, a session over the table `{table}`, registered as `t`."""


@dataclass(frozen=True)
class Strategy:
    """One strategy as a user has it after `pip install`."""

    name: str
    python: Path

    @property
    def package(self) -> str:
        """Package that has the worker command."""
        return PACKAGES[self.name]

    def worker_command(self, *arguments: str) -> list[str]:
        """The command that starts a worker."""
        return [str(self.python), "-I", "-m", self.package, "worker", *arguments]

    def run(self, code: str, urls: list[str] = [], *, timeout: float = SCRIPT_TIMEOUT_S) -> Any:  # noqa: B006 - read only
        """Run `code` in the arm's environment and return what it printed last, read as JSON."""
        done = self.try_run(code, urls, timeout=timeout)
        assert done.returncode == 0, f"{self.name}: exit {done.returncode}\n{done.stderr[-4000:]}"
        return json.loads(done.stdout.strip().splitlines()[-1])

    def try_run(
        self,
        code: str,
        urls: list[str] = [],
        *,
        timeout: float = SCRIPT_TIMEOUT_S,  # noqa: B006 - read only
    ) -> subprocess.CompletedProcess[str]:
        """Run `code` and return how it ended."""
        preamble = PREAMBLE.format(package=self.package, namespace=NAMESPACES[self.name])
        return subprocess.run(
            [str(self.python), "-I", "-c", preamble + textwrap.dedent(code)],
            env={**os.environ, "WORKER_URLS": json.dumps(urls)},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


@dataclass
class WorkerProcess:
    """A worker that printed its ready line."""

    process: subprocess.Popen[str]
    ready: dict[str, Any]

    @property
    def url(self) -> str:
        """URL that sessions use."""
        return str(self.ready["url"])


def start_worker(command: list[str]) -> WorkerProcess:
    """Start a worker and read its ready line."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        assert process.stderr is not None
        message = f"no ready line from {command}: {process.stderr.read()}"
        raise AssertionError(message)
    return WorkerProcess(process, json.loads(line))


def end_worker(worker: WorkerProcess, how: signal.Signals = signal.SIGTERM) -> int:
    """End a worker and return its exit code."""
    if worker.process.poll() is None:
        worker.process.send_signal(signal.SIGCONT)
        worker.process.send_signal(how)
    try:
        code = worker.process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        worker.process.kill()
        code = worker.process.wait()
    for stream in (worker.process.stdout, worker.process.stderr):
        if stream is not None:
            stream.close()
    return code


@contextmanager
def cluster(strategy: Strategy, count: int = 2, *arguments: str) -> Iterator[list[WorkerProcess]]:
    """`count` worker processes on loopback."""
    workers: list[WorkerProcess] = []
    try:
        for _ in range(count):
            workers.append(start_worker(strategy.worker_command("--listen", "127.0.0.1:0", *arguments)))
        yield workers
    finally:
        for worker in workers:
            end_worker(worker)
