"""Runs that lose a process to `kill -9` at a random point: the harness, an arm or a worker. One seed, one trial.

    python tests/kill_helpers.py --trials 20 --data DIR      the long form, on the arms of the tests

Whatever dies, every step of the schedule ends up with exactly one sample, and the schedule is the one written before
the first step. A killed harness is resumed and loses nothing; a killed arm or worker costs the execution in flight,
which is recorded as a crash.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import NamedTuple

from arm_helpers import aa_file, arm_file, processes_with, wait_until
from harness.model import Status
from harness.rundir import MANIFEST, RunDirectory
from harness.schedule import Schedule, schedule_hash
from runner_helpers import ROOT, command_line, environment

VICTIMS = ("harness", "arm", "worker")
MARKS = {"arm": "arm_child.py", "worker": "fake_worker.py"}
"""What stands in the command line of a process of each kind."""

ROUNDS = 60
"""Long enough that a run does not end before it is hit, also where one execution takes milliseconds."""

MOST_KILLS = 3
WAIT_S = 240.0


class Trial(NamedTuple):
    """What one trial came to. `problems` is empty if it went as it must."""

    seed: int
    victim: str
    kills: int
    resumes: int
    samples: int
    crashed: int
    problems: list[str]

    def __str__(self) -> str:
        end = "; ".join(self.problems) or "as it must"
        return (
            f"seed {self.seed:>3}: {self.kills} x kill -9 of the {self.victim:<7} {self.resumes} resumes,"
            f" {self.samples} samples, {self.crashed} crashed: {end}"
        )


def arms_of(folder: Path) -> list[Path]:
    """Arms with and without workers, and one of them twice."""
    toy = arm_file(folder, "toy", "toy:make_context", behaviour="ready", kind="baseline")
    return [toy, arm_file(folder, "alone"), aa_file(folder, "twice", "toy")]


def the_run(root: Path) -> RunDirectory | None:
    """The one run below `root`, once it is there."""
    found = list(root.glob(f"*/{MANIFEST}"))
    return RunDirectory(found[0].parent) if found else None


def trial(seed: int, folder: Path, data_root: Path, rounds: int = ROUNDS) -> Trial:
    """Carry out one trial; victim, number of kills and moments follow from the seed."""
    chance, victim = random.Random(seed), VICTIMS[seed % len(VICTIMS)]
    token, out = uuid.uuid4().hex, folder / "runs"
    words = command_line(arms_of(folder), out, "--rounds", str(rounds), "--seed", str(seed), "--no-recurrence")
    env = dict(environment(data_root, RUN_TOKEN=token))
    log = (folder / "harness.log").open("ab")

    def start(command: list[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log)

    harness, kills, resumes, problems = start(words), 0, 0, []
    planned, before = chance.randint(1, MOST_KILLS), -1
    while kills < planned and harness.poll() is None:
        if not wait_until(lambda: the_run(out) is not None or harness.poll() is not None, WAIT_S):
            problems.append("no run directory appeared")
            break
        run = the_run(out)
        if run is None:
            problems.append(f"the harness ended with {harness.wait()} before there was a run")
            break
        target = before + chance.randint(1, 8)
        wait_until(lambda run=run, target=target: len(run.samples()) > target or harness.poll() is not None, WAIT_S)
        time.sleep(chance.random() * 0.1)
        hit = [harness.pid] if victim == "harness" else [pid for pid in processes_with(token) if _is(pid, victim)]
        if harness.poll() is not None or not hit:
            continue
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(sorted(hit)), signal.SIGKILL)
            kills += 1
        if victim == "harness":
            harness.wait()
            if not wait_until(lambda: not processes_with(token), 30):
                problems.append("processes survived the harness")
            if run.manifest().status == "complete":
                break
            harness = start([*words[:4], "--resume", str(run.path), "--quiet", "--no-report"])
            resumes += 1
        before = len(run.samples())
    code = harness.wait(WAIT_S)
    log.close()
    run = the_run(out)
    if run is None:
        return Trial(seed, victim, kills, resumes, 0, 0, [*problems, "no run"])
    if not wait_until(lambda: not processes_with(token), 30):
        problems.append("a process is still there")
    return _checked(seed, victim, kills, resumes, code, run, problems)


def _checked(
    seed: int, victim: str, kills: int, resumes: int, code: int, run: RunDirectory, problems: list[str]
) -> Trial:
    schedule, manifest, samples = Schedule.model_validate_json(run.schedule_json()), run.manifest(), run.samples()
    planned = {step.sequence: step for step in schedule.steps if step.query is not None}
    if manifest.status != "complete":
        problems.append(f"the run is {manifest.status}")
    if manifest.schedule_hash != schedule_hash(schedule):
        problems.append("the schedule is another one")
    if sorted(sample.sequence for sample in samples) != sorted(planned):
        problems.append("not every step has exactly one sample")
    for sample in samples:
        step = planned.get(sample.sequence)
        if step is None or (step.arm, step.query, step.round) != (sample.arm, sample.query, sample.round):
            problems.append(f"sample {sample.sequence} is not what its step says")
    crashed = [sample for sample in samples if sample.status is not Status.OK]
    if victim == "harness" and crashed:
        problems.append(f"{len(crashed)} samples failed although only the harness was killed")
    if len(crashed) > kills or any(sample.status is not Status.CRASH for sample in crashed):
        problems.append(f"failures: {[(sample.status.value, sample.reason) for sample in crashed]}")
    if any(sample.elapsed_ms is not None for sample in crashed):
        problems.append("a crashed execution has a time")
    if code != (1 if crashed else 0):
        problems.append(f"exit code {code} with {len(crashed)} crashed")
    return Trial(seed, victim, kills, resumes, len(samples), len(crashed), problems)


def _is(pid: int, victim: str) -> bool:
    try:
        return MARKS[victim].encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def main() -> int:
    """The long form."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="rounds of a run; fewer will do where executions are slow"
    )
    parser.add_argument(
        "--data", type=Path, help="data root that has SF0.01 (made below a temporary folder if not given)"
    )
    given = parser.parse_args()
    from tpch.generate import ensure_data

    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        root = given.data or Path(folder) / "data"
        ensure_data("0.01", root, progress=False)
        for seed in range(given.first, given.first + given.trials):
            place = Path(folder) / str(seed)
            place.mkdir()
            found = trial(seed, place, root, given.rounds)
            failed += bool(found.problems)
            print(found, flush=True)
    print(f"{given.trials - failed} of {given.trials} trials went as they must")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
