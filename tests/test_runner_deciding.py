"""What the runner decides while it runs: what runs again, and when to stop. It decides as the report judges."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_helpers import aa_file, arm_file
from harness.arms import Arm, all_arms, select_arms, shipped_arms
from harness.model import Phase, Reach, Sample, Status, Tier, Validation, Verdict
from harness.runner.recurrence import queries_to_repeat
from harness.runner.stopping import Stopper
from harness.schedule import Schedule, make_schedule, recurrence_schedule
from harness.stats import flagged
from report_helpers import make_arm
from reports import tables
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
            round=step.round, sequence=step.sequence, arm=step.arm, query=str(step.query), phase=schedule.phase,
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


SHIPPED = ["local", "native", "inline", "decorator", "aa"]
QUERIES = ["q01", "q06", "q18"]


def judged(times: dict[tuple[str, str], list[float]]) -> tuple[list[str], dict[tuple[str, str], dict[str, Verdict]]]:
    """What the runner runs again of a run with these times, and what the report then says (new, base) by query."""
    schedule = make_schedule(SHIPPED, QUERIES, 10, seed=1612, warmups=0)
    samples = samples_of(schedule, times)
    queries, concerned = queries_to_repeat(samples, schedule, select_arms(SHIPPED, shipped_arms()), 10, 1.0)
    if queries:
        samples += samples_of(recurrence_schedule(schedule, queries, arms=concerned), times)
    data = tables.RunData(samples, {name: make_arm(name) for name in SHIPPED}, QUERIES, 10, 1612, 1.0)
    cells, again = tables.collect_cells(data), tables.collect_cells(data, Phase.RECURRENCE)
    return queries, tables.query_verdicts(data, cells, again, tables.judge_noise(data, cells))


def test_a_single_node_against_clusters_is_stated_and_not_run_again() -> None:
    queries, verdicts = judged({("local", query): [time * 0.7 for time in STEADY] for query in QUERIES})
    assert queries == []
    for arm in ("native", "inline", "decorator", "aa"):
        for query in QUERIES:
            verdict = verdicts[arm, "local"][query]
            assert (verdict.kind.value, verdict.tier, verdict.recurred) == ("slower", Tier.SINGLE_RUN, None)


def test_a_single_node_does_not_take_part_in_the_re_run_of_others() -> None:
    far = [time * 1.5 for time in STEADY]
    queries, verdicts = judged({("inline", "q06"): far, **{("local", query): far for query in QUERIES}})
    assert queries == ["q06"]
    assert verdicts["inline", "native"]["q06"].recurred is True
    assert verdicts["native", "local"]["q06"].tier is Tier.SINGLE_RUN, "one side of it ran again, and is not judged"


@settings(max_examples=12, deadline=None)
@given(
    factors=st.dictionaries(
        st.tuples(st.sampled_from(SHIPPED), st.sampled_from(QUERIES)),
        st.sampled_from([0.6, 0.94, 1.06, 1.3]),
        max_size=9,
    )
)
def test_arms_with_as_many_workers_are_never_exempt(factors: dict[tuple[str, str], float]) -> None:
    """Between two clusters every claim has been seen twice; only a single node against a cluster is seen once."""
    # Rounds that scatter: 6 % is then a likely difference, 30 % a confirmed one.
    scatter = [1.0, 1.04, 0.97, 1.05, 0.96, 1.02, 0.99, 1.06, 0.95, 1.01]
    times = {
        (arm, query): [time * factor * by for time, by in zip(STEADY, scatter, strict=True)]
        for (arm, query), factor in factors.items()
    }
    queries, verdicts = judged(times)
    for (new, base), found in verdicts.items():
        for query, verdict in found.items():
            if "local" not in (new, base):
                assert verdict.tier is not Tier.SINGLE_RUN
                assert verdict.tier is None or (query in queries and verdict.recurred is True), verdict.reason
            else:
                assert verdict.tier is not Tier.CONFIRMED, verdict.reason
                assert flagged(verdict) is (verdict.tier is Tier.SINGLE_RUN)
                assert verdict.recurred is None


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
