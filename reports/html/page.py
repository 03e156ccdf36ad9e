"""Fill the templates. What they need beyond the report itself is computed here, so that templates stay markup."""

from __future__ import annotations

import json
import statistics
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from reports import plots, plots_curves, words
from reports.blocks import block_tables
from reports.datafiles import read_toml
from reports.model import BLOCK_NAMES, ArmInfo, ArmSummary, Comparison, GapRow, Report
from reports.plans import short_words, stages_svg
from reports.shortest import ScriptDiff
from reports.tables import BASES
from reports.upstream import upstream_differences

TEMPLATES = Path(__file__).parent / "templates"
GLOSSARY_FILE = Path(__file__).parents[1] / "glossary.toml"

MAX_BYTES = 2_000_000
"""Size limit of the page: it must open at once on a phone and fit into a repository."""

CONTENTS = (
    ("verdict", "Verdict"),
    ("gates", "Gates"),
    ("forest", "Time"),
    ("queries", "Queries"),
    ("usage", "Cost"),
    ("plans", "Plans"),
    ("promises", "What you get"),
    ("conformance", "Conformance"),
    ("upstream", "Upstream tests"),
    ("api", "API"),
    ("packaging", "Packaging"),
    ("decision", "Decision"),
    ("provenance", "Provenance"),
    ("methods", "Methods"),
    ("glossary", "Glossary"),
)

CHECK_KINDS = ("pass", "partial", "fail", "xfail", "crash", "timeout", "blocked")

ROLES = {
    "shared": "the package that stock users import",
    "mirror": "a copy under its own name, compared with stock",
    "own": "a package of its own beside stock",
}


class Card(NamedTuple):
    """Headline figures of one arm."""

    arm: ArmInfo
    figures: ArmSummary
    native: Comparison | None
    why: str


class FirstSteady(NamedTuple):
    """First against steady executions of one arm, in ms, over the queries that count."""

    arm: str
    first: float | None
    steady: float | None
    ratio: float | None
    words: str


def render_html(report: Report) -> str:
    """The whole report as one HTML page."""
    from markupsafe import Markup

    page = _environment().get_template("page.html.j2")
    # Only text of this package is marked safe: style, script and our own plots. `<` is escaped inside the JSON.
    plots_safe = {name: Markup(svg) for name, svg in _plots(report).items()}  # noqa: S704 - our own SVG
    style, script = (Markup((TEMPLATES / name).read_text("utf-8")) for name in ("style.css", "script.js"))  # noqa: S704
    decision = json.dumps(_decision_data(report)).replace("<", "\\u003c")
    strategies = [arm.name for arm in report.arms if arm.kind in ("strategy", "external")]
    text: str = page.render(
        r=report,
        w=words,
        style=style,
        script=script,
        decision_json=Markup(decision),  # noqa: S704 - escaped above
        contents=CONTENTS,
        failing=_failing(report),
        cards=_cards(report, strategies),
        strategies=list(dict.fromkeys(gate.strategy for gate in report.decision.gates)),
        gates=_gates(report),
        suite_plot=plots_safe["suite"],
        query_plots=[(name, plots_safe[name]) for name in strategies if name in plots_safe],
        medians_plot=plots_safe.get("medians", ""),
        lag_plot=plots_safe.get("lag", ""),
        tax_plot=plots_safe.get("tax", ""),
        scaling_plot=plots_safe.get("scaling", ""),
        memory_plots=[
            (entry.arm, plots_safe[f"memory-{entry.arm}"])
            for entry in report.memory or []
            if f"memory-{entry.arm}" in plots_safe
        ],
        comparisons=_totals_order(report),
        statuses=sorted({words.cell_status(cell) for row in report.queries for cell in row.cells.values()}),
        columns=_columns(report),
        bases=_bases(report),
        lifecycle=_lifecycle(report),
        check_kinds=CHECK_KINDS,
        blocks=block_tables(report),
        upstream_differences=upstream_differences(report.upstream_tests),
        plans=_plans(report),
        missing_blocks=[name for name in BLOCK_NAMES if name in report.absent and name != "scaling"],
        roles=ROLES,
        script_words=script_words,
        lag_defaults=_lag_defaults(report),
        provenance=_provenance(report),
        glossary=glossary(),
    )
    return text


