"""Read TOML on every supported Python: the standard library has a parser from 3.11 on only."""

from __future__ import annotations

import sys
from typing import Any

from harness.errors import HarnessFault

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Return the parsed document.

    Raises:
        HarnessFault: not valid TOML; the message names `name` and the place.
    """
    try:
        document: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        msg = f"{name} is not valid TOML: {error}"
        raise HarnessFault(msg) from error
    return document
