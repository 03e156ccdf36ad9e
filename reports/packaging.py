"""The packaging and coupling sheet: what each strategy ships, what importing it costs, where its code would live.

Sizes and import costs are measured by running the arm's own interpreter (`packaging_probe.py`); the rest is counted
on the sources (`source_facts.py`). `collect_packaging` measures and returns JSON; `build_packaging` only reads it.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from harness.errors import HarnessFault
from harness.model import Frozen
from reports.source_facts import SourceFacts, source_facts

PROBE = Path(__file__).parent / "packaging_probe.py"

IMPORT_REPEATS = 7
"""Fresh processes per arm; the first reads the library from disk, so the median of 7 is a warm one."""

PROBE_TIMEOUT_S = 120.0
"""Seconds for one probe: an import of a 200 MB library from a cold disk takes some ten seconds."""

STOCK_ARM = "local"


class NativeLibrary(Frozen):
    """One native library of a distribution, in bytes as installed."""

    distribution: str
    name: str
    bytes: int
    holds_datafusion: bool


class ImportCost(Frozen):
    """Cost of importing the arm's packages in a fresh process: median of `repeats` processes, first one apart."""

    packages: list[str]
    repeats: int
    first_ms: float
    median_ms: float
    rss_growth_kb: int | None = Field(default=None, description="Growth of resident memory by the import, kB")
    rss_kb: int | None = Field(default=None, description="Resident memory after the import, kB")
    threads: int | None = None


class PackagingRow(Frozen):
    """One arm of the sheet. A null with no number says why in `reasons`, keyed by field."""

    arm: str
    wheel: str | None = None
    wheel_bytes: int | None = None
    wheel_delta_bytes: int | None = Field(default=None, description="Download over stock: own wheels minus stock's")
    native: list[NativeLibrary] = Field(default_factory=list)
    native_bytes: int | None = None
    native_delta_bytes: int | None = Field(default=None, description="Native bytes over the stock arm's")
    datafusion_copies: int | None = Field(default=None, description="Native libraries that hold DataFusion")
    import_cost: ImportCost | None = None
    build_seconds: float | None = None
    source: SourceFacts | None = None
    reasons: dict[str, str] = Field(default_factory=dict)


class Packaging(Frozen):
    """The whole sheet, stock first."""

    rows: list[PackagingRow] = Field(default_factory=list)


def probe(python: Path, action: str, packages: Sequence[str]) -> dict[str, Any]:
    """Run the probe in an arm's interpreter.

    Raises:
        HarnessFault: the interpreter or the import failed.
    """
    command = [str(python), "-I", str(PROBE), action, *packages]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        msg = f"packaging probe `{action} {' '.join(packages)}` with {python}: {error}"
        raise HarnessFault(msg) from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        msg = f"packaging probe `{action} {' '.join(packages)}` with {python}: exit {done.returncode}: {last}"
        raise HarnessFault(msg)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def measure_arms(
    arms: Mapping[str, tuple[Path, Sequence[str]]],
    *,
    repeats: int = IMPORT_REPEATS,
    step: Callable[[str], None] = lambda _: None,
) -> dict[str, dict[str, Any]]:
    """Measure arms: `{"packages", "imports": [...], "distributions": [...]}` or `{"packages", "error"}` for each.

    The arms take turns at importing, so that a busy moment of the machine meets all of them and not one.
    """
    found: dict[str, dict[str, Any]] = {
        arm: {"packages": list(packages), "imports": []} for arm, (_, packages) in arms.items()
    }
    for _ in range(max(1, repeats)):
        for arm, (python, packages) in arms.items():
            answer = _try(found[arm], python, "import", packages)
            if answer is not None:
                found[arm]["imports"].append(answer)
    for arm, (python, packages) in arms.items():
        found[arm].update(_try(found[arm], python, "files", packages) or {})
        if "error" in found[arm]:
            found[arm].pop("imports")
        step(f"packages of {arm}")
    return found


def _try(entry: dict[str, Any], python: Path, action: str, packages: Sequence[str]) -> dict[str, Any] | None:
    """One probe of an arm; its first failure is the arm's error, and the last question that it is asked."""
    if "error" in entry:
        return None
    try:
        return probe(python, action, packages)
    except HarnessFault as error:
        entry["error"] = str(error)
        return None


