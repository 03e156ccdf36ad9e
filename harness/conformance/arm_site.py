"""One arm as the suite uses it: its environment, and clusters that harmless checks share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.arms import STOCK_FACTORY, Arm
from harness.child.keeper import Keeper
from harness.cluster import Cluster
from harness.conformance.model import ClusterKind
from harness.environments import ArmEnvironment
from harness.errors import UserError

CLUSTER_WORKERS = 2
"""Workers per cluster: the smallest number at which every exchange crosses a process boundary."""

DISCARD_GRACE_S = 2.0
"""Seconds for workers that are thrown away; whoever hangs is killed."""

PYTHON_FLAG = "--allow-python-udfs"
"""Argument that lets a worker run Python functions, the same in every strategy."""


class Site:
    """An arm with its environment. Clusters start on first use and live until the site closes."""

    def __init__(self, keeper: Keeper, arm: Arm, environment: ArmEnvironment, logs: Path) -> None:
        if arm.driver is None or arm.driver.factory is None or environment.python is None:
            msg = f"arm `{arm.name}` cannot be checked: checks are Python, and this arm has no Python session factory"
            raise UserError(msg)
        self.arm = arm
        self.python = environment.python
        self.environment = environment
        self.logs = logs
        self._keeper = keeper
        self._clusters: dict[str, Cluster] = {}
        self._fresh = 0
        logs.mkdir(parents=True, exist_ok=True)

    def close(self) -> None:
        """Stop the shared clusters."""
        for cluster in self._clusters.values():
            cluster.stop()
        self._clusters.clear()

    @contextlib.contextmanager
    def cluster(self, kind: ClusterKind) -> Iterator[Cluster | None]:
        """Workers for one check: shared ones, or its own, or none.

        Raises:
            WorkerFailed: they do not start.
        """
        if kind == "none" or not self.arm.distributed:
            yield None
        elif kind == "fresh":
            self._fresh += 1
            with self._make(f"fresh-{self._fresh}", []) as cluster:
                yield cluster
        else:
            yield self._shared(kind)

    def _shared(self, kind: ClusterKind) -> Cluster:
        cluster = self._clusters.get(kind)
        if cluster is not None and cluster.failure() is not None:
            # A check that was thought harmless killed a worker; the next one deserves a whole cluster.
            cluster.stop()
            cluster = None
        if cluster is None:
            cluster = self._make(kind, [PYTHON_FLAG] if kind == "python" else [])
            cluster.start()
            self._clusters[kind] = cluster
        return cluster

    def discard(self, kind: ClusterKind) -> None:
        """Replace a shared cluster before the next check: the last one failed and may have left it busy or broken."""
        cluster = self._clusters.pop(kind, None)
        if cluster is not None:
            cluster.stop(grace_s=DISCARD_GRACE_S)

    def _make(self, name: str, flags: list[str]) -> Cluster:
        workers = self.arm.workers
        if workers is None:  # pragma: no cover - `cluster` has looked already
            msg = f"arm `{self.arm.name}` has no workers"
            raise UserError(msg)
        logs = self.logs / f"workers-{name}"
        logs.mkdir(parents=True, exist_ok=True)
        return Cluster(
            self._keeper, self.arm.name, [*self.worker_command(), *flags], CLUSTER_WORKERS,
            logs=logs, cwd=logs, env=self.arm.env, ready_timeout_s=workers.ready_timeout_s,
        )  # fmt: skip

    def worker_command(self) -> list[str]:
        """The arm's worker command, filled in."""
        return self.environment.fill(self.arm.workers.command) if self.arm.workers else []

    def job(self, cluster: Cluster | None, prerequisites: Mapping[str, Any]) -> dict[str, Any]:
        """What a child needs to know of the arm."""
        driver = self.arm.driver
        factory = driver.factory if driver and driver.factory else STOCK_FACTORY
        return {
            "arm": self.arm.name,
            "distributed": self.arm.distributed,
            "namespace": driver.namespace if driver else "datafusion",
            "factory": factory,
            "probe": driver.probe if driver else None,
            "urls": cluster.urls if cluster else [],
            "pids": [worker.pid for worker in cluster.workers] if cluster else [],
            "worker_command": self.worker_command(),
            "prerequisites": dict(prerequisites),
            "path": self.arm.environment.path if self.arm.environment else [],
        }
