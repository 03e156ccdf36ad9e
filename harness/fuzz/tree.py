"""Queries as trees: what the generator builds and the shrinker takes apart.

An expression is a template with arguments rather than one class per operator: the grammar stays a table of data, and
"replace an expression by one of its arguments" works for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.fuzz.kinds import Kind


@dataclass(frozen=True)
class Expr:
    """An expression: `template` with `{0}`, `{1}`, ... for its arguments."""

    kind: Kind
    template: str
    args: tuple[Expr | Query, ...] = ()

    def sql(self) -> str:
        """The expression as SQL."""
        return self.template.format(*(arg.sql() for arg in self.args)) if self.args else self.template


@dataclass(frozen=True)
class Item:
    """One column of a select list."""

    expr: Expr
    name: str

    def sql(self) -> str:
        """The item as SQL."""
        return f"{self.expr.sql()} AS {self.name}"


@dataclass(frozen=True)
class Order:
    """One sort key; where NULLs go is always written out."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = False

    def sql(self) -> str:
        """The key as SQL."""
        direction = "DESC" if self.descending else "ASC"
        return f"{self.expr.sql()} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True)
class Table:
    """A table, or a common table expression, under an alias."""

    name: str
    alias: str

    def sql(self) -> str:
        """The table as SQL."""
        return f"{self.name} AS {self.alias}"


@dataclass(frozen=True)
class Derived:
    """A query in FROM."""

    query: Query
    alias: str

    def sql(self) -> str:
        """The derived table as SQL."""
        return f"({self.query.sql()}) AS {self.alias}"


@dataclass(frozen=True)
class Join:
    """A join of two sources: exactly one of `on` and `using`, or neither for a cross join."""

    kind: str
    left: Source
    right: Source
    on: Expr | None = None
    using: tuple[str, ...] = ()

    def sql(self) -> str:
        """The join as SQL; the right side is put in parentheses when it is a join itself."""
        right = f"({self.right.sql()})" if isinstance(self.right, Join) else self.right.sql()
        text = f"{self.left.sql()} {self.kind} JOIN {right}"
        if self.using:
            return f"{text} USING ({', '.join(self.using)})"
        return f"{text} ON {self.on.sql()}" if self.on is not None else text


@dataclass(frozen=True)
class Select:
    """One SELECT. `grouping` is empty (plain GROUP BY), `ROLLUP`, `CUBE` or `GROUPING SETS` (over `sets`)."""

    items: tuple[Item, ...]
    source: Source | None = None
    where: Expr | None = None
    groups: tuple[Expr, ...] = ()
    grouping: str = ""
    sets: tuple[tuple[int, ...], ...] = ()
    having: Expr | None = None
    distinct: bool = False
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int | None = None

    def sql(self) -> str:
        """The query as SQL."""
        parts = ["SELECT DISTINCT" if self.distinct else "SELECT", ", ".join(item.sql() for item in self.items)]
        if self.source is not None:
            parts.append(f"FROM {self.source.sql()}")
        if self.where is not None:
            parts.append(f"WHERE {self.where.sql()}")
        if self.groups:
            parts.append(f"GROUP BY {self._grouping()}")
        if self.having is not None:
            parts.append(f"HAVING {self.having.sql()}")
        return " ".join(parts) + tail(self.order, self.limit, self.offset)

    def _grouping(self) -> str:
        texts = [group.sql() for group in self.groups]
        if self.grouping == "GROUPING SETS":
            sets = ", ".join(f"({', '.join(texts[index] for index in chosen)})" for chosen in self.sets)
            return f"GROUPING SETS ({sets})"
        return f"{self.grouping}({', '.join(texts)})" if self.grouping else ", ".join(texts)


@dataclass(frozen=True)
class SetOperation:
    """Two queries with the same columns, put together by UNION, INTERSECT or EXCEPT, each with or without ALL."""

    kind: str
    left: Query
    right: Query
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int | None = None

    def sql(self) -> str:
        """The query as SQL."""
        return f"({self.left.sql()}) {self.kind} ({self.right.sql()})" + tail(self.order, self.limit, self.offset)


@dataclass(frozen=True)
class With:
    """A query with common table expressions."""

    tables: tuple[tuple[str, Query], ...]
    body: Query
    recursive: bool = False

    def sql(self) -> str:
        """The query as SQL."""
        tables = ", ".join(f"{name} AS ({query.sql()})" for name, query in self.tables)
        body = f"({self.body.sql()})" if isinstance(self.body, With) else self.body.sql()
        return f"WITH {'RECURSIVE ' if self.recursive else ''}{tables} {body}"


def tail(order: tuple[Order, ...], limit: int | None, offset: int | None) -> str:
    """ORDER BY, LIMIT and OFFSET, each only where given."""
    text = f" ORDER BY {', '.join(key.sql() for key in order)}" if order else ""
    text += f" LIMIT {limit}" if limit is not None else ""
    return text + (f" OFFSET {offset}" if offset is not None else "")


Source = Table | Derived | Join
Query = Select | SetOperation | With
