"""Throughput mode: several clients at once, each counted, none flattered by what failed."""

from __future__ import annotations

import json
import signal
import subprocess
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arm_helpers import arm_file, processes_with, wait_until
from harness.errors import EXIT_OK, EXIT_REGRESSION, EXIT_USAGE
from harness.model import Status, Validation
from harness.rundir import MANIFEST, RunDirectory
from harness.runner.throughput import FIGURES, UNITS, read_units
from harness.schedule import stream_order
from harness.stats.throughput import (
    StreamExecution,
    ThroughputUnit,
    jain,
    throughput,
)
from runner_helpers import ROOT, command_line, environment, invoke
from tpch.generate import DataSet


def execution(stream: int, position: int, started: float, seconds: float, **more: object) -> StreamExecution:
    facts = {"status": Status.OK, "validation": Validation.VALIDATED, "query": f"q{position:02d}"}
    return StreamExecution.model_validate(
        {
            "stream": stream,
            "position": position,
            "started_s": started,
            "latency_ms": seconds * 1000,
            "elapsed_ms": seconds * 1000,
            **facts,
            **more,
        }  # fmt: skip
    )


def unit(number: int = 0, **change: object) -> ThroughputUnit:
    """Two streams of two queries: the first takes 2 s, the second 4 s; alone each query takes 1 s."""
    together = (execution(0, 1, 0, 1), execution(0, 2, 1, 1), execution(1, 1, 0, 2), execution(1, 2, 2, 2))
    single = (execution(0, 1, 0, 1), execution(0, 2, 1, 1))
    return ThroughputUnit(round=number, arm="a", single=single, together=together, interval_s=4.0).model_copy(
        update=change
    )


def test_figures_follow_their_definitions() -> None:
    found = throughput([unit(), unit(1)], arm="a", streams=2, sf=10)
    assert found.single_stream_per_hour == pytest.approx(36_000)
    assert found.multi_stream_per_hour == pytest.approx(4 * 3600 / 4 * 10)
    assert found.slowest_over_fastest == pytest.approx(2.0)
    assert found.fairness == pytest.approx((1 / 2 + 1 / 4) ** 2 / (2 * (1 / 4 + 1 / 16)))
    assert [stream.total_s for stream in found.per_stream] == [2.0, 4.0]
    assert [stream.max_ms for stream in found.per_stream] == [1000.0, 2000.0]
    assert (found.rounds, found.queries, found.reason) == (2, 2, None)


@pytest.mark.parametrize(
    "bad",
    [
        {"status": Status.ERROR, "reason": "boom"},
        {"validation": Validation.NOT_VALIDATED},
        {"status": Status.NOT_RUN, "latency_ms": None},
    ],
)
def test_a_failed_query_never_makes_throughput_look_better(bad: dict[str, object]) -> None:
    broken = unit(1).together[:-1] + (execution(1, 2, 2, 0.001, **bad),)
    found = throughput([unit(), unit(1, together=broken)], arm="a", streams=2, sf=1)
    assert found.multi_stream_per_hour is None
    assert str(found.reason).startswith("round 2: q02 in stream 1:")
    assert throughput([], arm="a", streams=2, sf=1).reason == "nothing ran"


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=8))
def test_fairness_lies_between_one_for_all_and_equal(shares: list[float]) -> None:
    assert 1 / len(shares) - 1e-9 <= jain(shares) <= 1 + 1e-9
    assert jain([shares[0]] * len(shares)) == pytest.approx(1)


def test_streams_go_different_ways_and_every_arm_the_same() -> None:
    queries = [f"q{number:02d}" for number in range(1, 23)]
    orders = [stream_order(queries, 7, 0, stream) for stream in range(4)]
    assert all(sorted(order) == queries for order in orders)
    assert len({tuple(order) for order in orders}) == 4
    assert orders == [stream_order(queries, 7, 0, stream) for stream in range(4)]


