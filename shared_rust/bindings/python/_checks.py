"""Checks of single values; each names the option, what it got and what it expects."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def check_token(value: object) -> str:
    """Return a bearer token.

    Raises:
        ValueError: it holds something that no HTTP header can.
        TypeError: not a string.
    """
    token = string("token", value)
    if not token or not all("!" <= character <= "~" for character in token):
        msg = "token must be one or more visible ASCII characters without spaces"
        raise ValueError(msg)
    return token


def read_pem(name: str, value: object) -> str:
    """Return the text of a PEM file: the engine takes the text, so that it does not matter who may read the file later.

    Raises:
        ValueError: the file is missing, cannot be read, or is no PEM file.
        TypeError: not a path.
    """
    if not isinstance(value, (str, os.PathLike)):
        msg = f"{name} must be a path of a PEM file, got {type(value).__name__}"
        raise TypeError(msg)
    path = os.fspath(value)
    try:
        text = Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{name}: cannot read {path!r} ({error.strerror if isinstance(error, OSError) else 'not a text file'})"
        raise ValueError(msg) from error
    if "-----BEGIN " not in text:
        msg = f"{name}: {path!r} is not a PEM file (it has no BEGIN line)"
        raise ValueError(msg)
    return text


def flag(name: str, value: object) -> bool:
    """Return a switch.

    Raises:
        TypeError: not a bool.
    """
    if not isinstance(value, bool):
        msg = f"{name} must be True or False, got {value!r}"
        raise TypeError(msg)
    return value


def string(name: str, value: object) -> str:
    """Return a string.

    Raises:
        TypeError: not a string.
    """
    if not isinstance(value, str):
        msg = f"{name} must be a string, got {type(value).__name__}"
        raise TypeError(msg)
    return value


def seconds(name: str, value: object, *, zero: bool = False) -> float:
    """Return a positive number of seconds, or zero where it has a meaning.

    Raises:
        ValueError: negative, infinite, no number, or zero where it has none.
        TypeError: of another type.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        msg = f"{name} must be a number of seconds, got {type(value).__name__}"
        raise TypeError(msg)
    if not (0 < value < float("inf") or (zero and value == 0)):
        msg = f"{name} must be {'zero or ' if zero else ''}a positive number of seconds, got {value}"
        raise ValueError(msg)
    return float(value)


def store_options(stores: object) -> dict[str, dict[str, str]]:
    """Return object stores as the engine reads them: options as strings, by the URL of the store.

    Raises:
        TypeError: not a mapping of URLs to mappings of options.
    """
    expected = "object_stores must map URLs to options, for example {'s3://bucket': {'region': 'eu-west-1'}}"
    if not isinstance(stores, Mapping):
        msg = f"{expected}, got {type(stores).__name__}"
        raise TypeError(msg)
    checked: dict[str, dict[str, str]] = {}
    for url, options in stores.items():
        if not isinstance(url, str) or not isinstance(options, Mapping):
            msg = f"{expected}, got {type(options).__name__} for {url!r}"
            raise TypeError(msg)
        checked[url] = {
            str(key): option_string(f"option {str(key)!r} of object store {url!r}", value)
            for key, value in options.items()
        }
    return checked


def option_string(what: str, value: object) -> str:
    """Return one option value as the engine parses it.

    Raises:
        TypeError: no string, number or bool; `what` names the option in the message.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    msg = f"{what} must be a string, a number or a bool, got {type(value).__name__}"
    raise TypeError(msg)
