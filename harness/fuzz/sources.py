"""What stands in FROM and WHERE: tables, derived tables, joins, and predicates with subqueries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from harness.fuzz.grammar import JOINS
from harness.fuzz.kinds import SORTABLE, Kind
from harness.fuzz.scope import Field, Generator, Scope
from harness.fuzz.tables import DataTable
from harness.fuzz.tree import Derived, Expr, Item, Join, Query, Select, Source, Table

JOIN_KINDS = (
    Kind.INT,
    Kind.INT,
    Kind.INT,
    Kind.TEXT,
    Kind.TEXT,
    Kind.SMALL,
    Kind.DATE,
    Kind.DECIMAL,
    Kind.BOOL,
    Kind.TIME,
    Kind.INSTANT,
    Kind.FLOAT,
)
"""Kinds of join keys; integers and texts repeat most."""


class Made(NamedTuple):
    """A finished query: its columns, and which of them tell all its rows apart (None: not known)."""

    query: Query
    columns: tuple[tuple[str, Kind], ...]
    key: tuple[str, ...] | None

    @property
    def scope(self) -> Scope:
        """The columns by their bare names."""
        return Scope(tuple(Field(name, kind) for name, kind in self.columns), self.key)


@dataclass
class SourceMaker(Generator):
    """Makes sources and predicates. The subclass makes whole queries."""

    tables: tuple[DataTable, ...] = ()
    ctes: list[tuple[str, Made]] = field(default_factory=list)

    def query(self, depth: int) -> Made:
        """A query of any shape."""
        raise NotImplementedError

    # -- sources ------------------------------------------------------------------------------------------------

    def source(self, depth: int) -> tuple[Source, Scope]:
        """Something to select from."""
        draw = self.rng.random()
        if depth <= 0 or draw < 0.35:
            return self.table()
        if draw < 0.72:
            return self.join(depth)
        if draw < 0.78:
            return self.values()
        return self.derived(self.query(depth - 1))

    def table(self) -> tuple[Source, Scope]:
        """A table, or a common table expression in reach."""
        alias = self.name("t")
        if self.ctes and self.chance(0.6):
            name, made = self.rng.choice(self.ctes)
            return Table(name, alias), _qualified(alias, made)
        table = self.rng.choice(self.tables)
        fields = tuple(Field(f"{alias}.{column.name}", column.kind) for column in table.visible)
        return Table(table.name, alias), Scope(fields, None if table.layout in ("csv", "json") else (f"{alias}.id",))

    def derived(self, made: Made) -> tuple[Source, Scope]:
        """A query in FROM."""
        alias = self.name("d")
        return Derived(made.query, alias), _qualified(alias, made)

    def values(self) -> tuple[Source, Scope]:
        """Rows written out, or a table function."""
        alias = self.name("v")
        if self.chance(0.3):
            stop = self.rng.randint(0, 9)
            item = Item(Expr(Kind.INT, "value"), "a")
            query = Select((item,), Table(f"generate_series(0, {stop})", self.name("g")))
            return Derived(query, alias), Scope((Field(f"{alias}.a", Kind.INT),), (f"{alias}.a",))
        count = self.rng.randint(1, 5)
        rows = ", ".join(f"({n}, '{self.rng.choice('abz')}')" for n in range(count))
        items = (Item(Expr(Kind.INT, "column1"), "a"), Item(Expr(Kind.TEXT, "column2"), "b"))
        query = Select(items, Table(f"(VALUES {rows})", self.name("w")))
        fields = (Field(f"{alias}.a", Kind.INT), Field(f"{alias}.b", Kind.TEXT))
        return Derived(query, alias), Scope(fields, (f"{alias}.a",))

    # -- joins --------------------------------------------------------------------------------------------------

    def join(self, depth: int) -> tuple[Source, Scope]:
        """A join of two sources."""
        left, left_scope = self.source(depth - 1)
        right, right_scope = self.source(depth - 2)
        kind = self.rng.choices(JOINS, (8, 5, 3, 3, 3, 3, 2, 2, 2))[0]
        both = Scope(left_scope.fields + right_scope.fields, _both(left_scope.key, right_scope.key))
        scope = (
            left_scope
            if kind in ("LEFT SEMI", "LEFT ANTI")
            else right_scope
            if kind in ("RIGHT SEMI", "RIGHT ANTI")
            else both
        )
        if kind == "CROSS":
            return Join(kind, left, right), scope
        shared = _shared_names(left, left_scope, right, right_scope)
        if shared and self.chance(0.12):
            return Join(kind, left, right, using=(self.rng.choice(shared),)), scope
        return Join(kind, left, right, self._on(left_scope, right_scope, both)), scope

    def _on(self, left: Scope, right: Scope, both: Scope) -> Expr:
        """A join condition: mostly equality of keys, with something more now and then, or no equality at all."""
        if self.chance(0.1):
            return self._inequality(left, right)
        first = self.equality(left, right)
        if first is None:
            return Expr(Kind.BOOL, "TRUE") if self.chance(0.5) else self._inequality(left, right)
        second = (
            self.equality(left, right) if self.chance(0.1) else self.condition(both, 1) if self.chance(0.2) else None
        )
        return first if second is None else Expr(Kind.BOOL, "({0} AND {1})", (first, second))

    def equality(self, left: Scope, right: Scope) -> Expr | None:
        """`left.a = right.b` for a kind that both sides have, or None."""
        kinds = [kind for kind in JOIN_KINDS if left.of(kind) and right.of(kind)]
        if not kinds:
            return None
        kind = self.rng.choice(kinds)
        sides = [Expr(kind, self.rng.choice(scope.of(kind)).sql) for scope in (left, right)]
        if self.chance(0.1):
            sides[0] = self.expr(kind, left, 1)
        sign = "IS NOT DISTINCT FROM" if self.chance(0.08) else "="
        return Expr(Kind.BOOL, f"({{0}} {sign} {{1}})", tuple(sides))

    def _inequality(self, left: Scope, right: Scope) -> Expr:
        kinds = [kind for kind in (Kind.INT, Kind.FLOAT, Kind.DATE, Kind.TEXT) if left.of(kind) and right.of(kind)]
        if not kinds:
            return Expr(Kind.BOOL, "TRUE")
        kind = self.rng.choice(kinds)
        sides = tuple(Expr(kind, self.rng.choice(scope.of(kind)).sql) for scope in (left, right))
        return Expr(Kind.BOOL, f"({{0}} {self.rng.choice(('<', '>=', '<>'))} {{1}})", sides)

    # -- predicates ---------------------------------------------------------------------------------------------

    def where(self, scope: Scope, depth: int) -> Expr | None:
        """A WHERE clause, or none."""
        if self.chance(0.5):
            return None
        if depth > 0 and self.chance(0.4):
            first = self._subquery_predicate(scope, depth)
            if self.chance(0.25):
                return Expr(Kind.BOOL, "({0} AND {1})", (first, self.condition(scope, 1)))
            return Expr(Kind.BOOL, "({0} OR {1})", (first, self._broad(scope))) if self.chance(0.2) else first
        made = self.condition(scope, 2)
        # Most random conditions hold for hardly any row, and an empty answer proves nothing.
        return Expr(Kind.BOOL, "({0} OR {1})", (made, self._broad(scope))) if self.chance(0.6) else made

    def _broad(self, scope: Scope) -> Expr:
        """A predicate that holds for most rows."""
        found = self.rng.choice(scope.fields)
        if found.kind is Kind.INT and self.chance(0.6):
            return Expr(Kind.BOOL, "({0} >= 0)", (Expr(Kind.INT, found.sql),))
        return Expr(Kind.BOOL, "({0} IS NOT NULL)", (Expr(found.kind, found.sql),))

    def _subquery_predicate(self, scope: Scope, depth: int) -> Expr:
        draw = self.rng.random()
        if draw < 0.35:
            return self._in_subquery(scope)
        if draw < 0.7:
            return self._exists(scope)
        kind = self.rng.choice((Kind.INT, Kind.FLOAT, Kind.DATE))
        sign = self.rng.choice(("<", ">=", "<>", "="))
        return Expr(Kind.BOOL, f"({{0}} {sign} {{1}})", (self.expr(kind, scope, 1), self.scalar(kind, scope, depth)))

    def _in_subquery(self, scope: Scope) -> Expr:
        kind = self.rng.choice((Kind.INT, Kind.TEXT))
        source, inner = self.source(1)
        condition = self.equality(scope, inner) if self.chance(0.25) else self.where(inner, 0)
        query = Select((Item(self.expr(kind, inner, 1), self.name("c")),), source, condition)
        sign = "NOT IN" if self.chance(0.3) else "IN"
        return Expr(Kind.BOOL, f"({{0}} {sign} ({{1}}))", (self.expr(kind, scope, 1), query))

    def _exists(self, scope: Scope) -> Expr:
        source, inner = self.source(1)
        condition = self.equality(scope, inner) if self.chance(0.8) else None
        if condition is None:
            condition = self.condition(inner, 1)
        elif self.chance(0.3):
            condition = Expr(Kind.BOOL, "({0} AND {1})", (condition, self.condition(inner, 1)))
        query = Select((Item(Expr(Kind.INT, "1"), self.name("c")),), source, condition)
        return Expr(Kind.BOOL, f"({'NOT ' if self.chance(0.4) else ''}EXISTS ({{0}}))", (query,))

    def scalar(self, kind: Kind, scope: Scope, depth: int) -> Expr:
        """A scalar subquery, correlated or not; always an aggregate, so that it has one row."""
        source, inner = self.source(min(depth - 1, 1))
        condition = self.equality(scope, inner) if self.chance(0.5) else None
        function = self.rng.choice(("min", "max"))
        call = Expr(kind, f"{function}({{0}})", (self.expr(kind, inner, 1),))
        if kind is Kind.INT and self.chance(0.3):
            call = Expr(kind, "count(*)")
        return Expr(kind, "({0})", (Select((Item(call, self.name("c")),), source, condition),))


def sortable(made: Made) -> bool:
    """Whether all columns of a query can be sort keys."""
    return all(kind in SORTABLE for _, kind in made.columns)


def _qualified(alias: str, made: Made) -> Scope:
    fields = tuple(Field(f"{alias}.{name}", kind) for name, kind in made.columns)
    return Scope(fields, None if made.key is None else tuple(f"{alias}.{name}" for name in made.key))


def _both(left: tuple[str, ...] | None, right: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if left is None or right is None else left + right


def _shared_names(left: Source, left_scope: Scope, right: Source, right_scope: Scope) -> list[str]:
    """Names that both sides have with one kind, where each side is a single table (elsewhere they may be ambiguous)."""
    if isinstance(left, Join) or isinstance(right, Join):
        return []
    mine, other = (
        {found.sql.partition(".")[2]: found.kind for found in scope.fields} for scope in (left_scope, right_scope)
    )
    return [name for name, kind in mine.items() if other.get(name) is kind and kind in SORTABLE]
