"""Dump the public names of packages as JSON. Standard library only: it runs inside an arm's own interpreter.

    python -I reports/api_surface.py datafusion datafusion_decorator

`-I` matters: without it Python puts this folder first on the import path, where `html` and `packaging` are ours.

A name is public when no part of its path starts with an underscore. Two exceptions are listed as `protocol`: the
dunder methods by which libraries attach to each other (`__datafusion_*__`, `__arrow_c_*__`), since an engine that
uses them depends on them as on any other name. Members that a class inherits from outside the package (from
`Enum`, `Exception`, ...) are not the package's names. PyO3 members are method descriptors, which
`inspect.isfunction` does not see: everything callable is asked for its signature instead.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import json
import pkgutil
import re
import sys
from typing import Any

DUMP_VERSION = 1
"""Version of the dump. History: 1 = first published form."""

PROTOCOL = re.compile(r"^__(datafusion|arrow_c)_\w+__$")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def dump(packages: list[str]) -> dict[str, Any]:
    """All public names of `packages`; a package that cannot be imported carries the error instead of names."""
    return {
        "dump_version": DUMP_VERSION,
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "packages": {name: dump_package(name) for name in packages},
    }


def dump_package(package: str) -> dict[str, Any]:
    """Names of one package: `{"version", "error", "modules", "failed_modules", "names": {path: description}}`."""
    try:
        root = importlib.import_module(package)
    except Exception as error:  # noqa: BLE001 - whatever an extension module raises on import is the answer here
        failure = f"{type(error).__name__}: {error}"
        return {"version": None, "error": failure, "modules": [], "failed_modules": {}, "names": {}}
    found: dict[str, Any] = {}
    modules: list[str] = []
    failed: dict[str, str] = {}
    for path in _module_paths(root):
        try:
            module = importlib.import_module(path)
        except Exception as error:  # noqa: BLE001 - noqa: BLE001 - an optional submodule must not hide the others
            failed[path] = f"{type(error).__name__}: {error}"
            continue
        modules.append(path)
        found.update(_module_names(module, package))
    return {
        "version": _version(root, package),
        "error": None,
        "modules": modules,
        "failed_modules": failed,
        "names": dict(sorted(_described(found, package).items())),
    }


def _module_paths(root: Any) -> list[str]:
    """The package and its public submodules. `__main__` is a command, not an importable name."""
    found = pkgutil.walk_packages(getattr(root, "__path__", []), root.__name__ + ".", onerror=lambda _: None)
    public = (info.name for info in found if not any(part.startswith("_") for part in info.name.split(".")[1:]))
    return [root.__name__, *public]


def _version(root: Any, package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        version = getattr(root, "__version__", None)
        return str(version) if version is not None else None


def _module_names(module: Any, package: str) -> dict[str, Any]:
    """Objects by path: what `__all__` lists, or else what the module itself defines. An import is not a name."""
    exported = getattr(module, "__all__", None)
    result: dict[str, Any] = {}
    for name in dir(module):
        if name.startswith("_"):
            continue
        try:
            value = getattr(module, name)
        except Exception:  # noqa: BLE001, S112 - a lazy attribute that raises is not usable, so not a name
            continue
        listed = name in exported if exported is not None else _home(value, package) == module.__name__
        root_class = module.__name__ == package and inspect.isclass(value) and _belongs(value, package)
        if (listed or root_class) and not inspect.ismodule(value):
            result[f"{module.__name__}.{name}"] = value
    return result


def _described(found: dict[str, Any], package: str) -> dict[str, Any]:
    """Describe each object once, under its shortest path; its other paths are aliases, so that nothing counts twice."""
    canonical: dict[int, str] = {}
    for path in sorted(found, key=lambda text: (text.count("."), text)):
        if inspect.isclass(found[path]) or inspect.isroutine(found[path]):
            canonical.setdefault(id(found[path]), path)
    result: dict[str, Any] = {}
    listed = {value for value in found.values() if inspect.isclass(value) and _belongs(value, package)}
    for path, value in found.items():
        first = canonical.get(id(value), path)
        if first != path:
            result[path] = {"kind": "alias", "of": first, "parameters": None, "doc": bool(inspect.getdoc(value))}
            continue
        result[path] = describe(value)
        if inspect.isclass(value) and _belongs(value, package):
            result.update(_class_members(value, path, package, listed))
    return result


def _belongs(value: Any, package: str) -> bool:
    """Whether the object is the package's own."""
    home = _home(value, package)
    return home is not None and (home == package or home.startswith(package + "."))


