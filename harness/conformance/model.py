"""Records of the conformance suite: what is checked, and what became of it."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints, computed_field

from harness.model import Frozen

CONFORMANCE_SCHEMA_VERSION = 1
"""Version of conformance.json. History: 1 = first published form."""

AREAS = {
    1: "New public names", 2: "Lines to go distributed", 3: "Class identity", 4: "Coverage by execution",
    5: "Surface diff three ways", 6: "Neutrality", 7: "Docs", 8: "Sizes and imports", 9: "Dependencies",
    10: "Lines of code", 11: "Release lag", 12: "ABI safety", 13: "Plan fidelity", 14: "Proof of distribution",
    15: "Correctness", 16: "Serialization", 17: "Stream cost", 18: "In-process path", 19: "Planner nesting and codecs",
    20: "Atomic install", 21: "Sources", 22: "Object stores", 23: "Writes", 24: "Streaming", 25: "Python functions",
    26: "Config parity on workers", 27: "SET distributed.*", 28: "Lifetime", 29: "Concurrency",
    30: "Worker life cycle", 31: "KeyboardInterrupt", 32: "Failures", 33: "Observability",
    34: "Customization reach", 35: "Security", 36: "Error quality",
}  # fmt: skip
"""The areas by number. 9, 10 and 11 are measured by the packaging sheet and the release model, not by checks."""

Tier = Literal["must", "should", "may"]
ClusterKind = Literal["none", "shared", "python", "fresh"]
CheckId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$")]


class Outcome(str, Enum):
    """What one check found on one arm. Closed; a check that did not run is `blocked`, with the reason."""

    PASS = "pass"  # noqa: S105 - a word, not a password
    PARTIAL = "partial"
    """Works, but something is missing; the reason lists what."""
    FAIL = "fail"
    XFAIL = "xfail"
    """Failed as the data file of expected failures says it must."""
    CRASH = "crash"
    """The child died by a signal or left without an answer."""
    TIMEOUT = "timeout"
    BLOCKED = "blocked"
    """A prerequisite is missing; the reason names it."""


FAILING = (Outcome.FAIL, Outcome.CRASH, Outcome.TIMEOUT)
"""Outcomes that fail a run."""


class Check(Frozen):
    """One check as declared in `registry/*.toml`. Its body is function `name` of `scripts/group.py`."""

    id: CheckId
    """`group.name`."""
    area: int = Field(ge=1, le=36)
    tier: Tier
    title: str
    rationale: str
    """Link to the public issue or pull request that shows why a user cares."""
    expects: str
    """The figure or fact that the check reports, in words."""
    arms: Literal["all", "distributed"] | list[str] = "all"
    cluster: ClusterKind = "shared"
    """`shared`: two workers that harmless checks have in common. `python`: the same, Python functions allowed.
    `fresh`: two workers of its own, because the check harms them. `none`: it needs no worker, or starts its own."""
    needs: list[str] = Field(default_factory=list)
    """Prerequisites by name, see `prerequisites.py`."""
    timeout_s: float = Field(default=90.0, gt=0)
    fast: bool = False
    """Part of the subset that the normal test run executes."""

    @property
    def group(self) -> str:
        """Script that holds the body."""
        return self.id.partition(".")[0]

    @property
    def function(self) -> str:
        """Function in the script."""
        return self.id.partition(".")[2]

    def applies_to(self, arm: str, *, distributed: bool) -> bool:
        """Whether this check means anything on an arm."""
        if self.arms == "all":
            return True
        if self.arms == "distributed":
            return distributed
        return arm in self.arms


class Expected(Frozen):
    """A failure that is known, on which arms, and why. It is strict: when the check passes, the run fails."""

    check: CheckId
    arms: list[str] = Field(min_length=1)
    reason: Annotated[str, StringConstraints(min_length=10)]
    match: str = ""
    """Text that the failure's reason must contain, so that a new fault cannot hide behind a known one."""


class ConformanceResult(Frozen):
    """One check on one arm."""

    check: str
    arm: str
    area: int
    tier: Tier
    outcome: Outcome
    reason: str | None = None
    figure: dict[str, JsonValue] = Field(default_factory=dict)
    seconds: float
    log: str | None = Field(default=None, description="Path of the log, relative to the file's folder")
    repro: str


class Counts(Frozen):
    """Outcomes of one arm. `total` counts every check of the selection, those that cannot apply as blocked."""

    passed: int = Field(alias="pass", serialization_alias="pass")
    partial: int
    fail: int
    xfail: int
    crash: int
    timeout: int
    blocked: int
    total: int
    must_pass: int
    must_total: int


class Cell(Frozen):
    """One outcome as a report shows it."""

    outcome: Outcome
    reason: str | None = None
    log: str | None = None
    repro: str | None = None


class Row(Frozen):
    """One check over the arms, as a report shows it."""

    id: str
    area: str
    tier: Tier
    title: str
    rationale: str
    outcomes: dict[str, Cell]


class Summary(Frozen):
    """Figures per arm."""

    conformance: dict[str, Counts]
    surface_coverage: dict[str, JsonValue] = Field(default_factory=dict)


class ConformanceFile(Frozen):
    """`conformance.json`: the matrix for readers, the results for machines, and why the run failed if it did."""

    schema_version: Literal[1] = 1
    arms: list[str]
    selection: dict[str, JsonValue]
    wheels: dict[str, str | None] = Field(
        default_factory=dict, description="SHA-256 of each arm's wheel, if it has one"
    )
    checks: list[Row]
    results: list[ConformanceResult]
    summary: Summary
    problems: list[str] = Field(description="Everything that fails the run, one sentence each")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ok(self) -> bool:
        """Whether nothing failed unexpectedly."""
        return not self.problems
