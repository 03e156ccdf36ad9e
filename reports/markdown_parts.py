"""Markdown of the sections that are not about timing: decision, API, packaging, release lag, provenance, methods."""

from __future__ import annotations

from collections.abc import Iterator

from reports import words
from reports.api_diff import StrategySurface
from reports.blocks import block_tables
from reports.decision_model import AxisDecision
from reports.markdown_checks import blank
from reports.markdown_tools import cell, code, details, table
from reports.model import Report
from reports.packaging import PackagingRow

SHOWN_NAMES = 40
"""Names listed per kind of change; the JSON has them all."""


def decision_lines(report: Report) -> Iterator[str]:
    """Both questions, the public pull requests, and what cannot be said."""
    yield "### Decision\n"
    for axis in report.decision.axes:
        yield f"**{axis.sentence}**\n"
        yield from details(f"{axis.question} Scores, criteria, sensitivity", _axis(axis))
        yield ""
    for entry in report.decision.public:
        lines = [f"Closest build: {entry.strategy} (code in {entry.where}, bound by {entry.how}).", ""]
        lines += [f"- {item}" for item in entry.says]
        lines += [f"- differs: {item}" for item in entry.differs]
        lines += [f"- cannot say: {item}" for item in entry.cannot_say]
        yield from details(f"What this says about <b>{entry.title}</b>", lines)
    yield from details("What this evidence cannot say", [f"- {cell(item)}" for item in report.decision.cannot_say])


def _axis(axis: AxisDecision) -> Iterator[str]:
    rows = [
        [option.title, f"{option.score:.2f}", f"{option.rank1:.0%}", option.gates, option.excluded or "ranked"]
        for option in axis.options
    ]
    yield from table(["option", "score", "first in", "gates", "state"], rows, right=(1, 2))
    yield ""
    ids = [option.option for option in axis.options]
    criteria = []
    for entry in axis.criteria:
        by_option = {score.option: score for score in entry.scores}
        scores = [f"{by_option[name].value:.2f} ({by_option[name].figure})" for name in ids]
        criteria.append([entry.title, entry.kind, f"{entry.weight:.0%}", entry.value_function, *scores])
    yield from table(["criterion", "kind", "weight", "value", *ids], criteria)
    yield ""
    if axis.flip:
        yield f"- smallest change of one weight that flips it: {axis.flip.words()}"
    elif axis.verdict != "no_choice":
        yield "- no change of a single weight flips it"
    yield from (f"- flips with {item}" for item in axis.score_flips)
    yield from (f"- overlap: {item}" for item in axis.warnings)


def api_lines(report: Report) -> Iterator[str]:
    """API surface per strategy, with the shortest script."""
    if report.api_surface is None:
        yield blank(report, "api_surface", "API surface")
        return
    lines: list[str] = []
    for entry in report.api_surface.strategies:
        lines += _strategy(entry)
    stock = report.api_surface
    count = f" (stock {stock.stock_version}: {stock.stock_names} public names)" if stock.stock_names else ""
    yield from details(f"<b>API surface and shortest scripts</b>{count}", lines)


def _strategy(entry: StrategySurface) -> Iterator[str]:
    yield f"#### {entry.arm}\n"
    if entry.reason:
        yield f"Names: none, {entry.reason}.\n"
    for diff in entry.diffs:
        if diff.error:
            yield f"- {diff.package}: could not be imported: {cell(diff.error)}"
            continue
        counts = f"{len(diff.added)} added, {len(diff.removed)} removed, {len(diff.changed)} changed"
        yield f"- `{diff.package}` ({diff.role}): {counts}"
        for title, names in (("added", diff.added), ("removed", diff.removed)):
            if names:
                yield f"  - {title}: {_names(names)}"
        if diff.changed:
            yield f"  - changed: {_names([f'{change.name} ({change.what})' for change in diff.changed])}"
    if entry.script:
        script = entry.script
        state = "not executed in this run"
        if script.ran:
            state = (
                "printed the local answer" if script.same_answer else f"did NOT print the local answer ({script.error})"
            )
        yield f"\nShortest distributed script: +{script.added} -{script.removed} lines against local, {state}\n"
        yield from code(script.diff, "diff")
    yield ""


