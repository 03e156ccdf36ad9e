"""What counts and what may be totalled: a failure can never look like speed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import EXIT_NOT_COMPARABLE, EXIT_OK, EXIT_REGRESSION
from harness.model import Phase, Reach, Sample, Status, Validation, Verdict, VerdictKind
from harness.stats import Cell, collect, coverage, outcome, query_verdict, series, suite_verdict

QUERIES = ("q01", "q02", "q03")
FAILURES = (Status.WRONG, Status.ERROR, Status.TIMEOUT, Status.CRASH, Status.OOM, Status.NOT_RUN)


def _sample(
    query: str, number: int, status: Status = Status.OK, *, arm: str = "inline", ms: float = 100.0, **given
) -> Sample:
    facts = {
        "phase": Phase.TIMED,
        "validation": Validation.VALIDATED if status is Status.OK else Validation.NOT_VALIDATED,
        "reach": Reach.DISTRIBUTED if status is Status.OK else None,
        "elapsed_ms": ms if status is Status.OK else None,
        "sequence": number,
    }
    return Sample(round=number, arm=arm, query=query, status=status, **{**facts, **given})


def _good(query: str, ms: float = 100.0, rounds: int = 6, **given) -> list[Sample]:
    return [_sample(query, number, ms=ms, **given) for number in range(rounds)]


def _cells(*groups: list[Sample], rounds: int = 6, arm: str = "inline", **given) -> dict[str, Cell]:
    samples = [sample for group in groups for sample in group]
    return collect(samples, arm=arm, queries=QUERIES, rounds=rounds, **given)


ALL_GOOD = [_good(query) for query in QUERIES]


def test_complete_arms_give_a_total() -> None:
    base = _cells(*ALL_GOOD)
    new = _cells(_good("q01", 50), _good("q02", 50), _good("q03", 50))
    cover = coverage(base, new)
    assert (cover.total.base_ms, cover.total.new_ms, cover.total.factor) == (300.0, 150.0, 0.5)
    assert (cover.total.words, cover.total.reason) == ("3 of 3", None)
    assert (cover.newly_failing, cover.newly_passing, cover.gaps) == ((), (), ())


@pytest.mark.parametrize("status", FAILURES)
@pytest.mark.parametrize("rounds_failed", [1, 6])
def test_a_newly_failing_query_never_makes_a_total_faster(status: Status, rounds_failed: int) -> None:
    base = _cells(*ALL_GOOD)
    broken = [
        _sample(
            "q03", number, status if number < rounds_failed else Status.OK, reason="boom", ms=1.0, log="l", repro="r"
        )
        for number in range(6)
    ]
    cover = coverage(base, _cells(_good("q01"), _good("q02"), broken))
    total = cover.total
    assert (total.base_ms, total.new_ms, total.factor) == (None, None, None), "no figure may come out"
    assert total.words == "2 of 3"
    assert "q03" in (total.reason or "")
    (gap,) = cover.newly_failing
    assert (gap.query, gap.side, gap.status, gap.log, gap.repro) == ("q03", "new", status, "l", "r")
    assert "boom" in gap.reason
    assert f"{rounds_failed} of 6 rounds" in gap.reason
    assert outcome(cover, {}).exit_code == EXIT_REGRESSION


@given(st.lists(st.sampled_from([Status.OK, *FAILURES, Status.UNSUPPORTED]), min_size=3, max_size=3), st.floats(1, 1e4))
@settings(deadline=None)
def test_a_total_exists_only_for_equal_sets(statuses: list[Status], ms: float) -> None:
    base = _cells(*ALL_GOOD)
    pairs = list(zip(QUERIES, statuses, strict=True))
    new = _cells(*([_sample(query, n, status, ms=ms) for n in range(6)] for query, status in pairs))
    for left, right in ((base, new), (new, base)):
        total = coverage(left, right).total
        equal = all(status is Status.OK for status in statuses)
        assert (total.factor is not None) == equal
        assert total.counted == sum(status is Status.OK for status in statuses)
        verdict = suite_verdict(series(left), series(right), seed=1, resamples=100)
        assert (verdict.ratio is not None) == equal
        for figure in (total.base_ms, total.new_ms, total.factor):
            assert figure is None or (math.isfinite(figure) and figure > 0)


def test_both_arms_failing_the_same_query_still_say_k_of_n() -> None:
    half = _cells(_good("q01"), _good("q02"), [_sample("q03", n, Status.ERROR) for n in range(6)])
    cover = coverage(half, half)
    assert cover.total.words == "2 of 3"
    assert cover.total.factor == 1.0
    assert cover.newly_failing == ()
    assert [(gap.query, gap.side) for gap in cover.gaps] == [("q03", "base"), ("q03", "new")]


def test_a_query_that_now_passes_is_listed_and_not_totalled() -> None:
    base = _cells(_good("q01"), _good("q02"), [_sample("q03", n, Status.CRASH) for n in range(6)])
    cover = coverage(base, _cells(*ALL_GOOD))
    assert cover.newly_passing == ("q03",)
    assert cover.newly_failing == ()
    assert cover.total.factor is None
    assert outcome(cover, {}).exit_code == EXIT_OK


def test_a_declared_limit_is_no_failure_but_no_total_either() -> None:
    new = _cells(
        _good("q01"), _good("q02"), [_sample("q03", n, Status.UNSUPPORTED, reason="no views") for n in range(6)]
    )
    cover = coverage(_cells(*ALL_GOOD), new)
    assert cover.newly_failing == ()
    assert [gap.query for gap in cover.newly_excluded] == ["q03"]
    assert cover.total.factor is None


@pytest.mark.parametrize("rounds", [0, 1, 6])
def test_an_empty_run_is_not_a_success(rounds: int) -> None:
    empty = _cells(rounds=rounds)
    cover = coverage(empty, empty)
    assert cover.total.factor is None
    assert cover.total.words == "0 of 3"
    assert all(cell.status is Status.NOT_RUN and cell.reason for cell in empty.values())
    result = outcome(cover, {})
    assert result.exit_code == EXIT_NOT_COMPARABLE
    assert "nothing" in result.sentence
    nothing = coverage({}, {})
    assert outcome(nothing, {}).exit_code == EXIT_NOT_COMPARABLE
    assert nothing.total.factor is None


def test_one_empty_arm_is_a_regression() -> None:
    assert outcome(coverage(_cells(*ALL_GOOD), _cells()), {}).exit_code == EXIT_REGRESSION


def test_no_query_in_common_is_not_comparable() -> None:
    base, new = _cells(_good("q01")), _cells(_good("q02"))
    cover = coverage(base, new)
    assert cover.total.factor is None
    unsupported = _cells([_sample("q01", n, Status.UNSUPPORTED) for n in range(6)], _good("q02"))
    assert outcome(coverage(base, unsupported), {}).exit_code == EXIT_NOT_COMPARABLE


@pytest.mark.parametrize("kind", [VerdictKind.SLOWER, VerdictKind.FASTER, VerdictKind.EQUIVALENT])
def test_exit_code_follows_the_verdicts(kind: VerdictKind) -> None:
    cover = coverage(_cells(*ALL_GOOD), _cells(*ALL_GOOD))
    verdict = Verdict(kind=kind)
    expected = EXIT_REGRESSION if kind is VerdictKind.SLOWER else EXIT_OK
    assert outcome(cover, {"q01": verdict}).exit_code == expected
    assert outcome(cover, {}, verdict).exit_code == expected


def test_one_wrong_answer_in_any_phase_spoils_the_query() -> None:
    warm = _sample("q03", 0, phase=Phase.WARMUP, validation=Validation.MISMATCH)
    cell = _cells(_good("q03"), [warm])["q03"]
    assert (cell.valid, cell.status, cell.validation) == (False, Status.WRONG, Validation.MISMATCH)
    timed = _cells(
        [_sample("q03", n, validation=Validation.MISMATCH if n == 4 else Validation.VALIDATED) for n in range(6)]
    )
    assert not timed["q03"].valid
    assert timed["q03"].times_ms[4] is None


def test_an_answer_checked_in_the_warmup_counts_for_the_timed_rounds() -> None:
    warm = _sample("q03", 0, phase=Phase.WARMUP)
    assert _cells(_good("q03", validation=Validation.NOT_VALIDATED), [warm])["q03"].valid


def test_vacuous_stays_visible() -> None:
    cell = _cells(_good("q03", validation=Validation.VACUOUS))["q03"]
    assert (cell.valid, cell.validation) == (True, Validation.VACUOUS)


def test_result_files_of_other_tools_can_be_let_in() -> None:
    foreign = _good("q01", validation=Validation.NOT_VALIDATED, reach=None)
    assert not _cells(foreign)["q01"].valid
    assert not _cells(foreign, require_validated=False)["q01"].valid
    assert _cells(foreign, require_validated=False, require_reach=False)["q01"].valid


@pytest.mark.parametrize("elapsed", [None, 0.0, -1.0])
def test_ok_without_a_positive_time_is_not_valid(elapsed: float | None) -> None:
    cell = _cells([_sample("q01", n, elapsed_ms=elapsed if n == 2 else 100.0) for n in range(6)])["q01"]
    assert not cell.valid
    assert cell.times_ms[2] is None
    assert cell.reason == "no time in 1 of 6 rounds"
    assert cell.median_ms is None


def test_samples_of_other_arms_phases_and_unfinished_rounds_are_not_mixed_in() -> None:
    noise = [
        _sample("q01", 0, arm="external", ms=1.0),
        _sample("q01", 0, phase=Phase.WARMUP, ms=1.0),
        _sample("q01", 0, phase=Phase.RECURRENCE, ms=1.0),
        _sample("q01", 6, ms=1.0),
    ]
    assert _cells(_good("q01"), noise)["q01"].times_ms == (100.0,) * 6


def test_a_round_measured_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one timed sample of q01 on inline in round 3, got two"):
        _cells(_good("q01"), [_sample("q01", 3)])


def test_arms_of_different_query_sets_are_refused() -> None:
    base = _cells(*ALL_GOOD)
    with pytest.raises(ValueError, match="q03"):
        coverage(base, {name: cell for name, cell in base.items() if name != "q03"})


def test_the_worst_status_of_a_cell_is_shown() -> None:
    mixed = [_sample("q01", n, status) for n, status in enumerate([Status.OK, Status.ERROR, Status.CRASH, Status.OK])]
    assert _cells(mixed, rounds=4)["q01"].status is Status.CRASH


def test_cells_feed_the_verdicts() -> None:
    base, new = _cells(*ALL_GOOD), _cells(_good("q01", 150), _good("q02"), _good("q03"))
    verdict = query_verdict(base["q01"].times_ms, new["q01"].times_ms, sf=1, seed=1)
    assert verdict.kind is VerdictKind.SLOWER
    assert suite_verdict(series(base), series(new), seed=1).ratio is not None
