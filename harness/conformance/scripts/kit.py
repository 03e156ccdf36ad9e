"""What check bodies share: the arm as a user has it, small tables, assertions that say what they saw.

Runs inside the arm's environment: standard library, the arm and pyarrow only.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import contextlib
import importlib
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROWS, FILES, KEYS = 1000, 4, 10
"""The usual table: v = 0..999 over four files, k = v % 10."""

BY_KEY = "SELECT k, count(*) AS n, sum(v) AS s FROM {table} GROUP BY k ORDER BY k"

SLOW_ROWS = 1_000_000
SLOW = "SELECT count(*) AS n, sum(x.v + y.v) AS s FROM b x JOIN b y ON x.v % 5000 = y.v % 5000 AND x.v < y.v"
"""About ten seconds of steady work over table `b`. Each row meets 200 others: with many more per row the engine itself
does not come up for air between two looks at its input, and even a single node cannot be interrupted for 12 s."""

READY_S = 60
STOP_S = 15.0

ONE_TASK_PER_FILE = {"distributed.file_scan_config_bytes_per_partition": "1"}
"""Small tables do not distribute otherwise (the engine's default is 16 MiB per task)."""


class Blocked(Exception):
    """The check cannot run here; the message names what is missing."""


class Partial(Exception):
    """It works, but something is missing; the message lists what."""


class Unmet(AssertionError):
    """An expectation did not hold."""


class Arm:
    """One arm inside its own environment."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.name: str = job["arm"]
        self.distributed: bool = job["distributed"]
        self.urls: list[str] = job["urls"]
        self.pids: list[int] = job["pids"]
        self.worker_command: list[str] = job["worker_command"]
        self.given: dict[str, dict[str, Any]] = job["prerequisites"]
        self.tmp = Path(job["tmp"])
        self.figure: dict[str, Any] = {"asserted": 0}
        self.keep = True
        self.kept: list[Any] = []
        """Sessions that live as long as the check: only the checks of area 28 ask what happens when they do not."""
        self.df: Any = importlib.import_module(job["namespace"])
        self.factory_name: str = job["factory"]
        self.package: str = job["factory"].partition(":")[0].rpartition(".")[0]
        self.probe: Any = importlib.import_module(job["probe"]) if job["probe"] else None

    # -- sessions -----------------------------------------------------------------------------------------------

    @property
    def api(self) -> Any:
        """The package that has `Worker`, `LocalCluster` and the rest of the strategy's own names."""
        if not self.distributed:
            raise Blocked("needs workers, and this arm has none")
        if not self.package:
            raise Blocked("the arm's factory is a single module: there is no package with names of its own")
        return importlib.import_module(self.package)

    def plain(self, config: dict[str, str] | None = None) -> Any:
        """A single-node session of the same package: the oracle."""
        settings = {"datafusion.execution.target_partitions": "2", "datafusion.catalog.information_schema": "true"}
        return self.df.SessionContext(self.df.SessionConfig({**settings, **(config or {})}))

    def context(self, config: dict[str, str] | None = None, *, workers: Any = None, **options: Any) -> Any:
        """A session of the arm. `distributed.*` keys of `config` go where the arm takes them."""
        given = {"datafusion.execution.target_partitions": "2", "datafusion.catalog.information_schema": "true"}
        given |= {**ONE_TASK_PER_FILE, **(config or {})}
        session = {key: value for key, value in given.items() if not key.startswith("distributed.")}
        own = {key: value for key, value in given.items() if key.startswith("distributed.")}
        if not self.distributed:
            made = self.plain(session)
        else:
            urls = self.urls if workers is None else workers
            made = (
                self._from_factory(given, urls, **options)
                if not self.known
                else self.open(self.df.SessionConfig(session), urls, options=own, **options)
            )
        self.kept += [made] if self.keep else []
        return made

    def open(self, config: Any, workers: Any, **options: Any) -> Any:
        """The strategy's own way to go distributed, as its README shows it."""
        if self.package == "datafusion.distributed":
            return self.df.SessionContext(config.with_distributed(workers, **options))
        if self.package == "datafusion_external":
            return self.df.DistributedSessionContext(workers, config=config, **options)
        if self.package == "datafusion_decorator":
            return self.api.distributed(self.df.SessionContext(config), workers, **options)
        raise Blocked("this arm offers only make_context(config, urls)")

    @property
    def known(self) -> bool:
        """Whether the arm is one of the strategies, whose own way to go distributed is known here."""
        return self.package in ("datafusion.distributed", "datafusion_external", "datafusion_decorator")

    def _from_factory(self, config: dict[str, str], urls: Any, **options: Any) -> Any:
        """The session of an arm that somebody added: all that is known of it is its factory."""
        if options or not isinstance(urls, list):
            raise Blocked("this arm offers only make_context(config, urls)")
        module, _, function = self.factory_name.partition(":")
        return getattr(importlib.import_module(module), function)(config, urls)

    # -- workers ------------------------------------------------------------------------------------------------

    def status(self, urls: list[str] | None = None) -> list[dict[str, Any]]:
        """What the workers say of themselves."""
        return list(self.probe.worker_status(self.urls if urls is None else urls)) if self.distributed else []

    def tasks(self, counter: str = "tasks_started", urls: list[str] | None = None) -> int:
        """A counter, summed over the workers."""
        return sum(int(row[counter]) for row in self.status(urls))

    def settled(self, seconds: float = 5.0, urls: list[str] | None = None) -> bool:
        """Wait until no task runs on any worker."""
        return wait_until(lambda: self.tasks("tasks_running", urls) == 0, seconds)

    @contextlib.contextmanager
    def worker(self, *arguments: str, listen: str = "127.0.0.1:0") -> Iterator[WorkerProcess]:
        """A worker process of the check's own."""
        if not self.distributed:
            raise Blocked("needs workers, and this arm has none")
        process = WorkerProcess(self, listen, arguments)
        try:
            process.wait_ready()
            yield process
        finally:
            process.end()

    def command(self, *arguments: str, listen: str = "127.0.0.1:0") -> list[str]:
        """The worker command with another address and more arguments."""
        base = list(self.worker_command)
        if "--listen" in base:
            base[base.index("--listen") + 1] = listen
        return [*base, *arguments]

    # -- expectations -------------------------------------------------------------------------------------------

    def check(self, condition: object, otherwise: str) -> None:
        """Assert; `otherwise` says what was expected and what was seen."""
        self.figure["asserted"] += 1
        if not condition:
            raise Unmet(otherwise)

    def equal(self, got: object, want: object, what: str) -> None:
        """Assert equality."""
        self.check(got == want, f"{what}: expected {short(want)}, got {short(got)}")

    def raises(
        self,
        act: Callable[[], object],
        what: str,
        *mentions: str,
        kinds: tuple[type[BaseException], ...] = (Exception,),
    ) -> str:
        """Assert that `act` raises an ordinary exception whose message holds every one of `mentions`."""
        try:
            value = act()
        except kinds as error:
            message = f"{type(error).__name__}: {error}"
            missing = [text for text in mentions if text.lower() not in message.lower()]
            self.check(not missing, f"{what}: the message lacks {missing}: {short(message, 400)}")
            return message
        except BaseException as error:
            self.figure["asserted"] += 1
            raise Unmet(f"{what}: expected {names(kinds)}, got {type(error).__name__}: {short(error, 400)}") from error
        self.figure["asserted"] += 1
        raise Unmet(f"{what}: expected {names(kinds)}, but it returned {short(value)}")

    def on_workers(self, run: Callable[[], Any], what: str = "the query") -> Any:
        """Run something; on a distributed arm note how many tasks it caused, and demand at least one."""
        before = self.tasks()
        value = run()
        if self.distributed:
            ran = self.tasks() - before
            self.figure["remote_tasks"] = self.figure.get("remote_tasks", 0) + ran
            self.figure["asserted"] += 1
            if ran == 0:
                raise Partial(f"{what} is right, but ran on the coordinator: no worker saw a task")
        return value

    def same(self, build: Callable[[Any], Any], ctx: Any, plain: Any, what: str, *, remote: bool = True) -> None:
        """Assert that a DataFrame built on both sessions holds the same rows in any order."""
        want = rows(build(plain))
        run = lambda: rows(build(ctx))
        got = run()
        self.equal(got, want, what)
        if remote:
            self.on_workers(run, what)

    # -- tables -------------------------------------------------------------------------------------------------

    def parquet(self, name: str = "t", rows: int = ROWS, files: int = FILES) -> Path:
        """The usual table as a folder of Parquet files."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        folder = self.tmp / name
        if not folder.is_dir():
            folder.mkdir(parents=True)
            for part in range(files):
                values = list(range(part, rows, files))
                pq.write_table(pa.table({"k": [v % KEYS for v in values], "v": values}), folder / f"{part}.parquet")
        return folder

    def with_slow_table(self, ctx: Any) -> Any:
        """The same session with the table of `SLOW` registered as `b`."""
        ctx.register_parquet("b", str(self.parquet("big", rows=SLOW_ROWS)))
        return ctx

    def with_table(self, ctx: Any) -> Any:
        """The same session with the usual table registered as `t`."""
        ctx.register_parquet("t", str(self.parquet()))
        return ctx


class WorkerProcess:
    """A worker that this check started with the arm's own command."""

    def __init__(self, arm: Arm, listen: str, arguments: tuple[str, ...]) -> None:
        self.log = arm.tmp / f"worker-{time.monotonic_ns()}.log"
        with self.log.open("wb") as stderr:
            command = arm.command(*arguments, listen=listen)
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=stderr, stdin=subprocess.DEVNULL, text=True
            )
        self.ready: dict[str, Any] = {}

    @property
    def url(self) -> str:
        """URL that sessions use."""
        return str(self.ready["url"])

    def wait_ready(self) -> None:
        """Read the ready line."""
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            code = self.process.wait(READY_S)
            raise Unmet(f"the worker ended with exit code {code} before it was ready: {short(self.said(), 600)}")
        self.ready = json.loads(line)

    def said(self) -> str:
        """What it wrote to standard error."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait(self, seconds: float) -> int | None:
        """Its exit code, or None when it still runs."""
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self, how: signal.Signals = signal.SIGTERM, seconds: float = STOP_S) -> int:
        """End it and return its exit code; -9 when it did not end by itself."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(how)
        try:
            code = self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if self.process.stdout is not None and not self.process.stdout.closed:
            self.process.stdout.close()
        return code