def collect_packaging(
    arms: Mapping[str, tuple[Path, Sequence[str]]],
    *,
    wheels: Mapping[str, Path] | None = None,
    build_seconds: Mapping[str, float] | None = None,
    checkout: Path | None = None,
    repeats: int = IMPORT_REPEATS,
    step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure all arms and return the document that is stored as `packaging.json`.

    `arms` maps names to (interpreter, packages in import order); `wheels` maps names to the wheel file of each arm,
    the stock one included; `checkout` is where the sources are counted; `step` is told what is done.
    """
    document: dict[str, Any] = {"schema_version": 1, "arms": {}}
    for arm, entry in measure_arms(arms, repeats=repeats, step=step).items():
        wheel = (wheels or {}).get(arm)
        if wheel is not None and wheel.is_file():
            entry["wheel"] = {"name": wheel.name, "bytes": wheel.stat().st_size}
        if arm in (build_seconds or {}):
            entry["build_seconds"] = (build_seconds or {})[arm]
        if checkout is not None and arm != STOCK_ARM:
            entry["source"] = source_facts(checkout, arm).model_dump(mode="json")
        document["arms"][arm] = entry
    return document


def build_packaging(document: Mapping[str, Any], order: Sequence[str] = ()) -> Packaging:
    """Turn the stored measurements into the sheet, with deltas against stock, arms in the given order."""
    given: Mapping[str, Any] = document.get("arms", {})
    entries = {arm: given[arm] for arm in dict.fromkeys([*order, *given]) if arm in given}
    stock = _row(STOCK_ARM, entries[STOCK_ARM]) if STOCK_ARM in entries else None
    rows = [] if stock is None else [stock]
    for arm, entry in entries.items():
        if arm != STOCK_ARM:
            rows.append(_with_deltas(_row(arm, entry), stock))
    return Packaging(rows=rows)


def _row(arm: str, entry: Mapping[str, Any]) -> PackagingRow:
    reasons = {}
    wheel = entry.get("wheel") or {}
    if not wheel:
        reasons["wheel_bytes"] = "no wheel file was given"
    if "build_seconds" not in entry:
        reasons["build_seconds"] = "the wheel was built before this run, beside others that share its dependencies"
    if entry.get("error"):
        for field in ("native", "import_cost", "datafusion_copies"):
            reasons[field] = entry["error"]
    native = [
        NativeLibrary(distribution=found["name"], **library)
        for found in entry.get("distributions", [])
        for library in found["native"]
    ]
    measured = "distributions" in entry
    return PackagingRow(
        arm=arm,
        wheel=wheel.get("name"),
        wheel_bytes=wheel.get("bytes"),
        native=native,
        native_bytes=sum(library.bytes for library in native) if measured else None,
        datafusion_copies=sum(library.holds_datafusion for library in native) if measured else None,
        import_cost=_import_cost(entry) if entry.get("imports") else None,
        build_seconds=entry.get("build_seconds"),
        source=SourceFacts.model_validate(entry["source"]) if entry.get("source") else None,
        reasons=reasons,
    )


def _import_cost(entry: Mapping[str, Any]) -> ImportCost:
    runs = entry["imports"]
    # Resident, not proportional: a proportional share falls when any other process has the same library open.
    growth = [run["rss_after_kb"] - run["rss_before_kb"] for run in runs if run.get("rss_after_kb") is not None]
    rss = [run["rss_after_kb"] for run in runs if run.get("rss_after_kb") is not None]
    return ImportCost(
        packages=entry["packages"],
        repeats=len(runs),
        first_ms=runs[0]["import_ms"],
        median_ms=statistics.median(run["import_ms"] for run in runs),
        rss_growth_kb=int(statistics.median(growth)) if growth else None,
        rss_kb=int(statistics.median(rss)) if rss else None,
        threads=runs[-1].get("threads"),
    )


def _with_deltas(row: PackagingRow, stock: PackagingRow | None) -> PackagingRow:
    """Deltas to stock. A strategy beside the stock wheel downloads both, so its own wheel is all delta."""
    reasons = dict(row.reasons)
    if stock is None:
        reasons["wheel_delta_bytes"] = reasons["native_delta_bytes"] = "the stock arm was not measured"
        return row.model_copy(update={"reasons": reasons})
    wheel_delta: int | None = None
    if row.wheel_bytes is None or (stock.wheel_bytes is None and not _beside_stock(row)):
        reasons["wheel_delta_bytes"] = "a wheel size is missing"
    else:
        wheel_delta = row.wheel_bytes if _beside_stock(row) else row.wheel_bytes - (stock.wheel_bytes or 0)
    native_delta: int | None = None
    if row.native_bytes is None or stock.native_bytes is None:
        reasons["native_delta_bytes"] = "a native library was not measured"
    else:
        native_delta = row.native_bytes - stock.native_bytes
    update = {"wheel_delta_bytes": wheel_delta, "native_delta_bytes": native_delta, "reasons": reasons}
    return row.model_copy(update=update)


def _beside_stock(row: PackagingRow) -> bool:
    """Whether the arm has the stock distribution and another one next to it."""
    names = {library.distribution for library in row.native}
    return "datafusion" in names and len(names) > 1
