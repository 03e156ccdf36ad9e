"""Each strategy against real worker processes: queries are distributed, answers are right, plans tell so."""

from __future__ import annotations

from pathlib import Path

import pytest

from strategy_helpers import Strategy, WorkerProcess

SETUP = """
ctx = make_context({"datafusion.execution.target_partitions": "2",
                    "distributed.file_scan_config_bytes_per_partition": "1"}, urls)
ctx.register_parquet("t", %r)
"""

QUERIES = {
    "aggregate": "SELECT k, count(*) AS n, sum(v) AS s FROM t GROUP BY k ORDER BY k",
    "filter": "SELECT v FROM t WHERE v % 7 = 0 ORDER BY v",
    "join": "SELECT count(*) AS n FROM t a JOIN t b ON a.v = b.v WHERE a.k < 3",
    "window": "SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS r FROM t ORDER BY k, v LIMIT 50",
    "union": "SELECT k FROM t WHERE v < 5 UNION ALL SELECT k FROM t WHERE v > 995 ORDER BY 1",
    "subquery": "SELECT count(*) AS n FROM t WHERE v > (SELECT avg(v) FROM t)",
    "distinct": "SELECT count(DISTINCT k) AS n FROM t",
    "cte": "WITH c AS (SELECT k, max(v) AS m FROM t GROUP BY k) SELECT sum(m) AS s FROM c",
}


@pytest.fixture(scope="session")
def answers(stock_python: Path, split_table: Path) -> dict[str, object]:
    """What stock single-node datafusion answers."""
    import datafusion

    ctx = datafusion.SessionContext()
    ctx.register_parquet("t", str(split_table))
    return {name: ctx.sql(sql).to_pydict() for name, sql in QUERIES.items()}


@pytest.mark.parametrize("query", QUERIES)
def test_sql_is_distributed_and_right(
    strategy: Strategy, workers: list[WorkerProcess], split_table: Path, answers: dict[str, object], query: str
) -> None:
    """Workers counted tasks of the query, and the answer is the single node's."""
    code = f"""
    before = tasks()
    got = ctx.sql({QUERIES[query]!r}).to_pydict()
    answer([got, tasks() - before])
    """
    got, ran = strategy.run(dedented(SETUP % str(split_table), code), [w.url for w in workers])
    assert got == answers[query]
    assert ran > 0, f"{strategy.name} ran {query} without any worker"


def test_dataframes_are_distributed_with_plain_expressions(
    strategy: Strategy, workers: list[WorkerProcess], split_table: Path
) -> None:
    """`col`, `lit` and functions of the strategy's namespace build distributed plans."""
    code = """
    from importlib import import_module
    f = import_module(df.__name__ + ".functions")
    before = tasks()
    frame = (ctx.table("t").filter(df.col("v") > df.lit(10)).aggregate([df.col("k")], [f.sum(df.col("v")).alias("s")])
             .sort(df.col("k").sort()))
    answer([frame.to_pydict(), tasks() - before, isinstance(frame, df.DataFrame)])
    """
    got, ran, same_class = strategy.run(dedented(SETUP % str(split_table), code), [w.url for w in workers])
    assert got["k"] == list(range(10))
    assert sum(got["s"]) == sum(range(11, 1000))
    assert ran > 0
    assert same_class


def test_plan_info_and_explain_show_stages_and_tasks(
    strategy: Strategy, workers: list[WorkerProcess], split_table: Path
) -> None:
    """Both ways to look at a plan show what would run where."""
    code = """
    frame = ctx.sql("SELECT k, count(*) FROM t GROUP BY k")
    info = plan_info(frame)
    explained = ctx.sql("EXPLAIN SELECT k, count(*) FROM t GROUP BY k").to_pydict()
    analyzed = ctx.sql("EXPLAIN ANALYZE SELECT k, count(*) FROM t GROUP BY k").to_pydict()
    local = plan_info(ctx.sql("SELECT 1"))
    answer([info, explained["plan"][-1], analyzed["plan"][-1], local])
    """
    info, explained, analyzed, local = strategy.run(dedented(SETUP % str(split_table), code), [w.url for w in workers])
    assert info["distributed"]
    assert info["stages"] >= 2
    assert info["tasks"] >= 2
    assert "Stage 1" in info["text"]
    assert "Stage 1" in explained
    assert "Stage 1" in analyzed
    assert "output_rows" in analyzed
    assert not local["distributed"]


def test_tables_in_memory_join_files(strategy: Strategy, workers: list[WorkerProcess], split_table: Path) -> None:
    """`from_pydict` tables work in a distributed session, alone and joined with files."""
    code = """
    ctx.register_table("m", ctx.from_pydict({"k": [1, 2, 3], "name": ["a", "b", "c"]}))
    got = ctx.sql("SELECT m.name, count(*) AS n FROM t JOIN m ON t.k = m.k GROUP BY 1 ORDER BY 1").to_pydict()
    answer([got, ctx.sql("SELECT sum(k) AS s FROM m").to_pydict()])
    """
    got, alone = strategy.run(dedented(SETUP % str(split_table), code), [w.url for w in workers])
    assert got == {"name": ["a", "b", "c"], "n": [100, 100, 100]}
    assert alone == {"s": [6]}


def dedented(setup: str, code: str) -> str:
    """Set-up and an indented piece of code as one script."""
    import textwrap

    return setup + textwrap.dedent(code)
