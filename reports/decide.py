"""From evidence to a decision: gates first, then a weighted ranking per question, then how firmly it stands.

The weights file is `criteria.toml`. A criterion without a figure is not left out: it counts as anything from worst to
best, so that missing evidence lowers certainty instead of helping whoever lacks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from reports.criteria import JUDGED_STEPS, Axis, AxisOption, Criteria, Criterion, load_criteria
from reports.decision_model import (
    AxisDecision,
    CriterionResult,
    Decision,
    Flip,
    GateResult,
    GateState,
    OptionResult,
    OptionScore,
)
from reports.evidence import SOURCES, Figure, Parts, gate_result
from reports.public_prs import PrFile, load_prs, pr_verdict
from reports.sensitivity import (
    Array,
    Dirichlet,
    correlated_pairs,
    normalise,
    rank1_probability,
    smallest_flip,
    totals,
    value_flips,
)

NOTABLE = 0.01
"""Weighted lead from which a criterion is named as a reason: one hundredth of the whole scale."""

LEAST_SHARE = 0.005
"""Share of the weights that would show as 1 % at least."""

HEAVY_PAIR = 0.4
"""Joint weight from which two criteria that move together are worth a warning."""


def decide(parts: Parts, criteria: Criteria | None = None, prs: PrFile | None = None) -> Decision:
    """The decision section for the strategies that the run had."""
    given = criteria or load_criteria()
    strategies = list(dict.fromkeys(option.strategy for axis in given.axis for option in axis.option))
    present = [name for name in strategies if name in parts.summary]
    gates = [gate_result(parts, gate.id, gate.title, name) for gate in given.gate for name in present]
    axes = [_axis(axis, given, parts, gates, present) for axis in given.axis]
    return Decision(
        weights_file=given.source,
        threshold=given.too_close_below,
        concentration=given.concentration,
        draws=given.draws,
        seed=given.seed,
        gates=gates,
        axes=axes,
        public=[pr_verdict(entry, parts) for entry in (prs or load_prs()).pr],
        says=[axis.sentence for axis in axes],
        cannot_say=_cannot_say(axes, gates, present, strategies),
    )


def _axis(
    axis: Axis, given: Criteria, parts: Parts, gates: Sequence[GateResult], present: Sequence[str]
) -> AxisDecision:
    options = [option for option in axis.option if option.strategy in present]
    criteria = [entry for entry in given.criterion if entry.axis == axis.id]
    if not options or not criteria:
        return AxisDecision(
            axis=axis.id,
            question=axis.question,
            verdict="no_choice",
            provisional=True,
            measured_weight=0.0,
            judged_weight=0.0,
            sentence=f"{axis.question} No strategy of this run speaks to it.",
            options=[],
            criteria=[],
        )
    weights = normalise(np.array([entry.weight for entry in criteria], dtype=np.float64))
    scored = [_criterion(entry, options, parts, float(share)) for entry, share in zip(criteria, weights, strict=True)]
    states: list[GateState] = [_state(gates, option.strategy) for option in options]
    kept = [index for index, state in enumerate(states) if state != "fail"]
    board = _Board(
        weights=weights,
        value=_matrix(scored, "value"),
        low=_matrix(scored, "low"),
        high=_matrix(scored, "high"),
        kept=kept,
        options=options,
        criteria=scored,
    )
    return _answer(axis, board, _ranked(board, states, given), given)


class _Board(NamedTuple):
    """One question as arrays (criteria, options), with the indices of the options that no gate has taken out."""

    weights: Array
    value: Array
    low: Array
    high: Array
    kept: list[int]
    options: Sequence[AxisOption]
    criteria: list[CriterionResult]


def _matrix(criteria: Sequence[CriterionResult], field: str) -> Array:
    return np.array([[getattr(score, field) for score in entry.scores] for entry in criteria], dtype=np.float64)


def _criterion(entry: Criterion, options: Sequence[AxisOption], parts: Parts, weight: float) -> CriterionResult:
    scores = [_score(entry, option, parts) for option in options]
    return CriterionResult(
        id=entry.id,
        title=entry.title,
        kind=entry.kind,
        why=entry.why,
        weight=weight,
        raw_weight=entry.weight,
        group=entry.group,
        value_function=entry.function_words(),
        scores=scores,
    )


def _score(entry: Criterion, option: AxisOption, parts: Parts) -> OptionScore:
    if entry.kind == "judged":
        judged = entry.score[option.id]
        value, low, high = ((number - 1) / JUDGED_STEPS for number in (judged.score, judged.low, judged.high))
        figure = f"{judged.score} of 5 (range {judged.low} to {judged.high})"
        return OptionScore(
            option=option.id, figure=figure, value=value, low=low, high=high, known=True, note=judged.rationale
        )
    found: Figure = SOURCES[entry.source or ""](parts, option.strategy)
    if found.value is None:
        return OptionScore(
            option=option.id, figure="no figure", value=0.5, low=0.0, high=1.0, known=False, note=found.missing
        )
    bounds = [entry.value_of(found.value if edge is None else edge) for edge in (found.low, found.high)]
    value = entry.value_of(found.value)
    return OptionScore(
        option=option.id, figure=found.text, value=value, low=min(*bounds, value), high=max(*bounds, value), known=True
    )


def _state(gates: Sequence[GateResult], strategy: str) -> GateState:
    states = [gate.state for gate in gates if gate.strategy == strategy]
    if "fail" in states:
        return "fail"
    return "open" if "open" in states or not states else "pass"


def _ranked(board: _Board, states: Sequence[GateState], given: Criteria) -> list[OptionResult]:
    """Options best first, those that a gate has taken out last."""
    scores = totals(board.value, board.weights)
    shares = np.zeros(len(board.options))
    if board.kept:
        how = Dirichlet(given.concentration, given.draws, given.seed)
        shares[board.kept] = rank1_probability(board.low[:, board.kept], board.high[:, board.kept], board.weights, how)
    results = [
        OptionResult(
            option=option.id,
            title=option.title,
            strategy=option.strategy,
            score=float(scores[index]),
            rank1=float(shares[index]),
            gates=states[index],
            excluded=None if index in board.kept else "a gate failed",
        )
        for index, option in enumerate(board.options)
    ]
    return sorted(results, key=lambda result: (result.excluded is not None, -result.score, result.option))


def _answer(axis: Axis, board: _Board, ranked: list[OptionResult], given: Criteria) -> AxisDecision:
    leader = next((result for result in ranked if result.excluded is None), None)
    choice = len(board.kept) > 1
    judged = sum(entry.weight for entry in board.criteria if entry.kind == "judged")
    known = sum(entry.weight for entry in board.criteria if all(score.known for score in entry.scores))
    shares = (float(known - judged), float(judged))
    verdict: Literal["favours", "gate_open", "too_close", "no_choice"] = "too_close" if choice else "no_choice"
    if choice and leader is not None and leader.rank1 >= given.too_close_below:
        verdict = "favours" if leader.gates == "pass" else "gate_open"
    return AxisDecision(
        axis=axis.id,
        question=axis.question,
        verdict=verdict,
        winner=leader.option if verdict == "favours" and leader else None,
        leader=leader.option if leader else None,
        provisional=leader is None or leader.gates != "pass",
        measured_weight=shares[0],
        judged_weight=shares[1],
        sentence=f"{axis.question} {_sentence(verdict, ranked, shares, given)}{_because(board, ranked)}",
        options=ranked,
        criteria=board.criteria,
        flip=_flip(board) if choice else None,
        score_flips=_score_flips(board) if choice else [],
        warnings=_warnings(board.criteria, board.value[:, board.kept]),
    )


def _sentence(verdict: str, ranked: Sequence[OptionResult], shares: tuple[float, float], given: Criteria) -> str:
    passing = [result for result in ranked if result.excluded is None]
    if not passing:
        return "No option passes the gates."
    leader = passing[0]
    if verdict == "no_choice":
        return f"Only one option is left to rank: {leader.title}."
    measured, judged = shares
    unknown = max(0.0, 1 - measured - judged)
    rest = f", {unknown:.0%} without a figure" if unknown >= LEAST_SHARE else ""
    basis = f"{leader.rank1:.0%} of weightings ({measured:.0%} of the weights measured, {judged:.0%} judged{rest})"
    if verdict == "favours":
        return f"The evidence favours: {leader.title}, in {basis}."
    open_words = " A gate is open." if leader.gates == "open" else ""
    if verdict == "gate_open":
        return f"Not settled: {leader.title} leads in {basis}, but a gate is open."
    second = max(passing[1:], key=lambda result: result.rank1)
    return (
        f"Too close to call: {leader.title} leads in {basis}, and {given.too_close_below:.0%} are needed; "
        f"{second.title} comes first in {second.rank1:.0%}.{open_words}"
    )


def _because(board: _Board, ranked: Sequence[OptionResult]) -> str:
    """What speaks most for the leader and against it, seen from the option that comes closest."""
    passing = [result.option for result in ranked if result.excluded is None]
    if len(passing) < 2:
        return ""
    order = [option.id for option in board.options]
    first, second = (order.index(name) for name in passing[:2])
    lead = board.weights * (board.value[:, first] - board.value[:, second])
    places = np.argsort(-lead, kind="stable")
    known = [place for place in places if all(score.known for score in board.criteria[place].scores)]
    pro = [_named(board.criteria[place]) for place in known if lead[place] > NOTABLE][:2]
    con = [_named(board.criteria[place]) for place in reversed(known) if lead[place] < -NOTABLE][:1]
    words = f" For it: {'; '.join(pro)}." if pro else ""
    return words + (f" Against it: {'; '.join(con)}." if con else "")


def _named(entry: CriterionResult) -> str:
    return f"{entry.title} (judged)" if entry.kind == "judged" else entry.title


def _flip(board: _Board) -> Flip | None:
    found = smallest_flip(board.value[:, board.kept], board.weights)
    if found is None:
        return None
    criterion, winner = board.criteria[found.criterion], board.options[board.kept[found.winner]]
    return Flip(
        criterion=criterion.id,
        criterion_title=criterion.title,
        from_weight=found.before,
        to_weight=found.to,
        winner=winner.id,
        winner_title=winner.title,
    )


def _score_flips(board: _Board) -> list[str]:
    """Judged scores of which one point more or less gives another leader."""
    step = np.zeros((len(board.criteria), len(board.kept)))
    for row, entry in enumerate(board.criteria):
        if entry.kind == "judged":
            step[row, :] = 1 / JUDGED_STEPS
    return [
        f"{board.criteria[row].title}, {board.options[board.kept[column]].title}: "
        f"one point {'more' if direction > 0 else 'less'}"
        for row, column, direction in value_flips(board.value[:, board.kept], board.weights, step)
    ]


def _warnings(criteria: Sequence[CriterionResult], values: Array) -> list[str]:
    found = []
    groups: dict[str, list[CriterionResult]] = {}
    for entry in criteria:
        if entry.group:
            groups.setdefault(entry.group, []).append(entry)
    for name, members in groups.items():
        if len(members) > 1:
            weight = sum(entry.weight for entry in members)
            titles = ", ".join(entry.title for entry in members)
            found.append(
                f"{name}: {len(members)} criteria overlap and hold {weight:.0%} of the weights together ({titles})"
            )
    for first, second, correlation in correlated_pairs(values):
        one, two = criteria[first], criteria[second]
        weight = one.weight + two.weight
        if weight >= HEAVY_PAIR and not (one.group and one.group == two.group):
            found.append(
                f"{one.title} and {two.title} move together over {values.shape[1]} options (r = {correlation:+.2f}) "
                f"and hold {weight:.0%} of the weights"
            )
    return found


def _cannot_say(
    axes: Sequence[AxisDecision], gates: Sequence[GateResult], present: Sequence[str], strategies: Sequence[str]
) -> list[str]:
    found = [f"strategy {name} was not in this run" for name in strategies if name not in present]
    found += [
        f"gate {gate.title} is open for {gate.strategy}: {gate.evidence}" for gate in gates if gate.state == "open"
    ]
    for axis in axes:
        for entry in axis.criteria:
            unknown = [score for score in entry.scores if not score.known]
            if unknown:
                titles = {option.option: option.title for option in axis.options}
                names = ", ".join(titles[score.option] for score in unknown)
                found.append(f"{entry.title}: no figure for {names} ({unknown[0].note})")
    found.append(
        "each strategy pairs one place with one binding, so timings speak to the binding only; the same binding in "
        "another place would time the same"
    )
    return found
