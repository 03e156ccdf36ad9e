"""A worker of this package: serves stages of distributed queries until it is stopped."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

from . import _native
from ._checks import check_token, flag, read_pem, seconds
from .status import WorkerStatus, parse_status
from .worker_setup import run_init

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self, Unpack

__all__ = ["Worker", "WorkerOptions"]

STOP_TIMEOUT_S = 12.0
"""Seconds to wait for a worker that was told to stop: its default time to drain and a little more."""

WAIT_SLICE_S = 0.25
"""Longest stretch that a thread of `wait_async` stays behind when the task was cancelled."""

MAX_PORT = 65535


class WorkerOptions(TypedDict, total=False):
    """Keyword options of a worker."""

    allow_python_udfs: bool
    """Run Python functions that coordinators send. They arrive pickled, so this lets callers run any code here."""
    init: str
    """`module:function`, called before the worker serves, with a `WorkerSetup` if it takes an argument: register
    functions and object stores, set session options, import modules."""
    token: str
    """Bearer token that callers must present."""
    tls_cert: str | os.PathLike[str]
    """PEM file with this worker's certificate; with `tls_key` it serves https."""
    tls_key: str | os.PathLike[str]
    """PEM file with the key of `tls_cert`."""
    tls_client_ca: str | os.PathLike[str]
    """PEM file with the authority that callers' certificates must come from (mutual TLS)."""
    tls_ca: str | os.PathLike[str]
    """PEM file with the authority of the other workers' certificates; by default `tls_client_ca`. Stages stream from
    worker to worker, with this worker's own token and, to workers that ask for one, its own certificate."""
    insecure: bool
    """Permit an address that others can reach without token and client certificates."""
    memory_limit: int
    """Bytes that queries may hold in memory before they spill or fail. No limit by default."""
    drain_timeout: float
    """Seconds that running tasks get to finish when the worker stops. Default 10."""
    request_timeout: float
    """Seconds that one request may take. No limit by default."""
    max_message_bytes: int
    """Size of the largest message that is accepted, bytes. No limit by default."""


_FLAGS = ("allow_python_udfs", "insecure")
_PEM_FILES = ("tls_cert", "tls_key", "tls_client_ca", "tls_ca")
_SECONDS = ("drain_timeout", "request_timeout")
_SIZES = ("memory_limit", "max_message_bytes")
_NAMES = (*_FLAGS, "init", "token", *_PEM_FILES, *_SECONDS, *_SIZES)


