"""Write the JSON Schema of the report: `python -m reports.write_schema`."""

from __future__ import annotations

from reports.model import SCHEMA_FILE, json_schema


def main() -> None:
    """Write the schema beside the older versions, which stay."""
    SCHEMA_FILE.parent.mkdir(exist_ok=True)
    SCHEMA_FILE.write_text(json_schema(), encoding="utf-8")


if __name__ == "__main__":
    main()
