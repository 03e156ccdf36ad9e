"""The verdicts: a truth table, and what a re-run does to them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model import Estimate, Tier, Verdict, VerdictKind
from harness.stats import (
    FLOOR_MS,
    MARGIN,
    MIN_ROUNDS_FOR_VERDICT,
    absolute_floor_ms,
    flagged,
    judge,
    needs_recurrence,
    noise_margin,
    query_verdict,
    settle,
    stated_once,
    suite_verdict,
)
from harness.stats.verdicts import query_verdicts

K, T = VerdictKind, Tier


def _estimate(low: float, value: float, high: float, n: int = 10) -> Estimate:
    return Estimate(value=value, low=low, high=high, n=n)


def _times(median: float, factor: float = 1.0, noise: float = 0.002, n: int = 10, seed: int = 0) -> list[float]:
    return (median * factor * np.exp(np.random.default_rng(seed).normal(0, noise, n))).tolist()


@pytest.mark.parametrize(
    ("low", "value", "high", "kind", "tier"),
    [
        (1.10, 1.20, 1.30, K.SLOWER, T.CONFIRMED),
        (1.051, 1.06, 1.07, K.SLOWER, T.CONFIRMED),
        (0.80, 0.85, 0.95, K.FASTER, T.CONFIRMED),
        (1.01, 1.10, 1.20, K.INCONCLUSIVE, T.LIKELY),
        (0.85, 0.92, 0.99, K.INCONCLUSIVE, T.LIKELY),
        (0.99, 1.10, 1.20, K.INCONCLUSIVE, None),
        (1.01, 1.04, 1.20, K.INCONCLUSIVE, None),
        (0.94, 1.00, 1.04, K.INCONCLUSIVE, None),
        (0.96, 1.00, 1.04, K.EQUIVALENT, None),
        (1.01, 1.03, 1.049, K.EQUIVALENT, None),
        (1.00, 1.00, 1.00, K.EQUIVALENT, None),
    ],
)
def test_truth_table(low: float, value: float, high: float, kind: VerdictKind, tier: Tier | None) -> None:
    got = judge(_estimate(low, value, high))
    assert (got.kind, got.tier) == (kind, tier), f"judge({low}, {value}, {high}) said {got.reason}"
    assert got.margin == MARGIN
    assert got.ratio == _estimate(low, value, high)
    assert got.reason


def test_a_margin_raised_by_noise_does_not_make_equality_easier() -> None:
    ratio = _estimate(0.93, 1.0, 1.07)
    assert judge(ratio, margin=0.10).kind is K.INCONCLUSIVE
    assert judge(_estimate(0.96, 1.0, 1.04), margin=0.10).kind is K.EQUIVALENT
    assert judge(_estimate(1.06, 1.08, 1.09), margin=0.10).kind is K.INCONCLUSIVE


@pytest.mark.parametrize("n", range(1, MIN_ROUNDS_FOR_VERDICT))
def test_too_few_rounds_never_give_a_verdict(n: int) -> None:
    for ratio in (_estimate(2.0, 2.0, 2.0, n), _estimate(1.0, 1.0, 1.0, n)):
        got = judge(ratio)
        assert (got.kind, got.tier) == (K.INCONCLUSIVE, None)
        assert "needs 5" in (got.reason or "")


@given(st.floats(0.2, 5.0), st.floats(1.0, 1.5), st.floats(1.0, 1.5), st.floats(0.0, 0.3), st.floats(0.0, 20.0))
@settings(deadline=None)
def test_swapping_the_arms_mirrors_the_verdict(
    value: float, down: float, up: float, margin: float, floor: float
) -> None:
    change = (value - 1) * 50
    straight = judge(
        _estimate(value / down, value, value * up), margin=margin, change_ms=change, floor_ms=floor, of_ms=50
    )
    mirrored = judge(
        _estimate(1 / (value * up), 1 / value, down / value), margin=margin, change_ms=-change, floor_ms=floor, of_ms=50
    )
    mirror = {K.SLOWER: K.FASTER, K.FASTER: K.SLOWER}
    near = min(
        abs(abs(math.log(edge)) - math.log1p(limit))
        for edge in (value / down, value, value * up)
        for limit in (0.0, margin, MARGIN, floor / 50)
    )
    if near > 1e-9:
        assert (mirrored.kind, mirrored.tier) == (mirror.get(straight.kind, straight.kind), straight.tier)


@given(st.floats(0.2, 5.0), st.floats(1.0, 1.5), st.floats(0.0, 0.2), st.floats(0.0, 0.2))
@settings(deadline=None)
def test_a_wider_margin_never_flags_more(value: float, spread: float, margin: float, extra: float) -> None:
    ratio = _estimate(value / spread, value, value * spread)
    order = {None: 0, T.LIKELY: 1, T.CONFIRMED: 2}
    assert order[judge(ratio, margin=margin + extra).tier] <= order[judge(ratio, margin=margin).tier]


@pytest.mark.parametrize(("sf", "floor"), [(0.01, 5.0), (0.1, 5.0), (1, 5.0), (10, 10.0), (100, 20.0)])
def test_absolute_floor(sf: float, floor: float) -> None:
    assert absolute_floor_ms(sf) == pytest.approx(floor)


@pytest.mark.parametrize("sf", [0.0, -1.0, math.nan])
def test_absolute_floor_needs_a_scale(sf: float) -> None:
    with pytest.raises(ValueError, match="positive scale factor"):
        absolute_floor_ms(sf)


def test_a_change_below_the_floor_is_not_flagged() -> None:
    base = _times(40)
    four = query_verdict(base, [time * 1.1 for time in base], sf=1, seed=1)
    assert four.kind is K.EQUIVALENT, four.reason
    assert four.margin == pytest.approx(FLOOR_MS / 44, rel=0.01)
    six = query_verdict(base, [time * 1.15 for time in base], sf=1, seed=1)
    assert (six.kind, six.tier) == (K.SLOWER, T.CONFIRMED)
    at_sf10 = query_verdict(base, [time * 1.15 for time in base], sf=10, seed=1)
    assert not flagged(at_sf10)


def test_below_the_floor_and_uncertain_is_inconclusive_not_equal() -> None:
    noisy = [40, 41, 39, 40, 40, 42, 38, 40, 41, 39]
    new = [44, 49, 40, 43, 44, 50, 39, 43.5, 48, 40]
    got = query_verdict(noisy, new, sf=1, seed=1)
    assert got.kind is K.INCONCLUSIVE
    assert "below the floor of 5 ms" in (got.reason or "")


def test_failed_rounds_are_not_comparable() -> None:
    base: list[float | None] = list(_times(100))
    new = [*base[:9], None]
    assert query_verdict(base, new, sf=1, seed=1).kind is K.NOT_COMPARABLE
    got = query_verdict(base, [None] * 10, sf=1, seed=1)
    assert (got.kind, got.ratio) == (K.NOT_COMPARABLE, None)
    assert got.reason == "new has no valid time in 10 of 10 rounds"
    assert query_verdict([], [], sf=1, seed=1).kind is K.NOT_COMPARABLE


def test_unequal_rounds_are_an_error() -> None:
    with pytest.raises(ValueError, match="as many base as new rounds"):
        query_verdict([1.0], [1.0, 2.0], sf=1, seed=1)


def test_batch_gives_the_verdicts_of_one_by_one() -> None:
    rng = np.random.default_rng(3)
    base = np.exp(rng.normal(5, 0.06, (30, 10))).tolist()
    new = np.exp(rng.normal(5.1, 0.06, (30, 10))).tolist()
    margins = [MARGIN if place % 2 else 0.08 for place in range(30)]
    together = query_verdicts(base, new, sf=1, seed=9, margins=margins)
    alone = [
        query_verdict(left, right, sf=1, seed=9, margin=margin)
        for left, right, margin in zip(base, new, margins, strict=True)
    ]
    assert together == alone


LIKELY_SLOWER = judge(_estimate(1.01, 1.10, 1.20))
CONFIRMED_SLOWER = judge(_estimate(1.10, 1.20, 1.30))
LIKELY_FASTER = judge(_estimate(0.85, 0.92, 0.99))
CONFIRMED_FASTER = judge(_estimate(0.7, 0.8, 0.9))
EQUAL = judge(_estimate(0.99, 1.0, 1.01))
OPEN = judge(_estimate(0.9, 1.1, 1.3))
NONE = query_verdict([None], [1.0], sf=1, seed=1)


@pytest.mark.parametrize(
    ("first", "rerun", "kind", "tier", "recurred"),
    [
        (LIKELY_SLOWER, LIKELY_SLOWER, K.SLOWER, T.LIKELY, True),
        (LIKELY_SLOWER, CONFIRMED_SLOWER, K.SLOWER, T.LIKELY, True),
        (LIKELY_SLOWER, EQUAL, K.INCONCLUSIVE, None, False),
        (LIKELY_SLOWER, OPEN, K.INCONCLUSIVE, None, False),
        (LIKELY_SLOWER, LIKELY_FASTER, K.INCONCLUSIVE, None, False),
        (LIKELY_SLOWER, NONE, K.INCONCLUSIVE, None, False),
        (CONFIRMED_SLOWER, LIKELY_SLOWER, K.SLOWER, T.CONFIRMED, True),
        (CONFIRMED_SLOWER, CONFIRMED_SLOWER, K.SLOWER, T.CONFIRMED, True),
        (CONFIRMED_SLOWER, EQUAL, K.INCONCLUSIVE, None, False),
        (LIKELY_FASTER, CONFIRMED_FASTER, K.FASTER, T.LIKELY, True),
        (CONFIRMED_FASTER, CONFIRMED_SLOWER, K.INCONCLUSIVE, None, False),
    ],
)
def test_recurrence(first: Verdict, rerun: Verdict, kind: VerdictKind, tier: Tier | None, recurred: bool) -> None:
    got = settle(first, rerun)
    assert (got.kind, got.tier, got.recurred) == (kind, tier, recurred), got.reason
    assert got.ratio == first.ratio, "the first run's figures must stay"
    assert not needs_recurrence(got)


@pytest.mark.parametrize(
    ("verdict", "due"),
    [(LIKELY_SLOWER, True), (CONFIRMED_SLOWER, True), (EQUAL, False), (OPEN, False), (NONE, False)],
)
@pytest.mark.parametrize("workers", [(0, 0), (1, 1), (2, 2), (0, 2), (2, 0), (2, 4)])
def test_what_runs_again(verdict: Verdict, due: bool, workers: tuple[int, int]) -> None:
    assert needs_recurrence(verdict) is due
    assert needs_recurrence(verdict, workers=workers) is (due and workers[0] == workers[1])


def test_a_single_node_against_a_cluster_is_said_to_be_seen_once() -> None:
    for first in (CONFIRMED_SLOWER, CONFIRMED_FASTER):
        got = stated_once(first)
        assert (got.kind, got.tier, got.recurred, got.ratio) == (first.kind, T.SINGLE_RUN, None, first.ratio)
        assert "in a single run" in (got.reason or "")
        assert "not run again" in (got.reason or "")
        assert not needs_recurrence(got)


def test_a_likely_difference_seen_once_is_no_claim() -> None:
    got = stated_once(LIKELY_SLOWER)
    assert (got.kind, got.tier, got.recurred) == (K.INCONCLUSIVE, T.LIKELY, None)
    assert "not run again" in (got.reason or "")
    assert not flagged(got)


@pytest.mark.parametrize("first", [EQUAL, OPEN, NONE, settle(LIKELY_SLOWER, LIKELY_SLOWER)])
def test_only_candidates_are_seen_once(first: Verdict) -> None:
    with pytest.raises(ValueError, match="expected a candidate"):
        stated_once(first)


@pytest.mark.parametrize(
    "first", [EQUAL, OPEN, NONE, settle(LIKELY_SLOWER, EQUAL), settle(LIKELY_SLOWER, LIKELY_SLOWER)]
)
def test_only_candidates_are_settled(first: Verdict) -> None:
    with pytest.raises(ValueError, match="expected a candidate"):
        settle(first, LIKELY_SLOWER)


def test_a_likely_change_is_no_claim_until_it_recurs() -> None:
    assert not flagged(LIKELY_SLOWER)
    assert flagged(settle(LIKELY_SLOWER, LIKELY_SLOWER))
    assert not flagged(settle(CONFIRMED_SLOWER, EQUAL))


def test_suite_verdict() -> None:
    base = {f"q{number:02d}": _times(100, seed=number) for number in range(5)}
    slower = {name: [time * 1.2 for time in times] for name, times in base.items()}
    assert suite_verdict(base, slower, seed=1).kind is K.SLOWER
    assert suite_verdict(slower, base, seed=1).kind is K.FASTER
    assert suite_verdict(base, base, seed=1).kind is K.EQUIVALENT


def test_suite_of_different_queries_is_not_comparable() -> None:
    base = {"q01": [1.0] * 6, "q02": [1.0] * 6}
    for new in ({"q01": [0.5] * 6}, {"q01": [0.5] * 6, "q02": [None] * 6}, {"q01": [0.5] * 6, "q02": []}):
        for left, right in ((base, new), (new, base)):
            got = suite_verdict(left, right, seed=1)
            assert (got.kind, got.ratio) == (K.NOT_COMPARABLE, None)
            assert "q02" in (got.reason or "")
    for empty in ({}, {"q01": []}, {"q01": [None]}):
        assert suite_verdict(empty, empty, seed=1).kind is K.NOT_COMPARABLE


def test_quiet_twins_do_not_raise_the_margin() -> None:
    base = {f"q{number:02d}": _times(100, seed=number) for number in range(22)}
    twin = {f"q{number:02d}": _times(100, seed=100 + number) for number in range(22)}
    got = noise_margin(base, twin, sf=1, seed=1)
    assert (got.query, got.suite, got.worst_query, got.queries) == (MARGIN, MARGIN, None, 22)


def test_noisy_twins_raise_the_margin_until_they_pass_it_themselves() -> None:
    base = {f"q{number:02d}": _times(100, seed=number) for number in range(22)}
    twin = {name: _times(100, 1.12 if name == "q07" else 1.0, seed=200) for name in base}
    got = noise_margin(base, twin, sf=1, seed=1)
    assert got.worst_query == "q07"
    assert got.query == pytest.approx(0.12, abs=0.01)
    assert "q07" in got.reason
    for name, times in base.items():
        verdict = query_verdict(times, twin[name], sf=1, seed=1, margin=got.query)
        assert verdict.tier is None, f"{name} is still a candidate: {verdict.reason}"
    swapped = noise_margin(twin, base, sf=1, seed=1)
    assert swapped.query == pytest.approx(got.query)


def test_twins_that_differ_as_a_whole_raise_the_suite_margin() -> None:
    base = {f"q{number:02d}": _times(100, seed=number) for number in range(5)}
    twin = {f"q{number:02d}": _times(100, 1.08, seed=50 + number) for number in range(5)}
    got = noise_margin(base, twin, sf=1, seed=1)
    assert got.suite == pytest.approx(0.08, abs=0.01)
    assert not flagged(suite_verdict(base, twin, seed=1, margin=got.suite))


@pytest.mark.parametrize("twin", [{}, {"q01": [1.0] * 4}, {"q01": [None] * 4}])
def test_no_twin_leaves_the_margin_and_says_so(twin: dict[str, list[float | None]]) -> None:
    got = noise_margin({"q01": [1.0] * 4}, twin, sf=1, seed=1)
    assert (got.query, got.queries) == (MARGIN, 0)
    assert "not raised" in got.reason
