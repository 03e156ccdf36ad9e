"""Build the report of a run and write it in all its forms.

from reports.build import build_report, write_report
report = build_report(Path("runs/20261201-120000"))
write_report(report, Path("runs/20261201-120000"))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from harness.model import Phase
from harness.provenance import ArmRecord, Manifest
from harness.rundir import disk_errors, write_atomic
from reports import tables
from reports.api_diff import ApiSurface, build_api_surface
from reports.blocks import figures_of, other_builds, trimmed
from reports.criteria import Criteria
from reports.curves import FFI_ARM, LINKED_ARM, boundary_tax, memory_tracks
from reports.decide import decide
from reports.evidence import ArmFigures, CellFigures, Parts
from reports.fills import fills
from reports.headline import make_caveats, make_headline
from reports.html import render_html
from reports.inputs import Inputs, read_calibration, read_conformance, read_run
from reports.markdown import render_markdown
from reports.methods import method_facts
from reports.model import (
    BLOCK_NAMES,
    ArmInfo,
    ArmSummary,
    CalibrationSummary,
    CheckRow,
    ConformanceCounts,
    Provenance,
    QueryRow,
    Report,
    RunSettingsInfo,
    Summary,
)
from reports.packaging import Packaging, build_packaging
from reports.plans import query_plans
from reports.promises import promise_figures, promise_rows
from reports.release_lag import ReleaseLag, build_release_lag, load_lag
from reports.shortest import static_diffs
from reports.text import render_text
from reports.upstream import read_upstream
from reports.usage import UsageRow, usage_rows

FORMS = {
    "report.json": Report.to_json,
    "report.txt": render_text,
    "report.md": render_markdown,
    "report.html": render_html,
}
"""File name of each form and the pure function that makes it."""

SYNTHETIC_MARK = "synthetic"
"""A run whose command line starts with this word holds invented samples; its report says so everywhere."""


def build_report(run_dir: Path, extras: Mapping[str, Any] | None = None) -> Report:
    """Make the report of a run and write all its forms into the run directory.

    Raises:
        UserError, HarnessFault: as `make_report` and `write_report`.
    """
    report = make_report(run_dir, extras)
    write_report(report, run_dir)
    return report


def make_report(run_dir: Path, extras: Mapping[str, Any] | None = None, criteria: Criteria | None = None) -> Report:
    """The report of a run directory. Reads files only: same run, same report.

    `extras` (e.g. `{"calibration": Calibration(...)}`) take the place of the JSON files of that name, `criteria` that
    of `reports/criteria.toml`.

    Raises:
        UserError: no run directory, or of another schema version.
        HarnessFault: a file in it is damaged.
    """
    inputs = read_run(run_dir, extras)
    manifest = inputs.manifest
    data = _run_data(inputs)
    cells, again = tables.collect_cells(data), tables.collect_cells(data, Phase.RECURRENCE)
    noise = tables.judge_noise(data, cells)
    verdicts = tables.query_verdicts(data, cells, again, noise)
    noise = tables.noise_flags(noise, verdicts)
    rows = tables.query_rows(data, cells, verdicts)
    comparisons = tables.compare_all(data, cells, verdicts, noise)
    arms = [_arm_info(record) for record in manifest.arms.values()]
    summaries = tables.arm_summaries(rows, comparisons, list(manifest.arms))
    sections = _Sections(inputs, [arm.name for arm in arms if arm.kind in ("strategy", "external")])
    settings = _settings(manifest, data.rounds)
    provenance = _provenance(manifest)
    counts = conformance_counts(sections.conformance or [])
    parts = _parts(summaries, rows, counts, sections)
    decision = decide(parts, criteria)
    headline = make_headline(arms, summaries, comparisons, decision, settings)
    caveats = [*make_caveats(settings, noise, provenance, arms), *other_builds(inputs.extras, arms)]
    tax = boundary_tax(data, cells)
    absent = sections.absent()
    if tax is None:
        absent["boundary_tax"] = f"the run has no query that is valid on both {FFI_ARM} and {LINKED_ARM}"
    return Report(
        synthetic=manifest.command_line[:1] == [SYNTHETIC_MARK],
        headline=headline.model_copy(update={"caveats": caveats}),
        summary=sections.summary(summaries),
        arms=arms,
        queries=rows,
        comparisons=comparisons,
        noise=noise,
        settings=settings,
        provenance=provenance,
        methods=method_facts(settings, noise),
        calibration=sections.calibration,
        conformance=sections.conformance,
        promises=sections.promises,
        upstream_tests=sections.upstream_tests,
        api_surface=sections.api_surface,
        packaging=sections.packaging,
        release_lag=sections.release_lag,
        decision=decision,
        usage=sections.usage,
        memory=memory_tracks(inputs.samples, inputs.events, list(manifest.arms)) or None,
        boundary_tax=tax,
        plans=sections.plans,
        blocks={name: trimmed(name, inputs.extras[name]) for name in BLOCK_NAMES if name in inputs.extras},
        absent=absent,
        fills=fills(manifest.run_id, absent),
    )


def write_report(report: Report, folder: Path, *, stem: str = "report") -> dict[str, Path]:
    """Write every form into `folder`, each replaced in one step; returns the paths by suffix (`json`, `txt`, ...).

    Raises:
        HarnessFault: the folder cannot be written or the disk is full.
    """
    written = {}
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, render in FORMS.items():
            suffix = name.rsplit(".", 1)[1]
            path = folder / f"{stem}.{suffix}"
            write_atomic(path, render(report))
            written[suffix] = path
    return written


def _run_data(inputs: Inputs) -> tables.RunData:
    manifest = inputs.manifest
    queries = list(manifest.settings.queries)
    rounds = tables.finished_rounds(
        inputs.samples, list(manifest.arms), queries, complete=manifest.status == "complete"
    )
    return tables.RunData(
        samples=inputs.samples,
        arms=manifest.arms,
        queries=queries,
        rounds=rounds,
        seed=manifest.settings.seed,
        scale_factor=float(manifest.settings.scale_factor),
    )


def _arm_info(record: ArmRecord) -> ArmInfo:
    fingerprint = record.build.get("fingerprint")
    told = [worker.get("fingerprint") for worker in record.worker_build]
    return ArmInfo(
        name=record.name,
        title=record.title,
        kind=record.kind,
        copies=record.copies,
        distributed=record.distributed,
        python=record.python,
        versions=record.versions,
        fingerprint=fingerprint,
        build=record.build,
        workers_match=all(entry == fingerprint for entry in told) if told else None,
        wheel=record.wheel,
        wheel_sha256=record.wheel_sha256,
    )


def _settings(manifest: Manifest, finished: int) -> RunSettingsInfo:
    given = manifest.settings
    return RunSettingsInfo(
        scale_factor=given.scale_factor,
        query_set=given.query_set,
        form=given.form,
        rounds=given.rounds,
        rounds_finished=finished,
        warmups=given.warmups,
        workers=given.workers,
        seed=given.seed,
        interleave=given.interleave,
        timeout_s=given.timeout_s,
        cache="cold" if given.cold else "hot",
        config=given.config,
        queries=given.queries,
    )


def _provenance(manifest: Manifest) -> Provenance:
    prints = {arm.build.get("fingerprint") for arm in manifest.arms.values() if arm.build.get("fingerprint")}
    return Provenance(
        run_id=manifest.run_id,
        status=manifest.status,
        created_at=manifest.created_at,
        finished_at=manifest.finished_at,
        stopped_because=manifest.stopped_because,
        resumed_at=manifest.resumed_at,
        command_line=manifest.command_line,
        source=manifest.source,
        host=manifest.host,
        python=manifest.python,
        packages=manifest.packages,
        rustc=manifest.rustc,
        data=manifest.data,
        query_set_hash=manifest.query_set_hash,
        schedule_hash=manifest.schedule_hash,
        config_differences=manifest.config_differences,
        fingerprints_equal=len(prints) == 1 if prints else None,
    )


_NOT_THERE = {
    "calibration": "the calibration table was not computed for this run",
    "conformance": "the conformance suite was not part of this run",
    "promises": "no conformance check was executed on a strategy of this run",
    "upstream_tests": "datafusion-python's own suite was not run on the arms of this run",
    "packaging": "the packages were not measured in this run",
    "plans": "the run holds no plans",
    "usage": "the run recorded no processor times, no memory and no starts",
}
"""Why a section has no content, where the run itself does not say."""


class _Sections:
    """The optional sections of one run, and why the others are absent."""

    def __init__(self, inputs: Inputs, strategies: Sequence[str]) -> None:
        extras = inputs.extras
        self.extras = extras
        self.missing = inputs.missing
        self.calibration = read_calibration(extras)
        self.conformance = read_conformance(extras)
        reach = {name: arm.distributed for name, arm in inputs.manifest.arms.items() if name in strategies}
        self.promises = promise_rows(self.conformance, reach) if self.conformance is not None else None
        self.upstream_tests = read_upstream(extras, list(inputs.manifest.arms))
        self.packaging: Packaging | None = (
            build_packaging(extras["packaging"], list(inputs.manifest.arms)) if "packaging" in extras else None
        )
        rows = usage_rows(
            inputs.samples, inputs.events, {name: arm.distributed for name, arm in inputs.manifest.arms.items()}
        )
        self.usage: list[UsageRow] | None = rows if any(row.queries or row.starts for row in rows) else None
        shown = [name for name, arm in inputs.manifest.arms.items() if arm.kind != "aa"]
        self.plans = query_plans(inputs.plans, inputs.manifest.settings.queries, shown) or None
        self.release_lag: ReleaseLag | None = build_release_lag(load_lag(), strategies) if strategies else None
        document = extras.get("api_surface") or {}
        scripts = {arm: diff.model_dump() for arm, diff in static_diffs(strategies).items()}
        merged = {"dumps": document.get("dumps", {}), "scripts": {**scripts, **document.get("scripts", {})}}
        self.api_surface: ApiSurface | None = build_api_surface(merged, list(strategies)) if strategies else None

    def absent(self) -> dict[str, str]:
        """Reasons for the sections that have no content."""
        missing = self.missing
        found = {name: missing.get(name, reason) for name, reason in _NOT_THERE.items() if getattr(self, name) is None}
        if self.api_surface is None:
            found["api_surface"] = "no strategy was in this run"
        elif "api_surface" not in self.extras:
            why = missing.get("api_surface", "they were not asked for")
            found["api_surface"] = f"the public names were not read in this run ({why}); scripts are compared, not run"
        for name in BLOCK_NAMES:
            if name not in self.extras:
                found[name] = missing.get(name, "not part of this run")
        return found

    def summary(self, arms: dict[str, ArmSummary]) -> Summary:
        """The block for machines."""
        table = self.calibration
        return Summary(
            arms=arms,
            calibration=CalibrationSummary(
                aa_false_flag_rate=table.aa_false_flag_rate,
                power_20pct=table.power_20pct,
                suite_ci_half_width=table.suite_ci_half_width,
            )
            if table
            else None,
            conformance=conformance_counts(self.conformance, list(arms)) if self.conformance is not None else None,
            promises=promise_figures(self.promises),
            upstream_tests=self.upstream_tests.arms if self.upstream_tests is not None else None,
            **{name: figures_of(self.extras.get(name)) for name in BLOCK_NAMES},
        )


def conformance_counts(checks: Sequence[CheckRow], order: Sequence[str] = ()) -> dict[str, ConformanceCounts]:
    """Outcomes per arm, in the given order; an arm that lacks a check is counted as not having passed it."""
    seen = dict.fromkeys(arm for check in checks for arm in check.outcomes)
    arms = [arm for arm in dict.fromkeys([*order, *seen]) if arm in seen]
    found = {}
    for arm in arms:
        outcomes = [check.outcomes[arm].outcome if arm in check.outcomes else "blocked" for check in checks]
        must = [outcome for check, outcome in zip(checks, outcomes, strict=True) if check.tier == "must"]
        counts = {
            kind: outcomes.count(kind) for kind in ("pass", "partial", "fail", "xfail", "crash", "timeout", "blocked")
        }
        found[arm] = ConformanceCounts.model_validate(
            {**counts, "total": len(outcomes), "must_pass": must.count("pass"), "must_total": len(must)}
        )
    return found


def with_criteria(report: Report, criteria: Criteria) -> Report:
    """The same evidence under other weights: decision and headline are made again, nothing else changes."""
    parts = _parts(report.summary.arms, report.queries, report.summary.conformance or {}, report)
    decision = decide(parts, criteria)
    headline = make_headline(report.arms, report.summary.arms, report.comparisons, decision, report.settings)
    update = {"decision": decision, "headline": headline.model_copy(update={"caveats": report.headline.caveats})}
    return report.model_copy(update=update)


class _Evidence(Protocol):
    """Sections that the decision reads; a report and the parts that it is made from both have them."""

    @property
    def api_surface(self) -> ApiSurface | None: ...
    @property
    def packaging(self) -> Packaging | None: ...
    @property
    def release_lag(self) -> ReleaseLag | None: ...


def _parts(
    summaries: Mapping[str, ArmSummary],
    rows: Sequence[QueryRow],
    counts: Mapping[str, ConformanceCounts],
    sections: _Evidence,
) -> Parts:
    figures = {}
    cells = {}
    for arm, entry in summaries.items():
        own = [row.cells[arm] for row in rows]
        ratio = entry.geomean_vs_native
        figures[arm] = ArmFigures(
            queries=entry.queries,
            ok=entry.ok,
            counted=sum(cell.counts for cell in own),
            geomean=(ratio.value, ratio.low, ratio.high) if ratio else None,
            reason=entry.reason,
        )
        cells[arm] = [CellFigures(row.query, row.cells[arm].status, row.cells[arm].validation) for row in rows]
    return Parts(
        summary=figures,
        cells=cells,
        conformance={arm: (entry.must_pass, entry.must_total) for arm, entry in counts.items()},
        api_surface=sections.api_surface,
        packaging=sections.packaging,
        release_lag=sections.release_lag,
    )
