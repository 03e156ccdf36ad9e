"""The toy arm without a probe: it uses its workers, but has no word for what they count."""

from __future__ import annotations

from typing import Any

from toy import call
from wrap import Context


def make_context(config: dict[str, str], workers: list[str]) -> Context:
    def spoil(frame: Any) -> Any:
        for url in workers:
            call(url, "/task")
        return frame.collect()

    return Context(config, spoil)
