"""Area 14: distributed means that workers worked."""

from __future__ import annotations

import contextlib

from .kit import BY_KEY, Arm, expected_by_key, missing, rows

SQL = BY_KEY.format(table="t")

QUERIES = (
    SQL,
    "SELECT a.v, b.k FROM t a JOIN t b ON a.v = b.v + 1",
    "SELECT k FROM t WHERE v < 500 UNION ALL SELECT v FROM t WHERE v > 990",
    "SELECT v, rank() OVER (PARTITION BY k ORDER BY v DESC) FROM t",
    "SELECT count(DISTINCT v % 13), avg(v) FROM t",
)

MODES = (
    {"broadcast_joins": "false"}, {"partial_reduce": "true"}, {"dynamic_task_count": "true"}, {"compression": "none"},
    {"compression": "zstd"}, {"shuffle_batch_size": "7"}, {"children_isolator_unions": "false"}, {"collect_metrics": "false"},
    {"max_tasks_per_stage": "1"}, {"cardinality_task_count_factor": "4.0"}, {"worker_connection_buffer_budget_bytes": "1024"},
    {"dynamic_task_count": "true", "partial_reduce": "true", "broadcast_joins": "false", "compression": "zstd"},
)  # fmt: skip


def counters(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    before = arm.status()
    arm.equal(ctx.sql(SQL).to_pydict(), expected_by_key(), "the answer")
    arm.check(arm.settled(), "tasks still run after the answer")
    after = arm.status()
    for key in ("tasks_finished", "bytes_out"):
        grown = [new[key] - old[key] for new, old in zip(after, before, strict=True)]
        arm.figure[key] = grown
        arm.check(sum(grown) > 0, f"{key} did not grow: {grown}")
    arm.check(
        all(n > 0 for n in arm.figure["tasks_finished"]), f"one worker did nothing: {arm.figure['tasks_finished']}"
    )
    arm.equal([row["tasks_running"] for row in after], [0] * len(after), "tasks that run after the answer")
    missing([f"counter {key} in worker_status" for key in ("rows_out", "tasks_failed") if key not in after[0]])


def matrix(arm: Arm) -> None:
    plain = arm.with_table(arm.plain())
    want = [rows(plain.sql(sql)) for sql in QUERIES]
    wrong = []
    for mode in MODES:
        ctx = arm.with_table(arm.context({f"distributed.{key}": value for key, value in mode.items()}))
        for sql, answer in zip(QUERIES, want, strict=True):
            try:
                good = rows(ctx.sql(sql)) == answer
            except Exception as error:
                wrong.append(f"{mode}: {sql[:60]}: {type(error).__name__}: {str(error)[:160]}")
                continue
            wrong += [] if good else [f"{mode}: {sql[:60]}: another answer"]
    arm.figure.update({"modes": len(MODES), "queries": len(MODES) * len(QUERIES), "wrong": len(wrong)})
    arm.check(not wrong, "; ".join(wrong))
    arm.on_workers(lambda: arm.with_table(arm.context()).sql(SQL).collect())


def worker_counts(arm: Arm) -> None:
    plain = arm.with_table(arm.plain())
    want = [rows(plain.sql(sql)) for sql in QUERIES]
    with contextlib.ExitStack() as stack:
        urls: list[str] = []
        for count in (1, 2, 3, 5):
            while len(urls) < count:
                urls.append(stack.enter_context(arm.worker()).url)
            ctx = arm.with_table(arm.context(workers=list(urls)))
            got = [rows(ctx.sql(sql)) for sql in QUERIES]
            arm.equal(
                [i for i, (a, b) in enumerate(zip(got, want, strict=True)) if a != b],
                [],
                f"queries that differ with {count} workers",
            )
            arm.figure[f"{count} workers"] = [row["tasks_finished"] for row in arm.status(urls)]
        busy = [row["tasks_started"] for row in arm.status(urls)]
        arm.check(sum(n > 0 for n in busy) >= 2, f"tasks per worker: {busy}")
