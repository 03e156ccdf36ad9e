"""An arm whose sessions fail, crash or hang for statements with a certain word in them."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from datafusion import SessionContext
from idle_arm import worker_status

__all__ = ["make_context", "worker_status"]


class Lossy:
    """The native context, with three words that it does not bear."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def sql_with_options(self, query: str, *more: Any, **named: Any) -> Any:
        """As the native context does, unless the statement says otherwise."""
        if "fail_here" in query:
            msg = "this arm lost a feature"
            raise RuntimeError(msg)
        if "crash_here" in query:
            os.kill(os.getpid(), signal.SIGSEGV)
        if "hang_here" in query:
            time.sleep(3600)
        return self._inner.sql_with_options(query, *more, **named)


def make_context(config: dict[str, str], workers: list[str]) -> SessionContext:
    """A context over a native one that is lossy."""
    context = SessionContext()
    context.ctx = Lossy(context.ctx)
    return context
