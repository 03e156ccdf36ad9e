"""What a person sees on stderr while a run goes on. Drawn between steps only, never inside a timed window."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from typing_extensions import Self

LINE_EVERY_S = 30.0
"""Seconds between lines where there is no terminal to draw a bar on (a log of a CI job)."""


class RunProgress:
    """A bar with the time left on a terminal, a line now and then elsewhere, nothing when `quiet`."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._total = 0
        self._count = 0
        self._begun = time.monotonic()
        self._last_line = 0.0

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
            )  # fmt: skip
            # A refreshing thread would run inside timed windows; every update below draws by itself.
            self._bar = Progress(*columns, console=Console(stderr=True), auto_refresh=False, speed_estimate_period=120)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def stage(self, name: str, total: int) -> None:
        """A new part of the run begins, of `total` steps."""
        self._total, self._count = total, 0
        self._begun = self._last_line = time.monotonic()
        if self._bar is not None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(name, total=total)
            self._bar.refresh()
        else:
            self._line(f"{name}: {total} steps")

    def say(self, text: str) -> None:
        """One line that stays."""
        if self._bar is not None:
            self._bar.console.print(text, highlight=False, markup=False)
        else:
            self._line(text)

    def step(self, what: str) -> None:
        """One step is done."""
        self._count += 1
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=1, description=what, refresh=True)
        elif time.monotonic() - self._last_line > LINE_EVERY_S:
            self._last_line = time.monotonic()
            left = (self._last_line - self._begun) / self._count * (self._total - self._count)
            self._line(f"{what}: {self._count} of {self._total}, about {left / 60:.0f} min left")

    def _line(self, text: str) -> None:
        if not self._quiet:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
