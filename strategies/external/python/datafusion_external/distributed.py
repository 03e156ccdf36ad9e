"""The context of this package that runs queries on workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _native
from ._guard import foreign_message, is_stock
from .context import RuntimeEnvBuilder, SessionConfig, SessionContext
from .spec import build_spec

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from .spec import ClusterOptions, Workers

__all__ = ["DistributedSessionContext"]


class DistributedSessionContext(SessionContext):
    """A `SessionContext` of this package whose queries run on workers.

    Everything else in this package works with it: `col`, `DataFrame`, functions, user-defined functions. Objects of the
    stock `datafusion` package do not, and raise a `TypeError` that says so.

    A query whose plan offers nothing to distribute runs in this process, unless `strict` is set.

    Examples:
        >>> from datafusion_external import DistributedSessionContext, LocalCluster
        >>> with LocalCluster(2) as cluster:
        ...     DistributedSessionContext(cluster).sql("SELECT 1 AS n").to_pydict()
        {'n': [1]}

    Args:
        workers: worker URLs, objects with `url` or `urls`, a callable that returns URLs (asked again between
            queries), a `DnsWorkers`, or None for the environment variable DATAFUSION_DISTRIBUTED_WORKERS.
        config: session configuration of this package.
        runtime: runtime options of this package.
        **options: see `ClusterOptions`.

    Raises:
        ValueError: no worker, or a URL or an option that is not valid.
        TypeError: an unknown keyword, a value of a wrong type, or an object of the stock package.
    """

    def __init__(
        self,
        workers: Workers = None,
        config: SessionConfig | None = None,
        runtime: RuntimeEnvBuilder | None = None,
        **options: Unpack[ClusterOptions],
    ) -> None:
        """Make the context; no worker is contacted yet."""
        _check_own("config", config, SessionConfig)
        _check_own("runtime", runtime, RuntimeEnvBuilder)
        spec, resolver = build_spec(workers, **options)
        self.ctx = _native.distributed_context(
            config.config_internal if config is not None else None,
            runtime.config_internal if runtime is not None else None,
            spec,
            resolver,
        )

    @classmethod
    def global_ctx(cls) -> SessionContext:
        """Return the process-wide context, which is not distributed."""
        return SessionContext.global_ctx()

    def with_extensions(self, *extensions: Any) -> Self:
        """Return a distributed handle on this session with extension bundles installed; see `SessionContext`."""
        return self._same_kind(super().with_extensions(*extensions))

    def with_logical_extension_codec(self, codec: Any, codec_id: str | None = None) -> Self:
        """Return a distributed handle on this session with one more logical codec; see `SessionContext`."""
        return self._same_kind(super().with_logical_extension_codec(codec, codec_id))

    def with_physical_extension_codec(self, codec: Any, codec_id: str | None = None) -> Self:
        """Return a distributed handle on this session with one more physical codec; see `SessionContext`."""
        return self._same_kind(super().with_physical_extension_codec(codec, codec_id))

    def with_python_udf_inlining(self, *, enabled: bool) -> Self:
        """Return a distributed handle on this session with the setting changed; see `SessionContext`."""
        return self._same_kind(super().with_python_udf_inlining(enabled=enabled))

    def _same_kind(self, handle: SessionContext) -> Self:
        """Upstream returns handles of the base class; they wrap the same session, so only the class is given back."""
        same = type(self).__new__(type(self))
        same.ctx = handle.ctx
        return same


def _check_own(name: str, value: object, kind: type) -> None:
    if value is None or isinstance(value, kind):
        return
    if is_stock(value):
        raise TypeError(foreign_message(name, value))
    msg = f"{name} must be a {kind.__module__}.{kind.__name__}, got {type(value).__name__}"
    raise TypeError(msg)
