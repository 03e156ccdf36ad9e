"""Curves: tax of the boundary, memory by reading, scaling over stored runs; each drawn from results or absent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main
from harness.errors import EXIT_NOT_COMPARABLE, EXIT_OK, EXIT_USAGE, NotComparable, UserError
from harness.model import Phase
from report_helpers import RUN_SMALL, SLOWDOWN, make_manifest, make_sample, make_samples, write_run
from reports.build import make_report
from reports.curves import boundary_of_checks, scaling
from reports.html import render_html
from reports.model import Report
from reports.plots_curves import memories
from reports.plots_curves import scaling as scaling_plot
from reports.plots_curves import tax as tax_plot

ARMS = ["local", "native", "inline", "decorator"]


@pytest.fixture(scope="module")
def report() -> Report:
    return make_report(RUN_SMALL)


def run_with(folder: Path, workers: int, **settings: object) -> Path:
    """The synthetic run as if it had other numbers of workers: times shrink with them, those of one node do not."""
    manifest = make_manifest(ARMS)
    changed = manifest.settings.model_copy(update={"workers": workers, **settings})
    manifest = manifest.model_copy(update={"settings": changed, "run_id": f"workers-{workers}"})
    samples = [
        sample
        if sample.arm == "local" or sample.elapsed_ms is None
        else sample.model_copy(update={"elapsed_ms": sample.elapsed_ms * 2 / workers})
        for sample in make_samples(ARMS)
    ]
    return write_run(folder / f"workers-{workers}", samples, manifest)


def test_tax_is_the_paired_ratio_of_queries_valid_in_both(report):
    found = report.boundary_tax
    assert (found.new, found.base) == ("decorator", "inline")
    assert {point.query for point in found.points} | set(found.left_out) == {row.query for row in report.queries}
    assert found.left_out == ["q02"], "it ran without workers"
    point = next(point for point in found.points if point.query == "q01")
    assert point.value == pytest.approx(SLOWDOWN["decorator"] / SLOWDOWN["inline"], rel=0.03)
    assert point.low <= point.value <= point.high
    assert (point.rows, point.n) == (4, 6)


def test_tax_is_absent_without_both_strategies(tmp_path):
    bare = make_report(
        write_run(tmp_path / "run", make_samples(["local", "inline"]), make_manifest(["local", "inline"]))
    )
    assert bare.boundary_tax is None
    assert tax_plot(bare) is None
    assert "decorator and inline" in bare.absent["boundary_tax"]
    assert bare.fills["boundary_tax"] == "df-strategies run --arms inline,decorator"


def test_memory_is_in_the_order_of_the_readings(report):
    tracks = {entry.arm: entry for entry in report.memory}
    inline = tracks["inline"]
    assert (inline.readings[0], inline.readings[-1]) == ("start", "stop")
    assert inline.readings[1:-1] == [row.query for row in report.queries]
    assert [(track.role, track.index) for track in inline.tracks] == [("coordinator", 0), ("worker", 0), ("worker", 1)]
    assert inline.tracks[0].pss_bytes[:2] == [40_000_000, 90_000_000]
    assert [track.role for track in tracks["local"].tracks] == ["coordinator"]
    assert "q03" not in tracks["external"].readings, "the warm-up failed"


def test_memory_without_readings_is_absent(tmp_path):
    bare = [sample.model_copy(update={"processes": ()}) for sample in make_samples(["local", "native"])]
    run = write_run(tmp_path / "run", bare, make_manifest(["local", "native"]))
    (run / "events.jsonl").unlink()
    assert make_report(run).memory is None


def test_lives_before_and_after_the_timed_rounds_are_left_out(tmp_path):
    run = write_run(tmp_path / "run", [make_sample("local", "q01", 0, 0, Phase.WARMUP)], make_manifest(["local"]))
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    other = "".join(json.dumps(event | {"phase": "preflight"}) + "\n" for event in events)
    (run / "events.jsonl").write_text(other)
    assert make_report(run).memory[0].readings == ["q01"]


def test_time_per_batch_comes_from_the_check_of_the_streams():
    figure = {"batches of 8": {"batches": 7500, "microseconds_per_batch": 4.2, "million_rows_per_s": 1.9}}
    results = [{"check": "stream.cost", "arm": "inline", "figure": figure}, {"check": "stream.cost", "arm": "local"}]
    found = make_report(RUN_SMALL, {"conformance": {"checks": [], "results": results}})
    assert found.summary.boundary == {"inline": {"us per batch, batches of 8": 4.2}}
    assert boundary_of_checks({"checks": []}) is None


def test_scaling_is_the_ratio_within_each_run(tmp_path):
    reports = [make_report(run_with(tmp_path, workers)) for workers in (4, 1, 2)]
    found = scaling(reports)
    values = found["summary"]["inline"]
    assert list(values) == ["workers_1", "workers_2", "workers_4"], "in the order of the workers"
    assert values["workers_1"] == pytest.approx(2 * values["workers_2"], rel=1e-6)
    assert values["workers_4"] == pytest.approx(0.5 * values["workers_2"], rel=1e-6)
    assert all(point["low"] <= point["value"] <= point["high"] for point in found["points"])
    assert {point["arm"] for point in found["points"]} == {"native", "inline", "decorator"}


def test_scaling_refuses_what_says_nothing(tmp_path):
    two, four = (make_report(run_with(tmp_path / "a", workers)) for workers in (2, 4))
    with pytest.raises(UserError, match=r"different numbers of workers, these have \[2\]"):
        scaling([two, two])
    other = make_report(run_with(tmp_path / "b", 1, scale_factor="10"))
    with pytest.raises(NotComparable, match="differ in scale factor"):
        scaling([two, four, other])


def test_scaling_without_stock_has_a_reason(tmp_path):
    without = [make_report(run_with(tmp_path, workers)) for workers in (1, 2)]
    bare = [
        entry.model_copy(update={"comparisons": [pair for pair in entry.comparisons if pair.base != "local"]})
        for entry in without
    ]
    found = scaling(bare)
    assert found["points"] == []
    assert {entry["reason"] for entry in found["missing"]} == {"stock was not in this run"}


def test_command_keeps_the_curve_with_the_run(tmp_path, capsys):
    for workers in (1, 2, 4):
        run_with(tmp_path, workers)
    words = ["report", "workers-2", "--out", str(tmp_path), "--format", "html"]
    assert main([*words, "--scaling", "workers-1", "--scaling", "workers-4"]) == EXIT_OK
    page = Path(capsys.readouterr().out.strip()).read_text()
    assert 'aria-label="Line plot: time of each arm over a single node against the number of workers"' in page
    assert json.loads((tmp_path / "workers-2" / "report.json").read_text())["summary"]["scaling"]["inline"]
    assert main([*words, "--scaling", "workers-2"]) == EXIT_USAGE
    run_with(tmp_path / "more", 8, config={"datafusion.execution.target_partitions": "9"})
    assert main([*words, "--scaling", str(tmp_path / "more" / "workers-8")]) == EXIT_NOT_COMPARABLE
    assert "differ in configuration" in capsys.readouterr().err


def test_plots_are_the_same_again_and_on_the_page(report):
    for draw in (tax_plot, memories):
        assert draw(report) == draw(Report.from_json(report.to_json()))
    page = render_html(report)
    assert page.count("Line plot: proportional memory") == len(report.memory) - 1, "all but the A/A arm"
    assert "against the rows of its answer" in page
    assert scaling_plot(report) is None
    assert "df-strategies report synthetic-small --scaling RUN" in page
