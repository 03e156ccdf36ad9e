"""What the set-up function of a worker (`--init module:function`) may prepare for every task that runs there."""

from __future__ import annotations

import base64
import importlib
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from ._checks import option_string, store_options

__all__ = ["WorkerSetup", "run_init"]


class WorkerSetup:
    """The argument of a set-up function; what is registered here is there in every task of the worker.

    Tables need no registration: plans bring their scans along.

    Examples:
        >>> def prepare(setup: WorkerSetup) -> None:
        ...     setup.set("datafusion.execution.batch_size", "4096")
        ...     setup.register_object_store("s3://bucket", {"region": "eu-west-1", "skip_signature": "true"})
    """

    def __init__(self) -> None:
        """Start with nothing prepared."""
        self._settings: dict[str, str] = {}
        self._stores: dict[str, dict[str, str]] = {}
        self._functions: list[str] = []

    def register_udf(self, function: Any) -> None:
        """Register a Python function under its name, so that sessions may use it without sending code.

        Args:
            function: a `ScalarUDF`, `AggregateUDF` or `WindowUDF` of the package that this worker belongs to.

        Raises:
            TypeError: something else, or a function that was not written in Python.
        """
        package = importlib.import_module(type(function).__module__.partition(".")[0])
        kinds = tuple(getattr(package, name, ()) for name in ("ScalarUDF", "AggregateUDF", "WindowUDF"))
        if not isinstance(function, kinds):
            msg = f"register_udf takes a ScalarUDF, AggregateUDF or WindowUDF, got {type(function).__name__}"
            raise TypeError(msg)
        # The definition of a function is reached through a call of it; the argument is never looked at.
        call = function(package.lit(0))
        self._functions.append(base64.b64encode(call.to_bytes(package.SessionContext())).decode("ascii"))

    def register_object_store(self, url: str, options: Mapping[str, Any] | None = None) -> None:
        """Open an object store to every task.

        Args:
            url: root of the store, for example `s3://bucket`.
            options: as in `ClusterOptions.object_stores`. A session's own stores go before these.

        Raises:
            TypeError: a value of a wrong type.
        """
        self._stores.update(store_options({url: options or {}}))

    def set(self, key: str, value: object) -> None:
        """Set a session option of every task; what a session sends goes before it.

        Args:
            key: full key, for example `datafusion.execution.batch_size`.
            value: its value, a string, a number or a bool.

        Raises:
            TypeError: a value of another type.
        """
        self._settings[key] = option_string(f"option {key!r}", value)

    def to_json(self) -> str:
        """Return all that was prepared, as the engine reads it."""
        return json.dumps({"settings": self._settings, "object_stores": self._stores, "functions": self._functions})


def run_init(function: Callable[..., Any] | None) -> str:
    """Call a set-up function and return what it prepared, as the engine reads it.

    A function without parameters is called as it is: importing modules or setting variables needs no `WorkerSetup`.
    """
    setup = WorkerSetup()
    if function is not None:
        try:
            takes_setup = bool(inspect.signature(function).parameters)
        except ValueError:  # some builtins have no signature
            takes_setup = False
        function(setup) if takes_setup else function()
    return setup.to_json()
