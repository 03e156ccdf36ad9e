"""Run the arms' own interpreters for what a timing run does not tell: public names, shortest scripts, packaging.

The results are JSON documents; written into a run directory as `api_surface.json` and `packaging.json`, they become
sections of its report. Nothing here times a query.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.rundir import disk_errors, write_atomic
from reports.api_diff import OWN_PACKAGES, STOCK_ARM, STOCK_PACKAGE
from reports.packaging import collect_packaging
from reports.shortest import run_scripts, script_names

DUMPER = Path(__file__).parent / "api_surface.py"

DUMP_TIMEOUT_S = 300.0
"""Seconds for one dump: importing 20 submodules and asking 2 000 signatures takes 3 s on an idle machine."""

PACKAGES: dict[str, tuple[str, ...]] = {
    "local": (STOCK_PACKAGE,),
    "inline": (STOCK_PACKAGE,),
    "external": (OWN_PACKAGES["external"],),
    "decorator": (STOCK_PACKAGE, OWN_PACKAGES["decorator"]),
}
"""Packages that a user of each arm imports, in that order. Other arms count as stock."""


class ArmPython(NamedTuple):
    """An arm's interpreter, its wheel (None: not at hand) and the URLs of workers that it may use for its script."""

    python: Path
    wheel: Path | None = None
    workers: Sequence[str] = ()
    build_seconds: float | None = None


def packages_of(arm: str) -> tuple[str, ...]:
    """Packages to look at for an arm."""
    return PACKAGES.get(arm, (STOCK_PACKAGE,))


def dump_names(python: Path, packages: Sequence[str]) -> dict[str, Any]:
    """Public names as an arm's interpreter sees them; a failure becomes the error of every package."""
    command = [str(python), "-I", str(DUMPER), *packages]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DUMP_TIMEOUT_S, check=False)
        failure = (done.stderr.strip().splitlines() or ["no message"])[-1] if done.returncode else None
    except (OSError, subprocess.TimeoutExpired) as error:
        done, failure = None, str(error)
    if done is not None and failure is None:
        found: dict[str, Any] = json.loads(done.stdout)
        return found
    empty: dict[str, Any] = {"version": None, "error": failure, "modules": [], "failed_modules": {}, "names": {}}
    return {"dump_version": 1, "python": None, "packages": dict.fromkeys(packages, empty)}


def collect_api_surface(arms: Mapping[str, ArmPython], lineitem: Path | None = None) -> dict[str, Any]:
    """Dump every arm, and run the shortest scripts when `lineitem` (a Parquet file or folder) is given."""
    document: dict[str, Any] = {
        "schema_version": 1,
        "dumps": {arm: dump_names(entry.python, packages_of(arm)) for arm, entry in arms.items()},
    }
    if lineitem is not None:
        known = {arm: entry for arm, entry in arms.items() if arm in script_names()}
        runs = run_scripts(
            {arm: entry.python for arm, entry in known.items()},
            {arm: entry.workers for arm, entry in known.items()},
            lineitem,
        )
        document["scripts"] = {arm: run.model_dump(mode="json") for arm, run in runs.items() if arm != STOCK_ARM}
    return document


def collect_into(
    folder: Path, arms: Mapping[str, ArmPython], *, checkout: Path | None = None, lineitem: Path | None = None
) -> dict[str, Path]:
    """Collect everything and write it into a run directory; returns the paths by document name.

    Raises:
        HarnessFault: the folder cannot be written.
    """
    documents = {
        "api_surface": collect_api_surface(arms, lineitem),
        "packaging": collect_packaging(
            {arm: (entry.python, packages_of(arm)) for arm, entry in arms.items()},
            wheels={arm: entry.wheel for arm, entry in arms.items() if entry.wheel is not None},
            build_seconds={arm: entry.build_seconds for arm, entry in arms.items() if entry.build_seconds is not None},
            checkout=checkout,
        ),
    }
    written = {}
    with disk_errors(folder):
        for name, document in documents.items():
            written[name] = folder / f"{name}.json"
            write_atomic(written[name], json.dumps(document, indent=1, sort_keys=True) + "\n")
    return written
