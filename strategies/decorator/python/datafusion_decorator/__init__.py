"""Run queries of a stock `datafusion` context on worker processes.

The stock package stays as it is; a context gets a distributed planner through the public extension hooks::

    from datafusion import SessionContext
    from datafusion_decorator import LocalCluster, distributed

    with LocalCluster(2) as cluster:
        ctx = distributed(SessionContext(), cluster)
        ctx.register_parquet("t", "data/")
        ctx.sql("SELECT a, count(*) FROM t GROUP BY a").show()

Start workers with `python -m datafusion_decorator worker`, with `Worker` inside a process of your own, or with
`LocalCluster` for a laptop or a test.
"""

from __future__ import annotations

import importlib.metadata as _metadata

from ._version_check import check_datafusion as _check_datafusion

_check_datafusion()

from .cluster import LocalCluster  # noqa: E402 - nothing native may load before the check
from .extension import DistributedExtension, distributed  # noqa: E402
from .spec import ClusterOptions, DistributedOptions, DnsWorkers, WorkerResolver, Workers  # noqa: E402
from .status import (  # noqa: E402
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
from .worker import Worker, WorkerOptions  # noqa: E402
from .worker_setup import WorkerSetup  # noqa: E402

__version__ = _metadata.version("datafusion-decorator")

__all__ = [
    "BuildInfo",
    "ClusterOptions",
    "DistributedExtension",
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
    "distributed",
    "explain_distributed",
    "plan_info",
    "worker_status",
]
