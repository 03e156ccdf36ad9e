"""The schedule as data: complete, balanced, and the same for the same seed."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UserError
from harness.model import Estimate, Phase
from harness.schedule import (
    Interleave,
    Schedule,
    Step,
    design,
    half_width,
    make_schedule,
    recurrence_schedule,
    schedule_hash,
    should_stop,
)

QUERIES = tuple(f"q{number:02d}" for number in range(1, 23))
ARMS = ("inline", "external", "decorator", "local", "native", "aa")
SIZES = st.tuples(st.integers(1, 6), st.integers(1, 22), st.integers(1, 12), st.integers(0, 2**31), st.integers(0, 2))
MODES: tuple[Interleave, ...] = ("query", "round")


def _order(schedule: Schedule) -> dict[int, dict[str, tuple[str, ...]]]:
    """Return, per round, the arms in the order in which they run each query."""
    orders: dict[int, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for step in schedule.timed:
        seen = orders[step.round].get(str(step.query), ())
        orders[step.round][str(step.query)] = (*seen, step.arm)
    return orders


@pytest.mark.parametrize("mode", MODES)
@given(size=SIZES)
@settings(max_examples=30, deadline=None)
def test_every_arm_runs_every_query_exactly_once_per_round(mode: Interleave, size: tuple[int, ...]) -> None:
    arms, queries, rounds, seed, warmups = size
    schedule = make_schedule(ARMS[:arms], QUERIES[:queries], rounds, seed=seed, warmups=warmups, interleave=mode)
    assert [step.sequence for step in schedule.steps] == list(range(len(schedule.steps)))
    timed = Counter((step.round, step.arm, step.query) for step in schedule.timed)
    assert timed == Counter(itertools.product(range(rounds), ARMS[:arms], QUERIES[:queries]))
    numbers = [step.round for step in schedule.timed]
    assert numbers == sorted(numbers), "rounds follow one another"
    warm = Counter((step.arm, step.query) for step in schedule.steps if step.action == "warmup")
    clusters = 1 if mode == "query" else rounds
    expected = {pair: warmups * clusters for pair in itertools.product(ARMS[:arms], QUERIES[:queries]) if warmups}
    assert warm == Counter(expected)


@pytest.mark.parametrize("mode", MODES)
@given(size=SIZES)
@settings(max_examples=30, deadline=None)
def test_steps_run_only_on_a_live_cluster(mode: Interleave, size: tuple[int, ...]) -> None:
    arms, queries, rounds, seed, warmups = size
    schedule = make_schedule(ARMS[:arms], QUERIES[:queries], rounds, seed=seed, warmups=warmups, interleave=mode)
    _check_clusters(schedule.steps, at_most=arms if mode == "query" else 1)


def _check_clusters(steps: tuple[Step, ...], at_most: int) -> None:
    live: set[str] = set()
    for step in steps:
        if step.action == "start_cluster":
            assert step.arm not in live, f"{step} starts a cluster twice"
            live.add(step.arm)
            assert len(live) <= at_most
        elif step.action == "stop_cluster":
            live.remove(step.arm)
        else:
            assert step.arm in live, f"{step} has no cluster"
    assert not live, f"clusters left running: {live}"


@given(st.integers(0, 2**31), st.integers(2, 22))
@settings(max_examples=30, deadline=None)
def test_two_arms_alternate_abba_within_and_across_rounds(seed: int, queries: int) -> None:
    orders = _order(make_schedule(["a", "b"], QUERIES[:queries], 10, seed=seed))
    for arms_of in orders.values():
        sequence = list(arms_of.values())
        assert all(left != right for left, right in itertools.pairwise(sequence)), "A B, then B A, then A B"
    for query in QUERIES[:queries]:
        per_round = [orders[number][query] for number in range(10)]
        assert all(left != right for left, right in itertools.pairwise(per_round))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("arms", range(2, 7))
def test_after_an_even_number_of_rounds_every_arm_went_first_equally_often(mode: Interleave, arms: int) -> None:
    for rounds in (2, 4, 10):
        orders = _order(make_schedule(ARMS[:arms], QUERIES, rounds, seed=3, interleave=mode))
        for query in QUERIES:
            for one, other in itertools.combinations(ARMS[:arms], 2):
                ahead = sum(orders[number][query].index(one) < orders[number][query].index(other) for number in orders)
                assert ahead == rounds / 2, f"{one} before {other} on {query} in {ahead} of {rounds} rounds"


@pytest.mark.parametrize("count", range(2, 9))
def test_design_is_a_williams_design(count: int) -> None:
    rows = [row for pair in design(range(count)) for row in pair]
    assert len(rows) == (count if count % 2 == 0 else 2 * count)
    for place in range(count):
        assert set(Counter(row[place] for row in rows).values()) == {len(rows) // count}
    followers = Counter(pair for row in rows for pair in itertools.pairwise(row))
    assert len(followers) == count * (count - 1)
    assert len(set(followers.values())) == 1, "every arm follows every other equally often"
    assert all(first == second[::-1] for first, second in design(range(count)))


@pytest.mark.parametrize("arms", range(2, 7))
def test_carry_over_is_balanced_for_every_query(arms: int) -> None:
    rounds = arms if arms % 2 == 0 else 2 * arms
    orders = _order(make_schedule(ARMS[:arms], QUERIES, rounds, seed=11))
    for query in QUERIES:
        followers = Counter(pair for number in orders for pair in itertools.pairwise(orders[number][query]))
        assert set(followers.values()) == {rounds // arms}
        assert len(followers) == arms * (arms - 1)


@pytest.mark.parametrize("arms", range(2, 7))
def test_rows_of_the_design_take_turns_within_a_round(arms: int) -> None:
    rows = len(design(ARMS[:arms])) * 2
    for arms_of in _order(make_schedule(ARMS[:arms], QUERIES, 3, seed=5)).values():
        used = Counter(arms_of.values())
        assert max(used.values()) - (min(used.values()) if len(used) == rows else 0) <= 1


def test_query_order_is_shuffled_per_round_and_shared_by_the_arms() -> None:
    schedule = make_schedule(ARMS, QUERIES, 6, seed=1, interleave="round")
    per_round: dict[int, set[tuple[str, ...]]] = defaultdict(set)
    for number, arm in itertools.product(range(6), ARMS):
        order = tuple(str(step.query) for step in schedule.timed if (step.round, step.arm) == (number, arm))
        per_round[number].add(order)
    assert all(len(orders) == 1 for orders in per_round.values())
    assert len(set().union(*per_round.values())) == 6
    interleaved = _order(make_schedule(ARMS, QUERIES, 6, seed=1))
    assert len({tuple(arms_of) for arms_of in interleaved.values()}) == 6


@given(SIZES)
@settings(max_examples=15, deadline=None)
def test_same_seed_same_schedule(size: tuple[int, ...]) -> None:
    arms, queries, rounds, seed, warmups = size
    once, twice = (make_schedule(ARMS[:arms], QUERIES[:queries], rounds, seed=seed, warmups=warmups) for _ in range(2))
    assert once == twice
    assert schedule_hash(once) == schedule_hash(twice)


def test_schedule_does_not_depend_on_the_python_version() -> None:
    schedule = make_schedule(["inline", "external", "decorator"], ["q01", "q06", "q18"], 2, seed=42)
    shown = [f"{step.arm[0]}{str(step.query)[1:]}" for step in schedule.timed]
    assert shown == EXPECTED_ORDER
    assert schedule_hash(schedule) == EXPECTED_HASH


EXPECTED_ORDER = [
    "e06",
    "i06",
    "d06",
    "e18",
    "d18",
    "i18",
    "i01",
    "d01",
    "e01",
    "d06",
    "i06",
    "e06",
    "i18",
    "d18",
    "e18",
    "e01",
    "d01",
    "i01",
]
EXPECTED_HASH = "b743a1d7bae89245ae534ac73589b7fb37a4ab96b1f530e9af25845d0fc7f2f1"


def test_other_seeds_and_settings_give_other_hashes() -> None:
    variants = [
        make_schedule(ARMS, QUERIES, 2, seed=1),
        make_schedule(ARMS, QUERIES, 2, seed=2),
        make_schedule(ARMS, QUERIES, 3, seed=1),
        make_schedule(ARMS, QUERIES, 2, seed=1, warmups=2),
        make_schedule(ARMS, QUERIES, 2, seed=1, interleave="round"),
        make_schedule(ARMS[1:], QUERIES, 2, seed=1),
    ]
    assert len({schedule_hash(schedule) for schedule in variants}) == len(variants)


def test_schedule_survives_json() -> None:
    schedule = make_schedule(ARMS, QUERIES, 2, seed=1)
    again = Schedule.model_validate(json.loads(schedule.model_dump_json()))
    assert again == schedule
    assert schedule_hash(again) == schedule_hash(schedule)


def test_recurrence_is_independent_and_continues_the_numbering() -> None:
    first = make_schedule(ARMS, QUERIES, 10, seed=1)
    again = recurrence_schedule(first, ["q03", "q09"], arms=["inline", "native"])
    assert (again.phase, again.repeats, again.rounds) == (Phase.RECURRENCE, schedule_hash(first), 10)
    assert (again.arms, again.queries) == (("inline", "native"), ("q03", "q09"))
    assert again.seed != first.seed
    assert again.steps[0].sequence == first.steps[-1].sequence + 1
    assert {step.action for step in again.steps} == {"start_cluster", "warmup", "timed", "stop_cluster"}
    assert recurrence_schedule(first, ["q03", "q09"], arms=["inline", "native"]) == again
    assert recurrence_schedule(first, ["q03"]).arms == ARMS


@pytest.mark.parametrize(
    ("arms", "queries", "rounds", "given", "said"),
    [
        ([], QUERIES, 1, {}, "at least one arm"),
        (ARMS, [], 1, {}, "at least one query"),
        (["a", "b", "a"], QUERIES, 1, {}, "every arm once, got a"),
        (ARMS, ["q01", "q01"], 1, {}, "every query once, got q01"),
        (ARMS, QUERIES, 0, {}, "at least one round, got 0"),
        (ARMS, QUERIES, 1, {"warmups": -1}, "zero or more warm-ups"),
        (ARMS, QUERIES, 1, {"interleave": "none"}, "'query' or 'round'"),
        (["x"], QUERIES, 1, {"recurrence": make_schedule(ARMS, QUERIES, 1, seed=9)}, "got x besides"),
        (ARMS, ["q99"], 1, {"recurrence": make_schedule(ARMS, QUERIES, 1, seed=9)}, "got q99 besides"),
        (ARMS, QUERIES, 1, {"recurrence": make_schedule(ARMS, QUERIES, 1, seed=1)}, "new seed"),
    ],
)
def test_impossible_schedules_are_refused(arms, queries, rounds, given, said) -> None:
    with pytest.raises(UserError, match=said):
        make_schedule(arms, queries, rounds, seed=1, **given)


NARROW = {"suite": Estimate(value=1.3, low=1.29, high=1.31, n=6), "q01": Estimate(value=1.0, low=0.99, high=1.01, n=6)}
WIDE = {**NARROW, "q02": Estimate(value=1.0, low=0.9, high=1.1, n=6)}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"rounds_done": 6, "estimates": NARROW},
            "stopped by precision: after 6 rounds the widest interval (q01) is +/-1.0%",
        ),
        ({"rounds_done": 7, "estimates": NARROW}, None),
        ({"rounds_done": 4, "estimates": NARROW}, None),
        ({"rounds_done": 6, "estimates": WIDE}, None),
        ({"rounds_done": 6, "estimates": WIDE, "target_half_width": 0.2}, "stopped by precision"),
        ({"rounds_done": 6, "estimates": NARROW, "target_half_width": None}, None),
        ({"rounds_done": 6, "estimates": {}}, None),
        ({"rounds_done": 6}, None),
        ({"rounds_done": 3, "elapsed_s": 300, "time_cap_s": 350}, "stopped by the time cap: 300 s for 3 rounds"),
        ({"rounds_done": 3, "elapsed_s": 300, "time_cap_s": 400}, None),
        ({"rounds_done": 0, "elapsed_s": 300, "time_cap_s": 10}, None),
        ({"rounds_done": 10, "rounds_planned": 10}, "stopped after all 10 planned rounds"),
        ({"rounds_done": 9, "rounds_planned": 10}, None),
    ],
)
def test_adaptive_stop_says_why(given: dict, said: str | None) -> None:
    got = should_stop(min_rounds=5, **given)
    assert (got is None) if said is None else (got is not None and got.startswith(said)), f"{given} gave {got!r}"


def test_adaptive_stop_looks_at_widths_not_at_ratios() -> None:
    for value in (0.5, 1.0, 2.0):
        estimate = {"q01": Estimate(value=value, low=value * 0.99, high=value / 0.99, n=6)}
        assert should_stop(rounds_done=6, min_rounds=5, estimates=estimate)
    assert half_width(Estimate(value=1, low=1 / 1.02, high=1.02, n=6)) == pytest.approx(0.02)


def test_negative_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="number of rounds done"):
        should_stop(rounds_done=-1, min_rounds=5)
