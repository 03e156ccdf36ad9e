"""Records of the decision: gates, criteria, rankings per question, and what the evidence says about each public PR."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from harness.model import Frozen

GateState = Literal["pass", "fail", "open"]
"""`open`: the evidence for this gate is missing."""


class GateResult(Frozen):
    """One gate for one strategy, with the evidence in words."""

    gate: str
    title: str
    strategy: str
    state: GateState
    evidence: str


class OptionScore(Frozen):
    """One option under one criterion. `value` runs from 0 (worst) to 1 (best); `low` and `high` bound it."""

    option: str
    figure: str = Field(description="The figure or the judged score, in words")
    value: float
    low: float
    high: float
    known: bool = Field(description="False: no figure exists, so anything from 0 to 1 is possible")
    note: str | None = Field(default=None, description="Rationale of a judged score, or why a figure is missing")


class CriterionResult(Frozen):
    """One criterion over the options of its question."""

    id: str
    title: str
    kind: Literal["measured", "judged"]
    why: str
    weight: float = Field(description="Share of the question's weights, 0 to 1")
    raw_weight: float = Field(description="As the weights file has it")
    group: str | None = None
    value_function: str
    scores: list[OptionScore]


class OptionResult(Frozen):
    """One option of a question, ranked."""

    option: str
    title: str
    strategy: str
    score: float = Field(description="Weighted value, 0 to 1")
    rank1: float = Field(description="Share of weightings in which it comes first, 0 to 1")
    gates: GateState
    excluded: str | None = Field(default=None, description="Why it is out of the ranking")


class Flip(Frozen):
    """The smallest change that gives another winner."""

    criterion: str
    criterion_title: str
    from_weight: float
    to_weight: float
    winner: str
    winner_title: str

    def words(self) -> str:
        """The change as a sentence."""
        weights = f"from {self.from_weight:.1%} to {self.to_weight:.1%}"
        return f"the weight of `{self.criterion_title}` {weights}; then this leads: {self.winner_title}"


class AxisDecision(Frozen):
    """The answer to one question."""

    axis: str
    question: str
    verdict: Literal["favours", "gate_open", "too_close", "no_choice"]
    winner: str | None = Field(
        default=None, description="Option that is announced; null when too close or a gate is open"
    )
    leader: str | None = Field(default=None, description="Option with the highest score, announced or not")
    provisional: bool = Field(description="Whether a gate of the leader is open")
    measured_weight: float = Field(description="Share of the weights that are measured, with a figure for every option")
    judged_weight: float = Field(description="Share of the weights that rest on judgement")
    sentence: str
    options: list[OptionResult]
    criteria: list[CriterionResult]
    flip: Flip | None = None
    score_flips: list[str] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)


class PrVerdict(Frozen):
    """What this evidence says about one public pull request or chain of them."""

    id: str
    title: str
    links: list[str]
    strategy: str
    where: str
    how: str
    says: list[str]
    differs: list[str] = Field(description="How the build measured here differs from that pull request")
    cannot_say: list[str]


class Decision(Frozen):
    """The whole decision section."""

    weights_file: str = Field(default="reports/criteria.toml", description="Weights file, as it was named")
    threshold: float = Field(description="Share of weightings below which nothing is announced")
    concentration: float
    draws: int
    seed: int
    gates: list[GateResult]
    axes: list[AxisDecision]
    public: list[PrVerdict]
    says: list[str]
    cannot_say: list[str]