def test_a_throughput_run(tpch_sf001: DataSet, tmp_path: Path) -> None:
    arms = [
        arm_file(tmp_path, "alone"),
        arm_file(tmp_path, "toy", "toy:make_context", behaviour="ready"),
        arm_file(tmp_path, "bad", "broken:make_context", env={"FIXTURE_MARK": "l_discount BETWEEN"}),
    ]
    words = command_line(arms, tmp_path / "runs", "--rounds", "2", "--streams", "3")
    done = invoke(words, tpch_sf001.root)
    assert done.returncode == EXIT_REGRESSION, done.stderr
    assert "not TPC results" in done.stdout
    assert "bad: no figure (round 1: q06 in stream 0: error, RuntimeError: no such function" in done.stdout
    run = RunDirectory.open(next((tmp_path / "runs").iterdir()))
    assert run.manifest().status == "complete"
    units = read_units(run)
    assert sorted((entry.arm, entry.round) for entry in units) == sorted(
        (arm, number) for arm in ("alone", "toy", "bad") for number in range(2)
    )
    for entry in units:
        assert [e.query for e in entry.single] == stream_order(["q01", "q06"], 1612, entry.round, -1)
        for stream in range(3):
            order = [e.query for e in entry.together if e.stream == stream]
            assert order == stream_order(["q01", "q06"], 1612, entry.round, stream)
        if entry.arm != "bad":
            assert entry.trouble() is None
            assert {e.validation for e in (*entry.single, *entry.together)} == {Validation.VALIDATED}
            assert all((e.latency_ms or 0) >= (e.elapsed_ms or 0) > 0 for e in entry.together)
    assert [e.remote_tasks for e in units if e.arm == "toy" for e in e.single] == [2] * 4
    figures = json.loads((run.path / FIGURES).read_text(encoding="utf-8"))
    assert figures["arms"]["toy"]["streams"] == 3
    assert len(figures["arms"]["toy"]["per_stream"]) == 3
    assert 0 < figures["arms"]["toy"]["fairness"] <= 1
    assert not (run.path / "streams").exists()
    done = invoke([*words[:3], "compare", str(run.path)], tpch_sf001.root)
    assert done.returncode == EXIT_USAGE
    assert "is a throughput run without paired times" in done.stderr


def test_a_throughput_run_goes_on_after_kill_9(tpch_sf001: DataSet, tmp_path: Path) -> None:
    token, out = uuid.uuid4().hex, tmp_path / "runs"
    words = command_line([arm_file(tmp_path, "alone")], out, "--rounds", "4", "--streams", "2")
    env = dict(environment(tpch_sf001.root, RUN_TOKEN=token))
    harness = subprocess.Popen(words, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert wait_until(lambda: any(out.glob(f"*/{UNITS}")) or harness.poll() is not None, 200)
    harness.send_signal(signal.SIGKILL)
    harness.wait()
    assert wait_until(lambda: not processes_with(token), 15), "processes survived the harness"
    run = RunDirectory(next(out.glob(f"*/{MANIFEST}")).parent)
    before = read_units(run)
    assert 1 <= len(before) < 4
    done = invoke([*words[:4], "--resume", str(run.path), "--quiet", "--no-report"], tpch_sf001.root)
    assert done.returncode == EXIT_OK, done.stderr
    after = read_units(run)
    assert after[: len(before)] == before
    assert sorted(entry.round for entry in after) == [0, 1, 2, 3], "each round once"


@pytest.mark.parametrize("option", ["--cold", "--adaptive"])
def test_options_without_a_meaning_are_refused(tpch_sf001: DataSet, tmp_path: Path, option: str) -> None:
    words = command_line([arm_file(tmp_path, "alone")], tmp_path / "runs", "--streams", "2", option)
    done = invoke(words, tpch_sf001.root)
    assert done.returncode == EXIT_USAGE
    assert f"leave out {option}" in done.stderr
