"""Run queries of a :py:class:`~datafusion.SessionContext` on worker processes.

A *worker* executes stages of a query and streams their results to the next
stage; the process with the context is the *coordinator*. Start workers with
``python -m datafusion.distributed worker``, with :py:class:`Worker` inside a
process of your own, or with :py:class:`LocalCluster` for a laptop or a test::

    from datafusion import SessionConfig, SessionContext
    from datafusion.distributed import LocalCluster

    with LocalCluster(2) as cluster:
        ctx = SessionContext(SessionConfig().with_distributed(cluster))
        ctx.register_parquet("t", "data/")
        ctx.sql("SELECT a, count(*) FROM t GROUP BY a").show()
"""

from __future__ import annotations

from .cluster import LocalCluster
from .spec import (
    ClusterOptions,
    DistributedOptions,
    DnsWorkers,
    WorkerResolver,
    Workers,
)
from .status import (
    BuildInfo,
    OperatorMetrics,
    PlanInfo,
    WorkerStatus,
    build_info,
    collect_metrics,
    explain_distributed,
    plan_info,
    worker_status,
)
from .worker import Worker, WorkerOptions
from .worker_setup import WorkerSetup

__all__ = [
    "BuildInfo",
    "ClusterOptions",
    "DistributedOptions",
    "DnsWorkers",
    "LocalCluster",
    "OperatorMetrics",
    "PlanInfo",
    "Worker",
    "WorkerOptions",
    "WorkerResolver",
    "WorkerSetup",
    "WorkerStatus",
    "Workers",
    "build_info",
    "collect_metrics",
    "explain_distributed",
    "plan_info",
    "worker_status",
]
