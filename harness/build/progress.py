"""Progress of a long compile on standard error: one living line on a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
import time
from typing import TextIO

LOG_INTERVAL_S = 20.0
"""Seconds between two lines when standard error is not a terminal."""

REDRAW_INTERVAL_S = 0.1
BAR_WIDTH = 24


class Progress:
    """Counts crates as Cargo names them. Drawing never raises: a closed standard error must not stop a build."""

    def __init__(self, label: str, total: int | None, *, enabled: bool, stream: TextIO | None = None) -> None:
        """Show progress of `label`.

        Args:
            label: what is built, as the user named it.
            total: most crates that this build can compile; Cargo compiles only those that are not up to date.
            enabled: when False nothing is shown.
            stream: where to; standard error by default.
        """
        self._label = label
        self._total = total
        self._stream = stream if stream is not None else sys.stderr
        self._enabled = enabled
        self._terminal = enabled and self._stream.isatty()
        self._started = time.monotonic()
        self._shown = 0.0
        self.compiled = 0

    def step(self, crate: str) -> None:
        """Count one more crate."""
        self.compiled += 1
        now = time.monotonic()
        interval = REDRAW_INTERVAL_S if self._terminal else LOG_INTERVAL_S
        if not self._enabled or now - self._shown < interval:
            return
        self._shown = now
        self._write(self._line(crate, now), living=True)

    def message(self, text: str) -> None:
        """Show a line of its own."""
        if self._enabled:
            self._write(f"{self._label}: {text}", living=False)

    def finish(self, text: str) -> None:
        """Replace the living line by a last one."""
        if self._enabled:
            seconds = time.monotonic() - self._started
            self._write(f"{self._label}: {text} ({self.compiled} crates compiled, {clock(seconds)})", living=False)

    def _line(self, crate: str, now: float) -> str:
        elapsed = clock(now - self._started)
        if not self._total:
            return f"{self._label}: compiling {crate} ({self.compiled}, {elapsed})"
        filled = min(BAR_WIDTH, BAR_WIDTH * self.compiled // self._total)
        bar = "#" * filled + "." * (BAR_WIDTH - filled)
        return f"{self._label}: [{bar}] {self.compiled} of at most {self._total} crates, {elapsed}, {crate}"

    def _write(self, line: str, *, living: bool) -> None:
        try:
            if self._terminal:
                # Carriage return and "erase to end of line": the next line replaces this one.
                self._stream.write(f"\r\x1b[K{line}" if living else f"\r\x1b[K{line}\n")
            else:
                self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._enabled = False


def clock(seconds: float) -> str:
    """Return seconds as minutes and seconds, for example 3:07."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"
