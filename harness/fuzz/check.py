"""One case on one arm, from nothing: write tables, open sessions, run, compare, and ask whether it proves anything."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from harness.fuzz.judge import Judged, judge
from harness.fuzz.model import BAD, Case, Verdict
from harness.fuzz.options import Options
from harness.fuzz.session import Answer, FuzzSession, Place
from harness.fuzz.tables import DataTable, write_table
from harness.model import Status
from harness.validate import SortKey

STABILITY_SETTINGS: tuple[dict[str, str], ...] = (
    {"datafusion.execution.target_partitions": "1", "datafusion.execution.batch_size": "8192"},
    {"datafusion.execution.target_partitions": "5", "datafusion.execution.batch_size": "16"},
)
"""Plans that one node must give the same answer under, before a difference counts as a fault of an arm."""


@dataclass
class Checker:
    """Runs cases on an arm and on one node. `folder` is scratch space for tables."""

    local: FuzzSession
    arm: FuzzSession
    folder: Path
    _number: int = 0

    def place(self, tables: tuple[DataTable, ...], options: Options) -> Place:
        """Write the tables to a fresh folder."""
        self._number += 1
        folder = self.folder / f"case{self._number}"
        for table in tables:
            write_table(table, folder / table.name)
        return Place(folder, tables, options)

    def check(self, case: Case, order_by: tuple[SortKey, ...] = (), *, tries: int = 1) -> Judged:
        """Run a case up to `tries` times, until the arm fails; what fails is looked at for stability too."""
        place = self.place(case.tables, case.options)
        try:
            return self._check(place, case, order_by, tries)
        finally:
            shutil.rmtree(place.folder, ignore_errors=True)

    def _check(self, place: Place, case: Case, order_by: tuple[SortKey, ...], tries: int) -> Judged:
        opened = self.local.open(place)
        expected = self.local.execute(case.sql) if opened.status is Status.OK else opened
        if expected.status is not Status.OK:
            return Judged(Verdict.UNSUPPORTED, expected.reason)
        opened = self.arm.open(place)
        judged = Judged(Verdict.EQUAL)
        for _ in range(tries):
            seen = self.arm.execute(case.sql) if opened.status is Status.OK else opened
            judged = judge(expected, seen, order_by)
            if judged.verdict in BAD:
                break
        if judged.verdict is Verdict.MISMATCH and not self.stable(place, case.sql, expected):
            return Judged(Verdict.UNSTABLE, judged.reason)
        return judged

    def rate(self, case: Case, order_by: tuple[SortKey, ...], repetitions: int) -> float:
        """Share of repetitions in which the arm fails."""
        place = self.place(case.tables, case.options)
        try:
            if self.local.open(place).status is not Status.OK or self.arm.open(place).status is not Status.OK:
                return 1.0
            expected = self.local.execute(case.sql)
            bad = sum(judge(expected, self.arm.execute(case.sql), order_by).verdict in BAD for _ in range(repetitions))
            return bad / repetitions
        finally:
            shutil.rmtree(place.folder, ignore_errors=True)

    def stable(self, place: Place, sql: str, expected: Answer) -> bool:
        """Whether one node gives `expected` under other plans, and over the same rows in another order, too."""
        turned = tuple(_turned(table) for table in place.tables)
        for number, settings in enumerate(STABILITY_SETTINGS):
            options = replace_session(place.options, settings)
            other = self.place(turned, options) if number == 0 else replace(place, options=options)
            try:
                if self.local.open(other).status is not Status.OK:
                    return False
                again = self.local.execute(sql)
                if judge(expected, again).verdict is not Verdict.EQUAL:
                    return False
            finally:
                if number == 0:
                    shutil.rmtree(other.folder, ignore_errors=True)
        return True

    def answers(self, case: Case) -> Iterator[tuple[str, Answer]]:
        """The single-node answer and the arm's, by name, for a report."""
        place = self.place(case.tables, case.options)
        try:
            for name, session in (("expected", self.local), ("seen", self.arm)):
                opened = session.open(place)
                yield name, session.execute(case.sql) if opened.status is Status.OK else opened
        finally:
            shutil.rmtree(place.folder, ignore_errors=True)


def replace_session(options: Options, settings: dict[str, str]) -> Options:
    """Options with other session settings."""
    return options.model_copy(update={"session": {**options.session, **settings}})


def _turned(table: DataTable) -> DataTable:
    """The same rows in the opposite order, as far as the layout allows."""
    if table.layout == "sorted":
        return table.model_copy(update={"files": table.files[::-1]})
    rows = tuple(tuple(reversed(file)) for file in table.files)
    # A folder per file belongs to its number; CSV and JSON infer types from the first file.
    return table.model_copy(update={"files": rows if table.layout != "plain" else rows[::-1]})