class Worker:
    """A worker in this process. It starts with `start()` or a `with` block and stops at the end of it.

    Examples:
        >>> worker = Worker()  # doctest: +SKIP
        >>> with worker:  # doctest: +SKIP
        ...     print(worker.url)
        http://127.0.0.1:40213

    Args:
        host: address to listen on. Anything but loopback needs a token or `tls_client_ca`, or `insecure=True`.
        port: port to listen on; 0 takes a free one.
        **options: see `WorkerOptions`.

    Raises:
        ValueError: a bad port, contradictory options, or a file that is missing.
        TypeError: an option of a wrong type, or an unknown one.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0, **options: Unpack[WorkerOptions]) -> None:
        """Check the options; nothing listens yet."""
        if not 0 <= port <= MAX_PORT:
            msg = f"port must be from 0 to {MAX_PORT}, got {port}"
            raise ValueError(msg)
        self._init = import_init(options["init"]) if options.get("init") is not None else None
        self._native = _native.Worker(host, port, options=json.dumps(check_worker_options(dict(options))))

    def start(self) -> Self:
        """Bind and serve in the background.

        Raises:
            OSError: the address is in use or cannot be bound.
            ValueError: others can reach the address and nothing protects it.
            RuntimeError: it runs already.
        """
        self._native.start(run_init(self._init))
        return self

    def stop(self, timeout: float = STOP_TIMEOUT_S) -> None:
        """Take no new tasks, let running ones finish, free the port. Stopping twice is fine.

        Args:
            timeout: seconds to wait for all that; `drain_timeout` says when the worker ends running tasks.
        """
        self._native.stop(timeout)

    def wait(self, timeout: float | None = None) -> bool:
        """Block until the worker has stopped; Ctrl-C interrupts the wait.

        Args:
            timeout: seconds, or None for no limit.

        Returns:
            False when the time ran out first.

        Raises:
            RuntimeError: it stopped because serving failed.
        """
        return self._native.wait(timeout)

    async def start_async(self) -> Self:
        """Do `start()` without blocking the event loop."""
        return await asyncio.to_thread(self.start)

    async def stop_async(self, timeout: float = STOP_TIMEOUT_S) -> None:
        """Do `stop()` without blocking the event loop."""
        await asyncio.to_thread(self._native.stop, timeout)

    async def wait_async(self) -> None:
        """Wait until the worker has stopped; cancelling this leaves the worker running."""
        while not await asyncio.to_thread(self._native.wait, WAIT_SLICE_S):
            pass

    @property
    def url(self) -> str:
        """URL for coordinators, with the port that was really bound.

        Raises:
            RuntimeError: it is not running.
        """
        return self._native.url

    @property
    def host(self) -> str:
        """Address it listens on."""
        return self._native.host

    @property
    def port(self) -> int:
        """Port it listens on; 0 before the start when a free one was asked for."""
        return self._native.port

    @property
    def running(self) -> bool:
        """Whether it serves at the moment."""
        return self._native.running

    def status(self) -> WorkerStatus:
        """Return the worker's own counters.

        Raises:
            RuntimeError: it is not running.
        """
        return parse_status(self.url, self._native.status())

    def __enter__(self) -> Self:
        """Start, unless it runs already."""
        return self if self.running else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; running tasks get their time to finish."""
        self.stop()

    async def __aenter__(self) -> Self:
        """Start without blocking the event loop."""
        return self if self.running else await self.start_async()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop without blocking the event loop."""
        await self.stop_async()

    def __repr__(self) -> str:
        """Return address and state."""
        return f"<Worker {self.url}>" if self.running else f"<Worker {self.host} stopped>"


def check_worker_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a worker as the engine takes them, without those that were not set.

    Raises:
        ValueError: contradictory options, or a file that is missing.
        TypeError: an option of a wrong type, or an unknown one.
    """
    checked: dict[str, Any] = {}
    for name, value in options.items():
        if name not in _NAMES:
            msg = f"unknown worker option {name!r}; known: {', '.join(_NAMES)}"
            raise TypeError(msg)
        if value is None or name == "init":
            continue
        if name in _FLAGS:
            checked[name] = flag(name, value)
        elif name in _PEM_FILES:
            checked[name] = read_pem(name, value)
        elif name in _SECONDS:
            checked[name] = seconds(name, value, zero=True)
        elif name in _SIZES:
            checked[name] = _size(name, value)
        else:
            checked[name] = check_token(value)
    if ("tls_cert" in checked) != ("tls_key" in checked):
        msg = "tls_cert and tls_key belong together: give both or none"
        raise ValueError(msg)
    if "tls_client_ca" in checked and "tls_cert" not in checked:
        msg = "tls_client_ca asks for client certificates, which needs TLS: give tls_cert and tls_key too"
        raise ValueError(msg)
    return checked


def _size(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        msg = f"{name} must be a whole number of bytes, got {type(value).__name__}"
        raise TypeError(msg)
    if value <= 0:
        msg = f"{name} must be a positive number of bytes, got {value}"
        raise ValueError(msg)
    return value


def import_init(name: str) -> Callable[..., Any]:
    """Return the function that `module:function` names.

    Raises:
        ValueError: the form is wrong, the module cannot be imported, or it has no such callable.
    """
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        msg = f"init must be MODULE:FUNCTION, got {name!r}"
        raise ValueError(msg)
    try:
        function = getattr(importlib.import_module(module_name), attribute, None)
    except ImportError as error:
        msg = f"init {name!r}: cannot import {module_name!r} here ({error})"
        raise ValueError(msg) from error
    if not callable(function):
        msg = f"init {name!r}: module {module_name!r} has no function {attribute!r}"
        raise ValueError(msg)  # noqa: TRY004 - the name is wrong, not a type
    return function  # type: ignore[no-any-return]
