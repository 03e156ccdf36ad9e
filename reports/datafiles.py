"""Read the report's data files (TOML) and the JSON files of a run directory, with one clear message if wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from harness.build.tomlfile import parse_toml
from harness.errors import HarnessFault, UserError

Record = TypeVar("Record", bound=BaseModel)


def read_toml(path: Path, title: str) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        UserError: the file cannot be read.
        HarnessFault: it is not TOML.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{title} {path}: cannot be read ({error})"
        raise UserError(msg) from error
    return parse_toml(text, f"{title} {path}")


def read_record(path: Path, record: type[Record], title: str) -> Record:
    """Read a TOML file into a model.

    Raises:
        UserError: the file cannot be read, or a key is missing, unknown or of the wrong kind.
        HarnessFault: it is not TOML.
    """
    data = read_toml(path, title)
    try:
        return record.model_validate(data)
    except ValidationError as error:
        problems = "; ".join(
            f"`{'.'.join(str(part) for part in entry['loc'])}`: {entry['msg']}" for entry in error.errors()[:5]
        )
        msg = f"{title} {path}: {problems}"
        raise UserError(msg) from error


def read_json(path: Path) -> Any:
    """Read a JSON file of a run directory; None when there is none.

    Raises:
        HarnessFault: the file is there and is not JSON.
    """
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        msg = f"{path}: not readable as JSON ({error}); restore it or run the step that writes it again"
        raise HarnessFault(msg) from error
