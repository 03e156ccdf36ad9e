"""Gates, rankings, and how firmly they stand."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.model import Status, Validation
from report_helpers import RUN_SMALL
from reports.build import make_report
from reports.criteria import CRITERIA_FILE, Criteria, load_criteria
from reports.decide import decide
from reports.evidence import GATES, SOURCES, ArmFigures, CellFigures, Parts
from reports.packaging import build_packaging
from reports.release_lag import build_release_lag, load_lag
from reports.sensitivity import (
    Dirichlet,
    correlated_pairs,
    normalise,
    rank1_probability,
    smallest_flip,
    totals,
    value_flips,
)

ARMS = ("inline", "external", "decorator")


def make_parts(geomean: dict[str, float] | None = None, **cells: tuple[Status, Validation]) -> Parts:
    """Evidence in which every strategy ran one query well, unless told otherwise."""
    given_ = {"inline": 1.0, "external": 1.0, "decorator": 1.0} | (geomean or {})
    good = (Status.OK, Validation.VALIDATED)
    return Parts(
        summary={arm: ArmFigures(1, 1, 1, (given_[arm], given_[arm], given_[arm]), None) for arm in ARMS},
        cells={arm: [CellFigures("q01", *cells.get(arm, good))] for arm in ARMS},
        conformance={},
        api_surface=None,
        packaging=None,
        release_lag=build_release_lag(load_lag(), ARMS),
    )


def two_options(kind: str = "measured", weight: float = 1.0) -> Criteria:
    """One question, two options, one criterion: the time against native."""
    criterion = {"id": "c", "axis": "how", "kind": kind, "title": "Time", "why": "it is felt", "weight": weight}
    criterion |= {"source": "geomean_vs_native", "best": 1.0, "worst": 2.0}
    return Criteria.model_validate(
        {
            "schema": 1,
            "too_close_below": 0.8,
            "concentration": 20.0,
            "draws": 2000,
            "seed": 1,
            "axis": [
                {
                    "id": "how",
                    "question": "How?",
                    "option": [
                        {"id": "a", "title": "A", "strategy": "inline"},
                        {"id": "b", "title": "B", "strategy": "decorator"},
                    ],
                }
            ],
            "gate": [{"id": "correct", "title": "Correct", "statement": "right answers"}],
            "criterion": [criterion],
        }
    )


def test_shipped_weights_are_complete():
    criteria = load_criteria()
    assert {axis.id for axis in criteria.axis} == {"where", "how"}
    assert {entry.source for entry in criteria.criterion if entry.source} <= set(SOURCES)
    assert {gate.id for gate in criteria.gate} == set(GATES)
    assert criteria.too_close_below == 0.8


def test_clear_evidence_is_announced():
    (axis,) = decide(make_parts({"inline": 1.0, "decorator": 1.8}), two_options()).axes
    assert (axis.verdict, axis.winner) == ("favours", "a")
    assert axis.options[0].rank1 == 1.0
    assert (axis.measured_weight, axis.judged_weight) == (1.0, 0.0)


def test_equal_evidence_is_too_close_to_call():
    (axis,) = decide(make_parts(), two_options()).axes
    assert (axis.verdict, axis.winner) == ("too_close", None)
    assert axis.options[0].rank1 == pytest.approx(0.5)
    assert "Too close to call" in axis.sentence


def test_missing_evidence_lowers_certainty_instead_of_deciding():
    parts = make_parts({"inline": 1.0})
    summary = {**parts.summary, "decorator": ArmFigures(1, 1, 1, None, "valid queries differ")}
    decision = decide(parts._replace(summary=summary), two_options())
    (axis,) = decision.axes
    assert axis.measured_weight == 0.0
    assert "100% without a figure" in axis.sentence
    score = next(score for score in axis.criteria[0].scores if score.option == "b")
    assert (score.known, score.low, score.high) == (False, 0.0, 1.0)
    assert any("no figure for B (valid queries differ)" in item for item in decision.cannot_say)


@pytest.mark.parametrize(
    "trouble", [(Status.WRONG, Validation.NOT_VALIDATED), (Status.OK, Validation.MISMATCH)], ids=["wrong", "mismatch"]
)
def test_a_failed_gate_takes_the_best_option_out(trouble):
    (axis,) = decide(make_parts({"decorator": 1.9}, inline=trouble), two_options()).axes
    assert axis.leader == "b"
    assert axis.verdict == "no_choice"
    out = next(option for option in axis.options if option.option == "a")
    assert (out.excluded, out.rank1) == ("a gate failed", 0.0)


def test_an_open_gate_prevents_the_announcement():
    parts = make_parts({"decorator": 1.9}, inline=(Status.OK, Validation.NOT_VALIDATED))
    (axis,) = decide(parts, two_options()).axes
    assert (axis.verdict, axis.winner, axis.leader, axis.provisional) == ("gate_open", None, "a", True)
    assert "a gate is open" in axis.sentence


@pytest.mark.parametrize("status", [Status.CRASH, Status.OOM, Status.TIMEOUT])
def test_what_kills_a_process_fails_the_survival_gate(status):
    state, words = GATES["survives"](make_parts(inline=(status, Validation.NOT_VALIDATED)), "inline")
    assert (state, words) == ("fail", f"q01 ({status.value})")


def test_questions_are_answered_apart():
    """A slow binding changes the answer to `how`, never the answer to `where`."""
    fast, slow = (decide(make_parts({"decorator": value})) for value in (1.0, 1.9))
    where = [next(axis for axis in decision.axes if axis.axis == "where") for decision in (fast, slow)]
    how = [next(axis for axis in decision.axes if axis.axis == "how") for decision in (fast, slow)]
    assert where[0] == where[1]
    assert how[0] != how[1]


def test_every_public_pull_request_gets_its_figures():
    public = {entry.id: entry for entry in decide(make_parts()).public}
    assert set(public) == {"1611", "554 / 1677-1679 / 2252", "727"}
    for entry in public.values():
        assert any("time against the native driver: 1.000x" in item for item in entry.says)
        assert entry.differs
        assert entry.cannot_say


def test_a_run_without_a_strategy_says_so():
    parts = make_parts()
    summary = {"local": ArmFigures(1, 1, 1, None, None)}
    decision = decide(parts._replace(summary=summary))
    assert all(axis.verdict == "no_choice" and axis.winner is None for axis in decision.axes)
    assert "strategy inline was not in this run" in decision.cannot_say


@pytest.mark.parametrize(
    ("pattern", "replacement", "message"),
    [
        (r"weight = 3\.0", "weight = -1.0", "greater than or equal to 0"),
        (r'source = "plain_wait_worst"', 'source = "horoscope"', "needs `best`, another `worst`, and a `source` among"),
        (r"score = 5\nlow = 4", "score = 1\nlow = 4", "expected low <= score <= high"),
        (r"\[criterion\.score\.engine\]", "[criterion.score.nowhere]", "needs a score for exactly"),
        (r'id = "survives"', 'id = "lucky"', "unknown gate"),
        (r"seed = 1612", "sed = 1612", "seed"),
    ],
)
def test_a_wrong_weights_file_is_one_clear_message(tmp_path, pattern, replacement, message):
    text, count = re.subn(pattern, replacement, CRITERIA_FILE.read_text(encoding="utf-8"), count=1)
    assert count == 1
    path = tmp_path / "criteria.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=re.escape(message)):
        load_criteria(path)


def test_value_functions():
    criteria = {entry.id: entry for entry in load_criteria().criterion}
    overhead = criteria["overhead"]
    assert [overhead.value_of(ratio) for ratio in (0.9, 1.0, 1.2, 9.0)] == [1, 1, 0, 0]
    assert overhead.value_of(1.2**0.5) == pytest.approx(0.5), "linear in the logarithm"
    assert criteria["reach"].value_of(0.75) == pytest.approx(0.5)


def test_the_smallest_flip_really_flips_and_less_does_not():
    values = np.array([[1.0, 0.2], [0.1, 0.9], [0.5, 0.6]])
    weights = np.array([0.5, 0.3, 0.2])
    flip = smallest_flip(values, weights)
    assert flip is not None

    def lead(share: float) -> float:
        moved = weights * (1 - share) / (1 - weights[flip.criterion])
        moved[flip.criterion] = share
        score = totals(values, moved)
        return float(score[0] - score[1])

    assert lead(flip.to) == pytest.approx(0, abs=1e-9)
    assert lead(flip.to + 1e-3 * np.sign(flip.to - flip.before)) < 0 < lead(flip.before)


def test_dominance_cannot_be_flipped():
    assert smallest_flip(np.array([[1.0, 0.0], [0.9, 0.1]]), np.array([0.5, 0.5])) is None


def test_a_judged_point_that_flips_is_named():
    values, weights = np.array([[0.5, 0.25], [0.5, 0.6]]), np.array([0.5, 0.5])
    step = np.array([[0.25, 0.0], [0.0, 0.0]])
    assert value_flips(values, weights, step) == [(0, 0, -1)]


@given(st.lists(st.floats(0.01, 10), min_size=2, max_size=6), st.integers(0, 1000))
def test_first_places_sum_to_one_and_the_dominant_option_has_them_all(weights, seed):
    shares = normalise(np.array(weights))
    values = np.array([[0.9, 0.1, 0.1]] * len(weights))
    rank1 = rank1_probability(values, values, shares, Dirichlet(20.0, 200, seed))
    assert rank1.tolist() == [1.0, 0.0, 0.0]
    low, high = np.zeros_like(values), np.ones_like(values)
    assert rank1_probability(low, high, shares, Dirichlet(20.0, 200, seed)).sum() == pytest.approx(1)


def test_weights_must_be_usable():
    with pytest.raises(ValueError, match="none is negative"):
        normalise(np.array([0.0, 0.0]))


def test_correlated_criteria_are_found():
    values = np.array([[0.1, 0.5, 0.9], [0.2, 0.6, 1.0], [0.3, 0.3, 0.3]])
    assert correlated_pairs(values) == [(0, 1, pytest.approx(1.0))]


def test_the_small_run_decides_the_same_again():
    assert make_report(RUN_SMALL).decision == make_report(RUN_SMALL).decision


def test_shared_code_counts_where_the_binding_lives():
    """What goes wherever the binding goes is datafusion-python's burden under `inline` only; tests are nobody's."""

    def source(home: str) -> dict:
        own = {"home": home, "title": "own", "shared": False, "files": 1, "lines": {"Python": 10, "Python tests": 7}}
        shared = {"home": "with the binding", "title": "shared", "shared": True, "files": 1, "lines": {"Python": 100}}
        return {"arm": "x", "code": [own, shared], "private": []}

    document = {
        "arms": {
            "inline": {"packages": [], "source": source("datafusion-python")},
            "decorator": {"packages": [], "source": source("datafusion-distributed")},
        }
    }
    parts = make_parts()._replace(packaging=build_packaging(document))
    assert SOURCES["lines_in_datafusion_python"](parts, "inline").value == 110
    assert SOURCES["lines_in_datafusion_python"](parts, "decorator").value == 0
    assert SOURCES["lines_in_datafusion_python"](parts, "external").missing == "the sources were not counted"