def _home(value: Any, package: str) -> str | None:
    """Module that the object is from.

    A native class says what it was compiled with, so in a compiled copy of `datafusion` it says `datafusion.expr`. That
    claim is false when `datafusion.expr`, if there is one, holds another object or none: then it is the package's own.
    """
    claimed = getattr(value, "__module__", None)
    if not isinstance(claimed, str) or claimed == package or claimed.startswith(package + "."):
        return claimed if isinstance(claimed, str) else None
    if not inspect.isclass(value):
        return claimed
    found = getattr(sys.modules.get(claimed), value.__name__, None)
    if found is value or claimed in sys.stdlib_module_names:
        return claimed
    return package + claimed[len(claimed.split(".")[0]) :]


def _class_members(cls: type, path: str, package: str, listed: set[type]) -> dict[str, Any]:
    """Members by path. What a class inherits from another listed class stands there already."""
    bases = [base for base in cls.__mro__ if base is cls or (base not in listed and _belongs(base, package))]
    own = {name for base in bases for name in vars(base)}
    result: dict[str, Any] = {}
    for name in sorted(own):
        if PROTOCOL.match(name):
            result[f"{path}.{name}"] = {**describe(inspect.getattr_static(cls, name)), "protocol": True}
        elif not name.startswith("_"):
            result[f"{path}.{name}"] = describe(inspect.getattr_static(cls, name))
    constructor = _signature(cls)
    if constructor is not None:
        result[f"{path}.__init__"] = {"kind": "constructor", "parameters": constructor, "doc": bool(cls.__doc__)}
    return result


def describe(value: Any) -> dict[str, Any]:
    """Kind, parameters (null: unknown or not callable) and whether there is a docstring."""
    plain = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
    return {
        "kind": _kind(value),
        "parameters": None if inspect.isclass(plain) else _signature(plain),
        "doc": bool(inspect.getdoc(plain)),
    }


def _kind(value: Any) -> str:
    if inspect.isclass(value):
        return "class"
    if isinstance(value, property) or inspect.isgetsetdescriptor(value) or inspect.ismemberdescriptor(value):
        return "property"
    if isinstance(value, (staticmethod, classmethod)):
        return type(value).__name__
    if callable(value):
        return "callable"
    return "value"


def _signature(value: Any) -> list[dict[str, Any]] | None:
    """Parameters by `inspect.signature`, which reads the text signature of native callables too."""
    if not callable(value):
        return None
    try:
        signature = inspect.signature(value)
    except (ValueError, TypeError):
        return None
    return [
        {
            "name": parameter.name,
            "kind": parameter.kind.name.lower(),
            "default": None if parameter.default is parameter.empty else _text(parameter.default),
            "annotation": None if parameter.annotation is parameter.empty else _annotation(parameter.annotation),
        }
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "cls", "$self", "$cls")
    ]


def _annotation(value: Any) -> str:
    return value if isinstance(value, str) else inspect.formatannotation(value)


def _text(value: Any) -> str:
    """`repr` without memory addresses, which differ from run to run."""
    return _ADDRESS.sub("", repr(value))


def main(arguments: list[str]) -> int:
    """Print the dump of the packages named in `arguments`; 2 when none is named."""
    if not arguments:
        sys.stderr.write("usage: python -I api_surface.py PACKAGE [PACKAGE ...]\n")
        return 2
    json.dump(dump(arguments), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
