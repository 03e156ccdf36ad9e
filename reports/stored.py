"""Find a report by what a person types: a run id, `latest`, a run directory, or a report.json such as the published."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from harness.errors import HarnessFault, UserError
from harness.rundir import RunDirectory, find_run
from reports.build import make_report, with_criteria
from reports.criteria import Criteria
from reports.datafiles import read_json
from reports.model import REPORT_SCHEMA_VERSION, Report

PUBLISHED = Path(__file__).parent / "published"
"""Folder of the committed reports."""


class Stored(NamedTuple):
    """A report, and where its forms lie. `run` is None for a report.json without its run directory."""

    report: Report
    folder: Path
    run: RunDirectory | None


def load_report(text: str, root: Path, criteria: Criteria | None = None) -> Stored:
    """The report meant by `text`; of a run it is made from the samples, so that it is never an old one.

    Raises:
        UserError: nothing fits, or another schema version.
        HarnessFault: a file is damaged.
    """
    path = Path(text)
    if path.suffix == ".json" or (path.is_file() and path.name != "manifest.json"):
        report = read_report(path)
        return Stored(with_criteria(report, criteria) if criteria else report, path.resolve().parent, None)
    run = RunDirectory.open(find_run(text, root))
    return Stored(make_report(run.path, criteria=criteria), run.path, run)


def read_report(path: Path) -> Report:
    """Read a report.json.

    Raises:
        UserError: there is none, or it has another schema version.
        HarnessFault: it is damaged.
    """
    data = read_json(path)
    if data is None:
        msg = f"{path} does not exist; give a run id, a run directory, a report.json, or `latest`"
        raise UserError(msg)
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != REPORT_SCHEMA_VERSION:
        msg = f"{path} is no report of this version: schema version {version!r}, expected {REPORT_SCHEMA_VERSION}"
        raise UserError(msg)
    try:
        return Report.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        msg = f"{path} is damaged: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise HarnessFault(msg) from error
