"""What the generator knows at a point of a query, and expressions made from it."""

from __future__ import annotations

import random
from dataclasses import dataclass

from harness.fuzz.grammar import LITERALS, RULES, Rule
from harness.fuzz.kinds import SORTABLE, Kind
from harness.fuzz.tree import Expr, Order

BY_KIND: dict[Kind, tuple[Rule, ...]] = {kind: tuple(rule for rule in RULES if rule.gives is kind) for kind in Kind}

LEAF_CHANCE = 0.45
"""Chance that an expression is a column or a literal although it could go deeper: most stay readable."""

LITERAL_CHANCE = 0.12
"""Chance that a leaf is a literal although a column of the kind is there."""


@dataclass(frozen=True)
class Field:
    """A column that can be named."""

    sql: str
    kind: Kind


@dataclass(frozen=True)
class Scope:
    """Columns in reach. `key` names columns that together tell all rows apart; None if no such set is known."""

    fields: tuple[Field, ...]
    key: tuple[str, ...] | None = None

    def of(self, kind: Kind) -> list[Field]:
        """Columns of a kind."""
        return [found for found in self.fields if found.kind is kind]

    def total_order(self) -> tuple[str, ...] | None:
        """Columns that put the rows into one order, up to rows equal in every column; None if there are none."""
        if self.key is not None:
            return self.key
        if all(found.kind in SORTABLE for found in self.fields):
            return tuple(found.sql for found in self.fields)
        return None


@dataclass
class Generator:
    """The state of one query in the making: its random numbers and the names that it has given away."""

    rng: random.Random
    counter: int = 0

    def name(self, prefix: str) -> str:
        """A name not given before in this query."""
        self.counter += 1
        return f"{prefix}{self.counter}"

    def leaf(self, kind: Kind, scope: Scope) -> Expr:
        """A column or a literal."""
        columns = scope.of(kind)
        if columns and self.rng.random() >= LITERAL_CHANCE:
            return Expr(kind, self.rng.choice(columns).sql)
        if kind is Kind.INT and (small := scope.of(Kind.SMALL)) and self.rng.random() < 0.5:
            return Expr(kind, "CAST({0} AS BIGINT)", (Expr(Kind.SMALL, self.rng.choice(small).sql),))
        return Expr(kind, self.rng.choice(LITERALS[kind]))

    def expr(self, kind: Kind, scope: Scope, depth: int = 2, *, rule: bool = False) -> Expr:
        """An expression of a kind, about `depth` rules deep; `rule` asks for more than a column or a literal.

        Rules whose arguments are columns in reach come first: what is made of literals, the planner folds.
        """
        present = {found.kind for found in scope.fields}
        if not rule and (depth <= 0 or self.rng.random() < LEAF_CHANCE) and (kind in present or depth < 0):
            return self.leaf(kind, scope)
        rules = [found for found in BY_KIND[kind] if any(taken in present for taken in found.takes)]
        if not rules or (not rule and self.rng.random() < LITERAL_CHANCE):
            return self.leaf(kind, scope)
        chosen = self.rng.choice(rules)
        args = tuple(self.expr(taken, scope, depth - 1) for taken in chosen.takes)
        if len(args) > 1 and args[0] == args[1]:
            # `x < x` is as empty as it looks.
            args = (args[0], self.expr(chosen.takes[1], scope, depth - 1), *args[2:])
        return Expr(kind, chosen.template, args)

    def condition(self, scope: Scope, depth: int = 2) -> Expr:
        """A predicate; never a bare constant."""
        return self.expr(Kind.BOOL, scope, depth, rule=True)

    def any_expr(self, scope: Scope, depth: int = 2) -> Expr:
        """An expression of some kind, more often of one that the scope has columns of."""
        kinds = [found.kind for found in scope.fields] or [Kind.INT]
        kind = self.rng.choice(kinds) if self.rng.random() < 0.85 else self.rng.choice(list(Kind))
        return self.expr(kind, scope, depth)

    def key_expr(self, scope: Scope, depth: int = 1) -> Expr:
        """An expression that may group, partition or sort. It has a column in it: a bare number means a position."""
        columns = [found for found in scope.fields if found.kind in SORTABLE]
        if not columns:
            return Expr(Kind.INT, "abs({0})", (self.leaf(Kind.INT, scope),))
        column = self.rng.choice(columns)
        made = self.expr(column.kind, scope, depth)
        return (
            made
            if made.args or (self.rng.random() < 0.2 and _is_column(made, scope))
            else Expr(column.kind, column.sql)
        )

    def order(self, expr: Expr) -> Order:
        """A sort key with a direction."""
        return Order(expr, self.rng.random() < 0.4, self.rng.random() < 0.5)

    def chance(self, probability: float) -> bool:
        """Whether something of this probability happens."""
        return self.rng.random() < probability


def _is_column(expr: Expr, scope: Scope) -> bool:
    return any(found.sql == expr.template for found in scope.fields)
