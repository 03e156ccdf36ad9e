"""One test for each trap of public benchmark harnesses that is a matter of statistics, named after the trap."""

from __future__ import annotations

import numpy as np
import pytest

from harness.errors import EXIT_OK
from harness.model import Phase, Reach, Sample, Status, Validation, Verdict
from harness.schedule import make_schedule
from harness.stats import (
    collect,
    coverage,
    flagged,
    lifecycle,
    needs_recurrence,
    outcome,
    query_verdict,
    series,
    settle,
    suite_verdict,
)

QUERIES = tuple(f"q{number:02d}" for number in range(1, 23))
NOISE = 0.064  # of one execution, as in the calibration


def _samples(arm: str, times: dict[str, list[float | None]], **given) -> list[Sample]:
    facts = {"phase": Phase.TIMED, "validation": Validation.VALIDATED, "reach": Reach.DISTRIBUTED}
    return [
        Sample(
            round=number,
            sequence=number,
            arm=arm,
            query=query,
            status=Status.OK if time is not None else Status.ERROR,
            reason=None if time is not None else "Resources exhausted",
            log=f"logs/{arm}.log",
            repro=f"df-strategies run --arms {arm} --queries {query}",
            elapsed_ms=time,
            **{**facts, **given},
        )
        for query, series_ms in times.items()
        for number, time in enumerate(series_ms)
    ]


def _arm(rng: np.random.Generator, rounds: int = 10, noise: float = NOISE) -> dict[str, list[float]]:
    return {query: (150.0 * np.exp(rng.normal(0, noise, rounds))).tolist() for query in QUERIES}


def _procedure(base: list[float], new: list[float], again: tuple[list[float], list[float]]) -> Verdict:
    verdict = query_verdict(base, new, sf=1, seed=1)
    return settle(verdict, query_verdict(*again, sf=1, seed=2)) if needs_recurrence(verdict) else verdict


def test_total_looks_faster_because_queries_newly_failed() -> None:
    rng = np.random.default_rng(1)
    base, new = _arm(rng), _arm(rng)
    slowest = max(base, key=lambda query: sum(base[query]))
    failing: dict[str, list[float | None]] = {**new, slowest: [None] * 10}
    cells = [
        collect(_samples(arm, times), arm=arm, queries=QUERIES, rounds=10)
        for arm, times in (("a", base), ("b", failing))
    ]
    cover = coverage(*cells)
    assert cover.total.factor is None
    assert cover.total.words == "21 of 22"
    assert [gap.query for gap in cover.newly_failing] == [slowest]
    assert suite_verdict(series(cells[0]), series(cells[1]), seed=1).ratio is None


def test_nothing_ran_reported_as_success() -> None:
    empty = collect([], arm="a", queries=QUERIES, rounds=10)
    cover = coverage(empty, empty)
    result = outcome(cover, {}, suite_verdict(series(empty), series(empty), seed=1))
    assert result.exit_code != EXIT_OK
    assert cover.total.factor is None, "1.00x must not be printed for nothing"


def test_validation_claimed_but_never_done() -> None:
    samples = _samples("a", {"q01": [100.0] * 6}, validation=Validation.NOT_VALIDATED)
    cell = collect(samples, arm="a", queries=["q01"], rounds=6)["q01"]
    assert not cell.valid
    assert cell.validation is Validation.NOT_VALIDATED
    assert cell.reason == "the answer was not validated"


def test_query_with_no_remote_task_counted_in_a_distributed_total() -> None:
    times: dict[str, list[float | None]] = {"q01": [100.0] * 6, "q02": [100.0] * 6}
    base = collect(_samples("a", times), arm="a", queries=["q01", "q02"], rounds=6)
    local = _samples("b", {"q02": [1.0] * 6}, reach=Reach.NOT_DISTRIBUTED)
    new = collect([*_samples("b", {"q01": [100.0] * 6}), *local], arm="b", queries=["q01", "q02"], rounds=6)
    cover = coverage(base, new)
    assert cover.not_distributed == ("q02",)
    assert cover.common == ("q01",)
    assert (cover.total.factor, cover.total.words) == (1.0, "1 of 2")
    left, right = (series(cells, leave_out=cover.not_distributed) for cells in (base, new))
    verdict = suite_verdict(left, right, seed=1)
    assert verdict.ratio is not None
    assert verdict.ratio.value == pytest.approx(1.0)


def test_single_node_baseline_keeps_its_queries() -> None:
    samples = _samples("local", {"q01": [100.0] * 6}, reach=Reach.SINGLE_NODE)
    base = collect(samples, arm="local", queries=["q01"], rounds=6)
    assert coverage(base, base).total.factor == 1.0


