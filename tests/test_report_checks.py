"""Behind `run --checks`, a failed must-check or an unequal generated query decides the exit code and is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arm_helpers import arm_file
from harness.cli import main
from harness.conformance import ConformanceResult, Expected, load_registry, shape
from harness.conformance.runner import judge
from harness.errors import EXIT_OK, EXIT_REGRESSION
from harness.fuzz.model import ArmTally
from report_helpers import make_generated
from reports.outcome import failed_checks
from tpch.generate import DataSet

PARTS = ("conformance", "generated_queries")


def result(check: str, arm: str, outcome: str, reason: str | None = None) -> ConformanceResult:
    entry = next(entry for entry in load_registry() if entry.id == check)
    return ConformanceResult(
        check=check, arm=arm, area=entry.area, tier=entry.tier, outcome=outcome, reason=reason, seconds=0.1, repro="r"
    )


def write_conformance(folder: Path, results: list[ConformanceResult], expected: list[Expected] | None = None) -> None:
    """The file as the suite writes it."""
    checks = [entry for entry in load_registry() if entry.id in {found.check for found in results}]
    judged = [judge(found, expected or []) for found in results]
    done = shape(checks, judged, expected or [], {})
    (folder / "conformance.json").write_text(json.dumps(done.model_dump(mode="json", by_alias=True)))


def test_failed_must_checks_are_named_with_their_arms(tmp_path: Path) -> None:
    write_conformance(
        tmp_path,
        [
            result("sources.parquet_file", "inline", "pass"),
            result("sources.parquet_file", "decorator", "fail", "no such column"),
            result("interrupt.collect", "inline", "timeout"),
            result("interrupt.collect", "decorator", "crash"),
            result("sources.in_memory", "inline", "partial", "something is missing"),
            result("sources.csv", "inline", "blocked", "no tool"),
            result("sources.avro", "inline", "fail", "only a should"),
        ],
    )
    assert failed_checks(tmp_path, PARTS) == [
        "sources.parquet_file (decorator)",
        "interrupt.collect (inline, decorator)",
    ]


def test_an_expected_failure_is_none_and_its_absence_is_one(tmp_path: Path) -> None:
    known = Expected(check="sources.parquet_glob", arms=["decorator"], reason="inherent: folder only", match="pattern")
    write_conformance(
        tmp_path, [result("sources.parquet_glob", "decorator", "fail", "cannot read the pattern")], [known]
    )
    assert failed_checks(tmp_path, PARTS) == []
    write_conformance(tmp_path, [result("sources.parquet_glob", "decorator", "pass")], [known])
    assert failed_checks(tmp_path, PARTS) == ["sources.parquet_glob (decorator)"]


def test_unequal_generated_queries_are_counted_per_arm(tmp_path: Path) -> None:
    (tmp_path / "generated_queries.json").write_text(json.dumps(make_generated()))
    assert failed_checks(tmp_path, PARTS) == ["1 of 200 generated queries unequal (external)"]
    tally = ArmTally(run=20, equal=17, mismatch=1, crash=1, timeout=1, seed=1).model_dump()
    (tmp_path / "generated_queries.json").write_text(json.dumps({"arms": {"inline": tally}}))
    assert failed_checks(tmp_path, PARTS) == ["3 of 20 generated queries unequal (inline)"]


def test_files_of_an_earlier_run_do_not_count(tmp_path: Path) -> None:
    write_conformance(tmp_path, [result("sources.parquet_file", "inline", "fail")])
    (tmp_path / "generated_queries.json").write_text(json.dumps(make_generated()))
    assert failed_checks(tmp_path, ()) == []
    assert len(failed_checks(tmp_path, ("conformance",))) == 1


def test_a_run_ends_with_1_and_one_line(
    tpch_sf001: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The real suite, narrowed to one check that this arm, which has no API of a strategy, must fail."""
    monkeypatch.setenv("DF_STRATEGIES_DATA", str(tpch_sf001.root))
    toy = arm_file(tmp_path, "toy", "toy:make_context", behaviour="ready", kind="strategy")
    (check,) = [entry for entry in load_registry() if entry.id == "observe.explain_stages"]
    monkeypatch.setattr("harness.conformance.load_registry", lambda: [check])
    monkeypatch.setattr("reports.gather.GENERATED", 2)
    words = ["run", "--no-baselines", "--arms", "toy", "--arm-file", str(toy), "--sf", "0.01", "--queries", "6"]
    words += ["--rounds", "1", "--warmups", "0", "--out", str(tmp_path / "runs"), "--no-report", "--quiet"]
    assert main(words) == EXIT_OK, capsys.readouterr().err
    assert main([*words, "--checks"]) == EXIT_REGRESSION
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("checks failed: ")]
    assert len(said) == 1
    assert "observe.explain_stages (toy)" in said[0]
