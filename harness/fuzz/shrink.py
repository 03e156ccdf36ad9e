"""Reduces a failing case: structure first (whole subqueries, joins, clauses, columns), then files, rows and settings.

Greedy: the first smaller case that still fails the same way is taken, and the search starts over from it. Candidates
that are no valid query any more simply do not fail the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from harness.fuzz.grammar import LITERALS
from harness.fuzz.kinds import Kind
from harness.fuzz.tables import DataTable
from harness.fuzz.tree import Derived, Expr, Join, Order, Query, Select, SetOperation, Source, With

T = TypeVar("T")

MAX_ATTEMPTS = 600
"""Cases tried per shrink: half a minute at twenty a second, far beyond what most need."""


def shrink(
    start: T, candidates: Callable[[T], Iterator[T]], fails: Callable[[T], bool], budget: int = MAX_ATTEMPTS
) -> tuple[T, int]:
    """The smallest case found, and the budget that is left."""
    current = start
    progress = True
    while progress and budget > 0:
        progress = False
        for candidate in candidates(current):
            if budget <= 0:
                break
            budget -= 1
            if fails(candidate):
                current, progress = candidate, True
                break
    return current, budget


def smaller_queries(query: Query) -> Iterator[Query]:
    """Queries that are one step smaller, the largest steps first."""
    seen = {query.sql()}
    for candidate in _smaller(query):
        text = candidate.sql()
        if text not in seen and len(text) <= len(query.sql()) + _ROOM:
            seen.add(text)
            yield candidate


_ROOM = 12
"""Characters that a step may add: a typed literal can be longer than the column that it replaces."""


def _smaller(node: Any) -> Iterator[Any]:
    """Every one-step reduction of a node: of itself first, then of what is inside.

    What a sort key or an OVER clause is made of stays as it is: without a total order the answer is anybody's.
    """
    yield from _here(node)
    if isinstance(node, Order) or (isinstance(node, Expr) and " OVER (" in node.template):
        return
    for name, value in ((field.name, getattr(node, field.name)) for field in fields(node)):
        if is_dataclass(value):
            for inner in _smaller(value):
                yield replace(node, **{name: inner})
        elif isinstance(value, tuple):
            for place, entry in enumerate(value):
                yield from _inside(node, name, value, place, entry)


def _inside(node: Any, name: str, value: tuple[Any, ...], place: int, entry: Any) -> Iterator[Any]:
    if is_dataclass(entry):
        for inner in _smaller(entry):
            yield replace(node, **{name: (*value[:place], inner, *value[place + 1 :])})
    elif isinstance(node, With) and isinstance(entry, tuple):
        for inner in _smaller(entry[1]):
            yield replace(node, tables=(*node.tables[:place], (entry[0], inner), *node.tables[place + 1 :]))


def _here(node: Any) -> Iterator[Any]:
    if isinstance(node, Select):
        yield from _select(node)
    elif isinstance(node, SetOperation):
        yield from (node.left, node.right)
        yield from _without_tail(node)
    elif isinstance(node, With):
        yield node.body
        yield from (query for _, query in node.tables)
        for place in range(len(node.tables)):
            if len(node.tables) > 1:
                yield replace(node, tables=node.tables[:place] + node.tables[place + 1 :])
    elif isinstance(node, Join):
        yield from _join(node)
    elif isinstance(node, Derived) and isinstance(node.query, Select):
        inner = node.query.source
        if inner is not None and not isinstance(inner, Join):
            yield replace(inner, alias=node.alias)
    elif isinstance(node, Expr):
        yield from _expr(node)


def _select(node: Select) -> Iterator[Query]:
    if isinstance(node.source, Derived):
        yield node.source.query
    limited = node.limit is not None or node.offset is not None
    if limited or node.order:
        yield replace(node, limit=None, offset=None) if limited else replace(node, order=())
    plainer = (
        replace(node, where=None), replace(node, having=None), replace(node, offset=None), replace(node, distinct=False)
    )  # fmt: skip
    yield from (candidate for candidate in plainer if candidate != node)
    yield from _fewer_groups(node)
    for place in range(len(node.order)):
        if not limited:
            yield replace(node, order=node.order[:place] + node.order[place + 1 :])
    for place, item in enumerate(node.items):
        order = tuple(key for key in node.order if key.expr.template != item.name)
        if len(node.items) > 1 and (order == node.order or not limited):
            yield replace(node, items=node.items[:place] + node.items[place + 1 :], order=order)


def _fewer_groups(node: Select) -> Iterator[Query]:
    if node.grouping:
        yield replace(node, grouping="", sets=())
    for place, group in enumerate(node.groups):
        items = tuple(item for item in node.items if item.expr != group)
        if items and not node.sets:
            yield replace(node, groups=node.groups[:place] + node.groups[place + 1 :], items=items)
    for place in range(len(node.sets)):
        if len(node.sets) > 1:
            yield replace(node, sets=node.sets[:place] + node.sets[place + 1 :])


def _without_tail(node: SetOperation) -> Iterator[Query]:
    if node.order or node.limit is not None:
        yield replace(node, order=(), limit=None, offset=None)
    yield from _pairwise(node)


def _pairwise(node: SetOperation) -> Iterator[Query]:
    """Drops the same column on both sides, which no step on one side could do."""
    left, right = node.left, node.right
    if (
        isinstance(left, Select)
        and isinstance(right, Select)
        and not node.order
        and len(left.items) == len(right.items) > 1
    ):
        for place in range(len(left.items)):
            cut = [replace(side, items=side.items[:place] + side.items[place + 1 :]) for side in (left, right)]
            yield replace(node, left=cut[0], right=cut[1])


def _join(node: Join) -> Iterator[Source]:
    yield from (node.left, node.right)
    if node.kind not in ("INNER", "CROSS"):
        yield replace(node, kind="INNER")
    if node.using:
        return
    if node.on is not None and node.on.sql() != "TRUE":
        yield replace(node, on=Expr(Kind.BOOL, "TRUE"))


def _expr(node: Expr) -> Iterator[Any]:
    for arg in node.args:
        if isinstance(arg, Expr) and arg.kind is node.kind:
            yield arg
    literal = LITERALS[node.kind][1 if node.kind is Kind.INT else 0]
    if node.args or (node.template not in LITERALS[node.kind] and "(" not in node.template):
        yield Expr(node.kind, literal)


def smaller_tables(tables: tuple[DataTable, ...], sql: str) -> Iterator[tuple[DataTable, ...]]:
    """Data that is one step smaller: fewer tables, files, rows and columns, a plainer layout, plainer values."""
    for place, table in enumerate(tables):
        rest = (tables[:place], tables[place + 1 :])
        if f"{table.name} AS " not in sql:
            yield rest[0] + rest[1]
            continue
        for smaller in _smaller_table(table, sql):
            yield (*rest[0], smaller, *rest[1])


def _smaller_table(table: DataTable, sql: str) -> Iterator[DataTable]:
    if table.layout != "plain":
        yield table.model_copy(update={"layout": "plain"})
    files = table.files
    for place in range(len(files)):
        if len(files) > 1:
            yield table.model_copy(update={"files": files[:place] + files[place + 1 :]})
    for place, column in enumerate(table.columns):
        if place and f".{column.name}" not in sql:
            cut = tuple(tuple(row[:place] + row[place + 1 :] for row in file) for file in files)
            yield table.model_copy(update={"columns": table.columns[:place] + table.columns[place + 1 :], "files": cut})
    for place, file in enumerate(files):
        size = len(file) // 2
        while size >= 1:
            for begin in range(0, len(file), size):
                kept = file[:begin] + file[begin + size :]
                yield table.model_copy(update={"files": (*files[:place], kept, *files[place + 1 :])})
            size //= 2


def smaller_settings(settings: dict[str, str], keep: frozenset[str] = frozenset()) -> Iterator[dict[str, str]]:
    """Settings without half of them, then without each one."""
    keys = [key for key in settings if key not in keep]
    half = len(keys) // 2
    if half > 1:
        for part in (keys[:half], keys[half:]):
            yield {key: value for key, value in settings.items() if key not in part}
    for gone in keys:
        yield {key: value for key, value in settings.items() if key != gone}