@lru_cache(maxsize=1)
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@lru_cache(maxsize=1)
def glossary() -> dict[str, str]:
    """Terms and their meanings."""
    terms: dict[str, str] = read_toml(GLOSSARY_FILE, "glossary")["terms"]
    return dict(sorted(terms.items(), key=lambda item: item[0].lower()))


def _plans(report: Report) -> list[dict[str, Any]]:
    """Plans with their pictures."""
    from markupsafe import Markup

    return [
        {
            "query": entry.query,
            "groups": [
                {
                    "arms": group.arms,
                    "words": short_words(group),
                    "text": group.text,
                    "svg": Markup(stages_svg(group, entry.query)),  # noqa: S704 - our own SVG, texts escaped in it
                }
                for group in entry.groups
            ],
        }
        for entry in report.plans or []
    ]


def _plots(report: Report) -> dict[str, str]:
    made = {"suite": plots.suite_forest(report)}
    made.update(plots.query_forests(report, "native"))
    made.update({f"memory-{arm}": plot for arm, plot in plots_curves.memories(report).items()})
    optional = {
        "medians": plots.medians(report),
        "lag": plots.release_timeline(report),
        "tax": plots_curves.tax(report),
        "scaling": plots_curves.scaling(report),
    }
    return made | {name: plot for name, plot in optional.items() if plot}


def _decision_data(report: Report) -> dict[str, Any]:
    """What the decision panel needs, with fewer draws so that a slider answers at once."""
    axes = []
    for axis in report.decision.axes:
        order = [option.option for option in axis.options]
        criteria = [
            {
                "id": entry.id,
                "scores": [
                    {"value": score.value, "low": score.low, "high": score.high}
                    for score in sorted(entry.scores, key=lambda score: order.index(score.option))
                ],
            }
            for entry in axis.criteria
        ]
        options = [
            {"title": option.title, "excluded": option.excluded is not None, "open": option.gates == "open"}
            for option in axis.options
        ]
        axes.append({"axis": axis.axis, "options": options, "criteria": criteria})
    given = report.decision
    return {
        "axes": axes,
        "threshold": given.threshold,
        "concentration": given.concentration,
        "draws": min(given.draws, 3000),
        "seed": given.seed,
    }


def _totals_order(report: Report) -> list[Comparison]:
    """The comparisons that matter first, the others after them."""
    main = words.main_comparisons(report)
    return [*main, *(entry for entry in report.comparisons if entry not in main)]


def _failing(report: Report) -> list[GapRow]:
    found = {(gap.arm, gap.query): gap for entry in report.comparisons for gap in entry.newly_failing}
    return list(found.values())


def _cards(report: Report, strategies: list[str]) -> list[Card]:
    shown = strategies or [arm.name for arm in report.arms if arm.kind != "aa"]
    cards = []
    for arm in report.arms:
        if arm.name in shown:
            figures = report.summary.arms[arm.name]
            cards.append(Card(arm, figures, report.comparison(arm.name, "native"), figures.reason or "not comparable"))
    return cards


def _gates(report: Report) -> list[tuple[str, list[Any]]]:
    grouped: dict[str, list[Any]] = {}
    for gate in report.decision.gates:
        grouped.setdefault(gate.title, []).append(gate)
    return list(grouped.items())


def _bases(report: Report) -> list[str]:
    """Bases that have a column of their own in the per-query table."""
    return [base for base in BASES if any(entry.base == base for entry in report.comparisons)]


def _columns(report: Report) -> list[tuple[str, bool]]:
    bases = [(f"against {base}", False) for base in _bases(report)]
    tail = [
        ("n", True),
        ("validation", False),
        ("reach", False),
        ("remote tasks", True),
        ("stages", True),
        ("p95", True),
        ("planning", True),
        ("execution", True),
        ("first", True),
        ("rows", True),
        ("why", False),
    ]
    return [("query", False), ("arm", False), ("status", False), ("median", True), *bases, *tail]


