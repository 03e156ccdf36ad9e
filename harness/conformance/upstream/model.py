"""Records of a run of upstream's own suite."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, computed_field

from harness.model import Frozen

UPSTREAM_SCHEMA_VERSION = 1
"""Version of upstream_tests.json. History: 1 = first published form."""

SuiteOutcome = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed", "crash", "timeout", "not_run"]


class SuiteResult(Frozen):
    """One test on one arm."""

    outcome: SuiteOutcome
    reason: str | None = None
    remote_tasks: int = Field(default=0, description="Tasks that workers started while it ran")


class Difference(Frozen):
    """A difference that is known, with its reason. Strict: a test named here must differ."""

    test: str
    """Test id without the folder, as in `test_context.py::test_x`; a trailing `*` stands for any ending."""
    arms: Annotated[list[str], Field(min_length=1)]
    kind: Literal["inherent", "unfinished"]
    reason: Annotated[str, StringConstraints(min_length=10)]

    def covers(self, test: str, arm: str) -> bool:
        """Whether this is about a test on an arm."""
        short = test.rpartition("/")[2] if "::" not in test else test[test.rfind("/", 0, test.index("::")) + 1 :]
        fits = short.startswith(self.test[:-1]) if self.test.endswith("*") else short == self.test
        return fits and arm in self.arms


class Cell(Frozen):
    """One test on one arm, beside stock."""

    same: bool
    outcome: SuiteOutcome
    reason: str | None = None
    explained: str | None = Field(default=None, description="`inherent: ...` or `unfinished: ...`")
    remote_tasks: int = 0


class SuiteRow(Frozen):
    """One test over the arms."""

    test: str
    stock: SuiteOutcome
    stock_reason: str | None = None
    arms: dict[str, Cell]


class UpstreamCounts(Frozen):
    """Figures of one arm. `stock_passed` is the denominator: what stock does not pass says nothing about an arm."""

    stock_passed: int
    kept: int
    differs: int
    inherent: int
    unfinished: int
    unexplained: int
    remote: int = Field(description="Of `kept`, tests during which at least one worker task ran")
    contexts: int = Field(description="Contexts that the suite made and that the strategy took over")


class CheckoutRecord(Frozen):
    """Where the suite came from."""

    commit: str | None
    """None where the folder is not a git checkout."""
    changed: bool | None
    datafusion: str
    """Version of the engine that the checkout asks for."""


class Summary(Frozen):
    """Figures per arm."""

    upstream_tests: dict[str, UpstreamCounts]


class UpstreamFile(Frozen):
    """`upstream_tests.json`."""

    schema_version: Literal[1] = 1
    checkout: CheckoutRecord
    collected: int
    stock: dict[str, int] = Field(description="Outcomes of stock")
    summary: Summary
    tests: list[SuiteRow]
    problems: list[str] = Field(description="Everything that fails the run, one sentence each")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ok(self) -> bool:
        """Whether nothing differs without a reason."""
        return not self.problems
