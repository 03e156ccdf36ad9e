"""Clear errors when objects of the stock `datafusion` package are passed to this one.

The two packages hold two copies of the same classes. Where upstream offers a capsule (tables, functions of compiled
libraries) objects cross between them; everything else fails in the compiled code with messages such as
"'Expr' object is not an instance of 'Expr'". The public functions are wrapped: a call that succeeds is not touched, one
that fails with an object of the stock package among its arguments says so.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import Any

STOCK = "datafusion"
HERE = __name__.partition(".")[0]

GUARDED_CLASSES = {
    "context": ("SessionContext", "SessionConfig", "RuntimeEnvBuilder"),
    "dataframe": ("DataFrame",),
    "expr": ("Expr", "CaseBuilder", "SortExpr", "WindowFrame"),
    "catalog": ("Catalog", "CatalogList", "Schema", "Table"),
    "user_defined": ("ScalarUDF", "AggregateUDF", "WindowUDF"),
    "plan": ("LogicalPlan", "ExecutionPlan"),
}
GUARDED_MODULES = ("functions", "functions.spark")

REMEDIES = {
    "Expr": f"build it with col, lit and functions of `{HERE}`",
    "DataFrame": "pass its rows on as Arrow, for example ctx.from_arrow(frame)",
    "Table": f"register its source with the context of `{HERE}`",
}

_FAILURES = (TypeError, AttributeError, ValueError)
"""What the layer raises when it is given an object that it does not know."""


def is_stock(value: object) -> bool:
    """Return whether a value is an instance of a class of the stock package, Python or native."""
    kind = type(value)
    if kind.__module__.partition(".")[0] != STOCK:
        return False
    # Native classes of both packages call themselves `datafusion`, so the name alone proves nothing.
    if getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind:
        return True
    native = sys.modules.get(f"{STOCK}._internal")
    return native is not None and any(
        getattr(module, kind.__name__, None) is kind for module in (native, *_submodules(native))
    )


def _submodules(module: ModuleType) -> list[ModuleType]:
    return [member for member in vars(module).values() if isinstance(member, ModuleType)]


def stock_argument(args: Iterable[Any], kwargs: dict[str, Any]) -> object | None:
    """Return the first argument that comes from the stock package; looks into lists and tuples."""
    for value in (*args, *kwargs.values()):
        if is_stock(value):
            return value  # type: ignore[no-any-return]
        if isinstance(value, (list, tuple)):
            found = stock_argument(value, {})
            if found is not None:
                return found
    return None


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that reports objects of the stock package as what they are."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except _FAILURES as error:
            foreign = stock_argument(args, kwargs)
            if foreign is None:
                raise
            raise TypeError(foreign_message(function.__qualname__, foreign)) from error

    return call


def foreign_message(where: str, foreign: object) -> str:
    """Return the message for an object of the stock package."""
    kind = type(foreign)
    remedy = REMEDIES.get(kind.__name__, f"make it with `{HERE}`")
    return (
        f"{where}: got a {kind.__module__}.{kind.__qualname__} of the stock `{STOCK}` package, which is another copy "
        f"of the library: {remedy}"
    )


def install() -> None:
    """Wrap the public functions and methods of this package's copy of the Python layer."""
    for module_name, class_names in GUARDED_CLASSES.items():
        module = sys.modules[f"{HERE}.{module_name}"]
        for class_name in class_names:
            _guard_class(getattr(module, class_name))
    for module_name in GUARDED_MODULES:
        _guard_module(sys.modules[f"{HERE}.{module_name}"])


def _guard_class(kind: type) -> None:
    for name, member in list(vars(kind).items()):
        # Plain methods and operators only: static methods and properties take no foreign objects worth naming.
        if isinstance(member, FunctionType) and (not name.startswith("_") or _is_operator(name)):
            setattr(kind, name, guarded(member))


def _is_operator(name: str) -> bool:
    return name.startswith("__") and name not in ("__new__", "__repr__", "__getattr__", "__hash__")


def _guard_module(module: ModuleType) -> None:
    for name in getattr(module, "__all__", ()):
        member = getattr(module, name)
        if isinstance(member, FunctionType):
            setattr(module, name, guarded(member))
