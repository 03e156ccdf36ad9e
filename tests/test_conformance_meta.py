"""Tests of the checks themselves: on an arm that is broken on purpose, the right ones must fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from arm_helpers import FAKE_WORKER, arm_file
from harness.arms import load_arm
from harness.child.keeper import Keeper
from harness.conformance import ConformanceResult, Outcome, load_registry
from harness.conformance.arm_site import Site
from harness.conformance.prerequisites import Prerequisites
from harness.conformance.runner import panics, run_one
from harness.conformance.session import open_sites

CHECKS = {check.id: check for check in load_registry()}
BROKEN = Path(__file__).parent / "conformance" / "broken"

ARM = """
schema = 1
name = "broken"
title = "stock, broken on purpose"
kind = "external"
capabilities = ["sql"]
[environment]
source = "interpreter"
python = "{python}"
path = ["{path}"]
[driver]
factory = "stock"
namespace = "broken_datafusion"
[env]
CONFORMANCE_LIE = "{lie}"
"""


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    with Keeper() as keeper:
        yield keeper


def broken(folder: Path, lie: str) -> Path:
    import sys

    path = folder / "broken.toml"
    path.write_text(ARM.format(python=sys.executable, path=BROKEN, lie=lie))
    return path


def run(arm: Path, folder: Path, *ids: str, timeout_s: float | None = None) -> list[ConformanceResult]:
    with open_sites([load_arm(arm)], folder / "logs") as (keeper, sites):
        prerequisites = Prerequisites(keeper, folder / "prerequisites")
        checks = [
            CHECKS[name] if timeout_s is None else CHECKS[name].model_copy(update={"timeout_s": timeout_s})
            for name in ids
        ]
        return [run_one(check, sites[0], keeper, prerequisites, folder) for check in checks]


@pytest.mark.parametrize(
    ("lie", "check", "outcome", "says"),
    [
        ("rows", "sources.parquet_directory", Outcome.FAIL, "groups of `t`"),
        ("rows", "stream.exports", Outcome.FAIL, "to_pydict"),
        ("rows", "life.error_leaves_session_usable", Outcome.FAIL, "the query after"),
        ("writes", "writes.write_parquet", Outcome.FAIL, "number of rows"),
        ("writes", "writes.write_csv", Outcome.FAIL, "rows of write_csv"),
        ("errors", "errors.messages", Outcome.FAIL, "the message lacks"),
        ("errors", "life.error_leaves_session_usable", Outcome.FAIL, "but it returned"),
        ("settings", "config.time_zone", Outcome.FAIL, "time zone"),
        ("settings", "config.client_sees_its_settings", Outcome.FAIL, "changed by SET"),
        ("names", "api.signatures", Outcome.FAIL, "DataFrame.describe"),
        ("names", "api.new_names", Outcome.FAIL, "SessionConfig.with_batch_size"),
        ("panic", "sources.in_memory", Outcome.FAIL, "PanicException"),
        ("crash", "sources.views", Outcome.CRASH, "SIGSEGV"),
    ],
)
def test_a_broken_arm_is_noticed(tmp_path: Path, lie: str, check: str, outcome: Outcome, says: str) -> None:
    (result,) = run(broken(tmp_path, lie), tmp_path, check)
    assert result.outcome is outcome, result.reason
    assert says in (result.reason or "")


def test_the_same_checks_pass_on_the_same_arm_when_it_does_not_lie(tmp_path: Path) -> None:
    ids = ("sources.parquet_directory", "writes.write_parquet", "errors.messages", "config.client_sees_its_settings")
    results = run(broken(tmp_path, ""), tmp_path, *ids)
    assert [result.outcome for result in results] == [Outcome.PASS] * len(ids), [result.reason for result in results]
    assert all(result.figure["asserted"] > 0 for result in results)


def test_a_hang_is_a_timeout_and_leaves_a_stack(tmp_path: Path) -> None:
    (result,) = run(broken(tmp_path, "hang"), tmp_path, "sources.views", timeout_s=8)
    assert result.outcome is Outcome.TIMEOUT
    assert "answer_late" in (tmp_path / str(result.log)).read_text()


def test_a_panic_in_any_log_fails_the_check_over_all_logs(tmp_path: Path) -> None:
    results = run(broken(tmp_path, "panic"), tmp_path, "sources.in_memory")
    with open_sites([load_arm(tmp_path / "broken.toml")], tmp_path / "logs") as (_, sites):
        found = panics(CHECKS["errors.no_panic_anywhere"], sites[0], results, tmp_path)
    assert found.outcome is Outcome.FAIL
    assert "sources.in_memory" in (found.reason or "")


def test_an_arm_that_is_silently_local_does_not_pass(tmp_path: Path) -> None:
    """Workers run, the answers are right, and no worker ever sees a task."""
    import sys

    arm = tmp_path / "idle.toml"
    arm.write_text(
        'schema = 1\nname = "idle"\ntitle = "idle"\nkind = "external"\ncapabilities = ["sql", "distributed"]\n'
        f'[environment]\nsource = "interpreter"\npython = "{sys.executable}"\npath = ["{BROKEN}"]\n'
        '[driver]\nfactory = "idle_arm:make_context"\nprobe = "idle_arm"\n'
        f'[workers]\ncommand = ["{{python}}", "-I", "{FAKE_WORKER}", "ready"]\n'
    )
    directory, counters = run(arm, tmp_path, "sources.parquet_directory", "proof.counters")
    assert directory.outcome is Outcome.PARTIAL, directory.reason
    assert "no worker saw a task" in (directory.reason or "")
    assert counters.outcome is Outcome.FAIL
    assert "did not grow" in (counters.reason or "")


def test_a_check_that_asserts_nothing_fails(tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    source = Path(__file__).parents[1] / "harness" / "conformance" / "scripts" / "kit.py"
    (scripts / "kit.py").write_text(source.read_text())
    (scripts / "__init__.py").write_text("")
    (scripts / "empty.py").write_text("def nothing(arm):\n    pass\n")
    check = CHECKS["sources.views"].model_copy(update={"id": "empty.nothing"})
    with open_sites([load_arm(broken(tmp_path, ""))], tmp_path / "logs") as (keeper, sites):
        site: Site = sites[0]
        result = run_one(check, site, keeper, Prerequisites(keeper, tmp_path), tmp_path, scripts)
    assert result.outcome is Outcome.FAIL
    assert "asserted nothing" in (result.reason or "")


def test_workers_that_do_not_start_block_with_the_reason(tmp_path: Path) -> None:
    arm = arm_file(tmp_path, "dead", "toy:make_context", behaviour="dies")
    (result,) = run(arm, tmp_path, "sources.parquet_directory")
    assert result.outcome is Outcome.BLOCKED
    assert "do not start" in (result.reason or "")
