"""Gives wrong answers; `FIXTURE_LIE` says which: `cell`, `partial` (half of the rows), `empty` or `slow` (right)."""

from __future__ import annotations

import os
import time
from typing import Any

import pyarrow as pa
from wrap import Context

SLOWDOWN = float(os.environ.get("FIXTURE_SLOWDOWN", "0.2"))


def changed(value: Any) -> Any:
    """A value of the same type that is not the same."""
    return value + "x" if isinstance(value, str) else value + 1


def spoil(frame: Any) -> Any:
    how = os.environ.get("FIXTURE_LIE", "cell")
    start = time.perf_counter()
    batches = frame.collect()
    if how == "slow":
        time.sleep((time.perf_counter() - start) * SLOWDOWN)
        return batches
    table = pa.Table.from_batches(batches)
    if how == "partial":
        return table.slice(0, table.num_rows // 2).to_batches()
    if how == "empty":
        return table.slice(0, 0).to_batches()
    column = table.num_columns - 1
    values = table.column(column).to_pylist()
    values[-1] = changed(values[-1])
    field = table.schema.field(column)
    return table.set_column(column, field, pa.array(values, type=field.type)).to_batches()


def make_context(config: dict[str, str], workers: list[str]) -> Context:
    del workers
    return Context(config, spoil)
