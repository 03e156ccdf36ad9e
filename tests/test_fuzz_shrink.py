"""The shrinker: it finds the cause, and what it leaves still has one right answer."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from harness.fuzz.batch import make_batch
from harness.fuzz.kinds import Kind
from harness.fuzz.model import FuzzSettings
from harness.fuzz.queries import make_query
from harness.fuzz.shrink import shrink, smaller_queries, smaller_settings, smaller_tables
from harness.fuzz.tables import Column, DataTable
from harness.fuzz.tree import Derived, Expr, Item, Order, Query, Select, SetOperation, Table

SETTINGS = FuzzSettings(arms=("inline",), seed=2)


def queries_with(text: str, count: int) -> list[Query]:
    found: list[Query] = []
    for number in range(60):
        found += [query for query in make_batch(SETTINGS, number, 40).queries if text in query.sql()]
        if len(found) >= count:
            return found[:count]
    message = f"the generator never makes {text!r}"
    raise AssertionError(message)


@pytest.mark.parametrize(
    ("culprit", "longest"),
    [
        ("FULL JOIN", 230),
        ("UNION ALL", 160),
        ("LEFT ANTI JOIN", 230),
        ("CUBE(", 160),
        ("EXISTS", 190),
        ("unnest(", 110),
    ],
)
def test_the_clause_that_fails_is_what_is_left(culprit: str, longest: int) -> None:
    for query in queries_with(culprit, 4):
        small, _ = shrink(query, smaller_queries, lambda candidate: culprit in candidate.sql(), budget=4000)
        assert culprit in small.sql()
        assert len(small.sql()) <= longest, small.sql()


def test_every_step_is_smaller_or_plainer() -> None:
    """Greedy shrinking ends: no step leads back."""
    for query in make_batch(SETTINGS, 0, 40).queries:
        texts = [candidate.sql() for candidate in smaller_queries(query)]
        assert query.sql() not in texts
        assert len(texts) == len(set(texts))


def test_a_limit_keeps_its_order() -> None:
    """Without it the smaller query would have many right answers, and every one of them would look like a fault."""
    items = (
        Item(Expr(Kind.INT, "t1.k"), "c1"),
        Item(Expr(Kind.INT, "t1.id"), "c2"),
        Item(Expr(Kind.TEXT, "t1.s"), "c3"),
    )
    order = (Order(Expr(Kind.INT, "c1")), Order(Expr(Kind.INT, "c2"), descending=True))
    query = Select(items, Table("t0", "t1"), order=order, limit=3)
    kept = [
        candidate
        for candidate in smaller_queries(query)
        if isinstance(candidate, Select) and candidate.limit is not None
    ]
    assert kept, "nothing else can shrink"
    assert all(candidate.order == order for candidate in kept)


def test_a_window_keeps_its_order() -> None:
    over = Expr(Kind.INT, "CAST(row_number() OVER (ORDER BY {0} ASC NULLS LAST) AS BIGINT)", (Expr(Kind.INT, "t1.id"),))
    query = Select((Item(over, "c1"), Item(Expr(Kind.INT, "t1.k"), "c2")), Table("t0", "t1"))
    for candidate in smaller_queries(query):
        text = candidate.sql()
        assert "ORDER BY t1.id ASC NULLS LAST" in text or "row_number" not in text


def test_both_sides_of_a_union_lose_a_column_together() -> None:
    side = Select((Item(Expr(Kind.INT, "t1.id"), "c1"), Item(Expr(Kind.TEXT, "t1.s"), "c2")), Table("t0", "t1"))
    query = SetOperation("UNION ALL", side, replace(side, source=Table("t1", "t1")))
    small, _ = shrink(
        query,
        smaller_queries,
        lambda candidate: isinstance(candidate, SetOperation) and valid_union(candidate),
        budget=500,
    )
    assert isinstance(small, SetOperation)
    assert isinstance(small.left, Select)
    assert len(small.left.items) == 1


def valid_union(query: SetOperation) -> bool:
    return (
        isinstance(query.left, Select)
        and isinstance(query.right, Select)
        and len(query.left.items) == len(query.right.items)
    )


def test_a_derived_table_is_lifted() -> None:
    inner = Select((Item(Expr(Kind.INT, "t1.id"), "c1"),), Table("t0", "t1"))
    outer = Select((Item(Expr(Kind.INT, "d1.c1"), "c2"),), Derived(inner, "d1"))
    assert inner in list(smaller_queries(outer))


def table(rows: int, name: str = "t0") -> DataTable:
    columns = (Column(name="id", kind=Kind.INT), Column(name="k", kind=Kind.INT), Column(name="s", kind=Kind.TEXT))
    data = [(n, n % 3, "a") for n in range(rows)]
    return DataTable(name=name, columns=columns, files=(tuple(data[::2]), tuple(data[1::2]), ()), layout="sorted")


def test_rows_files_columns_and_tables_go() -> None:
    start = (table(40), table(40, "t1"))

    def fails(tables: tuple[DataTable, ...]) -> bool:
        ids = [row[0] for file in tables[0].files for row in file]
        return 17 in ids and 30 in ids

    sql = "SELECT t9.id AS c1 FROM t0 AS t9"
    small, left = shrink(start, lambda tables: smaller_tables(tables, sql), fails, budget=600)
    assert left > 0, "the budget was used up"
    assert [found.name for found in small] == ["t0"]
    assert sorted(row[0] for file in small[0].files for row in file) == [17, 30]
    assert [column.name for column in small[0].columns] == ["id"]
    assert small[0].layout == "plain"


def test_settings_go_one_by_one() -> None:
    settings = {f"k{number}": "v" for number in range(20)}
    small, _ = shrink(settings, smaller_settings, lambda found: {"k3", "k17"} <= set(found), budget=500)
    assert set(small) == {"k3", "k17"}


def test_a_kept_setting_stays() -> None:
    small, _ = shrink({"a": "1", "b": "2"}, lambda found: smaller_settings(found, frozenset({"a"})), lambda _: True)
    assert small == {"a": "1"}


def test_the_budget_is_a_budget() -> None:
    query = make_query(random.Random(4), [table(5)])
    calls = 0

    def never(_: Query) -> bool:
        nonlocal calls
        calls += 1
        return False

    shrink(query, smaller_queries, never, budget=5)
    assert calls <= 5
