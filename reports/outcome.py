"""What a report means to a job that must pass or fail: an exit code and the reasons for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.errors import EXIT_NOT_COMPARABLE, EXIT_OK, EXIT_REGRESSION
from harness.model import Frozen, VerdictKind
from reports import words
from reports.datafiles import read_json
from reports.inputs import read_conformance
from reports.model import Report
from reports.promises import FAILING


class JobOutcome(Frozen):
    """Exit code (0 ok, 1 regression, 3 not comparable) and one sentence per reason."""

    exit_code: int
    reasons: list[str]


def job_outcome(report: Report, *, base: str | None = None) -> JobOutcome:
    """Judge the strategies and external arms of a report.

    A query that fails where a baseline answers, or a failed gate, is a regression. With `base` (the name of an arm) so
    is a verdict `slower` against it, of the suite or of one query.
    """
    judged = [arm.name for arm in report.arms if arm.kind in ("strategy", "external") and arm.name != base]
    bad = list(dict.fromkeys(_regressions(report, judged, base)))
    if bad:
        return JobOutcome(exit_code=EXIT_REGRESSION, reasons=bad)
    blind = list(_incomparable(report, judged, base))
    if blind or not judged:
        return JobOutcome(exit_code=EXIT_NOT_COMPARABLE, reasons=blind or ["no strategy was in this run"])
    return JobOutcome(exit_code=EXIT_OK, reasons=[])


def _regressions(report: Report, judged: list[str], base: str | None) -> Iterator[str]:
    for entry in report.comparisons:
        if entry.new in judged:
            for gap in entry.newly_failing:
                yield f"{gap.arm} {gap.query}: {words.status_reason(words.STATUS_WORDS[gap.status], gap.reason)}"
    for gate in report.decision.gates:
        if gate.state == "fail":
            yield f"{gate.strategy}: gate {gate.title} failed: {gate.evidence}"
    yield from _slower(report, judged, base)


def _slower(report: Report, judged: list[str], base: str | None) -> Iterator[str]:
    for entry in report.comparisons:
        if base is None or entry.base != base or entry.new not in judged:
            continue
        if entry.suite.kind is VerdictKind.SLOWER:
            yield f"{entry.new} is slower than {base} over the suite: {entry.suite.reason}"
        for row in report.queries:
            verdict = row.cells[entry.new].vs[base]
            if verdict.kind is VerdictKind.SLOWER:
                yield f"{entry.new} is slower than {base} on {row.query}: {verdict.reason}"


def _incomparable(report: Report, judged: list[str], base: str | None) -> Iterator[str]:
    if base is None:
        return
    for arm in judged:
        entry = report.comparison(arm, base)
        if entry is None:
            yield f"{arm} was not compared with {base}"
        elif entry.suite.ratio is None:
            yield f"{arm} has no ratio to {base}: {entry.suite.reason}"


def failed_checks(run_dir: Path, parts: Sequence[str]) -> list[str]:
    """What failed of the checks in a run directory: must-checks by arm, and arms with unequal generated queries.

    `parts` are those that were collected now: older files say nothing about this run. A failure that is expected
    strictly is none.

    Raises:
        HarnessFault: a file is damaged.
    """
    found = []
    documents = {part: read_json(run_dir / f"{part}.json") for part in parts}
    told = {part: document for part, document in documents.items() if document is not None}
    if "conformance" in told:
        for row in read_conformance(told) or []:
            bad = [arm for arm, outcome in row.outcomes.items() if outcome.outcome in FAILING]
            if row.tier == "must" and bad:
                found.append(f"{row.id} ({', '.join(bad)})")
    if "generated_queries" in told:
        for arm, counts in told["generated_queries"]["arms"].items():
            if counts["equal"] != counts["run"]:
                other = counts["run"] - counts["equal"]
                found.append(f"{other} of {counts['run']} generated queries unequal ({arm})")
    return found
