"""The suite on one arm: a child runs pytest; what kills or hangs it costs one test, and a new child goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.child.keeper import Keeper, Process, clean_environment, tail
from harness.child.outcome import describe_exit, first_line
from harness.cluster import Cluster
from harness.conformance.arm_site import Site
from harness.conformance.upstream.model import SuiteOutcome, SuiteResult
from harness.errors import HarnessFault

CHILD = Path(__file__).with_name("child.py")

TEST_TIMEOUT_S = 90.0
"""Seconds without an event after which the running test counts as hung: on stock the slowest test takes seconds."""

MAX_RESTARTS = 40
"""Children per arm. More crashes than this tell nothing new and would take hours."""

STACK_DUMP_S = 0.3
POLL_S = 0.05

SHIM = '''"""Stands in for the stock package: the suite imports `datafusion` and means the arm's own package."""
import sys
from importlib import import_module
from pkgutil import walk_packages

_package = import_module("{namespace}")
for _found in walk_packages(_package.__path__, "{namespace}."):
    if not _found.name.endswith("__main__"):
        import_module(_found.name)
for _name in [name for name in sys.modules if name == "{namespace}" or name.startswith("{namespace}.")]:
    sys.modules["datafusion" + _name[len("{namespace}"):]] = sys.modules[_name]
