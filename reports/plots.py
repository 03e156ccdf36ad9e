"""Plots as SVG text that is the same for the same report: no dates, fixed ids, colours as CSS variables.

Text stays text (so it can be read aloud, searched and scaled) and colours are the page's own, which gives dark mode and
contrast for free. Shape repeats what colour says.
"""

from __future__ import annotations

import html
import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.model import Verdict, VerdictKind
from reports import words
from reports.model import Comparison, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reports.history import Night

INK, MUTED, GOOD, BAD, WARN, NEUTRAL, BAND, ACCENT = (
    "#010101",
    "#020202",
    "#030303",
    "#040404",
    "#050505",
    "#060606",
    "#070707",
    "#080808",
)
"""Stand-ins that no plot would use by itself; `to_svg` turns them into the page's CSS variables."""

_VARIABLES = {
    INK: "var(--fg)",
    MUTED: "var(--muted)",
    GOOD: "var(--good)",
    BAD: "var(--bad)",
    WARN: "var(--warn)",
    NEUTRAL: "var(--neutral)",
    BAND: "var(--band)",
    ACCENT: "var(--accent)",
}

_LOOK = {
    VerdictKind.FASTER: (GOOD, "v"),
    VerdictKind.SLOWER: (BAD, "^"),
    VerdictKind.EQUIVALENT: (NEUTRAL, "s"),
    VerdictKind.INCONCLUSIVE: (WARN, "o"),
}
"""Colour and marker per verdict; the mark of the legend stands beside the label as well."""

ROW_INCHES = 0.3
"""Height of one row, enough for 9 pt text."""


MAX_TICKS = 5
"""Steps of a ratio axis that fit side by side at the width of a phone."""


STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 100.0)
"""Distances between ticks of a ratio axis that a reader can add up."""


SHAPES = "osD^vP*X"
"""A marker per arm, so that nothing rests on colour alone."""


class Bar(NamedTuple):
    """One row of a forest plot."""

    label: str
    verdict: Verdict


def suite_forest(report: Report) -> str:
    """Suite ratios of the strategies against native with intervals, the margin band, and the A/A pair as last row."""
    rows = [Bar(f"{entry.new} / native", entry.suite) for entry in _of_strategies(report, "native")]
    pair = words.aa_comparison(report)
    if pair:
        rows.append(Bar(f"A/A: {pair.new} / {pair.base}", pair.suite))
    label = "Forest plot: geometric mean time of each strategy over native, with 95 % intervals and the margin band"
    return forest("suite", rows, report.noise.suite_margin, label)


def query_forests(report: Report, base: str) -> dict[str, str]:
    """Per-query ratios of every strategy, by name, all on the same axis so that they can be compared by eye."""
    panels = {
        entry.new: [Bar(row.query, row.cells[entry.new].vs[base]) for row in report.queries]
        for entry in _of_strategies(report, base)
    }
    margin = report.noise.query_margin
    limits = _limits([row for rows in panels.values() for row in rows], margin)
    label = "Forest plot: time of each query on {} over {}, with 95 % intervals and the margin band"
    return {
        new: forest(f"queries-{new}", rows, margin, label.format(new, base), limits) for new, rows in panels.items()
    }


def _of_strategies(report: Report, base: str) -> list[Comparison]:
    kinds = {arm.name: arm.kind for arm in report.arms}
    return [
        entry for entry in report.comparisons if entry.base == base and kinds[entry.new] in ("strategy", "external")
    ]


def _limits(rows: Sequence[Bar], margin: float) -> tuple[float, float]:
    """Smallest and largest ratio that must be visible: all intervals and the band."""
    ratios = [row.verdict.ratio for row in rows if row.verdict.ratio]
    low = min([1 / (1 + margin), *(ratio.low for ratio in ratios)])
    return low, max([1 + margin, *(ratio.high for ratio in ratios)])


