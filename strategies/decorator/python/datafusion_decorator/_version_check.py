"""Refuse a stock `datafusion` of another major version before anything crosses the boundary between the libraries.

The layout of what crosses changes with each major version of DataFusion.
"""

from __future__ import annotations

import importlib.metadata

ENGINE_MAJOR = 55
"""Major version of DataFusion that this package's engine was compiled with."""

HINT = f"install a matching pair with: pip install 'datafusion=={ENGINE_MAJOR}.*'"


def check_datafusion() -> str:
    """Return the version of the installed `datafusion` package.

    Raises:
        ImportError: it is not installed, or of another major version than this package's engine.
    """
    try:
        version = importlib.metadata.version("datafusion")
    except importlib.metadata.PackageNotFoundError:
        msg = f"datafusion_decorator works beside the package `datafusion`, which is not installed; {HINT}"
        raise ImportError(msg, name="datafusion") from None
    check_major(version)
    return version


def check_major(version: str) -> None:
    """Check a version of the stock package.

    Raises:
        ImportError: another major version than this package's engine; the message names both.
    """
    major = version.partition(".")[0]
    if major != str(ENGINE_MAJOR):
        msg = f"datafusion_decorator is built for datafusion {ENGINE_MAJOR}.x, but {version} is installed; {HINT}"
        raise ImportError(msg, name="datafusion")
