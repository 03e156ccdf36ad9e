"""The two query sets as data: text, statements, order of the answer, limit, and what must be dropped afterwards."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from harness.errors import UserError
from tpch.scale import check_scale_factor

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

QuerySet = Literal["spec", "upstream"]
"""`spec` is the text of the TPC-H specification with its validation parameters and limits; `upstream` is what the
engine's own benchmarks run. README.md lists where they differ."""

QUERY_SETS: tuple[QuerySet, ...] = get_args(QuerySet)

QUERY_COUNT = 22
QUERY_IDS: tuple[str, ...] = tuple(f"q{number:02d}" for number in range(1, QUERY_COUNT + 1))

Q11_FRACTION_AT_SF1 = Decimal("0.0001")
"""Clause 2.4.11.3: the fraction is 0.0001 / SF, so that the answer keeps its size when the data grows."""

_FOLDER = Path(__file__).parent / "queries"


@dataclass(frozen=True)
class OrderKey:
    """One key of the final ORDER BY: position of the output column (from 0) and direction."""

    column: int
    descending: bool


@dataclass(frozen=True)
class Query:
    """One query, ready to run.

    `statements` run in order and `statements[result_statement]` gives the answer, with `columns`, sorted by `order_by`
    and cut at `limit` (`None`: no LIMIT). `cleanup` may be run at any time, also when nothing is there to clean up,
    and must be run after a failure.
    """

    query_set: QuerySet
    id: str
    statements: tuple[str, ...]
    result_statement: int
    cleanup: tuple[str, ...]
    columns: tuple[str, ...]
    order_by: tuple[OrderKey, ...]
    limit: int | None

    @property
    def sql(self) -> str:
        """Text of the statement that gives the answer."""
        return self.statements[self.result_statement]

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of everything that decides the answer."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def load_query(query_set: str, query_id: str, sf: str) -> Query:
    """Return one query with the parameters of scale factor `sf`; raises `UserError` for an unknown set, id or `sf`."""
    factor = Decimal(check_scale_factor(sf))
    return _assemble(query_set, query_id, f"{Q11_FRACTION_AT_SF1 / factor:f}")


def query_set_hash(query_set: str) -> str:
    """SHA-256 (hex) over all 22 queries of a set, the same at every scale factor."""
    digest = hashlib.sha256()
    for query_id in QUERY_IDS:
        digest.update(_assemble(query_set, query_id, "{q11_fraction}").digest.encode())
    return digest.hexdigest()


def parse_query_selection(text: str) -> tuple[str, ...]:
    """Turn `1,6,18`, `1-5`, `q03` or `all` (or a mix with commas) into query ids, ascending, each once.

    Raises `UserError` that names the part that is not understood or does not exist.
    """
    chosen: set[int] = set()
    for part in (piece.strip().lower() for piece in text.split(",")):
        if part == "all":
            chosen.update(range(1, QUERY_COUNT + 1))
            continue
        match = re.fullmatch(r"q?([0-9]+)(?:\s*-\s*q?([0-9]+))?", part, flags=re.ASCII)
        if match is None:
            msg = f"cannot read {part!r} in the query selection {text!r}: expected for example 1,6,18 or 1-5 or all"
            raise UserError(msg)
        first, last = int(match[1]), int(match[2] or match[1])
        for number in (first, last):
            if not 1 <= number <= QUERY_COUNT:
                msg = f"unknown query {number} in {text!r}: expected numbers from 1 to {QUERY_COUNT}"
                raise UserError(msg)
        if first > last:
            msg = f"the range {part!r} in {text!r} runs backwards: expected {last}-{first}"
            raise UserError(msg)
        chosen.update(range(first, last + 1))
    return tuple(QUERY_IDS[number - 1] for number in sorted(chosen))


@cache
def _metadata() -> dict[str, Any]:
    content: dict[str, Any] = tomllib.loads((_FOLDER / "queries.toml").read_text(encoding="utf-8"))
    return content


@cache
def _assemble(query_set: str, query_id: str, q11_fraction: str) -> Query:
    if query_set not in QUERY_SETS:
        msg = f"unknown query set {query_set!r}: expected one of {', '.join(QUERY_SETS)}"
        raise UserError(msg)
    if query_id not in QUERY_IDS:
        msg = f"unknown query {query_id!r}: expected one of {QUERY_IDS[0]} to {QUERY_IDS[-1]}"
        raise UserError(msg)
    about, of_set = _metadata()["queries"][query_id], _metadata()["sets"][query_set]
    columns = tuple(about["columns"])
    return Query(
        query_set=query_set,
        id=query_id,
        statements=_statements(query_set, query_id, q11_fraction),
        result_statement=of_set.get("result_statement", {}).get(query_id, 0),
        cleanup=tuple(of_set.get("cleanup", {}).get(query_id, ())),
        columns=columns,
        order_by=tuple(_order_key(columns, key) for key in about["order_by"]),
        limit=of_set["limit"].get(query_id),
    )


def _statements(query_set: str, query_id: str, q11_fraction: str) -> tuple[str, ...]:
    path = _FOLDER / query_set / f"{query_id}.sql"
    if not path.is_file():  # a set holds only what differs from the set it is based on
        path = _FOLDER / _metadata()["sets"][query_set]["base"] / f"{query_id}.sql"
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("--")]
    text = "\n".join(lines).replace("{q11_fraction}", q11_fraction)
    return tuple(statement.strip() for statement in text.split(";") if statement.strip())


def _order_key(columns: tuple[str, ...], key: str) -> OrderKey:
    name, _, direction = key.partition(" ")
    return OrderKey(column=columns.index(name), descending=direction == "desc")
