"""The text form: the field's dense table, one right-aligned line per query, with interval, n and coverage added."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from reports import words
from reports.blocks import block_tables
from reports.model import Comparison, QueryCell, QueryRow, Report

WIDTH = 118


def render_text(report: Report) -> str:
    """The whole report as text; a pure function of the report."""
    return "\n".join(line.rstrip() for line in _lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield report.headline.title
    if report.synthetic:
        yield words.SYNTHETIC
    run = report.provenance
    yield f"run {run.run_id}, {run.status}, seed {report.settings.seed}, {run.source.harness_version}"
    yield ""
    for sentence in report.headline.sentences:
        yield from _wrap(sentence)
    for sentence in report.headline.caveats:
        yield from _wrap(f"NOTE {sentence}")
    yield from _newly_failing(report)
    yield ""
    yield from _wrap(
        "Medians in ms over the finished rounds. The factor says how many times, in the direction of the word; a `?` "
        "after the word means that the direction is not shown to be real. The 95 % interval is of new/prev."
    )
    yield "  ".join(f"{mark} {meaning.split(':')[0]}" for mark, meaning in words.LEGEND.items())
    for entry in words.main_comparisons(report):
        yield from _comparison(report, entry)
    yield from _noise(report)
    yield from _not_counting(report)
    yield from _beside(report)
    yield from _decision(report)


def _wrap(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False
    ) or [""]


def _newly_failing(report: Report) -> Iterator[str]:
    seen: set[tuple[str, str]] = set()
    for entry in report.comparisons:
        for gap in entry.newly_failing:
            if (gap.arm, gap.query) in seen:
                continue
            if not seen:
                yield ""
                yield "NEWLY FAILING (valid in a baseline, failing here)"
            seen.add((gap.arm, gap.query))
            yield from _wrap(
                f"{gap.arm} {gap.query}: {words.status_reason(words.STATUS_WORDS[gap.status], gap.reason)}", "  "
            )


def _comparison(report: Report, entry: Comparison) -> Iterator[str]:
    yield ""
    yield f"=== {words.title(entry)} ===  (prev = {entry.base}, new = {entry.new})"
    for row in report.queries:
        yield _query_line(row, entry)
    if entry.factor is None:
        yield from _wrap(f"  TOTAL: none ({entry.reason}); {words.total_words(entry)}")
    else:
        times, direction = words.times_and_direction(entry.factor)
        yield (
            f"  TOTAL: prev={words.ms(entry.base_ms):>11} ms, new={words.ms(entry.new_ms):>11} ms, "
            f"{times:>7} {direction:<15} {words.total_words(entry):>29}"
        )
    suite = words.factor(entry.suite)
    if entry.suite.ratio is None:
        yield from _wrap(f"GEOMEAN: none ({entry.suite.reason})")
    else:
        interval = words.suite_interval(entry.suite)
        figures = f"{suite.times:>7} {suite.word:<15} {suite.mark} {interval:>14} n={entry.suite.ratio.n}"
        yield f"GEOMEAN: {'':>39} {figures}"
    yield "  words: " + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in entry.words.items())


def _query_line(row: QueryRow, entry: Comparison) -> str:
    base, new = row.cells[entry.base], row.cells[entry.new]
    verdict = new.vs[entry.base]
    left = f"{row.query:>7}: prev={_time(base):>14}, new={_time(new):>14}, "
    if verdict.ratio is None:
        bad = [cell.arm for cell in (base, new) if not cell.counts]
        note = f"not ok: {', '.join(bad)}" if bad else verdict.reason
        return left + f"{words.BLANK:>7} {'not comparable':<15} {'!' if bad else '-'} {note}"
    shown = words.factor(verdict)
    return (
        f"{left}{shown.times:>7} {shown.word:<15} {shown.mark} {words.ratio_interval(verdict):>14} n={verdict.ratio.n}"
    )


def _time(cell: QueryCell) -> str:
    return f"{words.ms(cell.median_ms)} ms" if cell.counts else words.cell_status(cell)


def _noise(report: Report) -> Iterator[str]:
    yield ""
    pair = words.aa_comparison(report)
    yield "=== A/A: what noise looks like on this machine ==="
    if pair is None:
        yield from _wrap(words.sentence(report.noise.reason))
        return
    shown = words.factor(pair.suite)
    yield (
        f"{pair.new} is {pair.base} a second time: {shown.times} {shown.word} {shown.mark} "
        f"{words.suite_interval(pair.suite)}, {words.total_words(pair)}"
    )
    yield from _wrap(words.sentence(report.noise.reason))


def _not_counting(report: Report) -> Iterator[str]:
    yield ""
    failing = report.failing()
    yield f"=== Cells that do not count: {len(failing)} of {len(report.queries) * len(report.arms)} ==="
    for query, cell in failing:
        yield from _wrap(f"{cell.arm} {query}: {words.cell_note(cell)}", "  ")


def _beside(report: Report) -> Iterator[str]:
    """Checks and further results in figures."""
    yield ""
    yield "=== Checks and generated queries ==="
    if report.summary.conformance is None:
        yield from _wrap(f"conformance: none, {report.absent['conformance']}", "  ")
    for arm, counts in (report.summary.conformance or {}).items():
        other = ", ".join(
            f"{getattr(counts, kind)} {kind}"
            for kind in ("partial", "fail", "xfail", "crash", "timeout", "blocked")
            if getattr(counts, kind)
        )
        rest = f" ({other})" if other else ""
        musts = f"{counts.must_pass} of {counts.must_total} musts"
        yield from _wrap(f"{arm}: {counts.passed} of {counts.total} checks pass, {musts}{rest}", "  ")
    for promise in report.promises or []:
        states = [f"{arm}: {found.state.replace('_', ' ')}, {found.words}" for arm, found in promise.cells.items()]
        yield from _wrap(f"{promise.title}: {'; '.join(states)}", "  ")
    suite = report.upstream_tests
    if suite is None:
        yield from _wrap(f"upstream's own tests: none, {report.absent['upstream_tests']}", "  ")
    for arm, own in (suite.arms if suite is not None else {}).items():
        split = f"{own.inherent} inherent, {own.unfinished} unfinished, {own.unexplained} unexplained"
        kept = f"keeps {own.kept} of {own.stock_passed} of upstream's tests that stock passes"
        yield from _wrap(f"{arm}: {kept}; {own.differs} differ ({split})", "  ")
    for block in block_tables(report):
        yield f"  {block.title}"
        for row in block.rows:
            figures = ", ".join(f"{value} {name}" for name, value in zip(block.columns, row[1:], strict=True))
            yield from _wrap(f"{row[0]}: {figures}", "    ")


def _decision(report: Report) -> Iterator[str]:
    yield ""
    yield "=== Decision ==="
    for gate in report.decision.gates:
        yield from _wrap(f"gate {gate.title}, {gate.strategy}: {gate.state}: {gate.evidence}", "  ")
    for axis in report.decision.axes:
        yield from _wrap(axis.sentence)
        for option in axis.options:
            note = f" ({option.excluded})" if option.excluded else ""
            yield f"    {option.rank1:>5.0%} first  score {option.score:.2f}  {option.title}{note}"
    yield "Not said by this evidence:"
    for item in report.decision.cannot_say:
        yield from _wrap(f"- {item}", "  ")
