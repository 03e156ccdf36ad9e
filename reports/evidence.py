"""Figures that the decision weighs, taken from the parts of a report: one function per source, each with its words.

A source that has no figure for a strategy says why. Nothing here judges; see `reports.decide`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from harness.model import Status, Validation
from reports.api_diff import ApiSurface, StrategySurface
from reports.decision_model import GateResult, GateState
from reports.packaging import STOCK_ARM, Packaging, PackagingRow
from reports.release_lag import LagSummary, ReleaseLag

WITH_BINDING = "with the binding"
"""Home of shared code that goes wherever a strategy's own code goes."""


class Figure(NamedTuple):
    """A figure with its interval and its words, or the reason why there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None
    text: str = ""
    missing: str | None = None


class Parts(NamedTuple):
    """What a report knows when its decision is made. Types are loose where the report's own model is still unborn."""

    summary: Mapping[str, ArmFigures]
    cells: Mapping[str, Sequence[CellFigures]]
    conformance: Mapping[str, tuple[int, int]]
    api_surface: ApiSurface | None
    packaging: Packaging | None
    release_lag: ReleaseLag | None


class ArmFigures(NamedTuple):
    """Timing figures of one arm: `geomean` is (value, low, high) against native."""

    queries: int
    ok: int
    counted: int
    geomean: tuple[float, float, float] | None
    reason: str | None


class CellFigures(NamedTuple):
    """What a gate needs to know of one query on one arm."""

    query: str
    status: Status
    validation: Validation


def missing(reason: str) -> Figure:
    """A figure that does not exist."""
    return Figure(None, text="no figure", missing=reason)


def exact(value: float, text: str) -> Figure:
    """A figure without an interval."""
    return Figure(value, value, value, text)


def _geomean(parts: Parts, strategy: str) -> Figure:
    arm = parts.summary.get(strategy)
    if arm is None:
        return missing("the strategy was not in this run")
    if arm.geomean is None:
        return missing(arm.reason or "no geometric mean against native")
    value, low, high = arm.geomean
    return Figure(value, low, high, f"{value:.3f}x [{low:.3f}, {high:.3f}]")


def _share_valid(parts: Parts, strategy: str) -> Figure:
    arm = parts.summary.get(strategy)
    if arm is None or not arm.queries:
        return missing("the strategy was not in this run")
    return exact(arm.counted / arm.queries, f"{arm.counted} of {arm.queries} queries")


def _conformance(parts: Parts, strategy: str) -> Figure:
    counts = parts.conformance.get(strategy)
    if counts is None or not counts[1]:
        ran = "did not run on this arm" if parts.conformance else "was not part of this run"
        return missing(f"the conformance suite {ran}")
    return exact(counts[0] / counts[1], f"{counts[0]} of {counts[1]} must-checks")


def _lag(parts: Parts, strategy: str) -> LagSummary | None:
    rows = parts.release_lag.strategies if parts.release_lag else []
    return next((row for row in rows if row.strategy == strategy), None)


def _plain_wait(parts: Parts, strategy: str) -> Figure:
    row = _lag(parts, strategy)
    if row is None or row.plain_wait_worst is None:
        return missing("no release dates")
    return exact(row.plain_wait_worst, f"{row.plain_wait_worst} days at worst over {row.n} majors")


def _sequence(parts: Parts, strategy: str) -> Figure:
    row = _lag(parts, strategy)
    return missing("no release chain") if row is None else exact(row.sequence, f"{row.sequence} repositories")


def _wheel_days(parts: Parts, strategy: str) -> Figure:
    row = _lag(parts, strategy)
    if row is None or row.median_days is None:
        return missing("no release dates")
    return exact(row.median_days, f"{row.median_days:.0f} days (median of {row.n} majors)")


def packaging_row(parts: Parts, strategy: str) -> PackagingRow | None:
    """The strategy's row of the packaging sheet, or None."""
    rows = parts.packaging.rows if parts.packaging else []
    return next((row for row in rows if row.arm == strategy), None)


def _burden(parts: Parts, strategy: str) -> Figure:
    row = packaging_row(parts, strategy)
    if row is None or row.source is None:
        return missing("the sources were not counted")
    own = [share for share in row.source.code if not share.shared]
    if not any(share.files for share in own):
        return missing("no source file matched the path map")
    homes = {share.home for share in own}
    taken = [share for share in row.source.code if share.home in homes or share.home == WITH_BINDING]
    counts = [count for share in taken if "datafusion-python" in homes for count in share.lines.items()]
    lines = sum(number for language, number in counts if not language.endswith("tests"))
    return exact(lines, f"{lines} lines without tests")


def _native_delta(parts: Parts, strategy: str) -> Figure:
    row = packaging_row(parts, strategy)
    if row is None or row.native_delta_bytes is None:
        return missing((row.reasons.get("native_delta_bytes") if row else None) or "the packages were not measured")
    return exact(row.native_delta_bytes / 1e6, f"{row.native_delta_bytes / 1e6:+.1f} MB")


def _plain_bytes(parts: Parts, strategy: str) -> Figure:
    """What somebody who never goes distributed carries: all of the delta if it is inside the stock package."""
    row = packaging_row(parts, strategy)
    if row is None or row.native_delta_bytes is None:
        return _native_delta(parts, strategy)
    own = any(library.distribution != "datafusion" for library in row.native)
    carried = 0 if own else row.native_delta_bytes
    return exact(carried / 1e6, f"{carried / 1e6:+.1f} MB" + (" (a package of its own)" if own else ""))


