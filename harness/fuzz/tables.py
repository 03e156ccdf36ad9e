"""Small random tables: NULLs, skew, empty files, several files per table, sorted and partitioned layouts."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from harness.fuzz.kinds import COLUMN_KINDS, Kind
from harness.model import Frozen

NULL_SHARE = 0.15
"""Share of NULLs in a column that has any: enough that every join and group meets some, few enough to leave matches."""

MAX_ROWS = 40
"""Rows of a table. A cross join of two stays below 2000 rows, so that queries take milliseconds."""

WORDS = (
    "",
    "a",
    "b",
    "ab",
    "Apple",
    "apple pie",
    "Bär",
    "zoo",
    "%",
    "x_y",
    "  pad ",
    "42",
    "2024-02-28",
    "1",
    "2",
    "2024-03-01",
)
"""Texts that tables draw from: few, so that keys repeat; with case, blanks, wildcards, accents and numbers."""

EPOCH = dt.datetime(2024, 2, 27, 21, 30)  # noqa: DTZ001 - a plain timestamp is what this column holds

ARROW: dict[Kind, pa.DataType] = {
    Kind.INT: pa.int64(),
    Kind.SMALL: pa.int32(),
    Kind.FLOAT: pa.float64(),
    Kind.DECIMAL: pa.decimal128(12, 2),
    Kind.TEXT: pa.string(),
    Kind.BOOL: pa.bool_(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.timestamp("us"),
    Kind.INSTANT: pa.timestamp("us", tz="UTC"),
    Kind.LIST: pa.list_(pa.int64()),
    Kind.RECORD: pa.struct([("x", pa.int64()), ("y", pa.string())]),
}

Layout = Literal["plain", "sorted", "partitioned", "csv", "json"]
Value = Any
"""A cell in its JSON form: ISO text for dates and times, text for decimals, `"NaN"` for what JSON cannot say."""


class Column(Frozen):
    """A column of a generated table."""

    name: str
    kind: Kind


class DataTable(Frozen):
    """A table as data. Rows per file; the first column is `id`, unique and not NULL."""

    name: str
    columns: tuple[Column, ...]
    files: tuple[tuple[tuple[Value, ...], ...], ...]
    layout: Layout = "plain"
    """`sorted`: files sorted by `id` and declared so. `partitioned`: a folder per file, with the text column `part`.
    `csv` and `json`: files of that format."""

    @property
    def visible(self) -> tuple[Column, ...]:
        """Columns that queries see."""
        extra = (Column(name="part", kind=Kind.TEXT),) if self.layout == "partitioned" else ()
        return self.columns + extra

    @property
    def rows(self) -> int:
        """Rows in all files together."""
        return sum(len(file) for file in self.files)


SQL_TYPES = {Kind.INT: "BIGINT", Kind.FLOAT: "DOUBLE", Kind.TEXT: "VARCHAR"}

TEXT_LAYOUT_KINDS = tuple(SQL_TYPES)
"""Kinds that CSV and JSON files can hold as themselves."""


def make_tables(rng: random.Random, count: int) -> list[DataTable]:
    """`count` random tables named `t0`, `t1`, ..."""
    return [_make_table(rng, f"t{index}") for index in range(count)]


def _make_table(rng: random.Random, name: str) -> DataTable:
    layout: Layout = rng.choices(("plain", "sorted", "partitioned", "csv", "json"), (70, 12, 10, 4, 4))[0]
    kinds = TEXT_LAYOUT_KINDS if layout in ("csv", "json") else COLUMN_KINDS
    columns = [Column(name="id", kind=Kind.INT), Column(name="k", kind=Kind.INT), Column(name="s", kind=Kind.TEXT)]
    columns += [Column(name=f"a{index}", kind=rng.choice(kinds)) for index in range(rng.randint(2, 6))]
    rows = rng.choices((0, rng.randint(1, 4), rng.randint(5, MAX_ROWS)), (3, 10, 87))[0]
    makers = [_maker(rng, column, layout) for column in columns]
    table = [[index, *(make() for make in makers[1:])] for index in range(rows)]
    if rng.random() < 0.5:
        rng.shuffle(table)
    return DataTable(name=name, columns=tuple(columns), files=_split(rng, table, layout), layout=layout)


def _split(rng: random.Random, rows: list[list[Value]], layout: Layout) -> tuple[tuple[tuple[Value, ...], ...], ...]:
    """Rows over files: evenly, by chance, or nearly all in one; with empty files now and then."""
    count = rng.randint(1, 5)
    weights = [rng.choice((1, 1, 1, 8)) for _ in range(count)]
    files: list[list[list[Value]]] = [[] for _ in range(count)]
    for row in rows:
        files[rng.choices(range(count), weights)[0]].append(row)
    if rng.random() < 0.15:
        files.append([])
    if layout == "sorted":
        files = [sorted(file) for file in files]
    return tuple(tuple(tuple(row) for row in file) for file in files)


def _maker(rng: random.Random, column: Column, layout: Layout) -> Any:
    """A function that makes values of one column, with its own share of NULLs and its own spread of keys."""
    nulls = NULL_SHARE if rng.random() < 0.7 and layout not in ("csv", "json") else 0.0
    spread = rng.choice((1, 2, 5, 12, 30))
    skewed = rng.random() < 0.3

    def make() -> Value:
        if rng.random() < nulls:
            return None
        step = 0 if skewed and rng.random() < 0.7 else rng.randint(0, spread)
        return _value(rng, column.kind, step)

    return make


def _value(rng: random.Random, kind: Kind, step: int) -> Value:
    if kind is Kind.INT:
        return step if rng.random() < 0.9 else -step
    if kind is Kind.SMALL:
        return step - 3
    if kind is Kind.FLOAT:
        return step * 0.25 - 1
    if kind is Kind.DECIMAL:
        return str(Decimal(step * 35 - 50) / 100)
    if kind is Kind.TEXT:
        return WORDS[step % len(WORDS)]
    if kind is Kind.BOOL:
        return step % 2 == 0
    if kind is Kind.DATE:
        return (EPOCH.date() + dt.timedelta(days=step)).isoformat()
    if kind in (Kind.TIME, Kind.INSTANT):
        return (EPOCH + dt.timedelta(minutes=97 * step, microseconds=step)).isoformat()
    if kind is Kind.LIST:
        return [rng.choice((None, step, step + 1)) if index else step for index in range(step % 4)]
    return {"x": step, "y": WORDS[step % len(WORDS)]} if step % 3 else {"x": None, "y": WORDS[step % len(WORDS)]}


def arrow_value(kind: Kind, value: Value) -> Any:
    """The Python value that pyarrow takes, from a cell in its JSON form."""
    if value is None:
        return None
    if kind is Kind.DECIMAL:
        return Decimal(value)
    if kind is Kind.DATE:
        return dt.date.fromisoformat(value)
    if kind is Kind.TIME:
        return dt.datetime.fromisoformat(value)
    if kind is Kind.INSTANT:
        return dt.datetime.fromisoformat(value).replace(tzinfo=dt.timezone.utc)
    if kind is Kind.FLOAT:
        return float(value) if not isinstance(value, str) else math.nan
    return value


def write_table(table: DataTable, folder: Path) -> None:
    """Write the files of a table below `folder`, which is made."""
    folder.mkdir(parents=True)
    for number, rows in enumerate(table.files):
        data = _arrow_file(table, rows)
        if table.layout == "partitioned":
            inner = folder / f"part={chr(ord('a') + number % 3)}"
            inner.mkdir(exist_ok=True)
            pq.write_table(data, inner / f"{number}.parquet")
        elif table.layout == "csv":
            pyarrow.csv.write_csv(data, folder / f"{number}.csv")
        elif table.layout == "json":
            names = [column.name for column in table.columns]
            lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
            (folder / f"{number}.json").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        else:
            pq.write_table(data, folder / f"{number}.parquet", row_group_size=16)


def _arrow_file(table: DataTable, rows: tuple[tuple[Value, ...], ...]) -> pa.Table:
    arrays = {
        column.name: pa.array([arrow_value(column.kind, row[place]) for row in rows], type=ARROW[column.kind])
        for place, column in enumerate(table.columns)
    }
    return pa.table(arrays)


def registration(table: DataTable, folder: Path) -> str | None:
    """The statement that registers a table which is more than a plain folder of Parquet files."""
    if table.layout == "plain":
        return None
    stored = {"csv": "CSV", "json": "JSON"}.get(table.layout, "PARQUET")
    extra = {"sorted": "WITH ORDER (id ASC NULLS LAST) ", "partitioned": "PARTITIONED BY (part) "}.get(table.layout, "")
    options = " OPTIONS ('format.has_header' 'true')" if table.layout == "csv" else ""
    columns = ""
    if stored != "PARQUET":
        # Types that were guessed from a handful of rows would differ from file to file.
        columns = " (" + ", ".join(f"{column.name} {SQL_TYPES[column.kind]}" for column in table.columns) + ")"
    return f"CREATE EXTERNAL TABLE {table.name}{columns} STORED AS {stored} {extra}LOCATION '{folder}/'{options}"
