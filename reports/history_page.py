"""The history as a page: what the newest nights say, the ratios over time, and every night with its machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from harness.rundir import disk_errors, write_atomic
from reports import plots, words
from reports.history import Judgement, Night, judge, series
from reports.html.page import TEMPLATES
from reports.markdown_tools import cell, table

SHOWN_NIGHTS = 60
"""Nights in a table; the plot and the history have all of them."""


def write_pages(nights: Sequence[Night], folder: Path) -> dict[str, Path]:
    """Write `history.html` and `history.md`; returns the paths by suffix.

    Raises:
        HarnessFault: the folder cannot be written.
    """
    texts = {"html": render_history_html(nights), "md": render_history_markdown(nights)}
    written = {}
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for suffix, text in texts.items():
            written[suffix] = folder / f"history.{suffix}"
            write_atomic(written[suffix], text)
    return written


def newest(nights: Sequence[Night]) -> list[tuple[Night, Judgement]]:
    """The newest night of every series with what it says."""
    return [(found[-1], judge(nights, found[-1])) for found in series(nights).values()]


def judgement_lines(night: Night, found: Judgement) -> Iterator[str]:
    """What one night says, as sentences: alarms first, then candidates, then what it was held against."""
    for entry in sorted(found.findings, key=lambda entry: (entry.state != "confirmed", entry.kind != "failing")):
        where = entry.query or "the suite"
        mark = {"failing": "✖ newly failing", "passing": "✔ passes again", "slower": "✖ slower", "faster": "✔ faster"}
        word = mark[entry.kind] if entry.state == "confirmed" else f"? perhaps {entry.kind}"
        yield f"{word}: {entry.arm}, {where}: {entry.words}."
    if found.base is None:
        yield f"No comparable night before {night.run_id}: nothing is compared."
    else:
        drift = "" if found.drift is None else f"; the stock arm took {found.drift:.3f} of its time then"
        yield f"Held against {found.timed_base or found.base}{drift}."
        if found.untimed:
            yield f"Only failures are compared, with {found.base}: {found.untimed}."
        elif found.timed_base != found.base:
            yield f"Failures are held against {found.base}, which has too few rounds for its times."
        if not found.findings:
            yield "No query newly fails." if found.untimed else "No change that the method can show."
    for reason in found.skipped:
        yield f"Passed over, not comparable: {reason}."


def _rows(nights: Sequence[Night], arms: Sequence[str]) -> Iterator[list[str]]:
    for night in reversed(nights[-SHOWN_NIGHTS:]):
        machine = night.machine
        name = f"{machine.label or machine.host_id}, {machine.cpu_model}, {machine.cores} cores"
        sha = (night.git_sha or "no git")[:12] + (" with changes" if night.dirty else "")
        yield [night.at[:16].replace("T", " "), night.run_id, sha, *(_ratio(night, arm) for arm in arms), name]


def _ratio(night: Night, arm: str) -> str:
    entry = night.arms.get(arm)
    if entry is None:
        return "not in this run"
    if entry.geomean_vs_native is None:
        return words.BLANK if arm != "native" else "the base"
    found = entry.geomean_vs_native
    blanks = f", {len(entry.blanks)} do not count" if entry.blanks else ""
    if not night.timed:
        return f"{found.value:.3f} in {night.rounds} round{'s' if night.rounds != 1 else ''}, no interval{blanks}"
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]{blanks}"


def _arms(nights: Sequence[Night]) -> list[str]:
    return list(
        dict.fromkeys(
            name for night in nights for name, arm in night.arms.items() if arm.kind in ("strategy", "external")
        )
    )


def _synthetic(nights: Sequence[Night]) -> bool:
    return any(night.synthetic for night in nights)


def render_history_markdown(nights: Sequence[Night]) -> str:
    """The history as Markdown; a pure function of it."""
    return "\n".join(_markdown(nights)) + "\n"


def _markdown(nights: Sequence[Night]) -> Iterator[str]:
    yield "## Nightly history\n"
    if _synthetic(nights):
        yield f"> **{words.SYNTHETIC}**\n"
    if not nights:
        yield "No night yet."
    for night, found in newest(nights):
        yield f"### SF{night.scale_factor}, {night.run_id}\n"
        yield from (f"- {cell(line)}" for line in judgement_lines(night, found))
        yield ""
        own = series(nights)[night.scale_factor]
        arms = _arms(own)
        head = ["night", "run", "commit", *(f"{arm} / native" for arm in arms), "machine"]
        yield from table(head, list(_rows(own, arms)))
        yield ""


def render_history_html(nights: Sequence[Night]) -> str:
    """The history as one self-contained HTML page; a pure function of it."""
    style = (TEMPLATES / "style.css").read_text("utf-8")
    body = "\n".join(_html(nights))
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<link rel="icon" href="data:,">\n<title>Nightly history</title>\n<style>\n{style}\n</style>\n</head>\n'
        f"<body>\n<main>\n<h1>Nightly history</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _html(nights: Sequence[Night]) -> Iterator[str]:
    if _synthetic(nights):
        yield f'<p class="banner">{escape(words.SYNTHETIC)}</p>'
    if not nights:
        yield "<p>No night yet.</p>"
    for night, found in newest(nights):
        own = series(nights)[night.scale_factor]
        arms = _arms(own)
        yield f"<section><h2>SF{escape(night.scale_factor)}</h2>"
        yield f"<h3>Newest night: {escape(night.run_id)}</h3><ul class='verdict'>"
        yield from (f"<li>{escape(line)}</li>" for line in judgement_lines(night, found))
        yield "</ul>"
        plot = plots.history(own, arms)
        if plot:
            yield (
                f"<figure>{plot}<figcaption>Geometric mean time over native, night by night, with 95 % intervals. A "
                "vertical line: the nights on its two sides are not comparable (another machine, data or setting), so "
                "no line joins them.</figcaption></figure>"
            )
        yield '<div class="scroll" role="region" aria-label="Nights" tabindex="0"><table><thead><tr>'
        head = ["Night", "Run", "Commit", *(f"{arm} / native" for arm in arms), "Machine"]
        yield "".join(f"<th>{escape(name)}</th>" for name in head) + "</tr></thead><tbody>"
        for row in _rows(own, arms):
            yield "<tr>" + "".join(f"<td>{escape(entry)}</td>" for entry in row) + "</tr>"
        yield "</tbody></table></div>"
        if len(own) > SHOWN_NIGHTS:
            yield f"<p class='small'>The newest {SHOWN_NIGHTS} of {len(own)} nights; the history has all.</p>"
        yield "</section>"
