"""Upstream's own suite in a report: figures against stock, every test that differs, a blank that says its command."""

from __future__ import annotations

import json

import pytest

from harness.errors import HarnessFault
from report_helpers import RUN_SMALL, make_manifest, make_samples, make_upstream, write_run
from reports.build import make_report
from reports.html import render_html
from reports.markdown import render_markdown
from reports.model import Report
from reports.text import render_text
from reports.upstream import MAX_REASON


@pytest.fixture(scope="module")
def report() -> Report:
    return make_report(RUN_SMALL)


def test_figures_per_arm_are_in_the_summary(report):
    summary = json.loads(report.to_json())["summary"]["upstream_tests"]
    assert list(summary) == ["inline", "external", "decorator"]
    assert summary["inline"] | {"contexts": 0} == {
        "passed": 3, "failed": 0, "neither": 1, "differs": 0, "stock_passed": 3, "kept": 3, "remote": 3, "inherent": 0,
        "unfinished": 0, "unexplained": 0, "contexts": 0,
    }  # fmt: skip
    assert (summary["external"]["passed"], summary["external"]["failed"]) == (2, 1), "a crash is a failure"


def test_only_what_differs_is_kept_and_the_checkout_is_named(report):
    suite = report.upstream_tests
    assert suite.commit == make_upstream()["checkout"]["commit"]
    assert [(entry.arm, entry.test.rpartition("::")[2]) for entry in suite.differing] == [
        ("decorator", "test_avro"),
        ("external", "test_panics"),
    ]
    assert [entry.explained is None for entry in suite.differing] == [False, True]


def test_every_form_names_commit_figures_and_differences(report):
    page, markdown, text = render_html(report), render_markdown(report), render_text(report)
    for form in (page, markdown):
        assert report.upstream_tests.commit in form
        assert "inherent: the wire form knows no Avro" in form
        assert "not explained" in form
    assert "test_panics" in page
    assert "inline: keeps 3 of 3 of upstream's tests that stock passes; 0 differ" in text
    assert "keeps 2 of 3 of upstream's own tests" in page, "the first screen has the figure"


def test_a_blank_says_which_command_fills_it(tmp_path):
    run = write_run(tmp_path / "run", make_samples(["local", "inline"]), make_manifest(["local", "inline"]))
    bare = make_report(run)
    assert bare.summary.upstream_tests is None
    command = "df-strategies upstream-tests --checkout DIR --out runs/synthetic-small"
    assert bare.fills["upstream_tests"].startswith(command)
    assert f"<code>{command}" in render_html(bare)
    assert f"`{command}" in render_markdown(bare)
    assert "upstream's own tests: none" in render_text(bare)


def test_commands_that_fill_a_blank_exist():
    """Every word after `df-strategies` is a command, and every option is one of that command."""
    from harness.cli import cli
    from reports.fills import fills
    from reports.inputs import EXTRA_FILES
    from reports.model import BLOCK_NAMES

    commands = fills("RUN", (*EXTRA_FILES, *BLOCK_NAMES))
    assert set(EXTRA_FILES) <= set(commands)
    for line in commands.values():
        for part in line.split(" && "):
            program, name, *words = part.split()
            command = cli.get_command(None, name)
            assert program == "df-strategies"
            assert command is not None, name
            known = {option for parameter in command.params for option in parameter.opts}
            assert {word for word in words if word.startswith("--")} <= known, part


def test_long_reasons_are_cut_and_a_damaged_file_is_one_message():
    given = make_upstream()
    given["tests"][1]["arms"]["decorator"]["reason"] = "x" * 5000
    entry = make_report(RUN_SMALL, {"upstream_tests": given}).upstream_tests.differing[0]
    assert len(entry.reason) == MAX_REASON
    with pytest.raises(HarnessFault, match=r"upstream_tests\.json holds no outcomes .*checkout"):
        make_report(RUN_SMALL, {"upstream_tests": {"tests": []}})
    with pytest.raises(HarnessFault, match="no object"):
        make_report(RUN_SMALL, {"upstream_tests": ["nothing"]})
