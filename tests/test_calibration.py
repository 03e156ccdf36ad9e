"""The instrument proves itself on simulated arms: the figures that every report prints."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.calibration import SUITES, Calibration, CalibrationRow, Settings, calibrate, judge_suites, places_of
from harness.model import VerdictKind
from harness.stats import DEFAULT_ROUNDS, MARGIN, noise_margin, query_verdict
from harness.stats.simulate import ARMS, SCENARIOS, Scenario, make_world, simulate

UNCHANGED = (
    "unchanged",
    "drift",
    "load",
    "spikes",
    "slow_first_round",
    "process_effects",
    "noisy_machine",
    "failing_queries",
    "fewest_rounds",
)


@pytest.fixture(scope="module")
def table() -> Calibration:
    return calibrate()


def _row(table: Calibration, name: str) -> CalibrationRow:
    return next(row for row in table.rows if row.scenario == name)


def test_table_has_every_scenario_and_says_what_it_rests_on(table: Calibration) -> None:
    assert [row.scenario for row in table.rows] == [scenario.name for scenario in SCENARIOS]
    assert (table.suites, table.queries, table.rounds) == (SUITES, 22, DEFAULT_ROUNDS)
    assert table.suites >= 200
    assert all(row.suites == table.suites and row.what for row in table.rows)
    assert {row.scenario for row in table.rows if row.power is not None} == {
        "slower_20pct",
        "slower_10pct",
        "faster_20pct",
    }


def test_identical_arms_are_flagged_in_at_most_5_percent_of_suites(table: Calibration) -> None:
    assert table.aa_false_flag_rate <= 0.05
    assert _row(table, "unchanged").false_flag_upper <= 0.05, "even the upper end of the interval"


@pytest.mark.parametrize("name", UNCHANGED)
def test_disturbances_give_no_false_verdicts(table: Calibration, name: str) -> None:
    row = _row(table, name)
    assert row.false_flag_rate <= 0.05, f"{row.what}: {row}"
    assert row.false_flag_rate <= row.false_flag_upper


def test_20_percent_on_one_query_is_found(table: Calibration) -> None:
    assert table.power_20pct >= 0.85
    faster = _row(table, "faster_20pct").power
    assert faster is not None
    assert faster >= 0.85
    for name in ("slower_20pct", "faster_20pct", "slower_10pct"):
        assert _row(table, name).false_flag_rate <= 0.05


def test_suite_is_resolved_to_2_percent(table: Calibration) -> None:
    assert table.suite_ci_half_width <= 0.02


def test_simulated_noise_is_that_of_the_measured_machine(table: Calibration) -> None:
    row = _row(table, "unchanged")
    assert row.query_half_width == pytest.approx(0.07, abs=0.01)
    assert row.suite_half_width == pytest.approx(0.017, abs=0.003)
    assert row.interval_coverage == pytest.approx(0.945, abs=0.015)


def test_recurrence_is_what_makes_likely_trustworthy(table: Calibration) -> None:
    row = _row(table, "unchanged")
    assert row.candidate_rate > 0.2, "without a re-run, a fifth of unchanged suites would show a change"
    assert row.false_flag_rate <= row.confirmed_rate <= row.candidate_rate


def test_margin_rises_with_what_the_twins_show(table: Calibration) -> None:
    assert _row(table, "unchanged").margin == pytest.approx(MARGIN, abs=0.005)
    assert _row(table, "process_effects").margin > MARGIN + 0.01
    assert _row(table, "noisy_machine").margin > MARGIN + 0.01


def test_suites_with_failures_have_no_suite_figure(table: Calibration) -> None:
    row = _row(table, "failing_queries")
    assert (row.suite_half_width, row.false_total_rate) == (None, 0.0)


def test_rules_of_public_harnesses_fail_on_the_same_times(table: Calibration) -> None:
    fastest, mean, sequential = table.incumbents
    assert fastest.false_flag_rate > 0.3
    assert mean.power < 0.6
    assert sequential.false_flag_rate > 0.3


def test_same_seed_same_table_other_seed_other_suites() -> None:
    once, twice, other = (calibrate(seed=seed, suites=6, resamples=200, scenarios=SCENARIOS[:2]) for seed in (1, 1, 2))
    assert once == twice
    assert once != other
    assert Calibration.model_validate_json(once.model_dump_json()) == once


def test_calibration_judges_as_the_reports_do() -> None:
    """Take one simulated suite through the public functions, query by query, and compare with the batch code."""
    settings = Settings(seed=3, suites=4, rounds=10, queries=22, resamples=1000)
    scenario = Scenario("two", "a query 50 % slower, another fails", factor=1.5, process=0.03, failing=2)
    rng = np.random.default_rng(1)
    world = make_world(scenario, rng, settings.suites, settings.queries)
    places = places_of(settings, settings.rounds)
    first, again = (simulate(scenario, world, places, rng) for _ in range(2))
    judged = judge_suites(world, first, again, settings)
    names = [f"q{number:02d}" for number in range(1, 23)]
    for suite in range(settings.suites):
        base, twin, new = (
            {
                name: [None if np.isnan(ms) else ms for ms in row.tolist()]
                for name, row in zip(names, times, strict=True)
            }
            for times in first[:, suite]
        )
        noise = noise_margin(base, twin, sf=1, seed=3, resamples=1000)
        assert judged[suite].margin == noise.query
        for name, got in zip(names, judged[suite].first, strict=True):
            expected = query_verdict(base[name], new[name], sf=1, seed=3, margin=noise.query, resamples=1000)
            assert got == expected, f"{name}: {got} is not {expected}"
        assert sum(verdict.kind is VerdictKind.NOT_COMPARABLE for verdict in judged[suite].final) == 2


def test_simulated_times_are_times() -> None:
    rng = np.random.default_rng(2)
    for scenario in SCENARIOS:
        world = make_world(scenario, rng, 3, 22)
        times = simulate(scenario, world, np.zeros((1, len(ARMS), 22, 10)), rng)
        assert times.shape == (len(ARMS), 3, 22, 10)
        missing = np.isnan(times)
        assert np.isfinite(times[~missing]).all()
        assert (times[~missing] > 0).all()
        assert missing[ARMS.index("new")].any() == bool(scenario.failing)
        assert not missing[: ARMS.index("new")].any()
        assert (world.effect != 0).sum() == (0 if math.isclose(scenario.factor, 1) else 3)
