"""Results of other parts of the project as tables: what a block says per arm, and findings of generated queries.

A block is any JSON object. Its `summary`, or else its `arms`, or else all of it is read as figures per arm; a block of
another form is left to report.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from reports.model import ArmInfo, Report

SHOWN_JSON = 20_000
"""Characters up to which a block is also shown as it is; more would only slow the page down."""

SHOWN_FINDINGS = 30
"""Findings listed; report.json has them all."""

TITLES = {
    "generated_queries": "Generated queries, every answer beside that of one node",
    "surface_coverage": "Share of public methods that give the local answer",
    "boundary": "Cost of the boundary",
    "scaling": "Scaling",
    "peers": "Peers",
    "faults": "Injected faults",
}


class BlockTable(NamedTuple):
    """One block as a table, a row per arm; `note` says what stands behind the figures."""

    name: str
    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str
    findings: list[dict[str, str]]
    raw: str | None


def figures_of(block: Any) -> Any:
    """What `summary` carries of a block: its `summary`, or its figures per arm, or all of it."""
    if isinstance(block, Mapping):
        return next((block[key] for key in ("summary", "arms") if key in block), block)
    return block


def trimmed(name: str, block: Any) -> Any:
    """The block as a report holds it: the tables behind generated queries are left to the run directory."""
    if name != "generated_queries" or not isinstance(block, Mapping):
        return block
    return {**block, "findings": [_without_tables(finding) for finding in block.get("findings", [])]}


def _without_tables(finding: Mapping[str, Any]) -> dict[str, Any]:
    case = {key: value for key, value in (finding.get("case") or {}).items() if key != "tables"}
    return {**finding, "case": case}


def block_tables(report: Report) -> list[BlockTable]:
    """All blocks of a report, in their order."""
    return [_table(name, block) for name, block in report.blocks.items()]


def _table(name: str, block: Any) -> BlockTable:
    figures = figures_of(block)
    columns, rows = _grid(figures)
    raw = json.dumps(block, indent=1, ensure_ascii=False)
    return BlockTable(
        name=name,
        title=TITLES.get(name, name.replace("_", " ").capitalize()),
        columns=columns,
        rows=rows,
        note=_note(block),
        findings=list(_findings(block)),
        raw=raw if len(raw) <= SHOWN_JSON else None,
    )


def _grid(figures: Any) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of `{arm: figure}` or `{arm: {name: figure}}`; nothing for another form."""
    if not isinstance(figures, Mapping) or not figures:
        return [], []
    if all(isinstance(entry, (int, float)) and not isinstance(entry, bool) for entry in figures.values()):
        return ["share"], [[arm, _share(value)] for arm, value in figures.items()]
    if not all(isinstance(entry, Mapping) for entry in figures.values()):
        return [], []
    names = list(dict.fromkeys(name for entry in figures.values() for name in entry if _plain(entry[name])))
    return [name.replace("_", " ") for name in names], [
        [arm, *(_text(entry[name]) if name in entry else "not told" for name in names)]
        for arm, entry in figures.items()
    ]


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _share(value: float) -> str:
    return f"{value:.1%}" if 0 <= value <= 1 else _text(value)


def _note(block: Any) -> str:
    if not isinstance(block, Mapping):
        return ""
    settings = block.get("settings")
    parts = []
    if isinstance(settings, Mapping) and "seed" in settings:
        parts.append(f"seed {settings['seed']}")
    if block.get("stopped_because"):
        parts.append(str(block["stopped_because"]))
    return "; ".join(parts)


def _findings(block: Any) -> Iterator[dict[str, str]]:
    found: Sequence[Any] = block.get("findings", []) if isinstance(block, Mapping) else []
    for entry in found[:SHOWN_FINDINGS]:
        if isinstance(entry, Mapping) and "signature" in entry:
            yield {
                "arm": str(entry.get("arm", "")),
                "what": str(entry["signature"]),
                "reason": str(entry.get("reason", "")),
                "seed": str(entry.get("seed", "")),
                "sql": str((entry.get("case") or {}).get("sql", "")),
            }


def other_builds(extras: Mapping[str, Any], arms: Sequence[ArmInfo]) -> list[str]:
    """Sentences about blocks that were made with other builds than those that were timed."""
    prints = {arm.name: arm.fingerprint for arm in arms}
    wheels = {arm.name: arm.wheel_sha256 for arm in arms}
    told = {
        "The generated queries ran": (extras.get("generated_queries"), "engine", prints),
        "The conformance checks ran": (extras.get("conformance"), "wheels", wheels),
    }
    found = []
    for what, (block, key, own) in told.items():
        given = block.get(key) if isinstance(block, Mapping) else None
        if not isinstance(given, Mapping):
            continue
        other = [arm for arm, mark in given.items() if mark and own.get(arm) and own[arm] != mark]
        if other:
            found.append(f"{what} on other builds of {', '.join(other)} than those that were timed.")
    return found