'''
"""For processes that tests start themselves, in which nobody of ours runs first."""


@dataclass
class SuiteRun:
    """Outcomes of one arm."""

    distributed: bool
    results: dict[str, SuiteResult] = field(default_factory=dict)
    collected: list[str] = field(default_factory=list)
    contexts: int = 0


class Suite:
    """A laid-out suite. `select` is what pytest calls `-k`, `timeout_s` the limit for one test."""

    def __init__(self, folder: Path, select: str | None, timeout_s: float, say: Callable[[str], None]) -> None:
        self.folder = folder
        self.select = select
        self.timeout_s = timeout_s
        self.say = say
        self._shims = folder.parent / "shims"
        self._number = 0

    def run(self, site: Site, keeper: Keeper) -> SuiteRun:
        """Run all of it on one arm.

        Raises:
            HarnessFault: pytest cannot even collect there.
        """
        began = time.monotonic()
        run = SuiteRun(distributed=site.arm.distributed)
        self._all(site, keeper, run, None)
        passed = sum(result.outcome == "passed" for result in run.results.values())
        self.say(f"{site.arm.name}: {passed} of {len(run.results)} pass, {time.monotonic() - began:.0f} s")
        return run

    def again(self, site: Site, keeper: Keeper, run: SuiteRun, stock: SuiteRun) -> None:
        """Run what differs from stock a second time, in fresh processes: a chance failure must not pass for a limit."""
        differing = [
            test
            for test, result in run.results.items()
            if test in stock.results
            and result.outcome != stock.results[test].outcome
            and result.outcome in ("failed", "error", "crash", "timeout")
        ]
        if not differing:
            return
        second = SuiteRun(distributed=run.distributed)
        self._all(site, keeper, second, differing)
        for test in differing:
            now = second.results.get(test)
            if now is not None and now.outcome == stock.results[test].outcome:
                self.say(f"{site.arm.name}: {test} passes the second time, alone")
                run.results[test] = now

    def _all(self, site: Site, keeper: Keeper, run: SuiteRun, only: list[str] | None) -> None:
        for _ in range(MAX_RESTARTS):
            with site.cluster("python") as cluster:
                ended = self._child(site, keeper, cluster, run, only)
            if ended:
                return
            # Whatever killed or hung the child may have left its tasks on the workers.
            site.discard("python")
        for test in only if only is not None else run.collected:
            run.results.setdefault(
                test, SuiteResult(outcome="not_run", reason=f"given up after {MAX_RESTARTS} crashes or hangs")
            )

    def _child(
        self, site: Site, keeper: Keeper, cluster: Cluster | None, run: SuiteRun, only: list[str] | None
    ) -> bool:
        """One child; whether it came to its end."""
        self._number += 1
        events = self.folder.parent / f"events-{self._number}.jsonl"
        events.touch()
        log = site.logs / f"suite-{self._number}.log"
        job = {
            **site.job(cluster, {}), "package": _package(site), "suite": str(self.folder), "events": str(events),
            "only": only, "done": list(run.results), "options": {
                "distributed.file_scan_config_bytes_per_partition": "1"
            } if site.arm.distributed else {},
            "arguments": ["python/tests", "-p", "no:warnings", *(["-k", self.select] if self.select else [])],
        }  # fmt: skip
        job["path"] = [*self._shim(str(job["namespace"])), *job["path"]]
        with log.open("wb") as stream:
            process = keeper.spawn(
                [str(site.python), "-I", "-u", str(CHILD)], cwd=self.folder, env=clean_environment(site.arm.env),
                stdin=subprocess.PIPE, stdout=stream, stderr=stream,
            )  # fmt: skip
        try:
            if process.popen.stdin is not None:
                process.popen.stdin.write(json.dumps(job).encode())
                process.popen.stdin.close()
            return _Watch(run, events, log, site.arm.name, self.timeout_s).follow(process)
        finally:
            process.kill()

    def _shim(self, namespace: str) -> list[str]:
        if namespace == "datafusion":
            return []
        package = self._shims / namespace / "datafusion"
        if not package.is_dir():
            package.mkdir(parents=True)
            (package / "__init__.py").write_text(SHIM.format(namespace=namespace), encoding="utf-8")
        return [str(package.parent)]


def _package(site: Site) -> str:
    driver = site.arm.driver
    factory = driver.factory if driver is not None and driver.factory else ""
    return factory.partition(":")[0].rpartition(".")[0]


class _Watch:
    """Reads the events of a child until it ends, hangs or dies."""

    def __init__(self, run: SuiteRun, events: Path, log: Path, arm: str, timeout_s: float) -> None:
        self.run = run
        self.timeout_s = timeout_s
        self.events = events
        self.log = log
        self.arm = arm
        self.current: str | None = None
        self.before = run.contexts
        self.seen = 0

    def follow(self, process: Process) -> bool:
        """Whether the child came to its end; False when the running test killed or hung it."""
        heard = time.monotonic()
        while True:
            code = process.returncode()
            if self._read():
                heard = time.monotonic()
            if code == 0:
                return True
            if code is not None:
                return self._died(code)
            if time.monotonic() - heard > self.timeout_s:
                return self._hung(process)
            time.sleep(POLL_S)

    def _died(self, code: int) -> bool:
        how = describe_exit(code, tail(self.log), oom_killed=False)[1]
        if self.current is None and not self.run.collected:
            msg = (
                f"arm `{self.arm}`: the suite could not be started ({how}): {first_line(tail(self.log, lines=2), 400)}"
            )
            raise HarnessFault(msg)
        if self.current is None and set(self.run.collected) <= set(self.run.results):
            # Every test has its outcome: what happens while the process leaves is nobody's test.
            return True
        if self.current is None:
            msg = f"arm `{self.arm}`: the suite ended between two tests ({how}), see {self.log}"
            raise HarnessFault(msg)
        self._note("crash", f"the process {how}")
        return False

    def _hung(self, process: Process) -> bool:
        process.signal(signal.SIGUSR1)
        time.sleep(STACK_DUMP_S)
        if self.current is None:
            msg = f"arm `{self.arm}`: the suite hangs outside of any test, see {self.log}"
            raise HarnessFault(msg)
        self._note("timeout", f"no answer within {self.timeout_s:g} s")
        return False

    def _note(self, outcome: SuiteOutcome, reason: str) -> None:
        if self.current is not None:
            self.run.results[self.current] = SuiteResult(outcome=outcome, reason=reason)
            self.current = None

    def _read(self) -> bool:
        """Take in new whole lines; whether there were any."""
        with self.events.open("rb") as stream:
            stream.seek(self.seen)
            fresh = stream.read()
        whole = fresh[: fresh.rfind(b"\n") + 1]
        self.seen += len(whole)
        for line in whole.splitlines():
            self._take(json.loads(line))
        return bool(whole)

    def _take(self, event: dict[str, Any]) -> None:
        if event["event"] == "collected":
            self.run.collected = event["tests"]
        elif event["event"] == "start":
            self.current = event["test"]
        else:
            self.current = None
            self.run.contexts = self.before + event.get("contexts", 0)
            self.run.results[event["test"]] = SuiteResult(
                outcome=event["outcome"] or "error", reason=event["reason"], remote_tasks=event["remote_tasks"]
            )
