"""Functions written in Python, sent by value to workers that are other processes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from strategy_helpers import OPEN, Strategy, WorkerProcess, cluster

FUNCTIONS = """
scale = 3
dbl = df.udf(lambda x: pc.multiply(x, scale), [pa.int64()], pa.int64(), "immutable", "dbl")

class Total(df.Accumulator):
    def __init__(self): self.sum = 0
    def update(self, values): self.sum += pc.sum(values).as_py() or 0
    def merge(self, states): self.sum += pc.sum(states[0]).as_py() or 0
    def state(self): return [pa.scalar(self.sum)]
    def evaluate(self): return pa.scalar(self.sum)
total = df.udaf(Total, [pa.int64()], pa.int64(), [pa.int64()], "immutable", "total")

class Running(df.user_defined.WindowEvaluator):
    def evaluate_all(self, values, num_rows):
        total, sums = 0, []
        for value in values[0].to_pylist():
            total += value * scale
            sums.append(total)
        return pa.array(sums, pa.int64())
running = df.udwf(Running, pa.int64(), pa.int64(), "immutable", "running")

lengths = df.udf(pc.list_value_length, [pa.list_(pa.int64())], pa.int32(), "immutable", "lengths")
"""

QUERIES = {
    "scalar": ("SELECT sum(dbl(v)) AS s FROM t", {"s": [3 * sum(range(1000))]}),
    "scalar_in_filter": ("SELECT count(*) AS n FROM t WHERE dbl(v) < 30", {"n": [10]}),
    "aggregate": (
        "SELECT k, total(v) AS s FROM t GROUP BY k ORDER BY k",
        {"k": list(range(10)), "s": [sum(range(k, 1000, 10)) for k in range(10)]},
    ),
    "window": (
        "SELECT v, running(v) OVER (PARTITION BY k ORDER BY v) AS r FROM t WHERE v < 30 ORDER BY v",
        {"v": list(range(30)), "r": [3 * sum(range(v % 10, v + 1, 10)) for v in range(30)]},
    ),
    "nulls": (
        "SELECT sum(dbl(CASE WHEN v % 2 = 0 THEN v END)) AS s, count(dbl(nullif(v, v))) AS n FROM t",
        {"s": [3 * sum(range(0, 1000, 2))], "n": [0]},
    ),
    "empty_batches": ("SELECT sum(dbl(v)) AS s, count(*) AS n FROM t WHERE v < 0", {"s": [None], "n": [0]}),
    "nested": ("SELECT sum(lengths(make_array(v, v, v))) AS s FROM t", {"s": [3000]}),
}


@pytest.fixture(scope="module")
def open_workers(strategy: Strategy) -> Iterator[list[WorkerProcess]]:
    """Workers that accept Python code."""
    with cluster(strategy, 2, "--allow-python-udfs") as processes:
        yield processes


@pytest.mark.parametrize("name", QUERIES)
def test_by_value_on_workers_that_allow_it(
    strategy: Strategy, open_workers: list[WorkerProcess], split_table: Path, name: str
) -> None:
    """The worker runs a lambda with a captured variable, and a class, that it cannot import."""
    sql, expected = QUERIES[name]
    code = f"""
    ctx = session(allow_python_udfs=True)
    ctx.register_udf(dbl)
    ctx.register_udaf(total)
    ctx.register_udwf(running)
    ctx.register_udf(lengths)
    before = tasks()
    got = ctx.sql({sql!r}).to_pydict()
    answer([got, tasks() - before])
    """
    script = OPEN.format(table=str(split_table)) + FUNCTIONS + textwrap.dedent(code)
    got, ran = strategy.run(script, [w.url for w in open_workers])
    assert got == expected
    assert ran > 0


@pytest.mark.parametrize("session_allows", [False, True])
def test_refused_unless_both_sides_allow_it(
    strategy: Strategy, workers: list[WorkerProcess], split_table: Path, session_allows: bool
) -> None:
    """A worker runs no code from the network by default, and the error says what to switch on."""
    code = f"""
    ctx = session(allow_python_udfs={session_allows})
    ctx.register_udf(dbl)
    try:
        ctx.sql("SELECT sum(dbl(v)) AS s FROM t").collect()
    except Exception as error:
        answer([type(error).__name__, str(error)])
    else:
        answer(["ran", ""])
    """
    script = OPEN.format(table=str(split_table)) + FUNCTIONS + textwrap.dedent(code)
    kind, message = strategy.run(script, [w.url for w in workers])
    assert kind not in {"ran", "PanicException"}
    assert "--allow-python-udfs" in message
    assert "dbl" in message
