"""What a report is made from: one run directory, read once and checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, TypeAdapter, ValidationError

from harness.calibration import Calibration
from harness.errors import HarnessFault, UserError
from harness.model import Sample
from harness.provenance import Manifest
from harness.rundir import RunDirectory
from reports.curves import boundary_of_checks
from reports.datafiles import read_json
from reports.model import BLOCK_NAMES, CheckRow

EXTRA_FILES = ("api_surface", "calibration", "conformance", "packaging", "upstream_tests")
"""JSON files that other steps may put into a run directory; each becomes a section."""


PLANS = "plans.json"
"""Plans per arm and query, written before the timed rounds."""

RECORD = "collected.json"
"""Which parts were collected for a run and when, and why the others were not. Written by `reports.gather`."""


class Inputs(NamedTuple):
    """The parts of a run. An extra that the run does not have is absent from `extras`; `missing` may say why."""

    manifest: Manifest
    samples: list[Sample]
    extras: dict[str, Any]
    missing: dict[str, str]
    events: list[dict[str, Any]]
    plans: dict[str, Any]


def read_run(run_dir: Path, extras: Mapping[str, Any] | None = None) -> Inputs:
    """Read a run directory. `extras` (by name, e.g. `calibration`) take the place of files of that name.

    Raises:
        UserError: no run directory, or one of another schema version.
        HarnessFault: a file in it is damaged.
    """
    run = RunDirectory.open(run_dir)
    manifest = run.manifest()
    if manifest.settings.streams:
        msg = (
            f"run {manifest.run_id} is a throughput run: it has no paired times to report on. Its figures are in "
            f"{run_dir / 'throughput.json'}"
        )
        raise UserError(msg)
    found = {}
    for name in (*EXTRA_FILES, *BLOCK_NAMES):
        value = (extras or {}).get(name)
        if value is None:
            value = read_json(run_dir / f"{name}.json")
        if value is not None:
            found[name] = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    covered = found.get("conformance", {}).get("summary", {}).get("surface_coverage")
    if covered and "surface_coverage" not in found:
        found["surface_coverage"] = covered
    boundary = boundary_of_checks(found.get("conformance"))
    if boundary and "boundary" not in found:
        found["boundary"] = boundary
    record = read_json(run_dir / RECORD) or {}
    missing = {part: str(entry["reason"]) for part, entry in record.get("parts", {}).items() if entry.get("reason")}
    return Inputs(manifest, run.samples(), found, missing, run.events(), read_json(run_dir / PLANS) or {})


def read_calibration(extras: Mapping[str, Any]) -> Calibration | None:
    """The calibration table, or None.

    Raises:
        HarnessFault: the file has another form.
    """
    if "calibration" not in extras:
        return None
    try:
        return Calibration.model_validate(extras["calibration"])
    except ValidationError as error:
        msg = f"calibration.json is not a calibration table: {error.errors()[0]['msg']}"
        raise HarnessFault(msg) from error


def read_conformance(extras: Mapping[str, Any]) -> list[CheckRow] | None:
    """The executed checks (`{"checks": [...]}`), or None.

    Raises:
        HarnessFault: the file has another form.
    """
    if "conformance" not in extras:
        return None
    try:
        return TypeAdapter(list[CheckRow]).validate_python(extras["conformance"]["checks"])
    except (ValidationError, KeyError, TypeError) as error:
        msg = f"conformance.json does not hold a list of checks: {error}"
        raise HarnessFault(msg) from error
