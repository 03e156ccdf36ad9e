"""Whole queries of every shape, each with one right answer: limits stand over a total order or over equal rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.fuzz.grammar import AGGREGATES, FRAMES, POSITIONS, RANGES, RANKS, SET_OPERATIONS
from harness.fuzz.kinds import SORTABLE, Kind
from harness.fuzz.scope import Field, Scope
from harness.fuzz.sources import Made, SourceMaker, sortable
from harness.fuzz.tables import DataTable
from harness.fuzz.tree import Derived, Expr, Item, Query, Select, SetOperation, Table, With

MAX_DEPTH = 3
"""Levels of nesting of a query; deeper ones take long to plan and find the same faults."""


def make_query(rng: random.Random, tables: list[DataTable]) -> Query:
    """One query over the tables."""
    maker = QueryMaker(rng, tables=tuple(tables))
    depth = rng.choices((1, 2, MAX_DEPTH), (35, 45, 20))[0]
    made = maker.query(depth)
    return maker.finish(made).query


@dataclass
class QueryMaker(SourceMaker):
    """Makes queries. All methods that end in a query take how deep it may nest."""

    def query(self, depth: int) -> Made:
        """A query of any shape."""
        shapes: list[tuple[int, Callable[[int], Made]]] = [
            (18, self.plain), (24, self.aggregate), (8, self.grouping), (18, self.window), (8, self.distinct),
            (6, self.unnest), (10, self.limited), (4, self.constant_limit), (4, self.count_limit),
        ]  # fmt: skip
        if depth > 0:
            shapes += [(14, self.set_operation), (9, self.with_tables), (3, self.filtered_window), (2, self.recursive)]
        weights, makers = zip(*shapes, strict=True)
        make: Callable[[int], Made] = self.rng.choices(makers, weights)[0]
        return make(depth)

    def finish(self, made: Made) -> Made:
        """The outermost query: sorted now and then."""
        if (
            isinstance(made.query, (Select, SetOperation))
            and not made.query.order
            and made.query.limit is None
            and self.chance(0.3)
        ):
            keys = [(name, kind) for name, kind in made.columns if kind in SORTABLE]
            self.rng.shuffle(keys)
            order = tuple(self.order(Expr(kind, name)) for name, kind in keys[: self.rng.randint(1, 3)])
            return made._replace(query=replace(made.query, order=order))
        return made

    # -- one SELECT ---------------------------------------------------------------------------------------------

    def plain(self, depth: int) -> Made:
        """Columns and expressions of a source."""
        source, scope = self.source(depth)
        items = [Item(self.any_expr(scope), self.name("c")) for _ in range(self.rng.randint(1, 4))]
        if depth > 0 and self.chance(0.12):
            kind = self.rng.choice((Kind.INT, Kind.TEXT, Kind.DATE))
            items.append(Item(self.scalar(kind, scope, depth), self.name("c")))
        key = self._project_key(scope, items, 0.5)
        return _made(Select(tuple(items), source, self.where(scope, depth)), key)

    def distinct(self, depth: int) -> Made:
        """SELECT DISTINCT."""
        source, scope = self.source(depth)
        items = tuple(Item(self.key_expr(scope), self.name("c")) for _ in range(self.rng.randint(1, 3)))
        return _made(Select(items, source, self.where(scope, depth), distinct=True), tuple(item.name for item in items))

    def unnest(self, depth: int) -> Made:
        """One row per list element."""
        source, scope = self.source(depth)
        items = [Item(self.any_expr(scope, 1), self.name("c")) for _ in range(self.rng.randint(0, 2))]
        items.append(Item(Expr(Kind.INT, "unnest({0})", (self.expr(Kind.LIST, scope, 1),)), self.name("c")))
        return _made(Select(tuple(items), source, self.where(scope, 0)), None)

    def aggregate(self, depth: int, grouping: str = "") -> Made:
        """GROUP BY, with HAVING now and then; without keys it gives one row."""
        source, scope = self.source(depth)
        count = self.rng.randint(2, 3) if grouping else self.rng.choices((0, 1, 2, 3), (2, 5, 3, 1))[0]
        groups = self._distinct_keys(scope, count)
        items = [Item(group, self.name("c")) for group in groups]
        items += [Item(self.call(scope), self.name("c")) for _ in range(self.rng.randint(1, 3))]
        if grouping and groups and self.chance(0.4):
            items.append(Item(Expr(Kind.INT, "CAST(grouping({0}) AS BIGINT)", (groups[0],)), self.name("c")))
        having = (
            Expr(Kind.BOOL, "({0} > {1})", (Expr(Kind.INT, "count(*)"), Expr(Kind.INT, "1")))
            if self.chance(0.12)
            else None
        )
        sets: tuple[tuple[int, ...], ...] = ()
        if grouping == "GROUPING SETS":
            sets = tuple(
                tuple(i for i in range(len(groups)) if self.chance(0.5)) for _ in range(self.rng.randint(1, 4))
            )
            if {place for chosen in sets for place in chosen} != set(range(len(groups))):
                # A column that is in no set cannot be selected.
                sets = (*sets, tuple(range(len(groups))))
        key = tuple(item.name for item in items[: len(groups)]) if groups and not grouping else None
        select = Select(
            tuple(items),
            source,
            self.where(scope, depth),
            tuple(groups),
            grouping if groups else "",
            sets if groups else (),
            having,
        )
        return _made(select, key)

    def grouping(self, depth: int) -> Made:
        """ROLLUP, CUBE or GROUPING SETS."""
        return self.aggregate(depth, self.rng.choice(("ROLLUP", "CUBE", "GROUPING SETS")))

    def call(self, scope: Scope) -> Expr:
        """A call of an aggregate function."""
        chosen = self.rng.choice(AGGREGATES)
        return Expr(
            chosen.gives, chosen.template, (self.expr(chosen.takes, scope, 1),) if "{0}" in chosen.template else ()
        )

    # -- windows ------------------------------------------------------------------------------------------------

    def window(self, depth: int) -> Made:
        """Window functions beside columns."""
        source, scope = self.source(depth)
        items = [Item(self.any_expr(scope, 1), self.name("c")) for _ in range(self.rng.randint(0, 2))]
        items += [Item(self.over(scope), self.name("c")) for _ in range(self.rng.randint(1, 2))]
        key = self._project_key(scope, items, 0.6)
        return _made(Select(tuple(items), source, self.where(scope, 0)), key)

    def filtered_window(self, depth: int) -> Made:
        """The first rows of each partition."""
        source, scope = self.source(depth)
        total = scope.total_order()
        if not total:
            return self.window(depth)
        items = [Item(self.key_expr(scope), self.name("c")), Item(self.key_expr(scope), self.name("c"))]
        over, args = self._over(scope, total)
        name = self.name("c")
        items.append(
            Item(Expr(Kind.INT, f"CAST({self.rng.choice(('row_number()', 'rank()'))} {over} AS BIGINT)", args), name)
        )
        inner = Select(tuple(items), source)
        alias = self.name("d")
        outer = tuple(Item(Expr(item.expr.kind, f"{alias}.{item.name}"), self.name("c")) for item in items)
        bound = Expr(Kind.BOOL, f"({{0}} <= {self.rng.randint(1, 4)})", (Expr(Kind.INT, f"{alias}.{name}"),))
        return _made(Select(outer, Derived(inner, alias), bound), None)

    def over(self, scope: Scope) -> Expr:
        """A window function whose answer does not depend on the order of tied rows."""
        total = scope.total_order()
        if total and self.chance(0.45):
            over, args = self._over(scope, total)
            if self.chance(0.6):
                kind, template = self.rng.choice(POSITIONS)
                # Not one replacement after the other: the OVER clause has a `{1}` of its own.
                text = over.join(part.replace("{1}", f"{{{len(args)}}}") for part in template.split("{0}"))
                return Expr(kind, text, (*args, self.expr(kind, scope, 1)))
            return self._framed(scope, over, args, self.rng.choice(FRAMES))
        over, args = self._over(scope, None)
        if "ORDER BY" not in over:
            return self._framed(scope, over, args, "")
        if self.chance(0.4):
            return Expr(Kind.INT, f"CAST({self.rng.choice(RANKS)} {over} AS BIGINT)", args)
        numeric = len(args) and args[-1].kind is Kind.INT and over.count("NULLS") == 1
        return self._framed(
            scope, over, args, self.rng.choice(RANGES if numeric else RANGES[:2]) if self.chance(0.5) else ""
        )

    def _framed(self, scope: Scope, over: str, args: tuple[Expr, ...], frame: str) -> Expr:
        chosen = self.rng.choice([call for call in AGGREGATES if call.windowed])
        call = chosen.template.replace("{0}", f"{{{len(args)}}}")
        window = over.removesuffix(")") + f" {frame})" if frame else over
        return Expr(chosen.gives, f"{call} {window}", (*args, self.expr(chosen.takes, scope, 1)))

    def _over(self, scope: Scope, total: tuple[str, ...] | None) -> tuple[str, tuple[Expr, ...]]:
        """An OVER clause and its arguments; sorted by `total` in the end where given."""
        partition = self._distinct_keys(scope, self.rng.choices((0, 1, 2), (3, 6, 1))[0])
        keys = self._distinct_keys(
            scope, self.rng.randint(0, 2) if total else self.rng.choices((0, 1, 2), (2, 6, 1))[0]
        )
        if total:
            kinds = {found.sql: found.kind for found in scope.fields}
            keys = [key for key in keys if key.sql() not in total]
            keys += [Expr(kinds[name], name) for name in total]
        parts = []
        if partition:
            parts.append("PARTITION BY " + ", ".join(f"{{{n}}}" for n in range(len(partition))))
        if keys:
            shown = [
                f"{{{n}}} {self.rng.choice(('ASC', 'DESC'))} NULLS {self.rng.choice(('FIRST', 'LAST'))}"
                for n in range(len(partition), len(partition) + len(keys))
            ]
            parts.append("ORDER BY " + ", ".join(shown))
        return f"OVER ({' '.join(parts)})", (*partition, *keys)

    # -- limits -------------------------------------------------------------------------------------------------

    def limited(self, depth: int) -> Made:
        """ORDER BY a total order, LIMIT, OFFSET."""
        made = self.rng.choice((self.plain, self.aggregate, self.distinct, self.window))(depth)
        total = made.scope.total_order()
        if not total or not isinstance(made.query, Select):
            return made
        kinds = dict(made.columns)
        first = [name for name, kind in made.columns if kind in SORTABLE and name not in total]
        self.rng.shuffle(first)
        order = tuple(self.order(Expr(kinds[name], name)) for name in (*first[:2], *total))
        limit = self.rng.choice((0, 1, 3, 7, 15, 15, 30)) if self.chance(0.95) else None
        offset = self.rng.choice((1, 4)) if self.chance(0.25) else None
        return made._replace(query=replace(made.query, order=order, limit=limit, offset=offset))

    def constant_limit(self, depth: int) -> Made:
        """LIMIT without ORDER BY over rows that are all alike."""
        source, scope = self.source(depth)
        item = Item(Expr(Kind.INT, self.rng.choice(("1", "2"))), self.name("c"))
        offset = self.rng.choice((1, 4)) if self.chance(0.25) else None
        select = Select(
            (item,), source, self.where(scope, depth), limit=self.rng.choice((0, 1, 3, 7, 15, 15, 30)), offset=offset
        )
        return _made(select, None)

    def count_limit(self, depth: int) -> Made:
        """The number of rows under a LIMIT without ORDER BY."""
        source, scope = self.source(depth)
        columns = tuple(Item(self.any_expr(scope, 1), self.name("c")) for _ in range(self.rng.randint(1, 2)))
        offset = self.rng.choice((1, 4)) if self.chance(0.3) else None
        inner = Select(
            columns, source, self.where(scope, depth), limit=self.rng.choice((0, 1, 3, 7, 15, 15, 30)), offset=offset
        )
        outer = Select((Item(Expr(Kind.INT, "count(*)"), self.name("c")),), Derived(inner, self.name("d")))
        return _made(outer, None)

    # -- several queries ----------------------------------------------------------------------------------------

    def set_operation(self, depth: int) -> Made:
        """UNION, INTERSECT or EXCEPT, with or without ALL."""
        kinds = [
            self.rng.choice((Kind.INT, Kind.INT, Kind.TEXT, Kind.DATE, Kind.BOOL, Kind.FLOAT))
            for _ in range(self.rng.randint(1, 3))
        ]
        names = [self.name("c") for _ in kinds]
        sides = [self._branch(kinds, names, depth) for _ in range(2)]
        query = SetOperation(self.rng.choice(SET_OPERATIONS), sides[0], sides[1])
        if self.chance(0.25):
            query = SetOperation(self.rng.choice(SET_OPERATIONS), query, self._branch(kinds, names, depth - 1))
        columns = tuple(zip(names, kinds, strict=True))
        if self.chance(0.2):
            order = tuple(self.order(Expr(kind, name)) for name, kind in columns)
            query = replace(query, order=order, limit=self.rng.choice((1, 5, 12)))
        return Made(query, columns, None)

    def _branch(self, kinds: list[Kind], names: list[str], depth: int) -> Query:
        source, scope = self.source(depth - 1)
        items = tuple(Item(self.expr(kind, scope, 1), name) for kind, name in zip(kinds, names, strict=True))
        return Select(items, source, self.where(scope, 0), distinct=self.chance(0.15))

    def with_tables(self, depth: int) -> Made:
        """Common table expressions, each usable several times."""
        before = len(self.ctes)
        tables: list[tuple[str, Query]] = []
        for _ in range(self.rng.randint(1, 2)):
            made, name = self.query(depth - 1), self.name("w")
            tables.append((name, made.query))
            self.ctes.append((name, made))
        body = self.query(depth - 1)
        del self.ctes[before:]
        return Made(With(tuple(tables), body.query), body.columns, body.key)

    def recursive(self, depth: int) -> Made:
        """A recursive common table expression over a table."""
        del depth
        name, table = self.name("r"), self.rng.choice(self.tables)
        start = Select((Item(Expr(Kind.INT, "id % 3"), "n"),), Table(table.name, self.name("t")))
        bound = Expr(Kind.BOOL, f"(n < {self.rng.randint(2, 6)})")
        step = Select((Item(Expr(Kind.INT, "n + 1"), "n"),), Table(name, self.name("t")), bound)
        alias = self.name("t")
        scope = Scope((Field(f"{alias}.n", Kind.INT),))
        items = (Item(Expr(Kind.INT, f"{alias}.n"), self.name("c")), Item(self.call(scope), self.name("c")))
        body = Select(items, Table(name, alias), groups=(items[0].expr,))
        return _made_from(
            With(((name, SetOperation("UNION ALL", start, step)),), body, recursive=True), body, (items[0].name,)
        )

    # -- parts --------------------------------------------------------------------------------------------------

    def _distinct_keys(self, scope: Scope, count: int) -> list[Expr]:
        """Up to `count` different key expressions; none if the scope has no column that can be one."""
        if not any(found.kind in SORTABLE for found in scope.fields):
            return []
        found: dict[str, Expr] = {}
        for _ in range(count):
            key = self.key_expr(scope)
            found.setdefault(key.sql(), key)
        return list(found.values())

    def _project_key(self, scope: Scope, items: list[Item], chance: float) -> tuple[str, ...] | None:
        """Add the key of the scope to the select list, if chance wills, and return it by its new names."""
        if scope.key is None or not self.chance(chance):
            return None
        kinds = {found.sql: found.kind for found in scope.fields}
        added = [Item(Expr(kinds[name], name), self.name("c")) for name in scope.key]
        items += added
        return tuple(item.name for item in added)


def _made(query: Select, key: tuple[str, ...] | None) -> Made:
    return _made_from(query, query, key)


def _made_from(query: Query, select: Select, key: tuple[str, ...] | None) -> Made:
    columns = tuple((item.name, item.expr.kind) for item in select.items)
    made = Made(query, columns, key)
    return made if key is not None or not sortable(made) else made._replace(key=tuple(name for name, _ in columns))
