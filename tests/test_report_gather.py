"""What a report has beside timings is collected by itself, and what cannot be collected is a blank with its reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arm_helpers import arm_file
from harness.cli import main
from harness.errors import EXIT_OK, EXIT_REGRESSION
from harness.rundir import RunDirectory
from harness.runner.run import start_run
from reports.build import make_report
from reports.gather import GENERATED, PARTS, gather
from reports.inputs import RECORD
from runner_helpers import run_settings
from tpch.generate import DataSet


@pytest.fixture(scope="module")
def finished(tpch_sf001: DataSet, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run of one arm in this interpreter, which has workers; its arm file is not that of a shipped strategy."""
    folder = tmp_path_factory.mktemp("gather")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DF_STRATEGIES_DATA", str(tpch_sf001.root))
        toy = arm_file(folder, "toy", "toy:make_context", behaviour="ready", kind="strategy")
        return start_run(run_settings([toy]), root=folder / "runs", command_line=["test"], quiet=True)


def test_parts_become_sections(finished: RunDirectory) -> None:
    assert "api_surface" in make_report(finished.path).absent, "nothing is collected before it is asked for"
    assert gather(finished, ("api_surface", "packaging", "calibration"), quiet=True) == dict.fromkeys(
        ("api_surface", "packaging", "calibration")
    )
    report = make_report(finished.path)
    assert not {"api_surface", "packaging", "calibration"} & set(report.absent)
    surface = report.api_surface.strategies[0]
    assert (surface.arm, surface.shared().removed) == ("toy", []), "the same stock package, read twice"
    assert {row.arm for row in report.packaging.rows} == {"local", "toy"}, "stock is measured although it did not run"
    stock = report.packaging.rows[0]
    assert stock.wheel_bytes > 30_000_000
    assert stock.import_cost.median_ms > 1
    assert report.summary.calibration.aa_false_flag_rate <= 0.05
    parts = json.loads((finished.path / RECORD).read_text())["parts"]
    assert {entry["reason"] for entry in parts.values()} == {None}


def test_gate_of_the_api_is_decided_by_what_was_collected(finished: RunDirectory) -> None:
    """A shipped strategy of which the wheel is not that of the run stays open, with the reason."""
    manifest = finished.manifest()
    other = manifest.model_copy(
        update={"arms": {"local": manifest.arms["toy"].model_copy(update={"name": "local", "wheel_sha256": "0" * 64})}}
    )
    folder = finished.path.parent / "other"
    folder.mkdir()
    (folder / "manifest.json").write_text(other.model_dump_json())
    (folder / "samples.jsonl").touch()
    assert gather(RunDirectory(folder), ("packaging",), quiet=True) == {"packaging": None}
    (row,) = make_report(folder).packaging.rows
    assert "no longer the one that ran (000000000000 then, none now)" in row.reasons["import_cost"]


def test_a_failure_is_a_reason_and_not_the_end(finished: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(finished.manifest().settings.arm_files[0])
    text = path.read_text()
    path.write_text("this is no arm file")
    try:
        outcome = gather(finished, ("conformance", "generated_queries"), quiet=True)
    finally:
        path.write_text(text)
    assert set(outcome) == {"conformance", "generated_queries"}
    assert all(reason and "arm file" in reason for reason in outcome.values()), outcome
    report = make_report(finished.path)
    assert report.absent["conformance"] == outcome["conformance"]
    assert report.absent["generated_queries"] == outcome["generated_queries"]


def test_command(finished: RunDirectory, capsys: pytest.CaptureFixture[str], tpch_sf001: DataSet) -> None:
    assert main(["collect", str(finished.path), "--part", "calibration", "--quiet"]) == EXIT_OK
    assert "calibration: collected" in capsys.readouterr().out
    assert (finished.path / "report.html").is_file()
    path = Path(finished.manifest().settings.arm_files[0])
    text = path.read_text()
    path.unlink()
    try:
        code = main(["collect", str(finished.path), "--part", "packaging", "--quiet"])
    finally:
        path.write_text(text)
    assert code == EXIT_REGRESSION
    assert "packaging: none, arm file" in capsys.readouterr().out


def test_parts_of_the_command_are_the_parts() -> None:
    from harness.cli import collect

    assert collect.PARTS == PARTS
    assert f"{GENERATED} per strategy" in collect.EPILOG
    assert all(f"\n  {part} " in collect.EPILOG for part in PARTS)
