"""Outcomes as JUnit XML, which CI services show as tests: a suite per arm, a case per check."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from harness.conformance.model import ConformanceFile, ConformanceResult, Outcome

ELEMENTS = {
    Outcome.FAIL: "failure", Outcome.CRASH: "error", Outcome.TIMEOUT: "error", Outcome.XFAIL: "skipped",
    Outcome.BLOCKED: "skipped",
}  # fmt: skip
"""What each outcome is in JUnit's words. `pass` has none; `partial` passes and says in its output what is missing."""

NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may hold; an error text may quote any."""


def render_junit(done: ConformanceFile) -> str:
    """JUnit XML; a pure function of the results. What fails the run without being a check's outcome is a case too."""
    root = ET.Element("testsuites", name="conformance")
    for arm in done.arms:
        suite = ET.SubElement(root, "testsuite", name=arm)
        for result in done.results:
            if result.arm == arm:
                _case(suite, result)
        _count(suite)
    other = [
        text for text in done.problems if not any(text.startswith(f"{r.check} on {r.arm}: ") for r in done.results)
    ]
    if other:
        suite = ET.SubElement(root, "testsuite", name="expectations")
        for text in other:
            case = ET.SubElement(suite, "testcase", classname="expectations", name=_plain(text))
            ET.SubElement(case, "failure", message=_plain(text))
        _count(suite)
    _count(root)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(suite: ET.Element, result: ConformanceResult) -> None:
    group, _, name = result.check.partition(".")
    case = ET.SubElement(suite, "testcase", classname=f"{result.arm}.{group}", name=name, time=f"{result.seconds:.3f}")
    reason = _plain(result.reason or "")
    if result.outcome is Outcome.PARTIAL:
        ET.SubElement(case, "system-out").text = f"partial: {reason}"
    elif result.outcome in ELEMENTS:
        found = ET.SubElement(case, ELEMENTS[result.outcome], message=f"{result.outcome.value}: {reason}"[:500])
        found.text = f"{reason}\n{result.repro}"


def _count(element: ET.Element) -> None:
    element.set("tests", str(len(list(element.iter("testcase")))))
    for kind, plural in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        element.set(plural, str(len(list(element.iter(kind)))))


def _plain(text: str) -> str:
    return NOT_XML.sub("\ufffd", text)
