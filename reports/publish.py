"""Put a report where everybody finds it: `reports/published/`, in every form, with its decision record.

What is published is quoted. So a run has to be whole before it goes there; whoever forces one that is not has it said
in every form of it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.errors import UserError
from harness.rundir import disk_errors, write_atomic
from harness.stats import MIN_ROUNDS_FOR_VERDICT
from reports.build import write_report
from reports.madr import render_madr
from reports.model import Report
from reports.stored import PUBLISHED

MAX_BYTES = 2_000_000
"""All forms of one report together: they are committed, and a clone should stay small."""

WHOLE = ("local", "native", "inline", "external", "decorator")
"""Arms without which a report does not answer the question."""

QUERIES = 22
"""Queries of TPC-H."""

SECTIONS = ("api_surface", "packaging", "calibration")
"""Sections that `df-strategies collect` fills."""


def unpublishable(report: Report) -> list[str]:
    """Why a report should not be published, each a clause that can follow "although"; empty when it may be."""
    return list(_reasons(report))


def _reasons(report: Report) -> Iterator[str]:
    if report.synthetic:
        yield "its samples are invented"
    run, settings = report.provenance, report.settings
    if run.status != "complete":
        yield f"the run is {run.status}"
    if settings.rounds_finished < MIN_ROUNDS_FOR_VERDICT:
        yield f"it has {settings.rounds_finished} finished rounds of the {MIN_ROUNDS_FOR_VERDICT} that verdicts need"
    missing = [name for name in WHOLE if name not in report.summary.arms]
    if missing:
        yield f"it lacks {', '.join(missing)}"
    if len(settings.queries) < QUERIES:
        yield f"it has {len(settings.queries)} of {QUERIES} queries"
    yield from _unvalidated(report)
    if run.fingerprints_equal is False:
        yield "its arms hold different builds of the engine"
    for name in SECTIONS:
        if name in report.absent:
            yield f"it has no {name.replace('_', ' ')} ({report.absent[name]}; see `df-strategies collect`)"


def _unvalidated(report: Report) -> Iterator[str]:
    for arm, figures in report.summary.arms.items():
        vacuous = sum(row.cells[arm].validation.value == "vacuous" for row in report.queries)
        if figures.validated + vacuous < figures.queries:
            yield f"{figures.validated} of {figures.queries} queries of {arm} are validated"


def publish(report: Report, folder: Path = PUBLISHED, *, name: str = "latest", force: bool = False) -> dict[str, Path]:
    """Write all forms of a report as `name.*` and its decision record into `folder`; returns the paths by suffix.

    Raises:
        UserError: it is not fit to be published and `force` is not given, or it is larger than `MAX_BYTES`.
        HarnessFault: the folder cannot be written.
    """
    reasons = unpublishable(report)
    if reasons and not force:
        msg = (
            f"run {report.provenance.run_id} is not fit to be published: {'; '.join(reasons)}. Mend that, or publish "
            "it with --force, which every form of the report will say."
        )
        raise UserError(msg)
    if reasons:
        said = f"Published by force although {'; '.join(reasons)}."
        headline = report.headline.model_copy(update={"caveats": [said, *report.headline.caveats]})
        report = report.model_copy(update={"headline": headline})
    record = "decision.md" if name == "latest" else f"{name}-decision.md"
    with tempfile.TemporaryDirectory() as scratch:
        made = write_report(report, Path(scratch), stem=name)
        texts = {suffix: path.read_text(encoding="utf-8") for suffix, path in made.items()}
    texts["decision"] = render_madr(report)
    size = sum(len(text.encode()) for text in texts.values())
    if size > MAX_BYTES:
        msg = f"the forms of the report have {size:,} bytes together, {MAX_BYTES:,} may be published"
        raise UserError(msg)
    written = {}
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for suffix, text in texts.items():
            written[suffix] = folder / (record if suffix == "decision" else f"{name}.{suffix}")
            write_atomic(written[suffix], text)
    return written
