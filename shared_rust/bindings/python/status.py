"""What a build, a worker and a plan report about themselves, as typed dictionaries."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypedDict, cast

from . import _native
from .spec import check_url, client_options

__all__ = [
    "BuildInfo",
    "OperatorMetrics",
    "PlanInfo",
    "WorkerStatus",
    "build_info",
    "collect_metrics",
    "explain_distributed",
    "plan_info",
    "worker_status",
]


class BuildInfo(TypedDict):
    """Which sources and tools a binary was made from; equal fingerprints mean equal engines."""

    fingerprint: str
    source_hash: str
    lock_hash: str
    features: Any
    profile: str
    rustc: str
    target: str
    engine_version: str


class WorkerStatus(TypedDict):
    """Counters of one worker since it started. A task is one part of one stage of one query. Sizes in bytes."""

    url: str
    pid: int
    build: BuildInfo
    uptime_s: float
    """Seconds since it started."""
    tasks_started: int
    tasks_in_process: int
    """Of those, tasks of a coordinator in the worker's own process; they count as finished from the start."""
    tasks_finished: int
    tasks_running: int
    requests_failed: int
    streams: int
    """Requests for the output of a task."""
    bytes_out: int
    """Bytes of answers, after compression."""


class PlanInfo(TypedDict):
    """The distributed form of a plan."""

    distributed: bool
    """False when the plan runs on the coordinator alone."""
    plan: int | None
    """Number of the plan in this process."""
    stages: int
    """Stages, the coordinator's own included; 0 when not distributed."""
    tasks: int
    """Tasks that run on workers, over all stages."""
    text: str
    """The plan stage by stage."""
    graphviz: str | None
    """The plan in the language of Graphviz, which draws it as a picture."""


class OperatorMetrics(TypedDict):
    """One operator of an executed distributed plan and what it counted."""

    stage: int
    """Number of the stage as in EXPLAIN; 0 is the coordinator's."""
    depth: int
    """Depth below the root of the stage."""
    operator: str
    """The operator as in EXPLAIN."""
    tasks: dict[int, dict[str, int]]
    """Values by task and name, summed over partitions: rows, bytes, nanoseconds."""


def build_info() -> BuildInfo:
    """Return the build fingerprint of this package."""
    return cast("BuildInfo", json.loads(_native.build_info()))


def worker_status(urls: str | Iterable[str], **options: Any) -> list[WorkerStatus]:
    """Ask workers for their counters and build fingerprint.

    Args:
        urls: one URL or several.
        **options: `token`, `tls_ca`, `tls_cert`, `tls_key`, `tls_domain`, `connect_timeout`, as for a session.

    Raises:
        ValueError: a bad URL or option.
        RuntimeError: a worker does not answer; the message names it.
    """
    given = [check_url(url) for url in ([urls] if isinstance(urls, str) else urls)]
    client = client_options(options)
    return [parse_status(url, _native.worker_status(url, client)) for url in given]


def parse_status(url: str, text: str) -> WorkerStatus:
    """Return the answer of a worker with the URL it was asked at."""
    return cast("WorkerStatus", {"url": url, **json.loads(text)})


def plan_info(plan: Any) -> PlanInfo:
    """Return stages, tasks and a rendering of a plan.

    Args:
        plan: a DataFrame (which is planned for this) or its `execution_plan()`.

    Raises:
        TypeError: neither of the two.
    """
    return cast("PlanInfo", json.loads(_native.plan_info(_execution_plan(plan))))


def _execution_plan(plan: Any) -> Any:
    # By what it can do, not by class: a plan says its number in its display, in whichever library it was made.
    if hasattr(plan, "execution_plan"):
        plan = plan.execution_plan()
    if not hasattr(plan, "display") or not hasattr(plan, "display_indent"):
        msg = f"expected a DataFrame or its execution_plan(), got {type(plan).__name__}"
        raise TypeError(msg)
    return plan


def collect_metrics(plan: Any) -> list[OperatorMetrics]:
    """Return what every operator counted on coordinator and workers, in the order of EXPLAIN.

    Args:
        plan: a DataFrame that was collected, or its `execution_plan()`.

    Returns:
        One entry per operator; empty for a plan that is not distributed, whose `collect_metrics()` tells as always.

    Raises:
        TypeError: neither of the two.
        Exception: the plan was not executed, or a worker ended before it sent its metrics.
    """
    text = _native.plan_metrics(_execution_plan(plan))
    operators: list[OperatorMetrics] = json.loads(text) if text else []
    for operator in operators:
        operator["tasks"] = {int(task): values for task, values in operator["tasks"].items()}
    return operators


def explain_distributed(plan: Any) -> str:
    """Return a plan as text, stage by stage, with the number of tasks of each.

    Args:
        plan: a DataFrame (which is planned for this) or its `execution_plan()`.

    Raises:
        TypeError: neither of the two.
    """
    return plan_info(plan)["text"]