def _import_ratio(parts: Parts, strategy: str) -> Figure:
    row, stock = packaging_row(parts, strategy), packaging_row(parts, STOCK_ARM)
    if row is None or stock is None or row.import_cost is None or stock.import_cost is None:
        return missing("the import was not measured")
    ratio = row.import_cost.median_ms / stock.import_cost.median_ms
    return exact(
        ratio, f"{ratio:.2f}x ({row.import_cost.median_ms:.0f} ms, stock {stock.import_cost.median_ms:.0f} ms)"
    )


def _private(parts: Parts, strategy: str) -> Figure:
    row = packaging_row(parts, strategy)
    if row is None or row.source is None:
        return missing("the sources were not scanned")
    if not any(share.files for share in row.source.code if not share.shared):
        return missing("no source file matched the path map")
    return exact(len(row.source.private), f"{len(row.source.private)} uses")


def surface(parts: Parts, strategy: str) -> StrategySurface | None:
    """The strategy's API entry, or None."""
    rows = parts.api_surface.strategies if parts.api_surface else []
    return next((row for row in rows if row.arm == strategy), None)


def _script(parts: Parts, strategy: str) -> Figure:
    row = surface(parts, strategy)
    if row is None or row.script is None:
        return missing("no script for this strategy")
    changed = row.script.added + row.script.removed
    return exact(changed, f"+{row.script.added} -{row.script.removed} lines")


def _api_changed(parts: Parts, strategy: str) -> Figure:
    row = surface(parts, strategy)
    diff = row.shared() if row else None
    if diff is None:
        return missing((row.reason if row else None) or "the public names were not dumped")
    changed = len(diff.removed) + len(diff.changed)
    return exact(changed, f"{len(diff.removed)} removed, {len(diff.changed)} changed of {diff.base_names}")


SOURCES: dict[str, Callable[[Parts, str], Figure]] = {
    "geomean_vs_native": _geomean,
    "share_valid": _share_valid,
    "conformance_must": _conformance,
    "plain_wait_worst": _plain_wait,
    "release_sequence": _sequence,
    "release_days_median": _wheel_days,
    "lines_in_datafusion_python": _burden,
    "native_delta_mb": _native_delta,
    "plain_user_mb": _plain_bytes,
    "import_ratio": _import_ratio,
    "private_uses": _private,
    "script_lines_changed": _script,
    "api_changed": _api_changed,
}
"""What a measured criterion may name as its `source`."""


def _gate_correct(parts: Parts, strategy: str) -> tuple[GateState, str]:
    cells = parts.cells.get(strategy, ())
    bad = [cell.query for cell in cells if cell.status is Status.WRONG or cell.validation is Validation.MISMATCH]
    if bad:
        return "fail", f"wrong answers: {', '.join(bad)}"
    ran = [cell for cell in cells if cell.status is Status.OK]
    sure = [cell for cell in ran if cell.validation is Validation.VALIDATED]
    empty = [cell.query for cell in ran if cell.validation is Validation.VACUOUS]
    if not sure:
        return "open", f"0 of {len(ran)} answers validated"
    state: GateState = "pass" if len(sure) + len(empty) == len(ran) else "open"
    words = f"{len(sure)} of {len(ran)} answers validated"
    return state, f"{words}; equal but empty, which proves little: {', '.join(empty)}" if empty else words


def _gate_survives(parts: Parts, strategy: str) -> tuple[GateState, str]:
    cells = parts.cells.get(strategy, ())
    fatal = (Status.CRASH, Status.OOM, Status.TIMEOUT)
    bad = [f"{cell.query} ({cell.status.value})" for cell in cells if cell.status in fatal]
    if bad:
        return "fail", ", ".join(bad)
    ran = sum(cell.status not in (Status.NOT_RUN, Status.UNSUPPORTED) for cell in cells)
    if not ran:
        return "open", "no query ran"
    return "pass", f"no crash, timeout or out of memory in {ran} queries; injected faults are not part of this gate yet"


def _gate_api(parts: Parts, strategy: str) -> tuple[GateState, str]:
    row = surface(parts, strategy)
    diff = row.shared() if row else None
    if diff is None:
        return "open", (row.reason if row else None) or "the public names were not dumped"
    if diff.removed:
        shown = ", ".join(diff.removed[:5]) + (" ..." if len(diff.removed) > 5 else "")
        return "fail", f"{len(diff.removed)} of {diff.base_names} names missing from {diff.package}: {shown}"
    return "pass", f"all {diff.base_names} public names of stock are in {diff.package}"


GATES: dict[str, Callable[[Parts, str], tuple[GateState, str]]] = {
    "correct": _gate_correct,
    "survives": _gate_survives,
    "nothing-removed": _gate_api,
}
"""What a gate of the criteria file may be called."""


def gate_result(parts: Parts, gate: str, title: str, strategy: str) -> GateResult:
    """One gate for one strategy."""
    state, words = GATES[gate](parts, strategy)
    return GateResult(gate=gate, title=title, strategy=strategy, state=state, evidence=words)
