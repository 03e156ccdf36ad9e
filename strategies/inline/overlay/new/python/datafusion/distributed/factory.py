"""One call that makes a distributed context from settings, for tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datafusion.context import SessionConfig, SessionContext

from ._factory import split_config
from .status import build_info, plan_info, worker_status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["build_info", "make_context", "plan_info", "worker_status"]


def make_context(config: Mapping[str, str], workers: Sequence[str]) -> SessionContext:
    """Return a context that runs its queries on workers.

    Args:
        config: Settings by full key, ``datafusion.*`` and ``distributed.*``.
        workers: URLs of the workers.

    Raises:
        ValueError: If a key, a value or a URL is not valid.
    """
    session, distributed = split_config(config)
    settings = SessionConfig({"datafusion.catalog.information_schema": "true", **session})
    return SessionContext(settings.with_distributed(list(workers), options=distributed))
