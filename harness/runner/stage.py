"""What a run needs around it: processes that cannot outlive it, a progress display, signals that end it in order."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

from harness.child.keeper import Keeper
from harness.rundir import RunDirectory
from harness.runner.prepare import Prepared
from harness.runner.progress import RunProgress
from harness.runner.session import ArmSession
from harness.settings import RunSettings

if TYPE_CHECKING:
    from typing_extensions import Self


class Stage:
    """The surroundings of one run, as a context manager."""

    def __init__(self, settings: RunSettings, *, quiet: bool) -> None:
        self.settings = settings
        self.keeper = Keeper()
        self.progress = RunProgress(quiet=quiet)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(_signals_as_interrupt())
        self._stack.enter_context(self.keeper)
        self._stack.enter_context(self.progress)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def sessions(self, prepared: Prepared, run: RunDirectory) -> dict[str, ArmSession]:
        """One session per arm, none of them started."""
        return {
            arm.name: ArmSession(
                self.keeper, arm, prepared.environments[arm.name], self.settings, prepared.data.tables, run
            )
            for arm in prepared.arms
        }


@contextlib.contextmanager
def _signals_as_interrupt() -> Iterator[None]:
    """Make SIGTERM and SIGHUP end the run as Ctrl-C does: everything taken down, everything on disk."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
