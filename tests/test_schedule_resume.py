"""Resuming after a kill at any point loses nothing and times nothing twice."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import HarnessFault
from harness.schedule import Interleave, Schedule, Step, finished_rounds, make_schedule, recurrence_schedule, remaining

ARMS = ("inline", "external", "decorator")
QUERIES = ("q01", "q06", "q09", "q18")
MODES: tuple[Interleave, ...] = ("query", "round")


def _schedule(mode: Interleave, rounds: int = 3) -> Schedule:
    return make_schedule(ARMS, QUERIES, rounds, seed=5, warmups=2, interleave=mode)


def _run(steps: tuple[Step, ...], stop_after: int | None = None) -> list[int]:
    """Do the steps as a runner would, and return the sequence numbers of the samples written before the kill."""
    live: set[str] = set()
    warm: set[tuple[str, str | None]] = set()
    written = []
    for step in steps[:stop_after]:
        if step.action == "start_cluster":
            assert step.arm not in live
            live.add(step.arm)
        elif step.action == "stop_cluster":
            live.remove(step.arm)
            warm = {(arm, query) for arm, query in warm if arm != step.arm}
        else:
            assert step.arm in live, f"{step} has no cluster"
            if step.action == "timed":
                assert (step.arm, step.query) in warm, f"{step} is timed in a cold process"
            warm.add((step.arm, step.query))
            written.append(step.sequence)
    if stop_after is None or stop_after >= len(steps):
        assert not live, f"clusters left running: {live}"
    return written


@pytest.mark.parametrize("mode", MODES)
def test_nothing_done_means_everything_remains(mode: Interleave) -> None:
    schedule = _schedule(mode)
    assert remaining(schedule, ()) == schedule.steps


@pytest.mark.parametrize("mode", MODES)
def test_everything_done_means_nothing_remains(mode: Interleave) -> None:
    schedule = _schedule(mode)
    assert remaining(schedule, {step.sequence for step in schedule.timed}) == ()


@pytest.mark.parametrize("mode", MODES)
def test_a_kill_at_any_step_loses_and_repeats_nothing(mode: Interleave) -> None:
    schedule = _schedule(mode)
    timed = [step.sequence for step in schedule.timed]
    for kill in range(len(schedule.steps) + 1):
        before = _run(schedule.steps, kill)
        after = _run(remaining(schedule, before))
        results = [number for number in (*before, *after) if number in set(timed)]
        assert results == timed, f"killed after step {kill}: order, number or repetition of results changed"


@given(st.sampled_from(MODES), st.lists(st.integers(0, 80), max_size=5))
@settings(max_examples=60, deadline=None)
def test_repeated_kills_lose_and_repeat_nothing(mode: Interleave, kills: list[int]) -> None:
    schedule = _schedule(mode)
    timed = {step.sequence for step in schedule.timed}
    done: list[int] = []
    for kill in kills:
        done += [number for number in _run(remaining(schedule, done), kill) if number in timed]
    done += [number for number in _run(remaining(schedule, done)) if number in timed]
    assert sorted(done) == sorted(timed)


def test_only_what_still_has_work_is_started_and_warmed() -> None:
    schedule = _schedule("query")
    last = schedule.timed[-1]
    left = remaining(schedule, {step.sequence for step in schedule.timed[:-1]})
    assert [step.action for step in left] == ["start_cluster", "warmup", "warmup", "timed", "stop_cluster"]
    assert {step.arm for step in left} == {last.arm}
    assert {step.query for step in left if step.query} == {last.query}


@pytest.mark.parametrize("foreign", [-1, 0, 10_000])
def test_samples_of_another_schedule_are_refused(foreign: int) -> None:
    """Step 0 starts a cluster, so no sample can carry its number."""
    with pytest.raises(HarnessFault, match="not steps of this schedule"):
        remaining(_schedule("query"), {foreign})


def test_first_run_and_rerun_share_no_numbers() -> None:
    first = _schedule("query")
    again = recurrence_schedule(first, ["q06"])
    assert not {step.sequence for step in first.steps} & {step.sequence for step in again.steps}
    with pytest.raises(HarnessFault):
        remaining(again, {first.timed[0].sequence})
    assert remaining(again, ()) == again.steps


@pytest.mark.parametrize("mode", MODES)
def test_finished_rounds_count_from_the_first(mode: Interleave) -> None:
    schedule = _schedule(mode)
    per_round = len(ARMS) * len(QUERIES)
    numbers = [step.sequence for step in schedule.timed]
    for done in range(len(numbers) + 1):
        assert finished_rounds(schedule, set(numbers[:done])) == done // per_round
    assert finished_rounds(schedule, set(numbers[1:])) == 0
