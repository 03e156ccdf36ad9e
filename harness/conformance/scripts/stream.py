"""Area 24: answers that come batch by batch."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import asyncio
import gc
import time
from typing import Any

import pyarrow as pa

from .kit import BY_KEY, ROWS, SLOW, Arm, Blocked, expected_by_key, missing, wait_until


def execute_stream(arm: Arm) -> None:
    frame = arm.with_table(arm.context()).sql("SELECT k, v FROM t WHERE v >= 0")
    read = lambda: sorted(v for batch in frame.execute_stream() for v in batch.to_pyarrow().column("v").to_pylist())
    arm.equal(read(), list(range(ROWS)), "rows of execute_stream")
    streams = frame.execute_stream_partitioned()
    got = sorted(v for stream in streams for batch in stream for v in batch.to_pyarrow().column("v").to_pylist())
    arm.equal(got, list(range(ROWS)), "rows of execute_stream_partitioned")
    arm.figure["partitions"] = len(streams)
    arm.on_workers(read, "the stream")


def arrow_c_stream(arm: Arm) -> None:
    frame = arm.with_table(arm.context()).sql(BY_KEY.format(table="t"))
    arm.equal(pa.table(frame).to_pydict(), expected_by_key(), "pyarrow.table(frame)")
    reader = pa.RecordBatchReader.from_stream(frame)
    arm.equal(reader.read_all().to_pydict(), expected_by_key(), "RecordBatchReader.from_stream")
    only = pa.schema([pa.field("s", pa.int64())])
    got = pa.RecordBatchReader.from_stream(frame, schema=only).read_all()
    arm.equal(got.to_pydict(), {"s": expected_by_key()["s"]}, "a requested schema with one column")
    arm.on_workers(lambda: pa.table(frame), "the stream")


def async_iteration(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())

    async def read(sql: str) -> list[int]:
        return [v async for batch in ctx.sql(sql).execute_stream() for v in batch.to_pyarrow().column("v").to_pylist()]

    async def both() -> list[list[int]]:
        return list(await asyncio.gather(read("SELECT v FROM t WHERE v < 500"), read("SELECT v FROM t WHERE v >= 500")))

    low, high = asyncio.run(both())
    arm.equal(sorted(low), list(range(500)), "rows of the first stream")
    arm.equal(sorted(high), list(range(500, ROWS)), "rows of the second stream")
    arm.on_workers(lambda: asyncio.run(both()), "the stream")


def exports(arm: Arm) -> None:
    import contextlib
    import io

    frame = arm.with_table(arm.context()).sql(BY_KEY.format(table="t"))
    want = expected_by_key()
    pairs = [dict(zip(want, row, strict=True)) for row in zip(*want.values(), strict=True)]
    arm.equal(frame.to_arrow_table().to_pydict(), want, "to_arrow_table")
    arm.equal(frame.to_pydict(), want, "to_pydict")
    arm.equal(frame.to_pylist(), pairs, "to_pylist")
    arm.equal(frame.collect_column("s").to_pylist(), want["s"], "collect_column")
    arm.equal(
        sum(b.num_rows for part in frame.collect_partitioned() for b in part), len(want["k"]), "collect_partitioned"
    )
    arm.equal(frame.count(), len(want["k"]), "count")
    arm.check("49500" in repr(frame), "repr(frame) does not show the rows")
    arm.check("49500" in frame._repr_html_(), "_repr_html_ does not show the rows")
    with contextlib.redirect_stdout(io.StringIO()):
        arm.equal(frame.show(), None, "show()")
    lacking = []
    for package, method in (("pandas", "to_pandas"), ("polars", "to_polars")):
        try:
            __import__(package)
        except ImportError:
            lacking.append(f"{method} (no {package} in the environment)")
            continue
        arm.equal(list(getattr(frame, method)()["s"]), want["s"], method)
    missing(lacking)


def early_break_frees_workers(arm: Arm) -> None:
    ctx = arm.with_slow_table(arm.context({"datafusion.execution.batch_size": "256"}))
    sql = SLOW.replace("count(*) AS n, sum(x.v + y.v) AS s", "x.v, y.v AS w")

    def look(stream: Any) -> int:
        for batch in stream:
            return int(batch.to_pyarrow().num_rows)
        return 0

    stream = ctx.sql(sql).execute_stream()
    arm.check(look(stream) > 0, "the stream gave no batch")
    if arm.tasks("tasks_running") == 0:
        raise Blocked("the tasks had ended before they could be looked at")
    began = time.monotonic()
    del stream
    gc.collect()
    freed = wait_until(lambda: arm.tasks("tasks_running") == 0, 20)
    arm.figure["seconds_to_free"] = round(time.monotonic() - began, 2)
    arm.check(freed, f"{arm.tasks('tasks_running')} tasks still ran 20 s after the stream was dropped")
    arm.check(arm.figure["seconds_to_free"] < 2.0, f"it took {arm.figure['seconds_to_free']} s to free the workers")


def cost(arm: Arm) -> None:
    rows = 60_000
    folder = arm.parquet("big", rows=rows)
    for size in (8, 512, 8192, 65_536):
        ctx = arm.context({"datafusion.execution.batch_size": str(size)})
        ctx.register_parquet("b", str(folder))
        frame = ctx.sql("SELECT k, v FROM b WHERE v >= 0")
        frame.collect()
        began = time.perf_counter()
        lengths = [batch.to_pyarrow().num_rows for batch in frame.execute_stream()]
        took = time.perf_counter() - began
        arm.equal(sum(lengths), rows, f"rows in batches of {size}")
        arm.check(max(lengths) <= max(size, 8), f"batch size {size} was set, a batch of {max(lengths)} rows came")
        figures = {
            "microseconds_per_batch": round(took / len(lengths) * 1e6, 1),
            "million_rows_per_s": round(rows / took / 1e6, 2),
        }
        arm.figure[f"batches of {size}"] = {"batches": len(lengths), **figures}
