"""Clusters of worker processes, one per distributed arm: start, health, proof of the same build, teardown."""

from harness.cluster.fingerprints import check_fingerprints
from harness.cluster.workers import Cluster, WorkerFailed, WorkerInfo

__all__ = ["Cluster", "WorkerFailed", "WorkerInfo", "check_fingerprints"]
