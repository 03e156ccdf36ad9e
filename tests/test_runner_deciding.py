"""What the runner decides while it runs: what runs again, and when to stop. It decides as the report judges."""

from __future__ import annotations

from pathlib import Path

import pytest

from arm_helpers import aa_file, arm_file
from harness.arms import Arm, all_arms, select_arms
from harness.model import Phase, Reach, Sample, Status, Validation
from harness.runner.recurrence import queries_to_repeat
from harness.runner.stopping import Stopper
from harness.schedule import Schedule, make_schedule
from runner_helpers import run_settings

STEADY = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0, 100.0, 101.0, 99.0, 100.0]
FAR = [time * 1.5 for time in STEADY]
"""Confirmed at once: the whole interval lies beyond any margin."""
NEAR = [time * 1.065 for time in STEADY]
"""Beyond the plain margin of 5 %, by less than what the A/A pair of a test shows."""


@pytest.fixture
def arms(tmp_path: Path) -> list[Arm]:
    files = [arm_file(tmp_path, "base", kind="baseline"), arm_file(tmp_path, "new"), aa_file(tmp_path, "twin", "new")]
    return select_arms(["base", "new", "twin"], all_arms(files))


def samples_of(
    schedule: Schedule, times: dict[tuple[str, str], list[float]], reach: dict[tuple[str, str], Reach] | None = None
) -> list[Sample]:
    return [
        Sample(
            round=step.round, sequence=step.sequence, arm=step.arm, query=str(step.query), phase=Phase.TIMED,
            status=Status.OK, elapsed_ms=times.get((step.arm, str(step.query)), STEADY)[step.round],
            validation=Validation.VALIDATED,
            reach=(reach or {}).get((step.arm, str(step.query)), Reach.DISTRIBUTED),
        )
        for step in schedule.timed
    ]  # fmt: skip


@pytest.fixture
def schedule() -> Schedule:
    return make_schedule(["base", "new", "twin"], ["q01", "q06"], 10, seed=1, warmups=0)


def test_confirmed_differences_run_again_too(arms: list[Arm], schedule: Schedule) -> None:
    times = {("new", "q06"): FAR, ("twin", "q06"): FAR}
    queries, concerned = queries_to_repeat(samples_of(schedule, times), schedule, arms, 10, 1.0)
    assert queries == ["q06"]
    assert set(concerned) == {"base", "new", "twin"}


def test_the_aa_pair_is_judged_at_the_plain_margin(arms: list[Arm], schedule: Schedule) -> None:
    """The raised margin comes from that very pair: judged by it, it could never show anything."""
    queries, concerned = queries_to_repeat(samples_of(schedule, {("twin", "q01"): NEAR}), schedule, arms, 10, 1.0)
    assert queries == ["q01"]
    assert set(concerned) == {"new", "twin"}, "within the raised margin, the twin does not differ from the base"


def test_nothing_runs_again_where_nothing_differs(arms: list[Arm], schedule: Schedule) -> None:
    assert queries_to_repeat(samples_of(schedule, {}), schedule, arms, 10, 1.0) == ([], [])


def stopper(tmp_path: Path, arms: list[Arm], schedule: Schedule, samples: list[Sample], rounds: int) -> str | None:
    """What is said behind the last step of a round."""
    done: set[int] = set()
    settings = run_settings([tmp_path / f"{arm.name}.toml" for arm in arms], rounds=10, adaptive=True)
    asks = Stopper(settings, schedule, arms, lambda: frozenset(done), lambda: [s for s in samples if s.round < rounds])
    done |= {step.sequence for step in schedule.timed if step.round < rounds}
    return asks(next(step for step in reversed(schedule.timed) if step.round == rounds - 1))


def test_an_early_stop_judges_the_suite_that_the_report_judges(
    tmp_path: Path, arms: list[Arm], schedule: Schedule
) -> None:
    """A noisy query that ran on one node is in no suite, so it must not keep the run from stopping."""
    noisy = [100.0, 160.0, 80.0, 140.0, 70.0, 150.0, 90.0, 130.0, 60.0, 170.0]
    times = {("new", "q06"): noisy}
    assert stopper(tmp_path, arms, schedule, samples_of(schedule, times), 6) is None
    local = {("new", "q06"): Reach.NOT_DISTRIBUTED}
    said = stopper(tmp_path, arms, schedule, samples_of(schedule, times, local), 6)
    assert said is not None
    assert said.startswith("stopped by precision: after 6 rounds")


def test_the_last_planned_round_is_the_reason_when_it_is(tmp_path: Path, arms: list[Arm], schedule: Schedule) -> None:
    assert stopper(tmp_path, arms, schedule, samples_of(schedule, {}), 10) == "stopped after all 10 planned rounds"
