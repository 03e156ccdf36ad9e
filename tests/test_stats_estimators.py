"""The estimators: what must stay true whatever the timings are."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model import Estimate
from harness.stats import paired_ratio, spread, suite_ratio
from harness.stats.estimators import paired_log_intervals, paired_ratios, suite_log_resamples

TIMES = st.floats(min_value=0.01, max_value=1e6)
PAIRS = st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=12)
SUITES = st.integers(1, 8).flatmap(
    lambda rounds: st.dictionaries(
        st.sampled_from([f"q{number:02d}" for number in range(1, 23)]),
        st.lists(st.tuples(TIMES, TIMES), min_size=rounds, max_size=rounds),
        min_size=1,
        max_size=5,
    )
)
FEW = 500  # resamples: the properties do not depend on how many there are


def _split(pairs: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [base for base, _ in pairs], [new for _, new in pairs]


def _suites(suite: dict[str, list[tuple[float, float]]]) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    return {name: _split(pairs)[0] for name, pairs in suite.items()}, {
        name: _split(pairs)[1] for name, pairs in suite.items()
    }


def _close(got: Estimate, expected: Estimate) -> bool:
    return got.n == expected.n and all(
        math.isclose(left, right, rel_tol=1e-9)
        for left, right in ((got.value, expected.value), (got.low, expected.low), (got.high, expected.high))
    )


def _reciprocal(estimate: Estimate) -> Estimate:
    return Estimate(value=1 / estimate.value, low=1 / estimate.high, high=1 / estimate.low, n=estimate.n)


@given(PAIRS, st.floats(min_value=1e-3, max_value=1e3))
@settings(deadline=None)
def test_ratio_does_not_depend_on_the_unit(pairs: list[tuple[float, float]], factor: float) -> None:
    base, new = _split(pairs)
    scaled = paired_ratio([time * factor for time in base], [time * factor for time in new], seed=1, resamples=FEW)
    assert _close(scaled, paired_ratio(base, new, seed=1, resamples=FEW))


@given(PAIRS)
@settings(deadline=None)
def test_swapping_the_arms_gives_the_reciprocal(pairs: list[tuple[float, float]]) -> None:
    base, new = _split(pairs)
    swapped = paired_ratio(new, base, seed=1, resamples=FEW)
    assert _close(swapped, _reciprocal(paired_ratio(base, new, seed=1, resamples=FEW)))


@given(PAIRS, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_order_of_rounds_does_not_matter(pairs: list[tuple[float, float]], random) -> None:
    shuffled = random.sample(pairs, len(pairs))
    assert paired_ratio(*_split(shuffled), seed=1, resamples=FEW) == paired_ratio(*_split(pairs), seed=1, resamples=FEW)


@given(PAIRS, st.data())
@settings(deadline=None)
def test_slower_rounds_never_give_a_faster_ratio(pairs: list[tuple[float, float]], data: st.DataObject) -> None:
    base, new = _split(pairs)
    factors = data.draw(st.lists(st.floats(1.0, 10.0), min_size=len(new), max_size=len(new)))
    before = paired_ratio(base, new, seed=1, resamples=FEW)
    slower = [time * factor for time, factor in zip(new, factors, strict=True)]
    after = paired_ratio(base, slower, seed=1, resamples=FEW)
    slack = 1 - 1e-12
    assert after.value >= before.value * slack
    assert after.low >= before.low * slack
    assert after.high >= before.high * slack


@given(PAIRS, st.integers(0, 2**32))
@settings(deadline=None)
def test_same_input_and_seed_give_the_same_estimate(pairs: list[tuple[float, float]], seed: int) -> None:
    base, new = _split(pairs)
    got = paired_ratio(base, new, seed=seed, resamples=FEW)
    assert got == paired_ratio(tuple(base), tuple(new), seed=seed, resamples=FEW)
    assert got.low <= got.value <= got.high
    assert got.n == len(pairs)


def test_ratio_is_the_median_of_the_paired_ratios() -> None:
    got = paired_ratio([100, 200, 400, 100, 100], [110, 210, 480, 130, 100], seed=1)
    assert got.value == pytest.approx(1.1)
    assert (got.low, got.high) == pytest.approx((1.0, 1.3))


@pytest.mark.parametrize("rounds", [1, 2, 5, 7, 10, 15])
def test_interval_is_that_of_resampling_and_sorting(rounds: int) -> None:
    logs = np.random.default_rng(rounds).normal(0.0, 0.1, rounds)
    plain = np.random.default_rng(99).integers(0, rounds, (100_000, rounds))
    expected = np.quantile(np.median(logs[plain], axis=1), [0.025, 0.975])
    got = paired_ratio(np.ones(rounds).tolist(), np.exp(logs).tolist(), seed=3, resamples=100_000)
    # Both are Monte Carlo estimates of the same quantile of a discrete distribution: one step apart is possible.
    steps = np.sort(logs)
    allowed = 1e-9 + (np.diff(steps).max() / 2 if rounds > 1 else 0.0)
    assert [math.log(got.low), math.log(got.high)] == pytest.approx(expected.tolist(), abs=allowed)


@pytest.mark.parametrize(("rounds", "resamples"), [(5, 999), (10, 1000), (10, 1), (3, 2)])
def test_shortcut_over_rank_pairs_equals_the_general_resampling(rounds: int, resamples: int) -> None:
    logs = np.random.default_rng(5).normal(0.0, 0.1, (1, rounds))
    fast = paired_log_intervals(logs, seed=11, resamples=resamples)
    slow = np.quantile(suite_log_resamples(logs, seed=11, resamples=resamples), [0.025, 0.975])
    assert [fast.low[0], fast.high[0]] == pytest.approx(slow.tolist(), abs=1e-12)


def test_many_series_at_once_equal_one_by_one() -> None:
    times = np.exp(np.random.default_rng(2).normal(5.0, 0.1, (2, 7, 10))).tolist()
    together = paired_ratios(times[0], times[1], seed=4)
    assert together == [paired_ratio(base, new, seed=4) for base, new in zip(*times, strict=True)]


@given(SUITES, st.floats(min_value=1e-3, max_value=1e3))
@settings(deadline=None)
def test_suite_ratio_scales_and_swaps(suite: dict[str, list[tuple[float, float]]], factor: float) -> None:
    base, new = _suites(suite)
    got = suite_ratio(base, new, seed=1, resamples=FEW)
    slower = {name: [time * factor for time in times] for name, times in new.items()}
    scaled = suite_ratio(base, slower, seed=1, resamples=FEW)
    assert scaled.value == pytest.approx(got.value * factor, rel=1e-9)
    assert _close(suite_ratio(new, base, seed=1, resamples=FEW).plain(), _reciprocal(got.plain()))


@given(SUITES, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_suite_ratio_ignores_the_order_of_rounds_and_queries(
    suite: dict[str, list[tuple[float, float]]], random
) -> None:
    rounds = len(next(iter(suite.values())))
    order = random.sample(range(rounds), rounds)
    shuffled = {name: [suite[name][place] for place in order] for name in random.sample(sorted(suite), len(suite))}
    got, expected = (suite_ratio(*_suites(each), seed=1, resamples=FEW) for each in (shuffled, suite))
    assert got.queries == expected.queries
    assert got.value == pytest.approx(expected.value, rel=1e-12)


def test_suite_ratio_is_the_geometric_mean_of_the_query_ratios() -> None:
    base = {"q01": [100.0] * 6, "q02": [50.0, 51.0, 52.0, 53.0, 54.0, 55.0], "q03": [10.0] * 6}
    new = {"q01": [121.0] * 6, "q02": base["q02"], "q03": [10.0] * 6}
    got = suite_ratio(base, new, seed=1)
    ratios = [paired_ratio(base[name], new[name], seed=1).value for name in base]
    assert got.value == pytest.approx(math.prod(ratios) ** (1 / 3))
    assert (got.n, got.queries, got.excluded) == (6, ("q01", "q02", "q03"), ())


def test_rounds_are_resampled_jointly() -> None:
    """Two queries with opposite changes in each round cancel exactly only if both see the same rounds."""
    up, down = [100.0, 110.0, 121.0, 133.1, 146.41], [100.0, 100 / 1.1, 100 / 1.21, 100 / 1.331, 100 / 1.4641]
    got = suite_ratio({"q01": [100.0] * 5, "q02": [100.0] * 5}, {"q01": up, "q02": down}, seed=1)
    assert got.high / got.low == pytest.approx(1.0)


def test_suite_lists_what_it_left_out() -> None:
    base = {"q01": [1.0, 1.0], "q02": [1.0, 1.0], "q03": [1.0, 1.0], "q04": []}
    new = {"q01": [2.0, 2.0], "q02": [2.0, None], "q05": [2.0, 2.0]}
    got = suite_ratio(base, new, seed=1)
    assert got.queries == ("q01",)
    assert got.excluded == ("q02", "q03", "q04", "q05")
    assert got.value == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("base", "new", "said"),
    [
        ([1.0, 2.0], [1.0], "same number of rounds"),
        ([], [], "at least one round"),
        ([1.0, 0.0], [1.0, 1.0], "positive finite times, got 0.0 in round 1 of base"),
        ([1.0, 1.0], [-1.0, 1.0], "positive finite times, got -1.0 in round 0 of new"),
        ([1.0], [math.nan], "positive finite times"),
        ([1.0], [math.inf], "positive finite times"),
        ([1.0], [None], "positive finite times"),
    ],
)
def test_impossible_times_are_refused(base: list[float], new: list[float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        paired_ratio(base, new, seed=1)


@pytest.mark.parametrize(
    ("base", "new", "said"),
    [
        ({}, {}, "at least one query"),
        ({"q01": [None]}, {"q01": [1.0]}, "at least one query"),
        ({"q01": []}, {"q01": []}, "at least one query"),
        ({"q01": [1.0]}, {"q01": [1.0, 1.0]}, "same number of rounds"),
        ({"q01": [1.0], "q02": [1.0, 1.0]}, {"q01": [1.0], "q02": [1.0, 1.0]}, "same number of rounds"),
        ({"q07": [1.0, 0.0]}, {"q07": [1.0, 1.0]}, "round 1 of q07 of base"),
    ],
)
def test_impossible_suites_are_refused(base: dict, new: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        suite_ratio(base, new, seed=1)


@pytest.mark.parametrize(("resamples", "confidence"), [(0, 0.95), (100, 0.0), (100, 1.0)])
def test_impossible_bootstraps_are_refused(resamples: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="expected"):
        paired_ratio([1.0], [1.0], seed=1, resamples=resamples, confidence=confidence)


@given(st.lists(st.one_of(st.none(), TIMES), max_size=30))
@settings(deadline=None)
def test_spread_matches_its_definition(times: list[float | None]) -> None:
    got = spread(times)
    values = [time for time in times if time is not None]
    if not values:
        assert got is None, f"spread({times}) must not invent a figure"
        return
    assert got is not None
    assert (got.n, got.missing) == (len(values), len(times) - len(values))
    assert got.median == pytest.approx(float(np.median(values)))
    assert got.p95 == pytest.approx(float(np.quantile(values, 0.95)))
    assert got.mad == pytest.approx(float(np.median(np.abs(np.array(values) - np.median(values)))))


def test_more_confidence_is_wider_and_more_rounds_are_narrower() -> None:
    rng = np.random.default_rng(8)
    times = np.exp(rng.normal(5.0, 0.1, (2, 40))).tolist()
    widths = [
        estimate.high / estimate.low
        for estimate in (paired_ratio(times[0], times[1], seed=1, confidence=level) for level in (0.5, 0.9, 0.99))
    ]
    assert all(narrow < wide for narrow, wide in itertools.pairwise(widths))
    short, full = (paired_ratio(times[0][:rounds], times[1][:rounds], seed=1) for rounds in (10, 40))
    assert short.high / short.low > full.high / full.low
