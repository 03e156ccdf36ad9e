"""A session around a real one: the answer of marked queries passes through a function that may spoil it.

Fixture arms are modules of real misbehaviour: they crash, hang, run out of memory or lie in their own process, so that
the harness meets the real thing. `FIXTURE_MARK` (environment) limits that to statements that contain it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

Spoil = Callable[[Any], Any]


class Frame:
    """A DataFrame whose `collect` is spoiled."""

    def __init__(self, frame: Any, spoil: Spoil) -> None:
        self._frame = frame
        self._spoil = spoil

    def collect(self) -> Any:
        return self._spoil(self._frame)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frame, name)


class Context:
    """A session that spoils the statements that carry the mark."""

    def __init__(self, config: dict[str, str], spoil: Spoil) -> None:
        from datafusion import SessionConfig, SessionContext

        self._context = SessionContext(SessionConfig(config))
        self._spoil = spoil

    def sql(self, text: str) -> Any:
        frame = self._context.sql(text)
        marked = os.environ.get("FIXTURE_MARK", "") in text and "information_schema" not in text
        return Frame(frame, self._spoil) if marked else frame

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)
