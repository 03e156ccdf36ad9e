"""The ratios of a report as a plot of characters, for a terminal or a log: same rows and marks as the forest plots."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from harness.model import Verdict
from reports import words
from reports.model import Report

WIDTH = 61
"""Columns of the plot itself; odd, so that a symmetric axis has a middle."""


def render_plot(report: Report, *, width: int = WIDTH) -> str:
    """Suite and per-query ratios of every strategy against native; a pure function of the report."""
    return "\n".join(line.rstrip() for line in _lines(report, width)) + "\n"


def _lines(report: Report, width: int) -> Iterator[str]:
    yield report.headline.title
    if report.synthetic:
        yield words.SYNTHETIC
    yield f"time over native, log axis, left is faster; {words.BLANK} has its reason in the report"
    entries = [entry for entry in words.main_comparisons(report) if entry.base == "native" and entry.new != "native"]
    pair = words.aa_comparison(report)
    suites = [(f"{entry.new}/native", entry.suite) for entry in entries]
    if pair:
        suites.append((f"A/A {pair.new}/{pair.base}", pair.suite))
    if not suites:
        yield "nothing to plot: the native arm or every strategy is missing from this run"
        return
    yield from _block("suite", suites, report.noise.suite_margin, width)
    for entry in entries:
        rows = [(row.query, row.cells[entry.new].vs["native"]) for row in report.queries]
        yield from _block(words.title(entry), rows, report.noise.query_margin, width)
    yield ""
    yield "  ".join(f"{mark} {meaning.split(':')[0]}" for mark, meaning in words.LEGEND.items())


def _block(title: str, rows: Sequence[tuple[str, Verdict]], margin: float, width: int) -> Iterator[str]:
    yield ""
    ratios = [verdict.ratio for _, verdict in rows if verdict.ratio]
    low = math.log(min([1 / (1 + margin), *(ratio.low for ratio in ratios)]))
    high = math.log(max([1 + margin, *(ratio.high for ratio in ratios)]))

    def column(ratio: float) -> int:
        return round((math.log(ratio) - low) / (high - low) * (width - 1))

    name_width = max(len(name) for name, _ in rows)
    left, right = f"{math.exp(low):.3f}", f"{math.exp(high):.3f}"
    yield f"{title}; margin {margin:.1%} ░, | is 1.00"
    yield f"{'':{name_width}} {left}{'':{width - len(left) - len(right)}}{right}"
    for name, verdict in rows:
        cells = [" "] * width
        for place in range(column(1 / (1 + margin)), column(1 + margin) + 1):
            cells[place] = "░"
        cells[column(1.0)] = "|"
        if verdict.ratio is None:
            yield f"{name:{name_width}} {''.join(cells)} {words.BLANK}"
            continue
        for place in range(column(verdict.ratio.low), column(verdict.ratio.high) + 1):
            cells[place] = "─"
        cells[column(verdict.ratio.value)] = words.mark(verdict)
        yield f"{name:{name_width}} {''.join(cells)} {verdict.ratio.value:.3f} {words.ratio_interval(verdict)}"
