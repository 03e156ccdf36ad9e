"""What datafusion-python's own suite says of each arm, read from `upstream_tests.json`.

Stock is the measure: a test that stock does not pass proves nothing about an arm. The report keeps figures per arm and
every test that differs; the tests that are the same stay in the run directory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import Field, ValidationError

from harness.conformance.upstream.model import SuiteOutcome, UpstreamFile
from harness.errors import HarnessFault
from harness.model import Frozen

FAILED: tuple[SuiteOutcome, ...] = ("failed", "error", "crash", "timeout", "not_run")
"""Outcomes of a test that an arm does not get through; skipped and expected failures are neither passed nor failed."""

MAX_REASON = 300
"""Characters of a reason that the report keeps; the run directory has all of it."""


class UpstreamArm(Frozen):
    """One arm in tests. `differs` counts outcomes other than stock's, split by what is known of the reason."""

    passed: int
    failed: int = Field(description="Failed, error, crash, timeout, or not collected")
    neither: int = Field(description="Skipped, or failed as the suite itself expects")
    differs: int
    stock_passed: int = Field(description="Denominator of `kept`")
    kept: int = Field(description="Tests that stock passes and this arm too")
    remote: int = Field(description="Of `kept`, tests during which at least one worker task ran")
    inherent: int
    unfinished: int
    unexplained: int
    contexts: int = Field(description="Contexts of the suite that the strategy took over")


class UpstreamDifference(Frozen):
    """One test with another outcome than on stock."""

    test: str
    arm: str
    stock: SuiteOutcome
    outcome: SuiteOutcome
    reason: str
    explained: str | None = Field(default=None, description="`inherent: ...` or `unfinished: ...`; null: not explained")


class UpstreamSection(Frozen):
    """The suite on all arms."""

    commit: str | None = Field(description="Commit of the checkout; null: the folder was no git checkout")
    changed: bool | None = Field(description="Whether the checkout had changes of its own")
    datafusion: str = Field(description="Version of the engine that the checkout asks for")
    collected: int
    stock: dict[str, int] = Field(description="Outcomes of stock")
    arms: dict[str, UpstreamArm]
    differing: list[UpstreamDifference]

    def source(self) -> str:
        """The checkout in words."""
        commit = f"commit {self.commit}" if self.commit else "a folder that is no git checkout"
        changes = ", with changes of its own" if self.changed else ""
        return f"{commit}{changes}, for DataFusion {self.datafusion}"


def read_upstream(extras: Mapping[str, Any], order: Sequence[str] = ()) -> UpstreamSection | None:
    """The section, or None when the suite did not run. Arms stand in the given order, others behind them.

    Raises:
        HarnessFault: the file has another form.
    """
    if "upstream_tests" not in extras:
        return None
    found = extras["upstream_tests"]
    try:
        # `ok` follows from the problems.
        given = UpstreamFile.model_validate({key: value for key, value in found.items() if key != "ok"})
    except (ValidationError, AttributeError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        where = f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first else "it is no object"
        msg = f"upstream_tests.json holds no outcomes of `df-strategies upstream-tests`: {where}"
        raise HarnessFault(msg) from error
    told = given.summary.upstream_tests
    return UpstreamSection(
        commit=given.checkout.commit,
        changed=given.checkout.changed,
        datafusion=given.checkout.datafusion,
        collected=given.collected,
        stock=given.stock,
        arms={arm: _arm(given, arm) for arm in dict.fromkeys([*order, *told]) if arm in told},
        differing=list(_differing(given)),
    )


def _arm(given: UpstreamFile, arm: str) -> UpstreamArm:
    outcomes = Counter(row.arms[arm].outcome for row in given.tests if arm in row.arms)
    failed = sum(outcomes[outcome] for outcome in FAILED)
    return UpstreamArm(
        passed=outcomes["passed"],
        failed=failed,
        neither=outcomes.total() - outcomes["passed"] - failed,
        **given.summary.upstream_tests[arm].model_dump(),
    )


def _differing(given: UpstreamFile) -> Iterable[UpstreamDifference]:
    for row in given.tests:
        for arm, cell in row.arms.items():
            if not cell.same:
                reason = cell.reason or row.stock_reason or "the suite told no reason"
                yield UpstreamDifference(
                    test=row.test,
                    arm=arm,
                    stock=row.stock,
                    outcome=cell.outcome,
                    reason=reason if len(reason) <= MAX_REASON else reason[: MAX_REASON - 1] + "…",
                    explained=cell.explained,
                )


def upstream_differences(section: UpstreamSection | None) -> list[tuple[str, list[UpstreamDifference]]]:
    """The tests that differ, arm by arm, arms without any left out; what is not explained stands first."""
    if section is None:
        return []
    found = []
    for arm in section.arms:
        own = [entry for entry in section.differing if entry.arm == arm]
        if own:
            found.append((arm, sorted(own, key=lambda entry: (entry.explained is not None, entry.test))))
    return found
