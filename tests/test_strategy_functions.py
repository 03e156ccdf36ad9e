"""Functions written in Python, sent by value to workers that are other processes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from strategy_helpers import Strategy, WorkerProcess, cluster

OPEN = """
from importlib import import_module
import pyarrow as pa, pyarrow.compute as pc
def session(**options):
    options = {{"options": {{"distributed.file_scan_config_bytes_per_partition": "1"}}, **options}}
    config = df.SessionConfig().with_target_partitions(2)
    if package == "datafusion.distributed":
        ctx = df.SessionContext(config.with_distributed(urls, **options))
    elif package == "datafusion_external":
        ctx = df.DistributedSessionContext(workers=urls, config=config, **options)
    else:
        ctx = import_module(package).distributed(df.SessionContext(config), urls, **options)
    ctx.register_parquet("t", {table!r})
    return ctx
"""

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
"""

QUERIES = {
    "scalar": ("SELECT sum(dbl(v)) AS s FROM t", {"s": [3 * sum(range(1000))]}),
    "scalar_in_filter": ("SELECT count(*) AS n FROM t WHERE dbl(v) < 30", {"n": [10]}),
    "aggregate": (
        "SELECT k, total(v) AS s FROM t GROUP BY k ORDER BY k",
        {"k": list(range(10)), "s": [sum(range(k, 1000, 10)) for k in range(10)]},
    ),
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
