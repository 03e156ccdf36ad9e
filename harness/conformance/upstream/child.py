"""Runs upstream's suite inside an arm's environment: a plain file, `python -I`, imports nothing of the harness.

Standard input carries one JSON object. Before pytest collects anything, the way a `SessionContext` comes to be is
replaced: same class, same signature, but the session is the strategy's. Events go to a file, line by line, so that a
crash loses nothing but the test that it happened in.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

STOCK = "datafusion"

REASON_LIMIT = 500
"""Characters of a reason; the log has the whole."""

contexts = 0
"""Contexts that the strategy has taken over."""


def swap(job: dict[str, Any]) -> None:
    """Replace `SessionContext.__init__` by the strategy's own way to make a session."""
    take_over = _ways(job).get(job["package"]) or _by_factory(job)
    context = importlib.import_module(f"{job['namespace']}.context").SessionContext
    original = context.__init__
    making = threading.local()

    def __init__(self: Any, config: Any = None, runtime: Any = None) -> None:  # noqa: N807 - it becomes that method
        global contexts  # noqa: PLW0603
        if getattr(making, "now", False):
            # The strategy makes a context of its own on the way.
            original(self, config, runtime)
            return
        making.now = True
        try:
            contexts += take_over(self, original, config, runtime)
        finally:
            making.now = False

    __init__.__doc__ = original.__doc__
    context.__init__ = __init__


def _ways(job: dict[str, Any]) -> dict[str, Callable[..., int]]:
    """How each known strategy makes a session, by its package; each returns the number of sessions taken over."""
    urls, options = job["urls"], {"options": job["options"], "allow_python_udfs": True}

    def inline(self: Any, original: Any, config: Any, runtime: Any) -> int:
        config = importlib.import_module("datafusion").SessionConfig() if config is None else config
        original(self, config.with_distributed(urls, **options), runtime)
        return 1

    def external(self: Any, _: Any, config: Any, runtime: Any) -> int:
        own = importlib.import_module("datafusion_external").DistributedSessionContext
        own.__init__(self, urls, config, runtime, **options)
        # The methods that this class overrides are part of what a user gets; subclasses of a test keep their own.
        if type(self) is own.__mro__[1]:
            self.__class__ = own
        return 1

    def decorator(self: Any, original: Any, config: Any, runtime: Any) -> int:
        original(self, config, runtime)
        handle = importlib.import_module("datafusion_decorator").distributed(self, urls, **options)
        self.__dict__.update(handle.__dict__)
        return 1

    return {"datafusion.distributed": inline, "datafusion_external": external, "datafusion_decorator": decorator}


def _by_factory(job: dict[str, Any]) -> Callable[..., int]:
    """An arm that somebody added: all that is known of it is `make_context(config, urls)`, which knows no objects."""
    if not job["urls"]:
        return lambda self, original, config, runtime: original(self, config, runtime) or 0
    module, _, name = job["factory"].partition(":")
    make = getattr(importlib.import_module(module), name)

    def by_factory(self: Any, original: Any, config: Any, runtime: Any) -> int:
        if config is not None or runtime is not None:
            original(self, config, runtime)
            return 0
        self.__dict__.update(make(dict(job["options"]), job["urls"]).__dict__)
        return 1

    return by_factory


class Recorder:
    """A pytest plugin: leaves out what is done already and writes an event per test."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.only = set(job["only"]) if job["only"] is not None else None
        self.done = set(job["done"])
        self.urls = job["urls"]
        self.probe = importlib.import_module(job["probe"]) if job["probe"] and job["urls"] else None
        self.stream = open(job["events"], "a", encoding="utf-8")  # noqa: SIM115 - open for the life of the process
        self.current: dict[str, Any] = {}
        self.before = 0

    def say(self, **event: Any) -> None:
        """Write one event."""
        self.stream.write(json.dumps(event) + "\n")
        self.stream.flush()

    def tasks(self) -> int:
        """Tasks that the workers have started so far; -1 when they do not say."""
        if self.probe is None:
            return 0
        try:
            return sum(int(row["tasks_started"]) for row in self.probe.worker_status(self.urls))
        except Exception:  # noqa: BLE001 - a test may have broken the library; the test's own outcome tells
            return -1

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keep what is asked for and not done yet."""
        ids = [item.nodeid for item in items]
        self.say(event="collected", tests=ids)
        items[:] = [
            item for item in items if item.nodeid not in self.done and (self.only is None or item.nodeid in self.only)
        ]

    def pytest_collectreport(self, report: Any) -> None:
        """A file that cannot be imported is told as one test."""
        if report.failed:
            self.say(event="end", test=report.nodeid, outcome="error", reason=_reason(report), remote_tasks=0)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Tell which test runs, for the case that it is the last one."""
        self.current = {"outcome": None, "reason": None}
        self.before = self.tasks()
        self.say(event="start", test=nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Put the three phases of a test together: the first that does not pass decides."""
        if self.current["outcome"] not in (None, "passed"):
            return
        expected = hasattr(report, "wasxfail")
        if report.failed:
            outcome = "failed" if report.when == "call" else "error"
        elif report.skipped:
            outcome = "xfailed" if expected else "skipped"
        elif report.when == "call":
            outcome = "xpassed" if expected else "passed"
        else:
            return
        self.current = {"outcome": outcome, "reason": None if outcome == "passed" else _reason(report)}

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Write the outcome."""
        after = self.tasks()
        ran = after - self.before if min(after, self.before) >= 0 else 0
        self.say(event="end", test=nodeid, remote_tasks=ran, contexts=contexts, **self.current)


def _reason(report: Any) -> str:
    text = report.longrepr
    if isinstance(text, tuple):
        return str(text[2])[:REASON_LIMIT]
    crash = getattr(text, "reprcrash", None)
    return str(crash.message if crash is not None else text).strip()[:REASON_LIMIT]


def main() -> int:
    """Read the job, replace the context, run pytest."""
    job = json.loads(sys.stdin.read())
    faulthandler.enable(all_threads=True)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    sys.path[:0] = job["path"]
    try:
        pytest: Any = importlib.import_module("pytest")
    except ImportError:
        print("pytest is not installed beside the arm", file=sys.stderr)
        return 3
    # Before pytest puts the suite's own folders in front of the path.
    importlib.import_module(STOCK)
    if job["urls"]:
        swap(job)
    os.chdir(job["suite"])
    code = pytest.main(
        [*job["arguments"], "-p", "no:cacheprovider", "-p", "no:randomly", "--rootdir", job["suite"], "-q"],
        plugins=[Recorder(job)],
    )
    # 0 all passed, 1 some failed, 5 nothing collected: the events tell which.
    return 0 if int(code) in (0, 1, 5) else 10 + int(code)


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Not `sys.exit`: a native runtime that does not end must not turn a whole suite into a hang.
    os._exit(status)