def forest(name: str, rows: Sequence[Bar], margin: float, label: str, limits: tuple[float, float] | None = None) -> str:
    """A forest plot on a log axis. Rows without a ratio keep their place and say that there is none."""
    with canvas(len(rows)) as (figure, axes):
        axes.axvspan(1 / (1 + margin), 1 + margin, color=BAND, linewidth=0)
        axes.axvline(1.0, color=MUTED, linewidth=1)
        for place, row in enumerate(rows):
            _forest_row(axes, place, row.verdict)
        _ratio_axis(axes, *(limits or _limits(rows, margin)))
        axes.set_yticks(range(len(rows)), [f"{row.label}  {words.mark(row.verdict)}" for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel(f"new / base, log; left is faster; band {margin:.1%}", fontsize=8)
        return to_svg(figure, name, label)


def _forest_row(axes: Axes, place: int, verdict: Verdict) -> None:
    if verdict.ratio is None:
        axes.text(
            0.02, place, "no ratio: see the table", va="center", fontsize=8, color=MUTED, transform=_rows_of(axes)
        )
        return
    colour, marker = _LOOK.get(verdict.kind, (NEUTRAL, "o"))
    axes.plot([verdict.ratio.low, verdict.ratio.high], [place, place], color=colour, linewidth=2, solid_capstyle="butt")
    axes.plot([verdict.ratio.value], [place], marker=marker, color=colour, markersize=6)


def _rows_of(axes: Axes) -> Any:
    """Coordinates in which x runs from 0 to 1 over the plot and y counts rows."""
    return axes.get_yaxis_transform()


def _ratio_axis(axes: Axes, low: float, high: float) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_xscale("log")
    room = (high / low) ** 0.05
    axes.set_xlim(low / room, high * room)
    step = next((size for size in STEPS if (high - low) / size <= MAX_TICKS), STEPS[-1])
    first, last = math.ceil(low / room / step), math.floor(high * room / step)
    axes.xaxis.set_major_locator(FixedLocator([number * step for number in range(max(first, 1), last + 1)]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.2f}"))


def medians(report: Report) -> str | None:
    """Median time per query and arm on a log axis, a shape per arm; None when no cell counts.

    Cells that do not count have no dot.
    """
    arms = [arm for arm in report.arms if arm.kind != "aa"]
    with canvas(len(report.queries) + 1) as (figure, axes):
        drawn = [_dots(axes, report, arm.name, number) for number, arm in enumerate(arms)]
        if not any(drawn):
            return None
        axes.set_yticks(range(len(report.queries)), [row.query for row in report.queries])
        axes.set_ylim(len(report.queries) - 0.4, -0.6)
        _time_axis(axes)
        axes.grid(visible=True, axis="y", color=BAND, linewidth=1)
        axes.set_axisbelow(True)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=3, fontsize=8, frameon=False, labelcolor=INK)
        return to_svg(figure, "medians", "Dot plot: median time of each query on each arm, logarithmic")


def _dots(axes: Axes, report: Report, arm: str, number: int) -> int:
    """Draw one arm's medians; returns how many there are."""
    points = [
        (cell.median_ms, place)
        for place, row in enumerate(report.queries)
        if (cell := row.cells[arm]).counts and cell.median_ms
    ]
    colours = (MUTED, INK, ACCENT, GOOD, BAD, WARN)
    axes.plot(
        [time for time, _ in points],
        [place for _, place in points],
        linestyle="none",
        marker=SHAPES[number % len(SHAPES)],
        markersize=5,
        color=colours[number % len(colours)],
        label=arm,
    )
    return len(points)


def release_timeline(report: Report) -> str | None:
    """Days from each DataFusion major to the engine and to datafusion-python; None without release data."""
    lag = report.release_lag
    if lag is None or not lag.strategies:
        return None
    rows = [row for row in lag.rows if row.strategy == lag.strategies[0].strategy]
    with canvas(len(rows)) as (figure, axes):
        for place, row in enumerate(rows):
            if row.engine_days is None or row.python_days is None:
                axes.text(
                    0.02, place, row.reason or "unknown", va="center", fontsize=8, color=MUTED, transform=_rows_of(axes)
                )
                continue
            axes.plot([0, max(row.engine_days, row.python_days)], [place, place], color=MUTED, linewidth=1)
            axes.plot([row.engine_days], [place], marker="D", color=ACCENT, markersize=6, linestyle="none")
            axes.plot([row.python_days], [place], marker="s", color=INK, markersize=6, linestyle="none")
        axes.set_yticks(range(len(rows)), [f"DataFusion {row.version}" for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(left=-1)
        axes.set_xlabel("◆ engine   ■ datafusion-python   (days)", fontsize=8)
        return to_svg(
            figure, "release-lag", "Timeline: days from a DataFusion major to the engine and to datafusion-python"
        )


def history(nights: Sequence[Night], arms: Sequence[str]) -> str | None:
    """Geometric means over native, night by night; None without any. No line joins nights that cannot be compared."""
    with canvas(9) as (figure, axes):
        drawn = [_nights(axes, nights, arm, number) for number, arm in enumerate(arms)]
        if not any(drawn):
            return None
        for place in _breaks(nights):
            axes.axvline(place - 0.5, color=MUTED, linewidth=0.8, linestyle=":")
        axes.axhline(1.0, color=MUTED, linewidth=1)
        step = max(1, -(-len(nights) // 6))
        shown = range(0, len(nights), step)
        axes.set_xticks(list(shown), [nights[place].at[5:10] for place in shown])
        axes.set_xlim(-0.5, len(nights) - 0.5)
        axes.set_ylabel("time / native", fontsize=8)
        axes.grid(visible=True, axis="y", color=BAND, linewidth=1)
        axes.set_axisbelow(True)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncol=3, fontsize=8, frameon=False, labelcolor=INK)
        scale = nights[0].scale_factor
        return to_svg(figure, f"history-{scale}", f"Line plot: time over native of each strategy by night, SF{scale}")


def _breaks(nights: Sequence[Night]) -> list[int]:
    """Places of nights that cannot be compared with the night before them."""
    return [place for place in range(1, len(nights)) if nights[place].differences(nights[place - 1])]


def _nights(axes: Axes, nights: Sequence[Night], arm: str, number: int) -> int:
    """Draw one arm; returns on how many nights it has a ratio."""
    colour = (INK, ACCENT, GOOD, BAD, WARN, MUTED)[number % 6]
    look: Any = {"color": colour, "marker": SHAPES[number % len(SHAPES)], "markersize": 4, "linewidth": 1.2}
    count, label = 0, arm
    for first, last in pairwise([0, *_breaks(nights), len(nights)]):
        found = [
            (place, entry.geomean_vs_native)
            for place in range(first, last)
            if (entry := nights[place].arms.get(arm)) is not None and entry.geomean_vs_native is not None
        ]
        if not found:
            continue
        axes.plot([place for place, _ in found], [ratio.value for _, ratio in found], label=label, **look)
        for place, ratio in found:
            axes.plot([place, place], [ratio.low, ratio.high], color=colour, linewidth=1)
        count, label = count + len(found), "_" + arm
    return count


def _time_axis(axes: Axes) -> None:
    """Milliseconds on a log axis, labelled 1, 2, 5, 10, ... in plain digits."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=20))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("median ms, log", fontsize=8)


@contextmanager
def canvas(rows: int) -> Iterator[tuple[Figure, Axes]]:
    """One figure of a fixed width with room for `rows` rows; no global state is touched."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    look: Any = {
        "svg.fonttype": "none",
        "font.family": ["sans-serif"],
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": 9,
        "text.color": INK,
        "axes.labelcolor": MUTED,
        "axes.edgecolor": MUTED,
        "xtick.color": MUTED,
        "ytick.color": INK,
        "axes.linewidth": 0.8,
    }
    with rc_context(look):
        figure = Figure(figsize=(4.6, 0.75 + ROW_INCHES * max(rows, 1)), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        axes.patch.set_alpha(0)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.tick_params(axis="y", length=0)
        yield figure, axes


def to_svg(figure: Figure, name: str, label: str) -> str:
    """The figure as an `<svg>` element that can stand in an HTML page."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": f"report-{name}"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    # Ids are unique within one file only; several of these stand in one page.
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(href="#|url\(#)([^")]+)', rf"\1{name}-\2", text)
    for stand_in, variable in _VARIABLES.items():
        text = text.replace(stand_in, variable)
    text = re.sub(r"font: ([^;\"]*?)'DejaVu Sans'[^;\"]*", r"font: \1sans-serif", text)
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)
    width = f' style="max-width:{float(size.group(1)) * 1.35:.0f}px"' if size else ""
    text = re.sub(r'(<svg\b[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg\b[^>]*?) height="[^"]*"', r"\1", text, count=1)
    shown = html.escape(label, quote=True)
    return text.replace("<svg", f'<svg role="img" aria-label="{shown}"{width}', 1).strip()
