"""The Markdown form fits a pull-request comment, whatever the run holds."""

from __future__ import annotations

import pytest

from report_helpers import RUN_SMALL
from reports.build import make_report
from reports.markdown import MAX_CHARACTERS, render_markdown
from reports.markdown_tools import cell, code, table
from reports.model import Report


@pytest.fixture(scope="module")
def report() -> Report:
    return make_report(RUN_SMALL)


def test_size_limit(report):
    assert len(render_markdown(report)) <= MAX_CHARACTERS <= 65_000


@pytest.mark.parametrize("limit", [25_000, 12_000, 6_000])
def test_what_is_left_out_for_length_is_named(report, limit):
    text = render_markdown(report, limit=limit)
    assert len(text) <= limit
    assert "Left out for length:" in text
    assert report.headline.sentences[0] in text


def test_a_limit_below_the_verdict_is_an_error(report):
    with pytest.raises(ValueError, match="verdict alone"):
        render_markdown(report, limit=100)


def test_a_huge_run_still_fits(report):
    rows = [row.model_copy(update={"query": f"q{number:03d}"}) for number in range(150) for row in report.queries]
    text = render_markdown(report.model_copy(update={"queries": rows}))
    assert len(text) <= MAX_CHARACTERS
    assert "Left out for length" in text


@pytest.mark.parametrize("text", ["a | b", "<script>", "line\nbreak", "`tick`", "see #12 by @name", "*bold* _under_"])
def test_cells_cannot_break_out(text):
    shown = cell(text)
    assert "\n" not in shown
    assert "<" not in shown.replace("&lt;", "")
    for character in "|`#@*_":
        assert shown.count(character) == shown.count("\\" + character)


def test_every_details_block_is_closed(report):
    text = render_markdown(report)
    assert text.count("<details>") == text.count("</details>")


def test_table_aligns_figures_right():
    lines = list(table(["a", "b"], [["x", "1"]], right=(1,)))
    assert lines == ["| a | b |", "|---|---:|", "| x | 1 |"]


def test_fence_is_longer_than_any_in_the_text():
    assert next(iter(code("```\ninner\n```"))) == "````"
