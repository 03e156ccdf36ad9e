"""Area 33: what a user can see of a distributed query."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import re
import threading
import time
from typing import Any

from .kit import BY_KEY, ROWS, SLOW, Arm, Partial, expected_by_key, missing, short, wait_until

SQL = BY_KEY.format(table="t")


def _explain(ctx: Any, prefix: str, sql: str = SQL) -> str:
    table = ctx.sql(f"{prefix} {sql}").to_pydict()
    return "\n".join(f"{a}\n{b}" for a, b in zip(table["plan_type"], table["plan"], strict=True))


def explain_stages(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    text = _explain(ctx, "EXPLAIN")
    arm.check("Stage" in text, f"EXPLAIN shows no stage: {short(text, 400)}")
    arm.check("Network" in text, f"EXPLAIN shows no exchange between stages: {short(text, 400)}")
    info = arm.probe.plan_info(ctx.sql(SQL))
    arm.figure.update({"stages": info["stages"], "tasks": info["tasks"]})
    arm.check(info["distributed"] and info["stages"] >= 2, f"plan_info tells {info['stages']} stages")
    arm.check(info["tasks"] >= info["stages"], f"plan_info tells {info['tasks']} tasks in {info['stages']} stages")
    arm.equal(
        sorted(set(re.findall(r"Stage (\d+)", text))),
        sorted(set(re.findall(r"Stage (\d+)", info["text"]))),
        "stages in EXPLAIN and in plan_info",
    )


def explain_says_why_local(arm: Arm) -> None:
    ctx = arm.with_table(arm.context({"distributed.file_scan_config_bytes_per_partition": "1000000000"}))
    text = _explain(ctx, "EXPLAIN")
    arm.check("not distributed" in text, f"EXPLAIN does not say that the plan stays local: {short(text, 400)}")
    arm.check("bytes_per_partition" in text, f"EXPLAIN does not say why: {short(text, 400)}")
    arm.check(not arm.probe.plan_info(ctx.sql(SQL))["distributed"], "plan_info calls a local plan distributed")


def explain_analyze(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    text = _explain(ctx, "EXPLAIN ANALYZE")
    arm.check("Stage" in text, f"EXPLAIN ANALYZE shows no stage: {short(text, 400)}")
    # The engine puts the metrics of a scan on the node around its variants, one variant per task.
    leaves = [line for line in text.splitlines() if "DistributedLeafExec" in line or "DataSourceExec" in line]
    arm.check(leaves, f"EXPLAIN ANALYZE shows no scan: {short(text, 400)}")
    counted = [_number(part) for line in leaves for part in re.findall(r"\boutput_rows=([\d.]+ ?[KM]?)", line)]
    arm.figure["rows_of_scans"] = counted
    arm.check(counted, f"the scan on the workers has no metrics: {short(leaves, 400)}")
    arm.equal(sum(counted), ROWS, f"rows that the scans tell: {short(leaves, 300)}")
    arm.on_workers(lambda: _explain(ctx, "EXPLAIN ANALYZE"), "EXPLAIN ANALYZE")


def _number(text: str) -> int:
    factor = {"K": 1000, "M": 1_000_000}.get(text.strip()[-1], 1)
    return round(float(text.strip().rstrip("KM")) * factor)


def metrics_objects(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    frame = ctx.sql(SQL)
    frame.collect()
    plan = frame.execution_plan()
    arm.check(hasattr(plan, "collect_metrics"), "an execution plan has no collect_metrics()")
    found = plan.collect_metrics()
    names = [entry[0] if isinstance(entry, tuple) else getattr(entry, "name", entry) for entry in found]
    arm.figure["operators"] = short(names, 400)
    arm.check(found, "collect_metrics() is empty after the DataFrame was collected")
    if arm.distributed and not any("DataSource" in str(name) or "Aggregate" in str(name) for name in names):
        raise Partial(f"metrics as objects do not reach the remote stages: {short(names)}")


def worker_status(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    before = arm.status()
    arm.equal(ctx.sql(SQL).to_pydict(), expected_by_key(), "the answer")
    arm.check(arm.settled(), "tasks still run after the query ended")
    after = arm.status()
    promised = getattr(getattr(arm.api, "WorkerStatus", None), "__annotations__", ())
    absent = [key for key in promised if key not in after[0]]
    for key in ("tasks_started", "tasks_finished", "rows_out", "bytes_out", "batches_out"):
        if key in after[0]:
            grown = sum(row[key] for row in after) - sum(row[key] for row in before)
            arm.figure[key] = grown
            arm.check(grown > 0, f"the workers' counter {key} did not grow with a query")
    arm.equal([row["pid"] for row in after], arm.pids, "process ids that the workers tell")
    arm.equal({row["build"]["fingerprint"] for row in after}, {arm.probe.build_info()["fingerprint"]}, "fingerprints")
    missing([f"`{key}`, which WorkerStatus promises" for key in absent])


def display_distributed(arm: Arm) -> None:
    frame = arm.with_table(arm.context()).sql(SQL)
    text = arm.api.explain_distributed(frame)
    arm.check("Stage" in text, f"explain_distributed shows no stage: {short(text, 300)}")
    plan = frame.execution_plan()
    native = plan.display_distributed() if hasattr(plan, "display_distributed") else text
    arm.check("Stage" in native, f"display_distributed shows no stage: {short(native, 300)}")
    info = arm.probe.plan_info(frame)
    lacking = [] if any(url in text for url in arm.urls) else ["worker URLs in the text"]
    lacking += [] if info.get("urls") else ["worker URLs in plan_info"]
    picture = any(hasattr(arm.api, name) for name in ("to_graphviz", "explain_graphviz", "to_svg"))
    lacking += [] if picture else ["a picture of the plan (Graphviz or SVG)"]
    if lacking:
        raise Partial("missing: " + "; ".join(lacking))


def busy_worker_answers(arm: Arm) -> None:
    ctx = arm.with_slow_table(arm.with_table(arm.context({"datafusion.execution.batch_size": "256"})))
    thread = threading.Thread(target=lambda: ctx.sql(SLOW).collect(), daemon=True)
    thread.start()
    wait_until(lambda: arm.tasks("tasks_running") > 0, 20)
    slowest: dict[str, float] = {}
    acts = {"status": arm.status, "small query": lambda: ctx.sql(SQL).to_pydict()}
    for _ in range(5):
        for name, act in acts.items():
            began = time.monotonic()
            act()
            slowest[name] = round(max(slowest.get(name, 0.0), time.monotonic() - began), 2)
    arm.figure["slowest_seconds"] = slowest
    arm.figure["heavy_query_still_runs"] = thread.is_alive()
    arm.check(slowest["status"] < 5, f"a status call took {slowest['status']} s while the worker computed")
