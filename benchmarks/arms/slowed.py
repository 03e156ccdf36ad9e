# ruff: noqa: INP001 - imported by an arm process from its folder
"""A session of stock datafusion whose `collect` takes a share longer than it would: it sleeps in proportion.

`SLOWED_BY` (environment) is the share, 0.2 for 20 %. The arm is declared: its name, title and this file say what it is.
"""

from __future__ import annotations

import os
import time
from typing import Any

SLOWED_BY = float(os.environ.get("SLOWED_BY", "0"))


class Frame:
    """A DataFrame that sleeps behind `collect`."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def collect(self) -> Any:
        """The batches, and then a pause that lasts a share of the time they took."""
        start = time.perf_counter()
        batches = self._frame.collect()
        time.sleep((time.perf_counter() - start) * SLOWED_BY)
        return batches

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frame, name)


class Context:
    """A session whose DataFrames are slowed."""

    def __init__(self, config: dict[str, str]) -> None:
        from datafusion import SessionConfig, SessionContext

        self._context = SessionContext(SessionConfig(config))

    def sql(self, text: str) -> Frame:
        """As the real one."""
        return Frame(self._context.sql(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


def make_context(config: dict[str, str], workers: list[str]) -> Context:
    """A session in this process; there are no workers."""
    if workers:
        msg = f"this arm runs in one process, but {len(workers)} worker URLs were given"
        raise ValueError(msg)
    return Context(config)
