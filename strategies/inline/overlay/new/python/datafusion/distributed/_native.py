"""The compiled part, which is a submodule of the package's one extension module."""

from __future__ import annotations

from datafusion._internal import distributed as _distributed

Worker = _distributed.Worker
build_info = _distributed.build_info
plan_info = _distributed.plan_info
plan_metrics = _distributed.plan_metrics
plans_held = _distributed.plans_held
worker_status = _distributed.worker_status