def open_arm(job: dict[str, Any]) -> Arm:
    """The arm of a job."""
    return Arm(job)


def expected_by_key(rows: int = ROWS) -> dict[str, list[int]]:
    """The right answer to `BY_KEY`, computed without any engine."""
    keys = range(KEYS)
    return {
        "k": list(keys),
        "n": [len(range(k, rows, KEYS)) for k in keys],
        "s": [sum(range(k, rows, KEYS)) for k in keys],
    }


def rows(frame: Any) -> list[str]:
    """All rows of a DataFrame (or a list of batches) as sorted text: comparable whatever the order and the types."""
    batches = frame.collect() if hasattr(frame, "collect") else frame
    return sorted(repr(_rounded(row)) for batch in batches for row in batch.to_pylist())


def _rounded(value: Any) -> Any:
    """A value with its floats cut to nine digits: sums of floats depend on the order of the partitions."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    if isinstance(value, str):
        # describe() gives its figures as text.
        try:
            return f"{float(value):.9g}" if "." in value else value
        except ValueError:
            return value
    return value


def wait_until(condition: Callable[[], bool], seconds: float, step: float = 0.02) -> bool:
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(step)
    return True


def short(value: object, limit: int = 200) -> str:
    """A value for a message."""
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(str(text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def names(kinds: tuple[type[BaseException], ...]) -> str:
    """Names of exception classes for a message."""
    return " or ".join(kind.__name__ for kind in kinds)


def missing(found: list[str]) -> None:
    """Raise `Partial` when the list is not empty."""
    if found:
        raise Partial("missing: " + "; ".join(found))
