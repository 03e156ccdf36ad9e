"""The weights file: criteria with value functions, judged scores with ranges, gates. Edit `criteria.toml`, not this."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from harness.model import Frozen
from reports.datafiles import read_record
from reports.evidence import GATES, SOURCES

CRITERIA_FILE = Path(__file__).parent / "criteria.toml"

JUDGED_STEPS = 4.0
"""A judged score runs from 1 to 5: four steps make the value 1."""


class JudgedScore(Frozen):
    """One judged score, 1 (worst) to 5 (best), with the range a fair reader could choose from."""

    score: int = Field(ge=1, le=5)
    low: int = Field(ge=1, le=5)
    high: int = Field(ge=1, le=5)
    rationale: str = Field(min_length=10)

    @model_validator(mode="after")
    def _ordered(self) -> JudgedScore:
        if not self.low <= self.score <= self.high:
            msg = f"expected low <= score <= high, got {self.low}, {self.score}, {self.high}"
            raise ValueError(msg)
        return self


class Criterion(Frozen):
    """One criterion of the weights file."""

    id: str
    axis: str
    kind: Literal["measured", "judged"]
    title: str
    why: str
    weight: float = Field(ge=0)
    group: str | None = None
    source: str | None = None
    best: float | None = None
    worst: float | None = None
    scale: Literal["linear", "log"] = "linear"
    score: dict[str, JudgedScore] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _complete(self) -> Criterion:
        if self.kind == "measured":
            if self.source not in SOURCES or self.best is None or self.worst is None or self.best == self.worst:
                msg = f"criterion `{self.id}`: needs `best`, another `worst`, and a `source` among {', '.join(SOURCES)}"
                raise ValueError(msg)
        elif not self.score:
            msg = f"criterion `{self.id}`: a judged criterion needs a score with a rationale for every option"
            raise ValueError(msg)
        return self

    def value_of(self, figure: float) -> float:
        """The figure as a value from 0 (worst) to 1 (best)."""
        best, worst = float(self.best or 0.0), float(self.worst or 0.0)
        if self.scale == "log":
            best, worst, figure = math.log(best), math.log(worst), math.log(max(figure, 1e-12))
        return min(1.0, max(0.0, (figure - worst) / (best - worst)))

    def function_words(self) -> str:
        """The value function in words."""
        if self.kind == "judged":
            return "judged 1 to 5; value = (score - 1) / 4"
        scale = "linear in the logarithm" if self.scale == "log" else "linear"
        return f"1 at {self.best:g}, 0 at {self.worst:g}, {scale}"


class AxisOption(Frozen):
    """One answer to a question, and the strategy whose figures speak for it."""

    id: str
    title: str
    strategy: str


class Axis(Frozen):
    """One question."""

    id: str
    question: str
    option: list[AxisOption] = Field(min_length=2)


class Gate(Frozen):
    """One condition."""

    id: str
    title: str
    statement: str

    @field_validator("id")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in GATES:
            msg = f"unknown gate, expected one of {', '.join(GATES)}"
            raise ValueError(msg)
        return value


class Criteria(Frozen):
    """The weights file."""

    schema_version: Literal[1] = Field(alias="schema")
    source: str = Field(default="reports/criteria.toml", description="Where it was read from, for readers")
    too_close_below: float = Field(gt=0.5, le=1)
    concentration: float = Field(gt=0)
    draws: int = Field(ge=100)
    seed: int
    axis: list[Axis]
    gate: list[Gate]
    criterion: list[Criterion]

    @model_validator(mode="after")
    def _fits(self) -> Criteria:
        options = {axis.id: {option.id for option in axis.option} for axis in self.axis}
        for entry in self.criterion:
            if entry.axis not in options:
                msg = f"criterion `{entry.id}`: unknown axis `{entry.axis}`, expected one of {', '.join(options)}"
                raise ValueError(msg)
            if entry.kind == "judged" and set(entry.score) != options[entry.axis]:
                msg = f"criterion `{entry.id}`: needs a score for exactly {', '.join(sorted(options[entry.axis]))}"
                raise ValueError(msg)
        return self


def load_criteria(path: Path = CRITERIA_FILE) -> Criteria:
    """Read a weights file.

    Raises:
        UserError: unreadable, or a key is missing, unknown or out of range.
    """
    found = read_record(path, Criteria, "weights file")
    return found if path == CRITERIA_FILE else found.model_copy(update={"source": path.name})
