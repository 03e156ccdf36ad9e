"""The extension bundle that gives a stock context a distributed planner."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from datafusion import SessionContext

from . import _native
from ._host_stores import register_on_host
from .session import decorate
from .spec import build_spec

if TYPE_CHECKING:
    from datafusion import SessionExtensionComponents
    from typing_extensions import Unpack

    from .spec import ClusterOptions, Workers

__all__ = ["DistributedExtension", "distributed"]

SCALAR_SUBQUERY_SETTING = "datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery"
"""The host optimizes the logical plan. With this setting on, it leaves uncorrelated scalar subqueries in place, and no
distributed plan can hold them; off, it turns them into joins, with the same results."""

LEAF_EXPRESSION_SETTING = "datafusion.optimizer.enable_leaf_expression_pushdown"
"""With this setting on, the host gives expressions over struct fields names that do not survive its plan's way here: an
aggregate above them cannot be read. Off, only the place where they are computed changes."""


class DistributedExtension:
    """An extension bundle for `SessionContext.with_extensions`; one object may serve several contexts.

    Examples:
        >>> from datafusion import SessionContext
        >>> from datafusion_decorator import DistributedExtension, LocalCluster
        >>> with LocalCluster(2) as cluster:
        ...     ctx = SessionContext().with_extensions(DistributedExtension(cluster))
        ...     ctx.sql("SELECT 1 AS n").to_pydict()
        {'n': [1]}

    Args:
        workers: worker URLs, objects with `url` or `urls`, a callable that returns URLs (asked again between
            queries), a `DnsWorkers`, or None for the environment variable DATAFUSION_DISTRIBUTED_WORKERS.
        **options: see `ClusterOptions`.

    Raises:
        ValueError: no worker, or a URL or an option that is not valid.
        TypeError: an unknown keyword, or a value of a wrong type.
    """

    def __init__(self, workers: Workers = None, **options: Unpack[ClusterOptions]) -> None:
        """Describe the cluster; no worker is contacted yet."""
        spec, resolver = build_spec(workers, **options)
        self._native = _native.DistributedExtension(spec, resolver)
        self._stores: dict[str, dict[str, str]] = json.loads(spec).get("object_stores", {})

    def __datafusion_session_components__(self, ctx: SessionContext) -> SessionExtensionComponents:
        """Return the codecs that carry plans and tables between the host and the engine."""
        components: SessionExtensionComponents = self._native.__datafusion_session_components__(ctx)
        return components

    def __datafusion_session_planner__(self, ctx: SessionContext, fallback: Any) -> Any:
        """Return the distributed planner in place of the session's own one, and decorate the context.

        Two settings of the session change: see `SCALAR_SUBQUERY_SETTING` and `LEAF_EXPRESSION_SETTING`. They are the
        last thing done here, so that a failure before it leaves the session as it was.
        """
        options = _native.SessionOptions(self._native)
        planner = self._native.planner(ctx, options)
        register_on_host(ctx, self._stores)
        for setting in (SCALAR_SUBQUERY_SETTING, LEAF_EXPRESSION_SETTING):
            ctx.sql(f"SET {setting} = false")
        decorate(ctx, options)
        return planner


def distributed(ctx: SessionContext, workers: Workers = None, **options: Unpack[ClusterOptions]) -> SessionContext:
    """Return a handle on a stock session whose queries run on workers.

    The session is shared: tables, functions and settings of `ctx` are those of the result, and queries of `ctx` itself
    run distributed too. Keep the result for as long as its DataFrames are in use.

    Args:
        ctx: context of the stock package.
        workers: see `DistributedExtension`.
        **options: see `ClusterOptions`.

    Raises:
        ValueError: no worker, or a URL or an option that is not valid.
        TypeError: `ctx` is not a context of the stock package, an unknown keyword, or a value of a wrong type.
    """
    if not isinstance(ctx, SessionContext):
        kind = type(ctx)
        msg = f"distributed() takes a datafusion.SessionContext, got {kind.__module__}.{kind.__qualname__}"
        raise TypeError(msg)
    return ctx.with_extensions(DistributedExtension(workers, **options))
