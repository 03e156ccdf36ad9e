"""The compiled part, which is a submodule of the package's one extension module."""

from __future__ import annotations

from datafusion._internal import distributed as _distributed

Worker = _distributed.Worker
build_info = _distributed.build_info
plan_info = _distributed.plan_info
worker_status = _distributed.worker_status
