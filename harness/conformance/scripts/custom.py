"""Area 34: how far Python reaches."""

from __future__ import annotations

import importlib
import os
from typing import Any

from .kit import BY_KEY, Arm, Partial, expected_by_key

SQL = BY_KEY.format(table="t")


def reach(arm: Arm) -> None:
    options, worker = _keywords(arm, "spec", "ClusterOptions"), _keywords(arm, "worker", "WorkerOptions")
    planner = set(getattr(getattr(arm.api, "DistributedOptions", None), "__annotations__", {}))
    wanted: dict[str, bool] = {
        "worker resolver": _works(
            lambda: arm.with_table(arm.context(workers=lambda: list(arm.urls))).sql(SQL).collect()
        ),
        "DNS membership": hasattr(arm.api, "DnsWorkers"),
        "token": "token" in options and "token" in worker,
        "TLS": "tls_ca" in options and "tls_cert" in worker,
        "worker set-up hook": "init" in worker,
        "task counts": bool({"max_tasks_per_stage", "cardinality_task_count_factor"} & planner),
        "compression": "compression" in planner,
        "strict mode": "strict" in options,
        "fingerprint check": "expect_fingerprint" in options,
        "Python functions switch": "allow_python_udfs" in options and "allow_python_udfs" in worker,
        "worker memory limit": "memory_limit" in worker,
        "request timeouts": "request_timeout" in worker or "connect_timeout" in options,
        "request headers": "headers" in options,
        "routing of tasks": "routing" in options,
    }
    reached = [name for name, can in wanted.items() if can]
    arm.figure.update({"reached": len(reached), "of": len(wanted)})
    arm.check(len(reached) >= 8, f"only {len(reached)} of {len(wanted)} are reachable from Python: {reached}")
    lacking = [name for name, can in wanted.items() if not can]
    if lacking:
        raise Partial(f"{len(reached)} of {len(wanted)}; not settable from Python: {', '.join(lacking)}")


def _keywords(arm: Arm, module: str, name: str) -> set[str]:
    """Names in a typed dictionary of options, which some strategies keep in a submodule."""
    kind = getattr(arm.api, name, None) or getattr(importlib.import_module(f"{arm.package}.{module}"), name, None)
    return set(getattr(kind, "__annotations__", {}))


def _works(act: Any) -> bool:
    try:
        act()
    except Exception:
        return False
    return True


def strict(arm: Arm) -> None:
    ctx = arm.with_table(arm.context(strict=True))
    arm.equal(ctx.sql(SQL).to_pydict(), expected_by_key(), "a strict session on a query that distributes")
    arm.equal(ctx.sql("SELECT 1 AS n").to_pydict(), {"n": [1]}, "a strict session on a query without tables")
    large = arm.with_table(arm.context({"distributed.file_scan_config_bytes_per_partition": "1000000000"}, strict=True))
    arm.figure["refusal"] = arm.raises(
        lambda: large.sql(SQL).collect(), "a strict session on a query that stays local", "strict", "distributed"
    )
    arm.on_workers(lambda: ctx.sql(SQL).collect())


def environment_variable(arm: Arm) -> None:
    os.environ["DATAFUSION_DISTRIBUTED_WORKERS"] = " , ".join(arm.urls)
    ctx = arm.open(
        arm.df.SessionConfig().with_target_partitions(2), None, options={"file_scan_config_bytes_per_partition": 1}
    )
    ctx.register_parquet("t", str(arm.parquet()))
    arm.equal(ctx.sql(SQL).to_pydict(), expected_by_key(), "the answer of workers from the environment")
    arm.on_workers(lambda: ctx.sql(SQL).collect())
