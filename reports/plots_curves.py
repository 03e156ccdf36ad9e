"""Plots of `reports.curves`: tax of the boundary against rows, memory by reading, scaling over workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reports.plots import ACCENT, BAD, BAND, GOOD, INK, MUTED, SHAPES, WARN, canvas, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from reports.curves import MemoryTracks
    from reports.model import Report

COLOURS = (INK, ACCENT, GOOD, BAD, WARN, MUTED)

TALL = 8
"""Height of a curve, in rows of text."""


def tax(report: Report) -> str | None:
    """Time over FFI against linked, per query, over the rows of its answer; None without both strategies."""
    found = report.boundary_tax
    if found is None:
        return None
    with canvas(TALL) as (figure, axes):
        axes.axhline(1.0, color=MUTED, linewidth=1)
        for point in found.points:
            rows = max(point.rows, 1)
            axes.plot([rows, rows], [point.low, point.high], color=ACCENT, linewidth=1.2)
            axes.plot([rows], [point.value], marker="o", color=INK, markersize=4)
        axes.set_xscale("log")
        _plain_ticks(axes)
        axes.set_xlabel("rows of the answer, log", fontsize=8)
        axes.set_ylabel(f"{found.new} / {found.base}", fontsize=8)
        label = f"Dot plot: time of {found.new} over {found.base} for each query against the rows of its answer"
        return to_svg(figure, "tax", label)


def memories(report: Report) -> dict[str, str]:
    """A plot per arm, the A/A arm left out, all on one scale so that they can be compared by eye."""
    twice = {arm.name for arm in report.arms if arm.kind == "aa"}
    shown = [entry for entry in report.memory or [] if entry.arm not in twice and len(entry.readings) > 1]
    most = max((value or 0 for entry in shown for track in entry.tracks for value in track.pss_bytes), default=0)
    return {entry.arm: memory(entry, most) for entry in shown}


def memory(entry: MemoryTracks, most: int) -> str:
    """Proportional memory of every process of one arm, in the order of the readings; the axis ends above `most`."""
    with canvas(TALL) as (figure, axes):
        for number, track in enumerate(entry.tracks):
            given = [(place, value) for place, value in enumerate(track.pss_bytes) if value is not None]
            axes.plot(
                [place for place, _ in given],
                [value / 1e6 for _, value in given],
                marker=SHAPES[number % len(SHAPES)],
                markersize=3.5,
                linewidth=1,
                color=COLOURS[number % len(COLOURS)],
                label="coordinator" if track.role == "coordinator" else f"worker {track.index}",
            )
        last = len(entry.readings) - 1
        axes.set_xticks(sorted({0, last}), [entry.readings[place] for place in sorted({0, last})])
        axes.set_ylim(0, most / 1e6 * 1.05)
        axes.set_ylabel("MB, proportional", fontsize=8)
        _furnish(axes, -0.12)
        label = f"Line plot: proportional memory of each process of {entry.arm}, reading by reading"
        return to_svg(figure, f"memory-{entry.arm}", label)


def scaling(report: Report) -> str | None:
    """Time over single node against the number of workers; None without a scaling block of this project's form."""
    block = report.blocks.get("scaling")
    points: Any = block.get("points") if isinstance(block, Mapping) else None
    if not points:
        return None
    with canvas(TALL) as (figure, axes):
        axes.axhline(1.0, color=MUTED, linewidth=1)
        for number, arm in enumerate(dict.fromkeys(point["arm"] for point in points)):
            own = [point for point in points if point["arm"] == arm]
            # Side by side, so that intervals of arms that are alike do not cover each other.
            places = [point["workers"] + 0.04 * number for point in own]
            look: Any = {"color": COLOURS[number % len(COLOURS)]}
            shape = SHAPES[number % len(SHAPES)]
            axes.plot(
                places, [point["value"] for point in own], marker=shape, markersize=4, linewidth=1.2, label=arm, **look
            )
            for place, point in zip(places, own, strict=True):
                axes.plot([place, place], [point["low"], point["high"]], linewidth=1, **look)
        counts = sorted({point["workers"] for point in points})
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.set_xlabel("workers", fontsize=8)
        axes.set_ylabel("time / single node", fontsize=8)
        _furnish(axes, -0.22)
        return to_svg(figure, "scaling", "Line plot: time of each arm over a single node against the number of workers")


def _furnish(axes: Axes, below: float) -> None:
    axes.grid(visible=True, axis="y", color=BAND, linewidth=1)
    axes.set_axisbelow(True)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, below), ncol=3, fontsize=8, frameon=False, labelcolor=INK)


def _plain_ticks(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 3.0), numticks=8))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.grid(visible=True, axis="y", color=BAND, linewidth=1)
    axes.set_axisbelow(True)
