"""Markdown of what was executed beside the timing: what a user gets, upstream's own suite."""

from __future__ import annotations

from collections.abc import Iterator

from reports.markdown_tools import cell, details, table
from reports.model import Report
from reports.promises import PromiseCell
from reports.upstream import UpstreamSection, upstream_differences

SHOWN_TESTS = 40
"""Tests listed per arm; the JSON and HTML forms have them all."""


PROMISE_WORDS = {"pass": "✔ pass", "partial": "◐ partial", "limit": "≠ limit", "fail": "✖ fail", "not_run": "? not run"}


def blank(report: Report, name: str, title: str) -> str:
    """A section that the run does not have: why, and the command that fills it."""
    command = f" Filled by `{report.fills[name]}`" if name in report.fills else ""
    return f"**{title}**: none, {report.absent.get(name, 'not part of this run')}.{command}"


def promise_lines(report: Report) -> Iterator[str]:
    """What a user gets from each strategy, a row per promise, and why a cell is not a plain pass."""
    rows = report.promises
    if not rows:
        yield blank(report, "promises", "What a user gets")
        return
    arms = list(rows[0].cells)
    yield "### What a user gets\n"
    yield from table(["promise", *arms], [[row.title, *(_promise(row.cells[arm]) for arm in arms)] for row in rows])
    yield ""
    lines = [f"- {row.title}: no check executes {cell('; '.join(row.unchecked))}" for row in rows if row.unchecked]
    for row in rows:
        for arm, found in row.cells.items():
            whys = found.reasons
            lines += [f"- {row.title}, {arm}: {why.outcome} in {cell(why.check)}: {cell(why.reason)}" for why in whys]
    yield from details("Why, check by check", lines)


def _promise(found: PromiseCell) -> str:
    state = "✔ pass so far" if found.state == "pass" and not found.complete else PROMISE_WORDS[found.state]
    return f"{state} ({found.words})"


def upstream_lines(report: Report) -> Iterator[str]:
    """datafusion-python's own suite per arm, and the tests that differ."""
    suite = report.upstream_tests
    if suite is None:
        yield blank(report, "upstream_tests", "Upstream's own tests")
        return
    kept = ", ".join(f"{arm} keeps {row.kept} of {row.stock_passed}" for arm, row in suite.arms.items())
    yield from details(f"<b>Upstream's own tests</b>: {kept}", _suite(suite))


def _suite(suite: UpstreamSection) -> Iterator[str]:
    stock = ", ".join(f"{count} {outcome}" for outcome, count in suite.stock.items())
    yield f"datafusion-python, {suite.source()}: {suite.collected} tests collected. Stock: {stock}.\n"
    head = ["arm", "passed", "failed", "kept", "on workers", "differ", "inherent", "unfinished", "unexplained"]
    rows = [
        [
            arm,
            str(row.passed),
            str(row.failed),
            f"{row.kept}/{row.stock_passed}",
            *(str(getattr(row, name)) for name in ("remote", "differs", "inherent", "unfinished", "unexplained")),
        ]
        for arm, row in suite.arms.items()
    ]
    yield from table(head, rows, right=tuple(range(1, len(head))))
    yield ""
    for arm, found in upstream_differences(suite):
        for entry in found[:SHOWN_TESTS]:
            why = entry.explained or f"not explained: {entry.reason}"
            yield f"- {arm}, {cell(entry.test)}: {entry.outcome}, on stock {entry.stock}: {cell(why)}"
        if len(found) > SHOWN_TESTS:
            yield f"- {arm}: and {len(found) - SHOWN_TESTS} more"
