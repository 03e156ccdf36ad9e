"""Publishing, pull-request comments, JUnit and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from harness.cli import main
from harness.errors import EXIT_NOT_COMPARABLE, EXIT_OK, EXIT_REGRESSION, EXIT_USAGE, UserError
from report_helpers import RUN_SMALL
from reports.build import make_report, with_criteria
from reports.criteria import CRITERIA_FILE, load_criteria
from reports.junit import render_junit
from reports.madr import render_madr
from reports.markdown import MAX_CHARACTERS
from reports.model import Report
from reports.outcome import job_outcome
from reports.publish import MAX_BYTES, publish, unpublishable
from reports.terminal import render_plot

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def report() -> Report:
    return make_report(RUN_SMALL)


def whole(report: Report) -> Report:
    """The report as if its samples had been measured, complete and right."""
    figures = {
        name: entry.model_copy(update={"queries": 22, "validated": 22}) for name, entry in report.summary.arms.items()
    }
    return report.model_copy(
        update={
            "synthetic": False,
            "summary": report.summary.model_copy(update={"arms": figures}),
            "settings": report.settings.model_copy(update={"queries": [f"q{n:02d}" for n in range(1, 23)]}),
        }
    )


def test_a_whole_report_is_published_in_all_forms(report: Report, tmp_path: Path):
    fit = whole(report)
    assert unpublishable(fit) == []
    written = publish(fit, tmp_path)
    names = {"latest.json", "latest.html", "latest.md", "latest.txt", "decision.md"}
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in written.values()} == names
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= MAX_BYTES == 2_000_000
    assert Report.from_json((tmp_path / "latest.json").read_text()) == fit
    assert publish(fit, tmp_path, name="sf10")["decision"].name == "sf10-decision.md"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"synthetic": True}, "its samples are invented"),
        ({"settings": {"rounds_finished": 4}}, "4 finished rounds of the 5"),
        ({"settings": {"queries": ["q01"]}}, "1 of 22 queries"),
        ({"provenance": {"status": "interrupted"}}, "the run is interrupted"),
        ({"provenance": {"fingerprints_equal": False}}, "different builds"),
        ({"absent": {"packaging": "not asked for"}}, "no packaging (not asked for; see `df-strategies collect`)"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_what_is_not_fit_is_refused(report: Report, tmp_path: Path, what: dict, said: str):
    fit = whole(report)
    update = {
        key: value if not isinstance(value, dict) or key == "absent" else getattr(fit, key).model_copy(update=value)
        for key, value in what.items()
    }
    unfit = fit.model_copy(update=update)
    with pytest.raises(UserError, match="not fit to be published") as caught:
        publish(unfit, tmp_path)
    assert said in str(caught.value)
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_force_is_said_in_every_form(report: Report, tmp_path: Path):
    written = publish(report, tmp_path, force=True)
    for suffix, path in written.items():
        text = " ".join(path.read_text().split())
        assert "Published by force although" in text, suffix
        assert "its samples are invented" in text, suffix


def test_unvalidated_arms_and_missing_arms_are_named(report: Report):
    reasons = " / ".join(unpublishable(report))
    assert "of external are validated" in reasons
    arms = {name: entry for name, entry in report.summary.arms.items() if name != "native"}
    less = report.model_copy(update={"summary": report.summary.model_copy(update={"arms": arms})})
    assert "it lacks native" in unpublishable(less)


def test_too_large_is_refused(report: Report, tmp_path: Path):
    fat = whole(report).model_copy(update={"blocks": {"faults": {"text": "x" * MAX_BYTES}}})
    with pytest.raises(UserError, match="may be published"):
        publish(fat, tmp_path)


def test_command_refuses_and_forces(capsys: Capture, tmp_path: Path):
    words = ["report", str(RUN_SMALL), "--publish", "--to", str(tmp_path)]
    assert main(words) == EXIT_USAGE
    assert "Error: run synthetic-small is not fit to be published" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert main([*words, "--force"]) == EXIT_OK
    assert (tmp_path / "latest.html").stat().st_size > 10_000
    assert main(["report", str(RUN_SMALL), "--force"]) == EXIT_USAGE


def test_comment_fits_and_carries_its_marker(capsys: Capture):
    code = main(["report", str(RUN_SMALL), "--pr-comment"])
    text = capsys.readouterr().out
    assert code == EXIT_REGRESSION, "external answers wrongly"
    assert text.startswith("<!-- datafusion-strategies -->\n## ")
    assert len(text) <= MAX_CHARACTERS == 65_000


def test_exit_codes(report: Report):
    bad = job_outcome(report)
    assert bad.exit_code == EXIT_REGRESSION
    assert any(reason.startswith("external q03: wrong") for reason in bad.reasons)
    good = report.model_copy(
        update={
            "arms": [arm for arm in report.arms if arm.name in ("inline", "native")],
            "comparisons": [entry for entry in report.comparisons if (entry.new, entry.base) == ("inline", "native")],
            "decision": report.decision.model_copy(update={"gates": []}),
        }
    )
    assert (job_outcome(good).exit_code, job_outcome(good).reasons) == (EXIT_OK, [])
    assert job_outcome(good, base="local").exit_code == EXIT_NOT_COMPARABLE
    nothing = good.model_copy(update={"arms": [], "comparisons": []})
    assert job_outcome(nothing).exit_code == EXIT_NOT_COMPARABLE


def test_slower_than_the_base_is_a_regression_when_asked(report: Report):
    slower = job_outcome(report, base="native")
    assert any("decorator is slower than native on q18" in reason for reason in slower.reasons)
    assert not any("is slower than" in reason for reason in job_outcome(report).reasons)


def test_junit_counts_what_it_holds(report: Report, tmp_path: Path, capsys: Capture):
    root = ET.fromstring(render_junit(report))
    assert int(root.get("tests")) == len(list(root.iter("testcase")))
    assert int(root.get("failures")) == len(list(root.iter("failure"))) > 0
    suites = {suite.get("name"): suite for suite in root}
    assert set(suites) == set(report.summary.arms)
    wrong = suites["external"].find("testcase[@name='q03']")
    assert "revenue" in wrong.find("failure").get("message")
    crash = suites["external"].find("testcase[@name='q15']")
    assert "SIGSEGV" in crash.find("error").get("message")
    assert suites["inline"].find("testcase[@name='q02']").find("skipped") is not None, "not distributed"
    assert len(suites["inline"].find("testcase[@name='q01']")) == 0
    path = tmp_path / "made" / "junit.xml"
    assert main(["report", str(RUN_SMALL), "--junit", str(path)]) == EXIT_REGRESSION
    assert path.read_text() == render_junit(report)
    assert capsys.readouterr().out == ""


def test_unknown_base_is_one_message(capsys: Capture):
    assert main(["report", str(RUN_SMALL), "--pr-comment", "--base", "nobody"]) == EXIT_USAGE
    assert "--base nobody: the run has no such arm" in capsys.readouterr().err


def test_other_weights_give_another_decision(report: Report, tmp_path: Path, capsys: Capture):
    text = CRITERIA_FILE.read_text().replace("too_close_below = 0.80", "too_close_below = 0.51")
    mine = tmp_path / "mine.toml"
    mine.write_text(text)
    other = make_report(RUN_SMALL, criteria=load_criteria(mine))
    assert (report.decision.weights_file, other.decision.weights_file) == ("reports/criteria.toml", "mine.toml")
    assert other.decision.threshold == 0.51
    assert with_criteria(report, load_criteria(mine)) == other, "a report.json holds all that a decision needs"
    assert with_criteria(report, load_criteria()) == report
    out = tmp_path / "record.md"
    assert main(["decide", str(RUN_SMALL), "--weights", str(mine), "--out", str(out)]) == EXIT_OK
    assert out.read_text() == render_madr(other)
    assert "`mine.toml`" in out.read_text()
    published = publish(report, tmp_path / "published", force=True)["json"]
    capsys.readouterr()
    assert main(["decide", str(published), "--weights", str(mine), "--out", "-"]) == EXIT_OK
    record = capsys.readouterr().out
    assert record.startswith("---\nstatus: ")
    assert "`mine.toml`" in record


def test_wrong_weights_are_one_message(tmp_path: Path, capsys: Capture):
    bad = tmp_path / "bad.toml"
    bad.write_text(CRITERIA_FILE.read_text().replace("too_close_below = 0.80", "too_close_below = 80"))
    assert main(["decide", str(RUN_SMALL), "--weights", str(bad), "--out", "-"]) == EXIT_USAGE
    assert "`too_close_below`" in capsys.readouterr().err
    assert main(["decide", str(tmp_path / "none.json"), "--out", "-"]) == EXIT_USAGE
    assert "does not exist" in capsys.readouterr().err


def test_printed_weights_are_a_weights_file(tmp_path: Path, capsys: Capture):
    assert main(["decide", "--print-weights"]) == EXIT_OK
    path = tmp_path / "weights.toml"
    path.write_text(capsys.readouterr().out)
    assert load_criteria(path).criterion == load_criteria().criterion


def test_terminal_plot_has_every_row(report: Report, capsys: Capture):
    lines = render_plot(report).splitlines()
    assert max(map(len, lines[3:-2])) < 120
    assert sum(line.startswith("q18") for line in lines) == 3, "one per strategy"
    slow = next(line for line in lines if line.startswith("q18") and "✖" in line)
    assert slow.index("|") < slow.index("✖"), "slower stands right of 1.00"
    blank = [line for line in lines if line.startswith("q15") and line.endswith("n/a")]
    assert len(blank) == 1, "external crashed"
    assert main(["report", str(RUN_SMALL), "--plot"]) == EXIT_OK
    assert capsys.readouterr().out == render_plot(report)


def test_samples_as_tables(tmp_path: Path, capsys: Capture):
    import pandas as pd

    for name, read in (("s.csv", pd.read_csv), ("s.parquet", pd.read_parquet)):
        assert main(["report", str(RUN_SMALL), "--samples", str(tmp_path / name)]) == EXIT_OK
        frame = read(tmp_path / name)
        lines = (RUN_SMALL / "samples.jsonl").read_text().splitlines()
        assert len(frame) == len(lines)
        timed = [json.loads(line) for line in lines if '"timed"' in line]
        total = sum(entry.get("elapsed_ms") or 0 for entry in timed)
        assert frame[frame["phase"] == "timed"]["elapsed_ms"].sum() == pytest.approx(total)
    assert main(["report", str(RUN_SMALL), "--samples", str(tmp_path / "s.xls")]) == EXIT_USAGE


def test_notebook_api():
    import harness

    run = harness.load(RUN_SMALL)
    frame = run.frame()
    assert len(frame) == len(run.samples) > 100
    assert set(frame["arm"].cat.categories) == set(run.manifest.arms)
    crashed = frame[(frame["arm"] == "external") & (frame["query"] == "q15") & (frame["status"] == "crash")]
    assert crashed["elapsed_ms"].isna().all()
    assert len(crashed) > 0
    page = run._repr_html_()
    assert "<table" in page
    assert "synthetic-small" in page
    assert run.medians().loc["q18", "decorator"] > run.medians().loc["q18", "native"]
