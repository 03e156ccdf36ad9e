"""The JSON Schema of a run directory, published under `harness/schema`: `python -m harness.run_schema` writes it.

Older versions stay beside the newest: a stored run is checked against the schema of its own version.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from harness.model import SCHEMA_VERSION, Sample
from harness.provenance import Manifest
from harness.schedule import Schedule

FOLDER = Path(__file__).parent / "schema"

PARTS: dict[str, type[BaseModel]] = {"manifest": Manifest, "sample": Sample, "schedule": Schedule}
"""Name of each part and its model: `manifest.json`, one line of `samples.jsonl`, `schedule.json`."""


def schema_file(part: str, version: int = SCHEMA_VERSION) -> Path:
    """Where the schema of a part lies."""
    return FOLDER / f"{part}-v{version}.json"


def json_schema(part: str) -> str:
    """The schema of a part in this version, as it is committed."""
    schema: dict[str, Any] = PARTS[part].model_json_schema(mode="serialization")
    schema["$id"] = schema_file(part).name
    schema["title"] = f"datafusion-strategies {part}"
    return json.dumps(schema, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main() -> None:
    """Write the schemas of this version; those of older versions stay."""
    FOLDER.mkdir(exist_ok=True)
    for part in PARTS:
        schema_file(part).write_text(json_schema(part), encoding="utf-8")


if __name__ == "__main__":
    main()
