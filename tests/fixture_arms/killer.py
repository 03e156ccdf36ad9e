"""A query that takes a worker down with it, and fails as an engine would."""

from __future__ import annotations

import contextlib
import urllib.request
from typing import Any

from wrap import Context


def make_context(config: dict[str, str], workers: list[str]) -> Context:
    def spoil(frame: Any) -> Any:
        del frame
        with contextlib.suppress(OSError):
            urllib.request.urlopen(workers[0] + "/die", timeout=10)
        msg = "transport error: connection closed"
        raise RuntimeError(msg)

    return Context(config, spoil)
