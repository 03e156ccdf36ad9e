"""Area 28: objects that outlive each other, and objects that should not."""

# mypy: disable-error-code="misc"

from __future__ import annotations

import gc
import os
from pathlib import Path

from .kit import BY_KEY, ROWS, Arm, expected_by_key

CONTEXTS = 1000
KIB_PER_CONTEXT = 8.0
"""A context keeps nothing once it is dropped; allocators keep a little. Ten times this would be 80 MB per 1000."""


def _rss_kib() -> int:
    fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def _threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def _files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def dataframe_outlives_context(arm: Arm) -> None:
    arm.keep = False
    ctx = arm.with_table(arm.context())
    frame = ctx.sql(BY_KEY.format(table="t"))
    del ctx
    gc.collect()
    try:
        got = frame.to_pydict()
    except Exception as error:
        arm.figure["outcome"] = f"{type(error).__name__}: {error}"
        arm.check(len(str(error)) > 20, f"the error says nothing: {error!r}")
        arm.check(
            "context" in str(error).lower() or "session" in str(error).lower(), f"the error does not say why: {error}"
        )
        return
    arm.figure["outcome"] = "the answer"
    arm.equal(got, expected_by_key(), "the answer after the context was dropped")
    arm.on_workers(frame.collect)


def thousand_contexts(arm: Arm) -> None:
    arm.keep = False

    def one() -> None:
        ctx = arm.context()
        ctx.sql("SELECT 1 AS n").collect()

    for _ in range(100):
        one()
    gc.collect()
    before, threads, files = _rss_kib(), _threads(), _files()
    for _ in range(CONTEXTS):
        one()
    gc.collect()
    slope = (_rss_kib() - before) / CONTEXTS
    arm.figure.update(
        {"kib_per_context": round(slope, 2), "threads": [threads, _threads()], "files": [files, _files()]}
    )
    arm.check(slope < KIB_PER_CONTEXT, f"memory grows by {slope:.1f} KiB per context")
    arm.check(_threads() <= threads + 2, f"threads grew from {threads} to {_threads()}")
    arm.check(_files() <= files + 4, f"open files grew from {files} to {_files()}")


def plans_are_freed(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    sql = BY_KEY.format(table="t")
    for _ in range(50):
        ctx.sql(sql).execution_plan()
    gc.collect()
    before = _rss_kib()
    for _ in range(300):
        ctx.sql(sql).execution_plan()
    gc.collect()
    slope = (_rss_kib() - before) / 300
    native = getattr(arm.api, "_native", None)
    held = native.plans_held() if native is not None and hasattr(native, "plans_held") else None
    arm.figure.update({"kib_per_plan": round(slope, 2), "plans_held": held})
    arm.check(slope < 40, f"memory grows by {slope:.1f} KiB per plan that is never run")
    arm.check(held is None or held <= 2, f"{held} plans are held after all of them were dropped")
    arm.equal(ctx.sql(sql).to_pydict(), expected_by_key(), "a query at the end")


def error_leaves_session_usable(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    bad = {
        "parse": "SELEC 1",
        "unknown table": "SELECT * FROM nowhere",
        "unknown column": "SELECT nothing FROM t",
        "division by zero": "SELECT k, sum(v / (k - k)) FROM t GROUP BY k",
        "bad cast": "SELECT k, max(CAST(concat('x', CAST(v AS VARCHAR)) AS INT)) FROM t GROUP BY k",
    }
    for name, sql in bad.items():
        arm.raises(lambda sql=sql: ctx.sql(sql).collect(), name)
        arm.equal(ctx.sql(BY_KEY.format(table="t")).to_pydict(), expected_by_key(), f"the query after `{name}`")
    arm.equal(ctx.table("t").count(), ROWS, "count at the end")
    arm.on_workers(lambda: ctx.sql(BY_KEY.format(table="t")).collect())