def _lifecycle(report: Report) -> list[FirstSteady]:
    rows = []
    for arm in report.arms:
        cells = [row.cells[arm.name] for row in report.queries if row.cells[arm.name].counts]
        both = [
            (cell.first_ms, cell.median_ms)
            for cell in cells
            if cell.first_ms is not None and cell.median_ms is not None
        ]
        first, steady = sum(pair[0] for pair in both), sum(pair[1] for pair in both)
        shown = f"{len(both)} of {len(report.queries)}"
        if not both:
            rows.append(FirstSteady(arm.name, None, None, None, f"{shown}: no first execution with a time"))
        else:
            rows.append(FirstSteady(arm.name, first, steady, first / steady, shown))
    return rows


def script_words(script: ScriptDiff | None) -> str:
    """What the shortest script costs, and whether it ran."""
    if script is None:
        return "no script for this strategy"
    words_ = f"+{script.added} -{script.removed} lines against local"
    if not script.ran:
        return f"{words_}; not executed in this run"
    if script.same_answer:
        return f"{words_}; ran and printed the local answer"
    return f"{words_}; did NOT print the local answer"


def _lag_defaults(report: Report) -> dict[str, int]:
    rows = report.release_lag.rows if report.release_lag else []
    engine = [row.engine_days for row in rows if row.engine_days is not None]
    python = [row.python_days for row in rows if row.python_days is not None]
    return {
        "engine": int(statistics.median(engine)) if engine else 0,
        "python": int(statistics.median(python)) if python else 0,
    }


def _provenance(report: Report) -> list[tuple[str, str]]:
    run, host, settings = report.provenance, report.provenance.host, report.settings
    dirty = " with uncommitted changes" if run.source.dirty else ""
    equal = {True: "yes", False: "NO: not comparable", None: "no arm has the engine"}[run.fingerprints_equal]
    memory = f"{host.memory_bytes / 2**30:.1f} GiB, swap {host.swap_bytes / 2**30:.1f} GiB"
    files = f"{run.data.bytes / 1e6:,.0f} MB in {sum(run.data.files.values())} files"
    untold = "the system does not tell"
    return [
        ("Run", f"{run.run_id}, {run.status}"),
        ("Time", f"{run.created_at} to {run.finished_at or 'not finished'}"),
        ("Stopped because", run.stopped_because or "all rounds were run"),
        ("Resumed", ", ".join(run.resumed_at) or "never"),
        ("Command", " ".join(run.command_line)),
        ("Source", f"{run.source.git_sha or 'no git checkout'}{dirty}"),
        ("Engine builds equal", equal),
        ("Machine", f"{host.cpu_model}, {host.cores} cores, {memory}"),
        ("Load at start", f"{host.load_1m:.2f}"),
        ("System", f"{host.system}, kernel {host.kernel}, {host.libc}"),
        ("Governor", host.governor or untold),
        ("Temperature", untold if host.temperature_c is None else f"{host.temperature_c:.0f} °C"),
        ("Machine id", f"{host.host_id} (a hash)"),
        ("Python, rustc", f"{run.python}, {run.rustc or 'no rustc known'}"),
        ("Packages", ", ".join(f"{name} {version}" for name, version in run.packages.items())),
        ("Data", f"SF{run.data.scale_factor}, {files}, fingerprint {run.data.fingerprint}"),
        ("Queries", f"{settings.query_set} ({settings.form}), hash {run.query_set_hash}"),
        ("Schedule", f"seed {settings.seed}, interleaved by {settings.interleave}, hash {run.schedule_hash}"),
        ("Configuration", ", ".join(f"{key}={value}" for key, value in settings.config.items()) or "defaults"),
        ("Workers", f"{settings.workers} processes per distributed arm"),
    ]
