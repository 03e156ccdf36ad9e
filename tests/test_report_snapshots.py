"""Every form is a pure function of the report: same run, same text. `pytest --snapshot-update` accepts a change."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from report_helpers import RUN_SMALL
from reports.build import make_report
from reports.html import render_html
from reports.madr import render_madr
from reports.markdown import render_markdown
from reports.model import Report
from reports.text import render_text


def extension(suffix: str) -> type[SingleFileSnapshotExtension]:
    class Text(SingleFileSnapshotExtension):
        _write_mode = WriteMode.TEXT
        file_extension = suffix

    return Text


@pytest.fixture(scope="module")
def report() -> Report:
    return make_report(RUN_SMALL)


def rounded(value):
    """Six significant digits: the last bits of a logarithm differ between processors."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def test_json(report: Report, snapshot: SnapshotAssertion):
    text = json.dumps(rounded(json.loads(report.to_json())), indent=1, ensure_ascii=False)
    assert text == snapshot(extension_class=extension("json"))


@pytest.mark.parametrize(("suffix", "render"), [("txt", render_text), ("md", render_markdown)])
def test_text_forms(report: Report, suffix, render, snapshot: SnapshotAssertion):
    assert render(report) == snapshot(extension_class=extension(suffix))


def test_decision_record(report: Report, snapshot: SnapshotAssertion):
    assert render_madr(report) == snapshot(extension_class=extension("md"))


def test_html_without_plots_style_and_script(report: Report, snapshot: SnapshotAssertion):
    page = re.sub(r"<(svg|style|script)\b.*?</\1>", r"<\1/>", render_html(report), flags=re.DOTALL)
    # Sort keys and the like carry full floats.
    page = re.sub(r"\d+\.\d{7,}", lambda match: f"{float(match.group()):.6g}", page)
    assert page == snapshot(extension_class=extension("html"))


def test_forms_are_the_same_again(report: Report):
    again = Report.from_json(report.to_json())
    for render in (render_text, render_markdown, render_html, render_madr):
        assert render(report) == render(again), f"{render.__name__} depends on more than the report"


def test_written_files_are_those_forms(tmp_path: Path, report: Report):
    from reports.build import write_report

    paths = write_report(report, tmp_path)
    assert {path.name for path in paths.values()} == {"report.json", "report.txt", "report.md", "report.html"}
    assert paths["txt"].read_text(encoding="utf-8") == render_text(report)
    assert not list(tmp_path.glob("*.part"))
