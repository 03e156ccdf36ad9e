"""Run the arms' own interpreters for what a timing run does not tell: public names, shortest scripts, packaging.

The results are JSON documents; written into a run directory as `api_surface.json` and `packaging.json`, they become
sections of its report. Nothing here times a query.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.rundir import disk_errors, write_atomic
from reports.api_diff import OWN_PACKAGES, STOCK_ARM, STOCK_PACKAGE
from reports.packaging import collect_packaging
from reports.shortest import WorkersOf, no_workers, run_scripts, script_names

DUMPER = Path(__file__).parent / "api_surface.py"

DUMP_TIMEOUT_S = 300.0
"""Seconds for one dump: importing 20 submodules and asking 2 000 signatures takes 3 s on an idle machine."""

PACKAGES: dict[str, tuple[str, ...]] = {
    "local": (STOCK_PACKAGE,),
    "inline": (STOCK_PACKAGE,),
    "external": (OWN_PACKAGES["external"],),
    "decorator": (STOCK_PACKAGE, OWN_PACKAGES["decorator"]),
}
"""Packages that a user of each arm imports, in that order."""


class ArmPython(NamedTuple):
    """An arm's interpreter, the packages that its users import, and its wheel (None: not at hand)."""

    python: Path
    packages: Sequence[str]
    wheel: Path | None = None
    build_seconds: float | None = None


def packages_of(arm: str, namespace: str = STOCK_PACKAGE) -> tuple[str, ...]:
    """Packages to look at for an arm; an arm that is not shipped names its own in `driver.namespace`."""
    return PACKAGES.get(arm, (namespace,))


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
    return no_dump(packages, failure or "no message")


def no_dump(packages: Sequence[str], reason: str) -> dict[str, Any]:
    """What stands in the document where an arm could not be dumped."""
    empty: dict[str, Any] = {"version": None, "error": reason, "modules": [], "failed_modules": {}, "names": {}}
    return {"dump_version": 1, "python": None, "packages": {name: dict(empty) for name in packages}}


def collect_api_surface(
    arms: Mapping[str, ArmPython],
    *,
    failed: Mapping[str, str] | None = None,
    lineitem: Path | None = None,
    workers: WorkersOf = no_workers,
    step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Dump every arm, and run the shortest scripts when `lineitem` (a Parquet file or folder) is given.

    `failed` names arms that have no interpreter, with the reason; `workers` gives a script the URLs of workers that
    live as long as it runs; `step` is told what is done.
    """
    dumps = {arm: no_dump(packages_of(arm), reason) for arm, reason in (failed or {}).items()}
    for arm, entry in arms.items():
        dumps[arm] = dump_names(entry.python, entry.packages)
        step(f"public names of {arm}")
    document: dict[str, Any] = {"schema_version": 1, "dumps": dumps}
    if lineitem is not None:
        known = {arm: entry.python for arm, entry in arms.items() if arm in script_names()}
        runs = run_scripts(known, workers, lineitem, step=step)
        document["scripts"] = {arm: run.model_dump(mode="json") for arm, run in runs.items() if arm != STOCK_ARM}
    return document


def collect_packages(
    arms: Mapping[str, ArmPython],
    *,
    failed: Mapping[str, str] | None = None,
    checkout: Path | None = None,
    step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure what every arm's packages weigh, and count the sources in `checkout`."""
    document = collect_packaging(
        {arm: (entry.python, entry.packages) for arm, entry in arms.items()},
        wheels={arm: entry.wheel for arm, entry in arms.items() if entry.wheel is not None},
        build_seconds={arm: entry.build_seconds for arm, entry in arms.items() if entry.build_seconds is not None},
        checkout=checkout,
        step=step,
    )
    for arm, reason in (failed or {}).items():
        document["arms"][arm] = {"packages": list(packages_of(arm)), "error": reason}
    return document


def write_document(folder: Path, name: str, document: Mapping[str, Any]) -> Path:
    """Write a document into a run directory as `<name>.json`.

    Raises:
        HarnessFault: the folder cannot be written.
    """
    path = folder / f"{name}.json"
    with disk_errors(folder):
        write_atomic(path, json.dumps(document, indent=1, sort_keys=True) + "\n")
    return path
