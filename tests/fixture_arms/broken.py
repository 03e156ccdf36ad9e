"""Fails with exceptions: at import (`FIXTURE_BROKEN=import`), when a session is made (`open`), or in a query."""

from __future__ import annotations

import os
from typing import Any

from wrap import Context

HOW = os.environ.get("FIXTURE_BROKEN", "query")

if HOW == "import":
    msg = "libengine.so.7: cannot open shared object file"
    raise ImportError(msg)


class Panic(BaseException):
    """Like a panic of native code: no `Exception`."""


def spoil(frame: Any) -> Any:
    del frame
    if HOW == "panic":
        msg = "index out of bounds"
        raise Panic(msg)
    if HOW == "exit":
        raise SystemExit(3)
    if HOW == "os_exit":
        os._exit(3)
    msg = "no such function\nwith a second line"
    raise RuntimeError(msg)


def make_context(config: dict[str, str], workers: list[str]) -> Context:
    del workers
    if HOW == "open":
        msg = "invalid option"
        raise ValueError(msg)
    return Context(config, spoil)
