"""How a DataFrame prints itself.

The compiled code would do this, but it asks the module `datafusion.dataframe_formatter` for the formatter, by that
name: it would fail where the stock package is not installed, and ignore `configure_formatter` of this package where it
is. So the same rows are collected here and handed to this package's formatter.
"""

from __future__ import annotations

import sys
import uuid
from typing import TYPE_CHECKING, Any

from .dataframe_formatter import get_formatter

if TYPE_CHECKING:
    import pyarrow as pa

    from .dataframe import DataFrame

EMPTY = "No data to display"

_CACHE = "_batches_to_display"


def render(frame: DataFrame, *, html: bool) -> str:
    """Return a DataFrame as text or HTML; executes it as far as rows are shown."""
    formatter = get_formatter()
    # A notebook asks for text and for HTML in turn: keep the rows of the first question for the second.
    collected = frame.__dict__.pop(_CACHE, None)
    if collected is None:
        collected = collect(frame, formatter.max_memory_bytes, formatter.min_rows, formatter.max_rows)
        if in_notebook():
            frame.__dict__[_CACHE] = collected
    batches, has_more = collected
    if not batches:
        return EMPTY
    format_rows = formatter.format_html if html else formatter.format_str
    return str(format_rows(batches=batches, schema=frame.schema(), has_more=has_more, table_uuid=str(uuid.uuid4())))


def collect(frame: Any, max_bytes: int, min_rows: int, max_rows: int) -> tuple[list[pa.RecordBatch], bool]:
    """Return the first batches of a DataFrame within limits, and whether there is more.

    Args:
        frame: DataFrame to execute.
        max_bytes: stop after this much memory, unless fewer than `min_rows` rows were seen.
        min_rows: rows to show whatever they weigh.
        max_rows: rows to show at most.
    """
    batches: list[pa.RecordBatch] = []
    size = rows = 0
    has_more = False
    stream = iter(frame.execute_stream())
    while (size < max_bytes and rows < max_rows) or rows < min_rows:
        item = next(stream, None)
        if item is None:
            break
        batch = item.to_pyarrow()
        if batch.num_rows == 0:
            continue
        size += batch.get_total_buffer_size()
        keep = batch.num_rows
        if size > max_bytes:
            share = round((rows + keep) * max_bytes / size)
            keep = min(keep, max(share, min(min_rows, rows + keep)) - rows)
        keep = min(keep, max_rows - rows)
        has_more = has_more or keep < batch.num_rows
        if keep > 0:
            batches.append(batch.slice(0, keep))
            rows += keep
        elif has_more:
            break
    if batches and not has_more:
        has_more = next(stream, None) is not None
    return batches, has_more


def in_notebook() -> bool:
    """Return whether IPython runs this interpreter; never imports it."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython, "get_ipython", lambda: None)() is not None
