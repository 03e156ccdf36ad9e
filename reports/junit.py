"""The report as JUnit XML, which CI services show as tests: a suite per arm, a case per query, gate and check."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from harness.model import Reach, Status
from reports import words
from reports.model import CheckRow, QueryCell, Report

FAILING_CHECKS = ("fail", "crash", "timeout")


def render_junit(report: Report) -> str:
    """JUnit XML; a pure function of the report. What does not count is a failure, an error or skipped, with reason."""
    root = ET.Element("testsuites", name=report.headline.title)
    for arm in report.arms:
        suite = ET.SubElement(root, "testsuite", name=arm.name)
        for row in report.queries:
            _query(suite, row.query, row.cells[arm.name])
        for gate in report.decision.gates:
            if gate.strategy == arm.name:
                case = ET.SubElement(suite, "testcase", classname=f"{arm.name}.gates", name=gate.title)
                if gate.state != "pass":
                    ET.SubElement(case, "failure" if gate.state == "fail" else "skipped", message=gate.evidence)
        for check in report.conformance or []:
            _check(suite, arm.name, check)
        _count(suite)
    _count(root)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _query(suite: ET.Element, query: str, cell: QueryCell) -> None:
    seconds = "0" if cell.median_ms is None else f"{cell.median_ms / 1000:.6f}"
    case = ET.SubElement(suite, "testcase", classname=f"{cell.arm}.queries", name=query, time=seconds)
    if cell.counts:
        return
    skipped = cell.status in (Status.UNSUPPORTED, Status.NOT_RUN) or (
        cell.status is Status.OK and cell.reach is Reach.NOT_DISTRIBUTED
    )
    kind = "skipped" if skipped else "failure" if cell.status in (Status.OK, Status.WRONG) else "error"
    found = ET.SubElement(case, kind, message=words.cell_reason(cell))
    found.text = words.cell_note(cell)


def _check(suite: ET.Element, arm: str, check: CheckRow) -> None:
    outcome = check.outcomes.get(arm)
    if outcome is None:
        return
    case = ET.SubElement(suite, "testcase", classname=f"{arm}.checks.{check.area}", name=check.id)
    if outcome.outcome == "pass":
        return
    kind = "failure" if outcome.outcome in FAILING_CHECKS else "skipped"
    ET.SubElement(case, kind, message=f"{outcome.outcome}: {outcome.reason or 'no reason was recorded'}")


def _count(element: ET.Element) -> None:
    cases = list(element.iter("testcase"))
    element.set("tests", str(len(cases)))
    for kind, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        element.set(name, str(sum(case.find(kind) is not None for case in cases)))
