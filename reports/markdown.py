"""The Markdown form, made to fit a pull-request comment: verdict first, details collapsed, within the size limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from reports import words
from reports.markdown_checks import blank, promise_lines, upstream_lines
from reports.markdown_parts import (
    api_lines,
    block_lines,
    decision_lines,
    lag_lines,
    method_lines,
    packaging_lines,
    provenance_lines,
    usage_lines,
)
from reports.markdown_tools import details, table
from reports.model import CheckRow, Comparison, QueryRow, Report
from reports.plans import short_words

MAX_CHARACTERS = 65_000
"""GitHub refuses comments above 65 536 characters; the rest is room for what a workflow puts around it."""


class Section(NamedTuple):
    """One part of the document. Where the whole is too long, parts with the highest `rank` go first."""

    name: str
    rank: int
    text: str


def render_markdown(report: Report, *, limit: int = MAX_CHARACTERS) -> str:
    """The whole report as Markdown of at most `limit` characters; what was left out for length is named.

    Raises ValueError if not even the verdict fits.
    """
    sections = [Section(name, rank, "\n".join(make(report))) for name, rank, make in _SECTIONS]
    sections = [section for section in sections if section.text]
    dropped: list[str] = []
    while True:
        note = f"\n\n_Left out for length: {', '.join(dropped)}. See the HTML report._" if dropped else ""
        document = "\n\n".join(section.text for section in sections) + note + "\n"
        if len(document) <= limit:
            return document
        last = max(sections, key=lambda section: section.rank)
        if last.rank == 0:
            msg = f"the verdict alone has {len(document)} characters, the limit is {limit}"
            raise ValueError(msg)
        sections.remove(last)
        dropped.append(last.name)


def _head(report: Report) -> Iterable[str]:
    yield f"## {report.headline.title}"
    if report.synthetic:
        yield f"\n> **{words.SYNTHETIC}**"
    yield ""
    yield from (f"- {sentence}" for sentence in report.headline.sentences)
    yield from (f"- _Note: {sentence}_" for sentence in report.headline.caveats)


def _failing(report: Report) -> Iterable[str]:
    rows = {
        (gap.arm, gap.query): [gap.arm, gap.query, words.STATUS_WORDS[gap.status], gap.reason, gap.repro or "none"]
        for entry in report.comparisons
        for gap in entry.newly_failing
    }
    if not rows:
        return
    yield "### Newly failing (valid in a baseline, failing here)\n"
    yield from table(["arm", "query", "status", "reason", "repeat"], list(rows.values()))


def _arms(report: Report) -> Iterable[str]:
    yield "### Arms\n"
    rows = []
    for arm in report.arms:
        figures = report.summary.arms[arm.name]
        native, local = (report.comparison(arm.name, base) for base in ("native", "local"))
        rows.append(
            [
                f"**{arm.name}**",
                arm.title,
                f"{figures.ok}/{figures.queries}",
                f"{figures.validated}/{figures.queries}",
                f"{figures.distributed}/{figures.queries}" if arm.distributed else "single node",
                _ratio(native, "the base" if arm.name == "native" else "native not in this run"),
                _ratio(local, "the base" if arm.name == "local" else "local not in this run"),
            ]
        )
    head = ["arm", "what", "ok", "validated", "distributed", "geomean vs native", "geomean vs local"]
    yield from table(head, rows)
    yield ""
    yield "Below 1 is faster than the base. " + " · ".join(
        f"{mark} {meaning.split(':')[0]}" for mark, meaning in words.LEGEND.items()
    )


def _ratio(entry: Comparison | None, blank: str) -> str:
    if entry is None:
        return blank
    if entry.suite.ratio is None:
        return f"- {entry.suite.reason}"
    ratio = entry.suite.ratio
    figures = f"{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"
    return f"{figures} {words.mark(entry.suite)} ({entry.counted}/{entry.planned})"


def _gates(report: Report) -> Iterable[str]:
    yield "### Gates\n"
    marks = {"pass": "✔ pass", "fail": "✖ fail", "open": "? open"}
    yield from table(
        ["gate", "strategy", "state", "evidence"],
        [[gate.title, gate.strategy, marks[gate.state], gate.evidence] for gate in report.decision.gates],
    )


def _comparisons(report: Report) -> Iterable[str]:
    for entry in words.main_comparisons(report):
        counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in entry.words.items())
        rows = [_query_row(row, entry) for row in report.queries]
        head = ["query", f"{entry.base} ms", f"{entry.new} ms", "factor", "word", "", "95 % interval", "n"]
        lines = [*table(head, rows, right=(1, 2, 3, 7)), "", _total(entry)]
        yield from details(f"<b>{words.title(entry)}</b>: {counts}", lines)
    yield ""
    pair = words.aa_comparison(report)
    if pair is None:
        yield f"**A/A**: {words.sentence(report.noise.reason)}"
    else:
        shown = words.factor(pair.suite)
        figures = f"{shown.times} {shown.word} {shown.mark} {words.suite_interval(pair.suite)}"
        yield f"**A/A** {pair.new} against {pair.base}: {figures}. {words.sentence(report.noise.reason)}"


def _query_row(row: QueryRow, entry: Comparison) -> list[str]:
    base, new = row.cells[entry.base], row.cells[entry.new]
    verdict = new.vs[entry.base]
    shown = words.factor(verdict)
    bad = not (base.counts and new.counts)
    times = [words.ms(side.median_ms) if side.counts else words.cell_status(side) for side in (base, new)]
    rounds = str(verdict.ratio.n) if verdict.ratio else "0"
    return [
        row.query,
        *times,
        shown.times,
        shown.word,
        "!" if bad else shown.mark,
        words.ratio_interval(verdict),
        rounds,
    ]


def _total(entry: Comparison) -> str:
    if entry.factor is None:
        return f"TOTAL: none ({entry.reason}); {words.total_words(entry)}."
    times, direction = words.times_and_direction(entry.factor)
    return (
        f"TOTAL: {words.ms(entry.base_ms)} ms → {words.ms(entry.new_ms)} ms, {times} {direction}, over "
        f"{words.total_words(entry)}. Geometric mean: {_ratio(entry, words.BLANK)}."
    )


def _not_counting(report: Report) -> Iterable[str]:
    failing = report.failing()
    rows = [[item.arm, query, words.cell_status(item), words.cell_note(item)] for query, item in failing]
    if not rows:
        yield "Every cell of the table counts."
        return
    title = (
        f"<b>Cells that do not count</b>: {len(rows)} of {len(report.queries) * len(report.arms)}, each with its reason"
    )
    yield from details(title, table(["arm", "query", "status", "why"], rows))


def _plans(report: Report) -> Iterable[str]:
    if not report.plans:
        yield f"**Plans**: none, {report.absent.get('plans', 'the run holds no plans')}."
        return
    lines: list[str] = []
    for entry in report.plans:
        for group in entry.groups:
            lines += [f"- {entry.query}, {', '.join(group.arms)}: {short_words(group)}"]
    yield from details("<b>Plans</b>: stages and tasks; the HTML report has pictures and texts", lines)


def _conformance(report: Report) -> Iterable[str]:
    counts = report.summary.conformance
    if counts is None or report.conformance is None:
        yield blank(report, "conformance", "Conformance")
        return
    kinds = ("passed", "partial", "fail", "xfail", "crash", "timeout", "blocked")
    rows = [
        [arm, *(str(getattr(entry, kind)) for kind in kinds), f"{entry.must_pass}/{entry.must_total}"]
        for arm, entry in counts.items()
    ]
    lines = list(table(["arm", "pass", *kinds[1:], "must"], rows))
    arms = list(counts)
    checks = [[check.id, check.tier, *(_outcome(check, arm) for arm in arms)] for check in report.conformance]
    lines += ["", *table(["check", "tier", *arms], checks)]
    yield from details("<b>Conformance</b>", lines)


def _outcome(check: CheckRow, arm: str) -> str:
    outcome = check.outcomes.get(arm)
    if outcome is None:
        return "this arm has no result"
    return outcome.outcome if outcome.outcome == "pass" else f"{outcome.outcome}: {outcome.reason or 'no reason'}"


_SECTIONS: tuple[tuple[str, int, Callable[[Report], Iterable[str]]], ...] = (
    ("verdict", 0, _head),
    ("newly failing queries", 1, _failing),
    ("arms", 1, _arms),
    ("gates", 2, _gates),
    ("decision", 3, decision_lines),
    ("per-query tables", 5, _comparisons),
    ("cells that do not count", 4, _not_counting),
    ("processor time and memory", 5, usage_lines),
    ("generated queries and further results", 3, block_lines),
    ("what a user gets", 5, promise_lines),
    ("upstream's own tests", 6, upstream_lines),
    ("plans", 10, _plans),
    ("conformance", 9, _conformance),
    ("API surface", 8, api_lines),
    ("packaging", 6, packaging_lines),
    ("release lag", 7, lag_lines),
    ("provenance", 3, provenance_lines),
    ("methods", 4, method_lines),
)
