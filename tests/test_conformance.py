"""The registry, the judgement of outcomes, the written file and the command."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from harness.cli import main
from harness.conformance import (
    Check,
    ConformanceResult,
    Expected,
    Outcome,
    load_expected,
    load_registry,
    select_checks,
    shape,
)
from harness.conformance.junit import render_junit
from harness.conformance.model import AREAS
from harness.conformance.registry import SCRIPTS, script_functions
from harness.conformance.runner import judge, repro
from harness.errors import HarnessFault, UserError
from reports.build import conformance_counts
from reports.model import CheckRow

REGISTRY = load_registry()

ENTRY = """
[[check]]
id = "group.name"
area = 21
tier = "must"
title = "T"
rationale = "https://example.org"
expects = "something"
"""


def result(
    outcome: Outcome, *, check: str = "sources.csv", arm: str = "inline", reason: str | None = None
) -> ConformanceResult:
    return ConformanceResult(
        check=check,
        arm=arm,
        area=21,
        tier="must",
        outcome=outcome,
        reason=reason,
        seconds=1.0,
        log="logs/x.log",
        repro=repro(check, arm),
    )


def test_every_check_has_a_body_a_public_rationale_and_an_expectation() -> None:
    assert len(REGISTRY) >= 100
    for check in REGISTRY:
        assert check.rationale.startswith("https://github.com/"), check.id
        assert len(check.expects) > 10, check.id
        assert len(check.title) > 3, check.id


def test_the_areas_without_checks_are_those_that_other_parts_measure() -> None:
    assert set(AREAS) - {check.area for check in REGISTRY} == {9, 10, 11}


def test_every_body_asserts_something() -> None:
    """Statically too: the text of each body, or of a helper in its file, holds an assertion."""
    for path in SCRIPTS.glob("*.py"):
        if script_functions(path):
            text = path.read_text()
            assert any(word in text for word in ("arm.check(", "arm.equal(", "arm.raises(")), path.name


def test_fast_checks_are_few_enough_for_the_normal_test_run() -> None:
    fast = [check for check in REGISTRY if check.fast]
    assert 15 <= len(fast) <= 45
    assert {check.tier for check in fast} == {"must"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (ENTRY + ENTRY, "declared twice"),
        (ENTRY.replace("area = 21", "area = 99"), "area"),
        (ENTRY.replace('tier = "must"', 'tier = "maybe"'), "tier"),
        (ENTRY + "typo = 1\n", "typo"),
        ("[[check]\n", "TOML"),
        (ENTRY.replace("group.name", "group.other"), "no body"),
    ],
)
def test_a_wrong_registry_is_one_clear_message(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "registry").mkdir()
    (tmp_path / "registry" / "x.toml").write_text(text)
    (tmp_path / "group.py").write_text("def name(arm): ...\n")
    with pytest.raises(HarnessFault, match=says):
        load_registry(tmp_path / "registry", tmp_path)


def test_a_body_without_an_entry_is_found(tmp_path: Path) -> None:
    (tmp_path / "registry").mkdir()
    (tmp_path / "group.py").write_text("def name(arm): ...\ndef _helper(arm): ...\ndef other(arm, more): ...\n")
    with pytest.raises(HarnessFault, match=r"no entry.*group\.name$"):
        load_registry(tmp_path / "registry", tmp_path)


def test_an_expected_failure_of_a_check_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "expected.toml"
    path.write_text('[[expected]]\ncheck = "no.such"\narms = ["inline"]\nreason = "because of something"\n')
    with pytest.raises(UserError, match=r"no\.such"):
        load_expected(REGISTRY, path)


def test_expected_failures_are_strict() -> None:
    known = [Expected(check="sources.csv", arms=["inline"], reason="a known limit of X", match="gzip")]
    as_foretold = judge(result(Outcome.FAIL, reason="gzip is lost"), known)
    assert as_foretold.outcome is Outcome.XFAIL
    assert "a known limit" in (as_foretold.reason or "")
    otherwise = judge(result(Outcome.FAIL, reason="wrong sum"), known)
    assert otherwise.outcome is Outcome.FAIL
    passes = judge(result(Outcome.PASS), known)
    assert passes.outcome is Outcome.FAIL
    assert "remove the entry" in (passes.reason or "")
    assert judge(result(Outcome.PARTIAL, reason="no worker"), known).outcome is Outcome.FAIL
    assert judge(result(Outcome.CRASH, reason="gzip: SIGSEGV"), known).outcome is Outcome.XFAIL
    assert judge(result(Outcome.FAIL, arm="external"), known).outcome is Outcome.FAIL


def checks_named(*ids: str) -> list[Check]:
    return select_checks(REGISTRY, ids=ids)


def test_an_expected_failure_that_meets_nothing_fails_the_run() -> None:
    known = [Expected(check="sources.csv", arms=["inline"], reason="a known limit of X")]
    blocked = shape(
        checks_named("sources.csv"), [result(Outcome.BLOCKED), result(Outcome.PASS, arm="local")], known, {}
    )
    assert not blocked.ok
    assert "met nothing" in blocked.problems[0]


def test_nothing_at_all_fails_the_run() -> None:
    assert not shape(checks_named("sources.csv"), [result(Outcome.BLOCKED)], [], {}).ok
    assert not shape(checks_named("sources.csv"), [], [], {}).ok


def test_the_file_is_what_reports_read() -> None:
    checks = checks_named("sources.csv", "writes.copy_to")
    results = [
        result(Outcome.PASS), result(Outcome.FAIL, check="writes.copy_to", reason="no file"),
        result(Outcome.PASS, arm="local"), result(Outcome.PARTIAL, check="writes.copy_to", arm="local", reason="half"),
    ]  # fmt: skip
    done = shape(checks, results, [], {})
    written = json.loads(json.dumps(done.model_dump(mode="json", by_alias=True)))
    rows = TypeAdapter(list[CheckRow]).validate_python(written["checks"])
    assert [row.id for row in rows] == ["sources.csv", "writes.copy_to"]
    cell = rows[1].outcomes["inline"]
    assert (cell.outcome, cell.reason, cell.log) == ("fail", "no file", "logs/x.log")
    assert cell.repro == "df-strategies check --arm inline --check writes.copy_to"
    theirs = {arm: counts.model_dump(by_alias=True) for arm, counts in conformance_counts(rows).items()}
    assert theirs == written["summary"]["conformance"]
    assert theirs["inline"]["must_pass"] == 1
    assert done.problems == ["writes.copy_to on inline: fail: no file"]


def test_the_junit_file_holds_every_outcome_and_whatever_else_fails() -> None:
    results = [
        result(Outcome.PASS), result(Outcome.FAIL, check="writes.copy_to", reason="no file \x00 <&>"),
        result(Outcome.PARTIAL, arm="local", reason="half"), result(Outcome.XFAIL, check="stream.cost", reason="known"),
        result(Outcome.CRASH, check="writes.copy_to", arm="local", reason="SIGSEGV"),
        result(Outcome.BLOCKED, check="stream.cost", arm="local", reason="needs workers"),
    ]  # fmt: skip
    known = [Expected(check="stream.cost", arms=["local"], reason="a known limit of X")]
    done = shape(checks_named("sources.csv", "writes.copy_to", "stream.cost"), results, known, {})
    root = ET.fromstring(render_junit(done))  # noqa: S314 - our own text
    counts = {suite.get("name"): [suite.get(k) for k in ("tests", "failures", "errors", "skipped")] for suite in root}
    assert counts == {
        "inline": ["3", "1", "0", "1"], "local": ["3", "0", "1", "1"], "expectations": ["1", "1", "0", "0"],
    }  # fmt: skip
    failed = root.find("./testsuite[@name='inline']/testcase[@name='copy_to']/failure")
    assert failed is not None
    assert "<&>" in (failed.text or "")
    assert "df-strategies check --arm inline --check writes.copy_to" in (failed.text or "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--area", "99"], "unknown area 99"),
        (["--area", "x"], "takes numbers"),
        (["--tier", "mist"], "unknown tier"),
        (["--check", "sources.cvs"], "Did you mean sources.csv"),
        (["--arm", "inlnie", "--check", "sources.csv"], "Did you mean `inline`"),
        (["--arm", "native", "--check", "sources.csv", "--arm-file", "/nowhere.toml"], "cannot be read"),
    ],
)
def test_a_wrong_command_line_is_one_message(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], says: str
) -> None:
    assert main(["check", "--out", str(tmp_path / "c.json"), *arguments]) == 2
    assert says in capsys.readouterr().err


def test_list_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--list", "--tier", "must", "--area", "35"]) == 0
    shown = capsys.readouterr().out
    assert "security.token" in shown
    assert "sources.csv" not in shown


def stock_arm(folder: Path, name: str) -> Path:
    arm = folder / f"{name}.toml"
    arm.write_text(
        f'schema = 1\nname = "{name}"\ntitle = "{name}"\nkind = "external"\ncapabilities = ["sql"]\n'
        f'[environment]\nsource = "interpreter"\npython = "{sys.executable}"\n[driver]\nfactory = "stock"\n'
    )
    return arm


def test_outcomes_are_added_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Check after check and arm after arm make the same file as all at once; a repeated check is replaced."""
    out = tmp_path / "conformance.json"
    one, two = ["--arm-file", str(stock_arm(tmp_path, "one"))], ["--arm-file", str(stock_arm(tmp_path, "two"))]
    assert main(["check", *one, "--check", "sources.parquet_file", "--out", str(out)]) == 0
    for arm, check in ((one, "errors.no_panic_anywhere"), (one, "sources.parquet_file"), (two, "sources.parquet_file")):
        assert main(["check", *arm, "--check", check, "--out", str(out), "--add"]) == 0
    written = json.loads(out.read_text())
    assert [(row["check"], row["arm"]) for row in written["results"]] == [
        ("errors.no_panic_anywhere", "one"), ("sources.parquet_file", "one"), ("sources.parquet_file", "two"),
    ]  # fmt: skip
    assert written["arms"] == ["one", "two"]
    assert [row["id"] for row in written["checks"]] == ["sources.parquet_file", "errors.no_panic_anywhere"]
    assert written["summary"]["conformance"]["one"]["total"] == 2
    capsys.readouterr()
    out.write_text("[]")
    assert main(["check", *one, "--check", "sources.parquet_file", "--out", str(out), "--add"]) == 2
    assert "leave out --add" in capsys.readouterr().err
    assert main(["check", *one, "--add"]) == 2
    assert "give --out too" in capsys.readouterr().err


def test_a_whole_run_on_the_stock_package(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the command line to the files, with an interpreter in the place of a built environment."""
    arm = stock_arm(tmp_path, "mine")
    out, junit = tmp_path / "out" / "conformance.json", tmp_path / "deep" / "junit.xml"
    ids = "sources.parquet_file,proof.counters,errors.no_panic_anywhere"
    assert main(["check", "--arm-file", str(arm), "--check", ids, "--out", str(out), "--junit", str(junit)]) == 0
    assert ET.parse(junit).getroot().get("tests") == "3"  # noqa: S314 - our own file
    written = json.loads(out.read_text())
    outcomes = {row["check"]: row["outcome"] for row in written["results"]}
    assert outcomes == {"sources.parquet_file": "pass", "proof.counters": "blocked", "errors.no_panic_anywhere": "pass"}
    assert written["ok"] is True
    assert (out.parent / written["results"][-2]["log"]).is_file() or written["results"][-2]["log"] is None
    assert "mine" in capsys.readouterr().out
