"""Found cases as data files: TOML that a person can read, and that tests run again on every arm."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from harness.errors import UserError
from harness.fuzz.kinds import Kind
from harness.fuzz.model import Case, Finding
from harness.fuzz.options import Options
from harness.fuzz.tables import Column, DataTable
from harness.model import Frozen
from harness.validate import SortKey

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover - the oldest supported Python
    import tomli as tomllib

CORPUS = Path(__file__).parent / "corpus"

CORPUS_SCHEMA = 1
"""Version of the files. History: 1 = first published form."""

SHOWN_ROWS = 12
"""Rows of an answer that a file quotes: for people; a rerun compares with one node, not with this text."""


class CorpusCase(Frozen):
    """One file of the corpus."""

    schema_version: int = Field(default=CORPUS_SCHEMA, alias="schema")
    kind: str = Field(description="Kind of fault in a few words; one kind may have several files")
    found: str = Field(description="Arm, seed and reason")
    arms: list[str] = Field(description="Arms expected to fail, strictly; all others must be right")
    expected: str
    seen: str
    repetitions: int = Field(default=1, ge=1, description="Runs of a rerun, for what shows now and then")
    order_by: list[str] = Field(default_factory=list, description="Keys of the answer: `0 ASC NULLS LAST`")
    case: Case

    @property
    def sort_keys(self) -> tuple[SortKey, ...]:
        """The keys that the answer must be sorted by."""
        keys = []
        for text in self.order_by:
            place, direction, _, nulls = text.split()
            keys.append(SortKey(column=int(place), descending=direction == "DESC", nulls_first=nulls == "FIRST"))
        return tuple(keys)

    @property
    def slug(self) -> str:
        """The kind as a file name."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.kind.lower()).strip("-")[:60]


def load_corpus(folder: Path = CORPUS) -> dict[str, CorpusCase]:
    """All cases by file stem.

    Raises:
        UserError: a file is not a case.
    """
    return {path.stem: load_case(path) for path in sorted(folder.glob("*.toml"))}


def load_case(path: Path) -> CorpusCase:
    """Read one file.

    Raises:
        UserError: it is missing, is not TOML or is not a case; the message says which key.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        tables = tuple(_table(name, table) for name, table in data.pop("tables").items())
        options = Options(**data.pop("options"))
        return CorpusCase(case=Case(sql=data.pop("sql"), tables=tables, options=options), **data)
    except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
        msg = f"corpus file {path}: {error}. Compare it with another file there, or remove it."
        raise UserError(msg) from error


def _table(name: str, table: dict[str, Any]) -> DataTable:
    named = [text.partition(":") for text in table["columns"]]
    return DataTable(
        name=name,
        layout=table.get("layout", "plain"),
        columns=tuple(Column(name=column, kind=Kind(kind)) for column, _, kind in named),
        files=tuple(json.loads(text) for text in table["files"]),
    )


def write_case(case: CorpusCase, path: Path) -> None:
    """Write one file; `load_case` gives an equal case back."""
    head: dict[str, Any] = case.model_dump(by_alias=True, exclude={"case"})
    lines = [
        "# A generated query that an arm answered wrongly, as small as it got. Rerun by the tests on every arm.",
        "",
    ]
    lines += [f"{key} = {_toml(value)}" for key, value in head.items()]
    lines += [f"sql = {_toml(case.case.sql)}", "", "[options]", f"workers = {case.case.options.workers}"]
    for section in ("session", "distributed"):
        values: dict[str, str] = getattr(case.case.options, section)
        lines += ["", f"[options.{section}]"] + [
            f"{json.dumps(key)} = {json.dumps(value)}" for key, value in sorted(values.items())
        ]
    for table in case.case.tables:
        lines += ["", f"[tables.{table.name}]", f'layout = "{table.layout}"']
        lines.append(f"columns = {_toml([f'{column.name}:{column.kind.value}' for column in table.columns])}")
        lines += ["files = [", *(f"    '''{json.dumps(file, ensure_ascii=False)}'''," for file in table.files), "]"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def corpus_case(
    finding: Finding, kind: str, expected: str, seen: str, arms: list[str], order_by: list[str] | None = None
) -> CorpusCase:
    """The file for a finding."""
    rate = 1.0 if finding.rate is None else finding.rate
    return CorpusCase(
        kind=kind,
        found=f"{finding.arm}, seed {finding.seed}: {finding.reason}"[:400],
        arms=arms,
        expected=expected,
        seen=seen,
        # Enough runs to see a fault of this rate with 95 % probability, within reason.
        repetitions=1 if rate > 0.95 else min(30, round(3 / max(rate, 0.1))),
        order_by=order_by or [],
        case=finding.case,
    )


def show_rows(rows: list[dict[str, Any]]) -> str:
    """An answer as text: one row a line."""
    lines = [", ".join(str(value) for value in row.values()) for row in rows[:SHOWN_ROWS]]
    more = [f"... {len(rows) - SHOWN_ROWS} more"] if len(rows) > SHOWN_ROWS else []
    return "\n".join([f"{len(rows)} rows", *lines, *more])


def _toml(value: Any) -> str:
    """A value as TOML: a JSON string or list is one too, as far as these files go."""
    if isinstance(value, str) and "\n" in value and "'''" not in value:
        return f"'''\n{value}'''"
    return json.dumps(value, ensure_ascii=False)
