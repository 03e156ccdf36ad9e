"""The 22 queries as DataFrame code, the same for every build of datafusion-python.

Each module has `query(ctx, df)`: `ctx` is a session with the eight tables registered, `df` the package it comes from
(`datafusion`, `datafusion_external`, ...), which gives `col`, `lit` and `functions`. No module imports a DataFusion by
name, nor anything beyond the standard library: they run inside the arms' own environments. Answers equal those of the
query set `spec`, order and limit included.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, cast

_NAMES = frozenset(f"q{number:02d}" for number in range(1, 23))


class Frame(Protocol):
    """Builds the lazy DataFrame of one query; nothing runs until the caller collects it."""

    def __call__(self, ctx: Any, df: Any) -> Any:
        """Return the DataFrame, given a session and the DataFusion package it comes from."""


def load_frame(query_id: str) -> Frame:
    """Return the builder of `q01` to `q22`; raises `ValueError` for any other name."""
    if query_id not in _NAMES:
        msg = f"unknown query {query_id!r}: expected one of q01 to q22"
        raise ValueError(msg)
    return cast("Frame", import_module(f"{__name__}.{query_id}").query)
