"""`df-strategies step`, which tox calls once per strategy: the whole way from a machine without data to a report."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.errors import EXIT_OK, EXIT_USAGE
from harness.model import Status, Validation
from harness.rundir import MANIFEST, RunDirectory
from harness.settings import AA_ARM, BASELINES
from runner_helpers import ROOT

SHORT = ("--sf", "0.01", "--queries", "6", "--no-collect", "--no-checks", "--quiet")


@pytest.fixture
def fresh(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine that has wheels and nothing else."""
    (tmp_path / "data").mkdir()
    given = {key: value for key, value in os.environ.items() if key != "DF_STRATEGIES_SELECTED"}
    return {**given, "DF_STRATEGIES_DATA": str(tmp_path / "data"), "DF_STRATEGIES_RUNS": str(tmp_path / "runs")}


def step(env: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness", "step", *words]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def runs(env: Mapping[str, str]) -> list[RunDirectory]:
    """Run directories, oldest first."""
    found = [RunDirectory(path.parent) for path in Path(env["DF_STRATEGIES_RUNS"]).glob(f"*/{MANIFEST}")]
    return sorted(found, key=lambda run: run.manifest().created_at)


@pytest.mark.usefixtures("built")
def test_a_machine_without_data_gets_to_a_report(fresh: dict[str, str]) -> None:
    done = step(fresh, "inline", "--selected", "inline", *SHORT, "--rounds", "2")
    assert done.returncode == EXIT_OK, done.stderr
    assert (Path(fresh["DF_STRATEGIES_DATA"]) / "tpch" / "sf0.01").is_dir(), "made on the way"
    first, second = runs(fresh)
    assert list(first.manifest().arms) == ["inline"]
    assert first.manifest().settings.rounds == 1
    assert not (first.path / "report.html").exists()
    assert list(second.manifest().arms) == ["inline", *BASELINES, AA_ARM]
    assert (second.path / "report.html").is_file()
    for run in (first, second):
        assert run.manifest().status == "complete"
        samples = run.samples()
        assert {sample.status for sample in samples} == {Status.OK}
        validated = {sample.arm for sample in samples if sample.validation is Validation.VALIDATED}
        assert validated == set(run.manifest().arms)


@pytest.mark.usefixtures("built")
def test_only_the_last_selected_strategy_compares(fresh: dict[str, str]) -> None:
    done = step({**fresh, "DF_STRATEGIES_SELECTED": "lint,inline,decorator"}, "inline", *SHORT)
    assert done.returncode == EXIT_OK, done.stderr
    assert "== comparison" not in done.stderr
    assert [list(run.manifest().arms) for run in runs(fresh)] == [["inline"]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--queries", "99"), "99"),
        (("--sf", "3"), "scale factor"),
        (("--sf", "0.01", "--wheels", "nowhere"), "nowhere"),
        (("--no-such-option",), "No such option"),
    ],
)
def test_a_step_that_cannot_start_does_not_go_on(fresh: dict[str, str], words: tuple[str, ...], message: str) -> None:
    done = step(fresh, "inline", "--selected", "inline", *words)
    assert done.returncode == EXIT_USAGE, done.stderr
    assert message in done.stderr
    assert "== inline: every query once" in done.stderr
    assert "== comparison" not in done.stderr, "what cannot start once cannot start a second time"
    assert runs(fresh) == []


def test_a_strategy_that_there_is_not(fresh: dict[str, str]) -> None:
    done = step(fresh, "inlin")
    assert done.returncode == EXIT_USAGE
    assert "Did you mean `inline`" in done.stderr
    assert "== " not in done.stderr