def _names(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(f"`{name}`" for name in names[:SHOWN_NAMES]) + more


def packaging_lines(report: Report) -> Iterator[str]:
    """The packaging sheet."""
    if report.packaging is None:
        yield blank(report, "packaging", "Packaging")
        return
    head = ["arm", "wheel", "over stock", "native", "over stock", "DataFusion copies", "import ms", "memory by import"]
    lines = list(table(head, [_packaging_row(row) for row in report.packaging.rows]))
    lines += [f"- {row.arm}, {field}: {why}" for row in report.packaging.rows for field, why in row.reasons.items()]
    for row in report.packaging.rows:
        if row.source:
            for share in row.source.code:
                count = ", ".join(f"{number} {language}" for language, number in share.lines.items()) or "no lines"
                lines.append(f"- {row.arm}, code that would live in {share.home} ({share.title}): {count}")
            lines.append(f"- {row.arm}, private upstream symbols used: {len(row.source.private)}")
            if row.source.lock:
                lines.append(f"- {row.arm}, lock packages over stock: {len(row.source.lock.over_stock)}")
    yield from details("<b>Packaging and coupling</b>", lines)


def _packaging_row(row: PackagingRow) -> list[str]:
    cost = row.import_cost
    stock = "stock" if row.arm == "local" else None
    return [
        row.arm,
        words.megabytes(row.wheel_bytes),
        stock or words.megabytes(row.wheel_delta_bytes, signed=True),
        words.megabytes(row.native_bytes),
        stock or words.megabytes(row.native_delta_bytes, signed=True),
        words.BLANK if row.datafusion_copies is None else str(row.datafusion_copies),
        words.BLANK if cost is None else f"{cost.median_ms:.0f}",
        words.BLANK if cost is None or cost.rss_growth_kb is None else f"{cost.rss_growth_kb / 1000:.0f} MB",
    ]


def lag_lines(report: Report) -> Iterator[str]:
    """The release-lag model."""
    lag = report.release_lag
    if lag is None:
        yield "**Release lag**: none, no strategy was in this run."
        return
    rows = [
        [
            entry.strategy,
            entry.home,
            words.BLANK if entry.median_days is None else f"{entry.median_days:.0f}",
            words.BLANK if entry.worst_days is None else str(entry.worst_days),
            words.BLANK if entry.plain_wait_worst is None else str(entry.plain_wait_worst),
            f"{entry.sequence} ({' → '.join(entry.repositories)})",
            f"{entry.n} of {entry.of}",
        ]
        for entry in lag.strategies
    ]
    head = ["strategy", "home", "median days", "worst", "plain users wait (worst)", "releases in sequence", "majors"]
    intro = (
        f"Days from a DataFusion major to an installable distributed wheel, from public dates read on {lag.read_on}. A "
        f"package of its own is taken to follow {lag.own_lag_days} days after its parts; Ballista's took "
        f"{', '.join(map(str, lag.own_lag_observed))} days."
    )
    yield from details("<b>Release lag</b>", [intro, "", *table(head, rows)])


def usage_lines(report: Report) -> Iterator[str]:
    """Processor time, memory and start-up per arm."""
    if report.usage is None:
        yield f"**Processor time, memory, start-up**: none, {report.absent['usage']}."
        return
    head = ["arm", "coordinator CPU ms", "workers CPU ms", "queries", "coordinator peak", "largest worker peak"]
    head += ["all, proportional", "start and import ms", "workers ready ms"]
    rows = [
        [
            row.arm,
            words.ms(row.coordinator_cpu_ms),
            words.ms(row.worker_cpu_ms),
            str(row.queries),
            words.megabytes(row.coordinator_peak_bytes),
            words.megabytes(row.worker_peak_bytes),
            words.megabytes(row.pss_bytes),
            words.ms(row.import_ms),
            words.ms(row.cluster_ms),
        ]
        for row in report.usage
    ]
    lines = list(table(head, rows, right=tuple(range(1, len(head)))))
    lines += ["", "CPU: medians per execution, summed over the queries. Memory is read in warm-ups only."]
    lines += [f"- {row.arm}, {name}: {why}" for row in report.usage for name, why in row.reasons.items()]
    yield from details("<b>Processor time, memory, start-up</b>", lines)


def block_lines(report: Report) -> Iterator[str]:
    """Generated queries, injected faults and whatever else was measured beside the run."""
    for block in block_tables(report):
        lines = list(table(["arm", *block.columns], block.rows)) if block.rows else ["The JSON form has it."]
        lines += ["", words.sentence(block.note)] if block.note else []
        for found in block.findings:
            lines.append(f"- {found['arm']}: {cell(found['what'])}: {cell(found['reason'])}")
        yield from details(f"<b>{block.title}</b>", lines)
        yield ""


def provenance_lines(report: Report) -> Iterator[str]:
    """Where the figures come from."""
    run, host = report.provenance, report.provenance.host
    facts = [
        ["run", f"{run.run_id}, {run.status}, {run.created_at} to {run.finished_at or 'not finished'}"],
        ["stopped because", run.stopped_because or "all rounds were run"],
        ["command", " ".join(run.command_line)],
        ["source", f"{run.source.git_sha or 'no git checkout'}{', uncommitted changes' if run.source.dirty else ''}"],
        [
            "machine",
            f"{host.cpu_model}, {host.cores} cores, {host.memory_bytes / 2**30:.1f} GiB, load {host.load_1m:.2f}",
        ],
        ["system", f"{host.system}, kernel {host.kernel}, {host.libc}, governor {host.governor or 'not told'}"],
        ["Python, rustc", f"{run.python}, {run.rustc or 'none'}"],
        ["data", f"SF{run.data.scale_factor}, {run.data.bytes / 1e6:.0f} MB, fingerprint {run.data.fingerprint[:16]}"],
        ["query set", f"{report.settings.query_set}, {run.query_set_hash[:16]}"],
        ["schedule", f"seed {report.settings.seed}, {run.schedule_hash[:16]}"],
        ["packages", ", ".join(f"{name} {version}" for name, version in run.packages.items())],
    ]
    lines = [*table(["what", "value"], facts), ""]
    arms = [
        [
            arm.name,
            (arm.fingerprint or "no engine of ours")[:16],
            arm.wheel or "none",
            (arm.wheel_sha256 or "none")[:16],
        ]
        for arm in report.arms
    ]
    lines += [*table(["arm", "engine fingerprint", "wheel", "wheel sha256"], arms), ""]
    for entry in run.config_differences:
        values = ", ".join(
            f"{arm}: {value if value is not None else 'unknown key'}" for arm, value in entry.values.items()
        )
        reasons = "; ".join(f"{arm}: {reason}" for arm, reason in entry.reasons.items()) or "no reason declared"
        lines.append(f"- declared difference {cell(entry.key)} ({cell(values)}): {cell(reasons)}")
    yield from details("<b>Provenance</b>", lines)


def method_lines(report: Report) -> Iterator[str]:
    """The method, and the instrument's own error rates."""
    lines = list(
        table(["method", "figure", "meaning"], [[fact.name, fact.value, fact.meaning] for fact in report.methods])
    )
    lines.append("")
    if report.calibration is None:
        lines.append(f"Calibration: none, {report.absent['calibration']}.")
    else:
        rows = [
            [
                entry.scenario,
                entry.what,
                words.percent(entry.false_flag_rate, 1),
                words.percent(entry.power, 0) if entry.power is not None else "nothing changed",
                words.percent(entry.interval_coverage, 1),
                words.percent(entry.suite_half_width, 1),
            ]
            for entry in report.calibration.rows
        ]
        head = [
            "scenario",
            "what",
            "suites with a false flag",
            "changes found",
            "interval coverage",
            "suite half-width",
        ]
        lines.append(f"Calibration on {report.calibration.suites} simulated suites per scenario:")
        lines += ["", *table(head, rows)]
    yield from details("<b>Methods and calibration</b>", lines)
