"""What a user gets from each strategy, promise by promise, as the executed conformance checks say.

`promises.toml` maps areas and checks to promises; everything else comes from the outcomes of the run. The registry of
checks gives the denominator: a promise of which only some checks ran says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, StringConstraints

from harness.conformance import Check, load_registry
from harness.model import Frozen
from reports.api_diff import STOCK_ARM
from reports.datafiles import read_record

if TYPE_CHECKING:
    from reports.model import CheckOutcome, CheckRow

PROMISES_FILE = Path(__file__).with_name("promises.toml")

State = Literal["pass", "partial", "limit", "fail", "not_run"]

FAILING = ("fail", "crash", "timeout")

INHERENT = "inherent"
"""First word of the reason of a failure that the option itself brings; every other expected failure is unfinished."""

Text = Annotated[str, StringConstraints(min_length=1)]


class Promise(Frozen):
    """One line of the table as declared."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z_]+$")]
    title: Text
    text: Text
    areas: list[int]
    checks: list[str] = Field(default_factory=list)
    """Checks of other areas that show this promise."""
    unchecked: list[Text] = Field(default_factory=list)
    """Parts of the promise that no check executes."""


class Elsewhere(Frozen):
    """Areas that are not about a promise."""

    areas: list[int]
    why: Text


class Promises(Frozen):
    """The declared table."""

    promise: list[Promise]
    elsewhere: Elsewhere

    def of(self, check: str, area: int) -> str | None:
        """The promise that a check shows, or None."""
        named = next((entry.id for entry in self.promise if check in entry.checks), None)
        return named or next((entry.id for entry in self.promise if area in entry.areas), None)


class PromiseReason(Frozen):
    """Why a cell is not a plain pass: one check that says so."""

    check: str
    outcome: str
    reason: str

    @property
    def unfinished(self) -> bool:
        """Whether it is an expected failure that further work would remove."""
        return self.outcome == "xfail" and not self.reason.startswith(INHERENT)


class PromiseFigures(Frozen):
    """One promise on one strategy in figures: `passed` of `ran` executed checks, of `checks` that there are for it."""

    state: State
    passed: int
    ran: int
    checks: int


class PromiseCell(PromiseFigures):
    """The same with everything that is not a plain pass. `limit`: an expected failure that the option itself brings."""

    words: str
    reasons: list[PromiseReason] = Field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every check that there is was executed."""
        return self.ran == self.checks

    @property
    def figures(self) -> PromiseFigures:
        """What the summary holds of it."""
        return PromiseFigures(state=self.state, passed=self.passed, ran=self.ran, checks=self.checks)


class PromiseRow(Frozen):
    """One promise over the strategies."""

    id: str
    title: str
    text: str
    unchecked: list[str] = Field(default_factory=list, description="Parts that no check executes")
    cells: dict[str, PromiseCell]


@lru_cache(maxsize=1)
def load_promises(path: Path = PROMISES_FILE) -> Promises:
    """The declared table.

    Raises:
        UserError: the file cannot be read, or a key in it is wrong.
    """
    return read_record(path, Promises, "promises")


def promise_rows(
    rows: Sequence[CheckRow],
    strategies: Mapping[str, bool],
    promises: Promises | None = None,
    registry: Iterable[Check] | None = None,
) -> list[PromiseRow] | None:
    """The table from executed checks, or None without any strategy.

    `strategies` says of each arm of the run whether it distributes. A strategy that was checked and not timed has its
    column too; it is taken to distribute.
    """
    checked = {arm: True for row in rows for arm in row.outcomes if arm != STOCK_ARM}
    columns = {**strategies, **{arm: True for arm in checked if arm not in strategies}}
    if not columns:
        return None
    table = promises or load_promises()
    known = {check.id: check for check in (load_registry() if registry is None else registry)}
    outcomes = {(row.id, arm): outcome for row in rows for arm, outcome in row.outcomes.items()}
    areas = {**{check.id: check.area for check in known.values()}, **{row.id: area_of(row) for row in rows}}
    made = []
    for entry in table.promise:
        members = [name for name, area in sorted(areas.items()) if table.of(name, area) == entry.id]
        cells = {}
        for arm, reach in columns.items():
            own = [name for name in members if name not in known or known[name].applies_to(arm, distributed=reach)]
            cells[arm] = _cell({name: outcomes.get((name, arm)) for name in own})
        made.append(PromiseRow(id=entry.id, title=entry.title, text=entry.text, unchecked=entry.unchecked, cells=cells))
    return made


def promise_figures(rows: Sequence[PromiseRow] | None) -> dict[str, dict[str, PromiseFigures]] | None:
    """The table for machines: strategy -> promise -> figures."""
    if not rows:
        return None
    return {arm: {row.id: row.cells[arm].figures for row in rows} for arm in rows[0].cells}


def area_of(row: CheckRow) -> int:
    """The number with which the area of a row starts; 0 where there is none."""
    number = row.area.split(maxsplit=1)[0]
    return int(number) if number.isdigit() else 0


def _cell(outcomes: Mapping[str, CheckOutcome | None]) -> PromiseCell:
    told = {name: outcome for name, outcome in outcomes.items() if outcome is not None}
    ran = [outcome for outcome in told.values() if outcome.outcome != "blocked"]
    passed = sum(outcome.outcome == "pass" for outcome in ran)
    reasons = [
        PromiseReason(check=name, outcome=outcome.outcome, reason=outcome.reason or "no reason was recorded")
        for name, outcome in told.items()
        if outcome.outcome != "pass"
    ]
    return PromiseCell(
        state=_state(ran),
        passed=passed,
        ran=len(ran),
        checks=len(outcomes),
        words=_words(passed, len(ran), len(outcomes)),
        reasons=reasons,
    )


def _state(ran: Sequence[CheckOutcome]) -> State:
    """The worst that an executed check says; a limit is an expected failure that the option itself brings."""
    kinds = [outcome.outcome for outcome in ran]
    if not kinds:
        return "not_run"
    if any(kind in FAILING for kind in kinds):
        return "fail"
    expected = [outcome.reason or "" for outcome in ran if outcome.outcome == "xfail"]
    if "partial" in kinds or any(not reason.startswith(INHERENT) for reason in expected):
        return "partial"
    return "limit" if expected else "pass"


def _words(passed: int, ran: int, checks: int) -> str:
    if not checks:
        return "no check of the suite applies"
    if not ran:
        return f"none of {checks} checks was executed"
    if ran < checks:
        return f"{passed} of {ran} checks pass, {checks - ran} not executed"
    return f"{passed} of {checks} checks pass"
