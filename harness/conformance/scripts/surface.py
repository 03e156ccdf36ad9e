"""The public surface of a package as data: names and signatures, by inspection. `python surface.py PACKAGE` prints it."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from typing import Any

CLASSES = (
    "SessionContext", "DataFrame", "Expr", "SessionConfig", "RuntimeEnvBuilder", "SQLOptions", "Catalog", "Table",
    "ScalarUDF", "AggregateUDF", "WindowUDF", "TableFunction", "Accumulator", "LogicalPlan", "ExecutionPlan",
    "RecordBatch", "RecordBatchStream", "WindowFrame", "DataFrameWriteOptions", "ParquetWriterOptions", "CsvReadOptions",
)  # fmt: skip


def surface(package: str) -> dict[str, str]:
    """Dotted name to signature (without the package's own name in it) of every public name."""
    module = importlib.import_module(package)
    found = {name: _signature(getattr(module, name), package) for name in _public(module)}
    for name in CLASSES:
        kind = getattr(module, name, None)
        for member in _public(kind) if kind is not None else ():
            found[f"{name}.{member}"] = _signature(inspect.getattr_static(kind, member), package)
    for name in getattr(module.functions, "__all__", ()):
        found[f"functions.{name}"] = _signature(getattr(module.functions, name), package)
    return found


def _public(thing: Any) -> list[str]:
    return sorted(name for name in dir(thing) if not name.startswith("_"))


def _signature(thing: Any, package: str) -> str:
    thing = getattr(thing, "__func__", thing)
    if isinstance(thing, property):
        return "property"
    if inspect.ismodule(thing):
        return "module"
    try:
        return str(inspect.signature(thing)).replace(f"{package}.", "").replace("datafusion.", "")
    except (TypeError, ValueError):
        return type(thing).__name__


if __name__ == "__main__":
    print(json.dumps(surface(sys.argv[1])))