def test_sequential_arms_turn_machine_drift_into_false_alarms() -> None:
    """The machine slows by 30 % over the run, the arms are identical: only interleaving makes that invisible."""
    rng = np.random.default_rng(2)
    schedule = make_schedule(["a", "b"], QUERIES, 10, seed=7, warmups=0)
    noise = {(arm, query): rng.normal(0, 0.01, 10) for arm in "ab" for query in QUERIES}
    interleaved: dict[tuple[str, str], list[float]] = {key: [0.0] * 10 for key in noise}
    sequential: dict[tuple[str, str], list[float]] = {key: [0.0] * 10 for key in noise}
    steps = schedule.timed
    in_turn = sorted(steps, key=lambda step: (step.arm, step.sequence))
    for order, times in ((steps, interleaved), (in_turn, sequential)):
        for place, step in enumerate(order):
            key = (step.arm, str(step.query))
            times[key][step.round] = 150 * np.exp(noise[key][step.round]) * (1 + 0.3 * place / len(order))
    verdicts = {
        name: [query_verdict(times["a", query], times["b", query], sf=1, seed=1) for query in QUERIES]
        for name, times in (("interleaved", interleaved), ("sequential", sequential))
    }
    assert not any(verdict.tier for verdict in verdicts["interleaved"])
    assert sum(flagged(verdict) for verdict in verdicts["sequential"]) > len(QUERIES) * 0.9


def test_fastest_of_five_with_a_five_percent_band_flags_unchanged_queries() -> None:
    rng = np.random.default_rng(3)
    runs = [(_arm(rng), _arm(rng), _arm(rng), _arm(rng)) for _ in range(20)]
    band = [abs(min(new[query][:5]) / min(base[query][:5]) - 1) > 0.05 for base, new, _, _ in runs for query in QUERIES]
    ours = [
        flagged(_procedure(base[query], new[query], (base2[query], new2[query])))
        for base, new, base2, new2 in runs
        for query in QUERIES
    ]
    assert sum(band) / len(band) > 0.3
    assert sum(ours) / len(ours) < 0.05 / len(QUERIES) * 2


def test_fixed_factor_of_1_2_is_blind_below_20_percent() -> None:
    rng = np.random.default_rng(4)
    base, new = _arm(rng, 20, 0.03), _arm(rng, 20, 0.03)
    slower = {query: [time * 1.15 for time in times] for query, times in new.items()}
    fixed = [np.mean(slower[query][:5]) / np.mean(base[query][:5]) > 1.2 for query in QUERIES]
    ours = [
        flagged(_procedure(base[query][:10], slower[query][:10], (base[query][10:], slower[query][10:])))
        for query in QUERIES
    ]
    assert sum(fixed) <= 2
    assert all(ours)


def test_first_fresh_process_mixed_with_steady_state() -> None:
    def sample(sequence: int, phase: Phase, ms: float, status: Status = Status.OK) -> Sample:
        return Sample(round=0, sequence=sequence, arm="a", query="q01", phase=phase, status=status, elapsed_ms=ms)

    samples = [
        sample(900, Phase.RECURRENCE, 9999.0),
        sample(30, Phase.TIMED, 102.0),
        sample(10, Phase.WARMUP, 380.0),
        sample(20, Phase.TIMED, 98.0),
        sample(40, Phase.TIMED, 1.0, Status.ERROR),
    ]
    got = lifecycle(samples, arm="a", query="q01", startups_ms=[1200.0, 1300.0])
    assert got.startup is not None
    assert got.startup.median == 1250.0
    assert got.first == 380.0
    assert got.steady is not None
    assert (got.steady.median, got.steady.n, got.steady.missing) == (100.0, 2, 1)
    assert got.first_over_steady == pytest.approx(3.8)


def test_without_warmup_the_first_timed_execution_is_not_steady() -> None:
    samples = _samples("a", {"q01": [400.0, 100.0, 100.0]})
    got = lifecycle(samples, arm="a", query="q01")
    assert got.first == 400.0
    assert got.steady is not None
    assert (got.steady.median, got.steady.n) == (100.0, 2)
    nothing = lifecycle([], arm="a", query="q01")
    assert (nothing.startup, nothing.first, nothing.steady, nothing.first_over_steady) == (None, None, None, None)


def test_blank_cell_without_a_reason() -> None:
    times: dict[str, list[float | None]] = {"q01": [100.0, None, 100.0]}
    cells = collect(_samples("a", times), arm="a", queries=["q01", "q02"], rounds=3)
    failed, absent = cells["q01"], cells["q02"]
    assert failed.status is Status.ERROR
    assert failed.reason == "error (1 of 3 rounds): Resources exhausted"
    assert (failed.log, failed.repro) == ("logs/a.log", "df-strategies run --arms a --queries q01")
    assert absent.status is Status.NOT_RUN
    assert absent.reason == "no sample: it never ran"


def test_no_change_printed_where_the_truth_is_inconclusive() -> None:
    rng = np.random.default_rng(5)
    base, new = _arm(rng), _arm(rng)
    for query in QUERIES:
        verdict = query_verdict(base[query], new[query], sf=1, seed=1)
        assert verdict.ratio is not None
        inside = verdict.ratio.low > 1 / 1.05 and verdict.ratio.high < 1.05
        assert (verdict.kind.value == "equivalent") == inside
