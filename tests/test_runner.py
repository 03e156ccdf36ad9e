"""A whole run over real processes: what is recorded, and that a misbehaving arm is a result and not the end."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from arm_helpers import aa_file, arm_file, processes_with, wait_until
from harness.errors import EXIT_NOT_COMPARABLE, EXIT_REGRESSION, HarnessFault, NotComparable
from harness.model import Phase, Reach, Sample, Status, Validation
from harness.rundir import RunDirectory
from harness.runner import start_run
from harness.runner.answers import without_limit
from harness.runner.ending import ending
from harness.runner.recurrence import pairs, queries_to_repeat
from harness.schedule import Schedule, make_schedule, schedule_hash
from runner_helpers import by_cell, run_settings
from tpch.generate import DataSet
from tpch.query_sets import QUERY_IDS, load_query

ON_Q06 = "l_discount BETWEEN"
"""Stands in q06 and in no other query of the small run."""

Go = Callable[..., RunDirectory]


@pytest.fixture
def go(tpch_sf001: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Go]:
    monkeypatch.setenv("DF_STRATEGIES_DATA", str(tpch_sf001.root))
    token = uuid.uuid4().hex
    monkeypatch.setenv("RUN_TOKEN", token)

    def _go(arm_files: list[Path], **changes: Any) -> RunDirectory:
        return start_run(run_settings(arm_files, **changes), root=tmp_path / "runs", command_line=["test"], quiet=True)

    yield _go
    assert wait_until(lambda: len(processes_with(token)) == 0), "a process of the run is still there"


def test_a_run_records_everything(go: Go, tmp_path: Path) -> None:
    arms = [arm_file(tmp_path, "alone"), arm_file(tmp_path, "toy", "toy:make_context", behaviour="ready")]
    run = go([*arms, aa_file(tmp_path, "twice", "toy")], rounds=2, warmups=1)
    manifest, samples = run.manifest(), run.samples()
    schedule = Schedule.model_validate_json(run.schedule_json())
    assert manifest.status == "complete"
    assert manifest.stopped_because == "stopped after all 2 planned rounds"
    assert manifest.schedule_hash == schedule_hash(schedule)
    steps = [step.sequence for step in schedule.steps if step.query]
    assert [sample.sequence for sample in samples] == steps, "each step once, in the order of the schedule"
    assert {sample.status for sample in samples} == {Status.OK}
    assert {sample.validation for sample in samples} == {Validation.VALIDATED}
    assert all(sample.oracles == dict.fromkeys(("duckdb", "datafusion"), Validation.VALIDATED) for sample in samples)
    assert sum(sample.phase is Phase.WARMUP for sample in samples) == 3 * 2 * 1
    for sample in samples:
        assert sample.elapsed_ms is not None
        assert sample.elapsed_ms == pytest.approx((sample.planning_ms or 0) + (sample.execution_ms or 0))
        assert sample.rows == {"q01": 4, "q06": 1}[sample.query]
        assert sample.started_at is not None
        assert (run.path / str(sample.log)).is_file()
        assert f"--arms {sample.arm}" in str(sample.repro)
        if sample.arm == "alone":
            assert (sample.reach, sample.remote_tasks, sample.stages) == (Reach.SINGLE_NODE, None, None)
        else:
            assert (sample.reach, sample.remote_tasks) == (Reach.DISTRIBUTED, 2)
            assert (sample.stages, sample.planned_tasks) == (2, 3)
    assert ending(samples).exit_code == 0


def test_the_manifest_says_where_figures_come_from(go: Go, tmp_path: Path) -> None:
    toy = arm_file(tmp_path, "toy", "toy:make_context", behaviour="ready")
    run = go([toy, aa_file(tmp_path, "twice", "toy")], queries=["q06"])
    manifest = run.manifest()
    record = manifest.arms["toy"]
    assert record.build["fingerprint"] == "f" * 64
    assert [build["fingerprint"] for build in record.worker_build] == ["f" * 64] * 2
    assert record.config["datafusion.execution.target_partitions"] == "2"
    assert record.versions["datafusion"]
    assert record.definition["name"] == "toy"
    assert manifest.arms["twice"].copies == "toy"
    assert manifest.rustc == "none"
    assert len(manifest.data.fingerprint) == 64
    assert manifest.data.files["lineitem"] == 4
    assert manifest.queries["q06"][0].startswith("SELECT")
    assert manifest.command_line == ["test"]
    assert manifest.packages["duckdb"]
    plans = json.loads((run.path / "plans.json").read_text(encoding="utf-8"))
    assert "AggregateExec" in plans["toy"]["q06"]["text"]
    starts = [event for event in run.events() if event["kind"] == "start" and event["phase"] == "timed"]
    assert {event["arm"] for event in starts} == {"toy", "twice"}
    assert all(event[key] > 0 for event in starts for key in ("cluster_ms", "startup_ms", "context_ms", "register_ms"))
    assert not (run.path / "answer.arrow").exists()


def test_every_kind_of_failure_has_its_own_status(go: Go, tmp_path: Path) -> None:
    mark, partial = {"FIXTURE_MARK": ON_Q06}, {"FIXTURE_LIE": "partial", "FIXTURE_MARK": "l_returnflag"}
    arms = {
        "good": arm_file(tmp_path, "good"),
        "crash": arm_file(tmp_path, "crash", "crash:make_context", env=mark),
        "hang": arm_file(tmp_path, "hang", "hang:make_context", env=mark),
        "oom": arm_file(tmp_path, "oom", "oom:make_context", env={**mark, "FIXTURE_OOM": "abort"}),
        "cell": arm_file(tmp_path, "cell", "liar:make_context", env={**mark, "FIXTURE_LIE": "cell"}),
        "partial": arm_file(tmp_path, "partial", "liar:make_context", env=partial),
        "empty": arm_file(tmp_path, "empty", "liar:make_context", env={**mark, "FIXTURE_LIE": "empty"}),
        "broken": arm_file(tmp_path, "broken", "broken:make_context", env=mark),
        "noisy": arm_file(tmp_path, "noisy", "noisy:make_context"),
    }  # fmt: skip
    run = go(list(arms.values()), timeout_s=15.0)
    cells = {key: samples[0] for key, samples in by_cell(run).items()}
    statuses = {arm: cells[arm, "q06"].status for arm in arms}
    assert statuses == {
        "good": Status.OK, "crash": Status.CRASH, "hang": Status.TIMEOUT, "oom": Status.OOM, "cell": Status.WRONG,
        "partial": Status.OK, "empty": Status.WRONG, "broken": Status.ERROR, "noisy": Status.OK,
    }  # fmt: skip
    assert cells["partial", "q01"].status is Status.WRONG
    assert "expected 4 rows" in str(cells["partial", "q01"].reason)
    assert all(cells[arm, "q01"].status is Status.OK for arm in arms if arm != "partial"), "the other query is fine"
    for sample in cells.values():
        if sample.status in (Status.OK, Status.WRONG):
            assert sample.elapsed_ms is not None
        else:
            assert sample.elapsed_ms is None, "a failure has no time, least of all 0"
            assert sample.reason
            assert sample.validation is Validation.NOT_VALIDATED
        assert (sample.validation is Validation.MISMATCH) == (sample.status is Status.WRONG)
    assert {path.name for path in (run.path / "answers").iterdir()} == {
        "cell-q06-1.arrow", "empty-q06-1.arrow", "partial-q01-1.arrow",
    }  # fmt: skip
    end = ending(run.samples())
    assert end.exit_code == EXIT_REGRESSION
    assert sorted(line.split(":")[0] for line in end.troubled) == [
        "broken q06", "cell q06", "crash q06", "empty q06", "hang q06", "oom q06", "partial q01",
    ]  # fmt: skip


def test_a_query_that_keeps_killing_its_arm_is_given_up(go: Go, tmp_path: Path) -> None:
    arms = [arm_file(tmp_path, "crash", "crash:make_context", env={"FIXTURE_MARK": ON_Q06}), arm_file(tmp_path, "good")]
    run = go(arms, rounds=4)
    cells = by_cell(run)
    assert [sample.status for sample in cells["crash", "q06"]] == [Status.CRASH] * 2 + [Status.NOT_RUN] * 2
    assert "given up after 2 fatal ends" in str(cells["crash", "q06"][-1].reason)
    assert {sample.status for sample in cells["crash", "q01"]} == {Status.OK}, "the arm is restarted for the next step"
    assert {sample.status for sample in cells["good", "q06"]} == {Status.OK}


def test_a_restarted_arm_is_warmed_up_before_it_is_timed(go: Go, tmp_path: Path) -> None:
    arms = [arm_file(tmp_path, "crash", "crash:make_context", env={"FIXTURE_MARK": ON_Q06}), arm_file(tmp_path, "good")]
    run = go(arms, rounds=1, warmups=1)
    starts = [event for event in run.events() if event["kind"] == "start" and event["arm"] == "crash"]
    assert [event["phase"] for event in starts][:2] == ["preflight", "timed"]
    assert len(starts) >= 3, "restarted after the crash"
    samples = by_cell(run)["crash", "q06"]
    assert [sample.status for sample in samples] == [Status.CRASH, Status.CRASH]


def test_a_worker_that_dies_is_named(go: Go, tmp_path: Path) -> None:
    killer = arm_file(tmp_path, "killer", "killer:make_context", behaviour="ready", env={"FIXTURE_MARK": ON_Q06})
    run = go([killer, arm_file(tmp_path, "good")])
    cells = by_cell(run)
    assert cells["killer", "q06"][0].status is Status.CRASH
    assert "worker 1 of 2 of arm `killer` died by SIGKILL" in str(cells["killer", "q06"][0].reason)
    assert cells["killer", "q01"][0].status is Status.OK


def test_no_remote_task_is_labelled(go: Go, tmp_path: Path) -> None:
    toy = arm_file(tmp_path, "toy", "toy:make_context", behaviour="ready", env={"FIXTURE_TASKS": "0"})
    run = go([toy])
    assert {sample.reach for sample in run.samples()} == {Reach.NOT_DISTRIBUTED}
    assert {sample.status for sample in run.samples()} == {Status.OK}
    assert "2 pairs of arm and query ran without a remote task" in ending(run.samples()).sentence


def test_declared_limits_are_unsupported_not_errors(go: Go, tmp_path: Path) -> None:
    extra = '[[unsupported]]\nwhat = "query:q06"\nreason = "this test arm does not do q06"\n'
    run = go([arm_file(tmp_path, "some", extra=extra), arm_file(tmp_path, "good")])
    sample = by_cell(run)["some", "q06"][0]
    assert (sample.status, sample.reason) == (Status.UNSUPPORTED, "this test arm does not do q06")
    assert ending(run.samples()).exit_code == 0


def test_the_dataframe_form_gives_the_same_answers(go: Go, tmp_path: Path) -> None:
    run = go([arm_file(tmp_path, "alone")], form="dataframe", queries=["q01", "q03", "q06", "q15"])
    assert {(s.status, s.validation, s.form) for s in run.samples()} == {(Status.OK, Validation.VALIDATED, "dataframe")}


def test_all_queries_of_both_sets_validate(go: Go, tmp_path: Path) -> None:
    for query_set in ("spec", "upstream"):
        run = go([arm_file(tmp_path, "alone")], queries=list(QUERY_IDS), query_set=query_set)
        bad = [(s.query, s.status, s.reason) for s in run.samples() if s.status is not Status.OK]
        assert bad == []
        assert {s.validation for s in run.samples()} <= {Validation.VALIDATED, Validation.VACUOUS}


def test_one_cluster_at_a_time_when_rounds_are_interleaved(go: Go, tmp_path: Path) -> None:
    arms = [arm_file(tmp_path, name, "toy:make_context", behaviour="ready") for name in ("one", "two")]
    run = go(arms, interleave="round", rounds=2)
    assert {sample.status for sample in run.samples()} == {Status.OK}
    starts = [event for event in run.events() if event["kind"] == "start" and event["phase"] == "timed"]
    assert len(starts) == 4


def test_different_engines_are_refused_before_anything_is_timed(go: Go, tmp_path: Path) -> None:
    arms = [
        arm_file(tmp_path, "one", "toy:make_context", behaviour="ready"),
        arm_file(tmp_path, "two", "toy:make_context", behaviour="ready", env={"FIXTURE_FINGERPRINT": "e" * 64}),
    ]
    with pytest.raises(NotComparable, match="ffffffffffff: one.*eeeeeeeeeeee: two") as caught:
        go(arms)
    assert caught.value.exit_code == EXIT_NOT_COMPARABLE
    assert list((tmp_path / "runs").iterdir()) == [], "no run directory is left"


def test_a_worker_of_another_build_is_refused(go: Go, tmp_path: Path) -> None:
    toy = arm_file(tmp_path, "toy", "toy:make_context", behaviour="ready", env={"FIXTURE_WORKER_FINGERPRINT": "e" * 64})
    with pytest.raises(NotComparable, match="ffffffffffff: toy .* eeeeeeeeeeee: toy worker 1, toy worker 2"):
        go([toy])


def test_arms_with_different_settings_compared__refused_unless_declared(go: Go, tmp_path: Path) -> None:
    other = '[config]\n"datafusion.execution.batch_size" = "1000"\n'
    good = arm_file(tmp_path, "good")
    with pytest.raises(NotComparable, match=r"batch_size: '8192' \(good\), '1000' \(other\)"):
        go([good, arm_file(tmp_path, "other", extra=other)])
    declared = other + '[[differences]]\nkey = "datafusion.execution.batch_size"\nreason = "a test of small batches"\n'
    run = go([good, arm_file(tmp_path, "declared", extra=declared)], queries=["q06"])
    listed = run.manifest().config_differences
    assert [(d.key, d.reasons) for d in listed] == [
        ("datafusion.execution.batch_size", {"declared": "a test of small batches"})
    ]


@pytest.mark.parametrize(
    ("factory", "env", "behaviour", "words"),
    [
        ("broken:make_context", {"FIXTURE_BROKEN": "import"}, None, "does not start: ImportError: libengine.so.7"),
        ("broken:make_context", {"FIXTURE_BROKEN": "open"}, None, "does not start: ValueError: invalid option"),
        ("no_such_module:make_context", {}, None, "does not start: ModuleNotFoundError"),
        ("toy:make_context", {}, "dies", "address already in use"),
    ],
)
def test_an_arm_that_does_not_start_is_one_message(
    go: Go, tmp_path: Path, factory: str, env: dict[str, str], behaviour: str | None, words: str
) -> None:
    with pytest.raises(HarnessFault) as caught:
        go([arm_file(tmp_path, "bad", factory, env=env, behaviour=behaviour)])
    assert words in str(caught.value)
    assert "leave it out with --arms" in str(caught.value)


def test_a_time_cap_stops_between_rounds_and_says_so(go: Go, tmp_path: Path) -> None:
    run = go([arm_file(tmp_path, "alone")], queries=["q06"], rounds=50, time_cap_s=0.01)
    assert "stopped by the time cap" in str(run.manifest().stopped_because)
    assert run.manifest().status == "complete"
    assert 1 <= len(run.samples()) < 50


def timed(arm: str, query: str, times: list[float], schedule: Schedule) -> list[Sample]:
    steps = [step for step in schedule.timed if (step.arm, step.query) == (arm, query)]
    return [
        Sample(
            round=step.round, sequence=step.sequence, arm=arm, query=query, phase=Phase.TIMED, status=Status.OK,
            elapsed_ms=times[step.round], validation=Validation.VALIDATED, reach=Reach.SINGLE_NODE,
        )
        for step in steps
    ]  # fmt: skip


STEADY = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0, 100.0, 101.0, 99.0, 100.0]
LIKELY = [112.0, 101.8, 113.0, 114.0, 103.0, 112.0, 100.9, 113.0, 111.0, 112.0]
"""Slower than `STEADY` by 11 % in the median, with an interval that reaches into the margin of 5 %."""


def test_only_likely_differences_are_run_again(tmp_path: Path) -> None:
    from harness.arms import load_arm

    arms = [
        load_arm(arm_file(tmp_path, name, kind=kind))
        for name, kind in (("base", "baseline"), ("new", "external"), ("same", "external"))
    ]
    schedule = make_schedule(["base", "new", "same"], ["q01", "q06"], 10, seed=1, warmups=0)
    samples = [s for arm in ("base", "same") for query in ("q01", "q06") for s in timed(arm, query, STEADY, schedule)]
    samples += timed("new", "q01", STEADY, schedule) + timed("new", "q06", LIKELY, schedule)
    queries, concerned = queries_to_repeat(samples, schedule, arms, 10, 1.0)
    assert queries == ["q06"]
    assert set(concerned) == {"base", "new"}
    assert queries_to_repeat([s for s in samples if s.arm != "new"], schedule, arms, 10, 1.0) == ([], [])


def test_the_pairs_that_are_judged(tmp_path: Path) -> None:
    from harness.arms import select_arms, shipped_arms

    arms = select_arms(["inline", "decorator", "local", "native", "aa"], shipped_arms())
    found = set(pairs(arms))
    assert ("native", "inline") in found
    assert ("local", "native") in found
    assert ("decorator", "aa") in found
    assert all(base in ("native", "local", "decorator") for base, _ in found)


@pytest.mark.parametrize("query_set", ["spec", "upstream"])
def test_the_answer_without_limit_differs_only_by_the_limit(query_set: str) -> None:
    limited = [load_query(query_set, name, "1") for name in QUERY_IDS]
    for query in limited:
        whole = without_limit(query)
        assert (whole is None) == (query.limit is None), query.id
        if whole is not None:
            assert query.sql.startswith(whole.sql)
            assert whole.limit is None


def test_an_ending_without_anything_is_no_success() -> None:
    assert ending([]).exit_code == EXIT_REGRESSION
    assert "nothing ran to its end" in ending([]).sentence


def test_an_answer_that_nobody_checked_is_no_success() -> None:
    sample = Sample(round=0, sequence=0, arm="a", query="q01", phase=Phase.TIMED, status=Status.OK, elapsed_ms=1.0)
    end = ending([sample])
    assert end.exit_code == EXIT_REGRESSION
    assert end.troubled == ["a q01: not validated, no reason"]
