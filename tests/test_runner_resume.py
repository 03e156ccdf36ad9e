"""A run that is stopped at any point goes on to the same schedule: nothing lost, nothing timed twice."""

from __future__ import annotations

import json
import signal
import subprocess
import uuid
from pathlib import Path

import pytest

from arm_helpers import arm_file, processes_with, wait_until
from harness.errors import EXIT_NOT_COMPARABLE, EXIT_USAGE
from harness.model import Phase, Sample, Status
from harness.rundir import MANIFEST, SAMPLES, RunDirectory, write_atomic
from harness.schedule import Schedule
from kill_helpers import VICTIMS, arms_of, the_run, trial
from runner_helpers import ROOT, command_line, environment, invoke
from tpch.generate import DataSet


def start(words: list[str], data: DataSet, token: str) -> subprocess.Popen[str]:
    env = dict(environment(data.root, RUN_TOKEN=token))
    return subprocess.Popen(words, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check_complete(run: RunDirectory) -> None:
    schedule = Schedule.model_validate_json(run.schedule_json())
    planned = {step.sequence: step for step in schedule.steps if step.query is not None}
    samples = run.samples()
    assert sorted(sample.sequence for sample in samples) == sorted(planned), "each step exactly once"
    for sample in samples:
        step = planned[sample.sequence]
        assert (sample.arm, sample.query, sample.round) == (step.arm, step.query, step.round)
        assert sample.status is Status.OK, sample.reason
    assert run.manifest().status == "complete"


@pytest.mark.parametrize("seed", [0, 1, 2], ids=VICTIMS)
def test_kill_9_at_random_points(tpch_sf001: DataSet, tmp_path: Path, seed: int) -> None:
    """Three trials, one per kind of process; `python tests/kill_helpers.py` does 20."""
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        found = trial(seed, folder, tpch_sf001.root)
        assert found.problems == [], (folder / "harness.log").read_text(encoding="utf-8", errors="replace")[-3000:]
        # A run may end before it is hit; then nothing was tried.
        if found.kills:
            return
    pytest.fail("three runs ended before anything was killed")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_takes_everything_down_and_says_how_to_go_on(
    tpch_sf001: DataSet, tmp_path: Path, number: signal.Signals
) -> None:
    token, out = uuid.uuid4().hex, tmp_path / "runs"
    words = command_line(arms_of(tmp_path), out, "--rounds", "200", "--no-recurrence")
    harness = start(words, tpch_sf001, token)
    assert wait_until(lambda: (found := the_run(out)) is not None and len(found.samples()) > 3, 120)
    harness.send_signal(number)
    _, said = harness.communicate(timeout=60)
    assert harness.returncode == 130
    assert "Traceback" not in said
    run = the_run(out)
    assert run is not None
    assert f"df-strategies run --resume {run.path}" in said
    assert run.manifest().status == "interrupted"
    assert wait_until(lambda: not processes_with(token), 10)


def test_resume_goes_on_with_the_settings_of_the_run(tpch_sf001: DataSet, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    words = command_line(arms_of(tmp_path), out, "--rounds", "2", "--no-recurrence")
    assert invoke(words, tpch_sf001.root).returncode == 0
    run = the_run(out)
    assert run is not None
    resume = [*words[:4], "--resume", "latest", "--out", str(out), "--quiet", "--no-report"]
    done = invoke(resume, tpch_sf001.root)
    assert done.returncode == EXIT_USAGE
    assert "is complete; nothing is left to do" in done.stderr
    # As a kill would have left it: unfinished, the last line torn.
    manifest = json.loads((run.path / MANIFEST).read_text(encoding="utf-8"))
    write_atomic(run.path / MANIFEST, json.dumps({**manifest, "status": "running"}))
    (run.path / "timed_end.json").unlink()
    lines = (run.path / SAMPLES).read_text(encoding="utf-8").splitlines(keepends=True)
    (run.path / SAMPLES).write_text("".join(lines[:5]) + lines[5][:40], encoding="utf-8")
    done = invoke(resume, tpch_sf001.root)
    assert done.returncode == 0, done.stderr
    check_complete(run)
    assert [s.model_dump_json() for s in run.samples()[:5]] == [line.strip() for line in lines[:5]], "kept as they were"
    assert len(run.manifest().resumed_at) == 1


def test_resume_refuses_what_has_changed(tpch_sf001: DataSet, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    words = command_line(arms_of(tmp_path), out, "--rounds", "1", "--no-recurrence")
    assert invoke(words, tpch_sf001.root).returncode == 0
    run = the_run(out)
    assert run is not None
    manifest = json.loads((run.path / MANIFEST).read_text(encoding="utf-8"))
    resume = [*words[:4], "--resume", str(run.path), "--quiet", "--no-report"]
    other_build = {**manifest["arms"]["toy"], "build": {"fingerprint": "0"}}
    for change, words_expected in [
        ({"data": {**manifest["data"], "fingerprint": "0" * 64}}, "the data (000000000000 then"),
        ({"query_set_hash": "0" * 64}, "the queries (000000000000 then"),
        ({"schedule_hash": "0" * 64}, "the schedule (000000000000 then"),
        ({"arms": {**manifest["arms"], "toy": other_build}}, "arm `toy` has changed"),
    ]:  # fmt: skip
        write_atomic(run.path / MANIFEST, json.dumps({**manifest, "status": "interrupted", **change}))
        done = invoke(resume, tpch_sf001.root)
        assert done.returncode == EXIT_NOT_COMPARABLE, done.stderr
        assert words_expected in done.stderr
        assert "Traceback" not in done.stderr


def test_a_likely_difference_is_run_again_in_fresh_processes(tpch_sf001: DataSet, tmp_path: Path) -> None:
    """The timed rounds are real; their times are replaced by ones that are likely different, then the run goes on."""
    from test_runner import LIKELY, STEADY

    out = tmp_path / "runs"
    arms = [arm_file(tmp_path, "base", kind="baseline"), arm_file(tmp_path, "new")]
    words = command_line(arms, out, "--rounds", "10", "--no-recurrence")
    assert invoke(words, tpch_sf001.root).returncode == 0
    run = the_run(out)
    assert run is not None

    def edited(sample: Sample) -> Sample:
        times = LIKELY if (sample.arm, sample.query) == ("new", "q06") else STEADY
        return sample.model_copy(update={"elapsed_ms": times[sample.round]})

    text = "".join(edited(sample).model_dump_json() + "\n" for sample in run.samples())
    (run.path / SAMPLES).write_text(text, encoding="utf-8")
    manifest = json.loads((run.path / MANIFEST).read_text(encoding="utf-8"))
    settings = {**manifest["settings"], "recurrence": True}
    write_atomic(run.path / MANIFEST, json.dumps({**manifest, "status": "interrupted", "settings": settings}))
    done = invoke([*words[:4], "--resume", str(run.path), "--quiet", "--no-report"], tpch_sf001.root)
    assert done.returncode == 0, done.stderr
    again = [sample for sample in run.samples() if sample.phase is Phase.RECURRENCE]
    assert {(sample.arm, sample.query) for sample in again} == {("base", "q06"), ("new", "q06")}
    assert len(again) == 20
    numbers = [sample.sequence for sample in run.samples()]
    assert len(numbers) == len(set(numbers)), "the re-run numbers on behind the timed rounds"
    schedule = Schedule.model_validate_json((run.path / "recurrence.json").read_text(encoding="utf-8"))
    assert schedule.seed != Schedule.model_validate_json(run.schedule_json()).seed
    starts = [event for event in run.events() if event["kind"] == "start" and event["phase"] == "recurrence"]
    assert sorted(event["arm"] for event in starts) == ["base", "new"]
