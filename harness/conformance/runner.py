"""Runs checks over arms, each in a child of its own, and puts the outcomes together."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.child.keeper import Keeper, Process, clean_environment, tail
from harness.child.outcome import describe_exit, first_line
from harness.cluster import WorkerFailed
from harness.conformance.arm_site import Site
from harness.conformance.model import (
    AREAS,
    FAILING,
    Cell,
    Check,
    ConformanceFile,
    ConformanceResult,
    Counts,
    Expected,
    Outcome,
    Row,
    Summary,
)
from harness.conformance.prerequisites import Missing, Prerequisites
from harness.conformance.registry import SCRIPTS

CHILD = Path(__file__).with_name("child.py")

STACK_DUMP_S = 0.3
"""Seconds that a hanging check gets to write its stack to the log before it is killed."""

PANIC = "PanicException"

PANIC_CHECK = "errors.no_panic_anywhere"
"""Not run in a child: its outcome follows from the logs of all the others."""


def run_checks(
    checks: Sequence[Check],
    sites: Sequence[Site],
    keeper: Keeper,
    folder: Path,
    *,
    expected: Sequence[Expected] = (),
    earlier: Sequence[ConformanceResult] = (),
    say: Callable[[str], None] = lambda _: None,
    so_far: Callable[[Sequence[ConformanceResult]], None] = lambda _: None,
    scripts: Path = SCRIPTS,
) -> list[ConformanceResult]:
    """Run every check on every arm; arms one after the other, so that only one has workers up.

    Args:
        checks: in the order in which they run.
        sites: one per arm.
        keeper: starts the processes.
        folder: logs and temporary files go below it.
        expected: known failures.
        earlier: outcomes of the same arms that were found before; their logs are searched for panics too.
        say: told each outcome in one line.
        so_far: given all outcomes of this call after each check, so that a run that is killed loses one check.
        scripts: folder with the bodies.
    """
    prerequisites = Prerequisites(keeper, folder / "prerequisites")
    results: list[ConformanceResult] = []
    for site in sites:
        own: list[ConformanceResult] = []
        try:
            for check in checks:
                if check.id == PANIC_CHECK:
                    continue
                own.append(judge(run_one(check, site, keeper, prerequisites, folder, scripts), expected))
                say(line_of(own[-1]))
                so_far([*results, *own])
        finally:
            site.close()
        for check in checks:
            if check.id == PANIC_CHECK:
                before = [result for result in earlier if result.arm == site.arm.name]
                own.append(judge(panics(check, site, [*before, *own], folder), expected))
                say(line_of(own[-1]))
        results += own
    return results


def run_one(
    check: Check, site: Site, keeper: Keeper, prerequisites: Prerequisites, folder: Path, scripts: Path = SCRIPTS
) -> ConformanceResult:
    """Run one check on one arm."""
    if not check.applies_to(site.arm.name, distributed=site.arm.distributed):
        return _result(check, site, Outcome.BLOCKED, f"does not apply to `{site.arm.name}`: it is for {check.arms}")
    try:
        given = {name: prerequisites.get(name) for name in check.needs}
    except Missing as missing:
        return _result(check, site, Outcome.BLOCKED, str(missing))
    began = time.monotonic()
    log = site.logs / f"{check.id}.log"
    try:
        with site.cluster(check.cluster) as cluster, tempfile.TemporaryDirectory(prefix="conformance-") as tmp:
            job = {
                **site.job(cluster, given), "tmp": tmp, "result": f"{tmp}/outcome.json", "scripts": str(scripts),
                "group": check.group, "function": check.function,
            }  # fmt: skip
            told = _run_child(check, site, keeper, job, log)
        if Outcome(told["outcome"]) in FAILING:
            site.discard(check.cluster)
    except WorkerFailed as failed:
        told = {"outcome": "blocked", "reason": f"its workers do not start: {first_line(str(failed), 400)}"}
    return _result(
        check, site, Outcome(told["outcome"]), told.get("reason"), told.get("figure"),
        seconds=time.monotonic() - began, log=_relative(log, folder),
    )  # fmt: skip


def _run_child(check: Check, site: Site, keeper: Keeper, job: dict[str, Any], log: Path) -> dict[str, Any]:
    with log.open("wb") as stream:
        process = keeper.spawn(
            [str(site.python), "-I", "-u", str(CHILD)], cwd=Path(job["tmp"]), env=clean_environment(site.arm.env),
            stdin=subprocess.PIPE, stdout=stream, stderr=stream,
        )  # fmt: skip
    try:
        stdin = process.popen.stdin
        if stdin is not None:
            stdin.write(json.dumps(job).encode())
            stdin.close()
        return _await(process, check, Path(job["result"]), log)
    except BrokenPipeError:
        return {"outcome": "crash", "reason": f"the child ended before it began: {tail(log)}"}
    finally:
        process.kill()


def _await(process: Process, check: Check, result: Path, log: Path) -> dict[str, Any]:
    code = process.wait(check.timeout_s)
    if code is None:
        process.signal(signal.SIGUSR1)
        time.sleep(STACK_DUMP_S)
        return {"outcome": "timeout", "reason": f"no outcome within {check.timeout_s:g} s"}
    if result.is_file() and code == 0:
        return dict(json.loads(result.read_text(encoding="utf-8")))
    how = describe_exit(code, tail(log), oom_killed=False)[1]
    return {"outcome": "crash", "reason": f"the child {how}: {first_line(tail(log, lines=3))}"}


def judge(result: ConformanceResult, expected: Iterable[Expected]) -> ConformanceResult:
    """Hold an outcome against the known failures: the one that was foretold is `xfail`, its absence is `fail`."""
    known = next((e for e in expected if e.check == result.check and result.arm in e.arms), None)
    if known is None or result.outcome is Outcome.BLOCKED:
        return result
    if result.outcome in FAILING and known.match in (result.reason or ""):
        return result.model_copy(update={"outcome": Outcome.XFAIL, "reason": f"{known.reason} [{result.reason}]"})
    if result.outcome in FAILING:
        reason = f"fails otherwise than expected (`{known.match}`): {result.reason}"
        return result.model_copy(update={"reason": reason})
    reason = (
        f"expected to fail ({known.reason}), but it gives {result.outcome.value}: remove the entry from expected.toml"
    )
    return result.model_copy(update={"outcome": Outcome.FAIL, "reason": reason})


def panics(check: Check, site: Site, results: Sequence[ConformanceResult], folder: Path) -> ConformanceResult:
    """Whether a Rust panic reached a user, or a log, in any check of this arm."""
    found = []
    for result in results:
        log = folder / result.log if result.log else None
        text = log.read_text(encoding="utf-8", errors="replace") if log and log.is_file() else ""
        if PANIC in text or PANIC in (result.reason or "") or "panicked at" in text:
            found.append(result.check)
    found += [
        str(log.relative_to(site.logs))
        for log in site.logs.glob("workers-*/*.log")
        if "panicked at" in log.read_text(encoding="utf-8", errors="replace")
    ]
    ran = sum(result.outcome is not Outcome.BLOCKED for result in results)
    figure = {"checks_read": ran, "panics": len(found)}
    if not ran:
        return _result(check, site, Outcome.BLOCKED, "no other check ran, so there is no log to read", figure)
    if found:
        return _result(check, site, Outcome.FAIL, f"a panic in: {', '.join(sorted(set(found)))}", figure)
    return _result(check, site, Outcome.PASS, None, figure)


def _result(
    check: Check, site: Site, outcome: Outcome, reason: str | None, figure: Mapping[str, Any] | None = None, *,
    seconds: float = 0.0, log: str | None = None,
) -> ConformanceResult:  # fmt: skip
    return ConformanceResult(
        check=check.id, arm=site.arm.name, area=check.area, tier=check.tier, outcome=outcome, reason=reason,
        figure=dict(figure or {}), seconds=round(seconds, 2), log=log, repro=repro(check.id, site.arm.name),
    )  # fmt: skip


def repro(check: str, arm: str) -> str:
    """The command that runs one check on one arm again."""
    return shlex.join(["df-strategies", "check", "--arm", arm, "--check", check])


def _relative(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def line_of(result: ConformanceResult) -> str:
    """One outcome as a line of text."""
    reason = f": {first_line(result.reason, 160)}" if result.reason else ""
    return f"{result.outcome.value:<8} {result.arm:<10} {result.check:<40} {result.seconds:6.1f} s{reason}"


def shape(
    checks: Sequence[Check], results: Sequence[ConformanceResult], expected: Sequence[Expected],
    selection: Mapping[str, Any], wheels: Mapping[str, str | None] | None = None,
) -> ConformanceFile:  # fmt: skip
    """Put results into the form that is written: matrix, figures, and everything that fails the run."""
    arms = list(dict.fromkeys(result.arm for result in results))
    by_cell = {(result.check, result.arm): result for result in results}
    rows = [
        Row(
            id=check.id, area=f"{check.area:02d} {AREAS[check.area]}", tier=check.tier, title=check.title,
            rationale=check.rationale,
            outcomes={arm: _cell(by_cell[check.id, arm]) for arm in arms if (check.id, arm) in by_cell},
        )
        for check in checks
    ]  # fmt: skip
    coverage = {
        r.arm: r.figure["share"] for r in results if r.check == "coverage.public_surface" and "share" in r.figure
    }
    summary = Summary(
        conformance={arm: counts([r for r in results if r.arm == arm]) for arm in arms}, surface_coverage=coverage
    )
    return ConformanceFile(
        arms=arms, selection=dict(selection), wheels=dict(wheels or {}), checks=rows, results=list(results),
        summary=summary, problems=problems(checks, results, expected),
    )  # fmt: skip


def _cell(result: ConformanceResult) -> Cell:
    return Cell(outcome=result.outcome, reason=result.reason, log=result.log, repro=result.repro)


def counts(results: Sequence[ConformanceResult]) -> Counts:
    """Outcomes of one arm."""
    found = {outcome.value: sum(r.outcome is outcome for r in results) for outcome in Outcome}
    own = [r.outcome for r in results if r.tier == "must"]
    return Counts.model_validate(
        {**found, "total": len(results), "must_pass": own.count(Outcome.PASS), "must_total": len(own)}
    )


def problems(checks: Sequence[Check], results: Sequence[ConformanceResult], expected: Sequence[Expected]) -> list[str]:
    """Everything that fails a run: failures that nobody foretold, expectations that met nothing, and emptiness."""
    found = [
        f"{result.check} on {result.arm}: {result.outcome.value}: {first_line(result.reason or '', 200)}"
        for result in results
        if result.outcome in FAILING
    ]
    ran = {(result.check, result.arm): result.outcome for result in results}
    known_arms = {result.arm for result in results}
    for entry in expected:
        for arm in entry.arms:
            if ran.get((entry.check, arm)) is Outcome.BLOCKED:
                found.append(f"expected failure of {entry.check} on {arm} met nothing: the check was blocked there")
            elif entry.check in {c.id for c in checks} and arm in known_arms and (entry.check, arm) not in ran:
                found.append(f"expected failure of {entry.check} on {arm} met nothing: the check did not run")
    if not any(result.outcome is not Outcome.BLOCKED for result in results):
        found.append("no check ran at all")
    return found
