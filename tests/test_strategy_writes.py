"""Statements that change something, in each strategy: workers compute what is written, and the right rows arrive.

Every write is looked at from two sides: the counters of the workers moved, and what was written equals what single-node
datafusion answers to the same query.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest

from strategy_helpers import OPEN, Strategy, WorkerProcess

QUERY = "SELECT k, sum(v) AS s, count(*) AS n FROM t GROUP BY k"
COLUMNS = ("k", "s", "n")

COUNTED = """
ctx = session()
done = {}
def counted(name, write):
    before = tasks()
    result = write()
    done[name] = [result, tasks() - before]
"""

MEMORY_LIMIT_BYTES = 150_000_000
"""Growth of a process that writes 240 MB of rows in batches. Collected rows would be all of it; seen: about 60 MB."""


def rows(table: Any) -> list[tuple[Any, ...]]:
    """Rows of a frame, ordered."""
    return sorted(tuple(row[name] for name in COLUMNS) for row in table.to_pylist())


@pytest.fixture(scope="module")
def expected(split_table: Path) -> list[tuple[Any, ...]]:
    """What single-node datafusion answers to `QUERY`."""
    ctx = datafusion.SessionContext()
    ctx.register_parquet("t", str(split_table))
    return rows(ctx.sql(QUERY))


def run(strategy: Strategy, workers: list[WorkerProcess], table: Path, code: str) -> Any:
    """Run `code` with a session and `counted`."""
    script = OPEN.format(table=str(table)) + COUNTED + textwrap.dedent(code)
    return strategy.run(script, [worker.url for worker in workers])


def read(path: Path, kind: str) -> list[tuple[Any, ...]]:
    """Rows of written files, read by single-node datafusion."""
    ctx = datafusion.SessionContext()
    if kind == "csv":
        return rows(ctx.read_csv(str(path), has_header=True))
    return rows(ctx.read_json(str(path)) if kind == "json" else ctx.read_parquet(str(path)))


def assert_workers_ran(strategy: Strategy, done: dict[str, list[Any]]) -> None:
    """Each write moved the workers' counters."""
    for name, (_, ran) in done.items():
        assert ran > 0, f"{strategy.name}: {name} ran without any worker"


def test_frames_are_written_by_workers_rows(
    strategy: Strategy, workers: list[WorkerProcess], split_table: Path, tmp_path: Path, expected: list[Any]
) -> None:
    """Every `write_*` of a frame, into one file, a folder and tables."""
    done = run(
        strategy,
        workers,
        split_table,
        f"""
        frame, out = ctx.sql({QUERY!r}), {str(tmp_path)!r}
        options = import_module(df.__name__ + ".dataframe").DataFrameWriteOptions
        parquet = import_module(df.__name__ + ".dataframe").ParquetWriterOptions
        counted("parquet", lambda: frame.write_parquet(out + "/a.parquet"))
        counted("folder", lambda: frame.write_parquet(out + "/folder/", compression="snappy"))
        counted("options", lambda: frame.write_parquet(out + "/o.parquet", parquet(compression="gzip(3)")))
        counted("csv", lambda: frame.write_csv(out + "/a.csv", with_header=True))
        counted("json", lambda: frame.write_json(out + "/a.json"))
        ctx.sql("CREATE TABLE target (k BIGINT, s BIGINT, n BIGINT)").collect()
        counted("table", lambda: frame.write_table("target"))
        counted("derived", lambda: frame.filter(df.col("k") < df.lit(3)).write_parquet(out + "/d.parquet"))
        answer([done, ctx.table("target").to_pylist()])
        """,
    )
    done, target = done
    assert_workers_ran(strategy, done)
    for path in ("a.parquet", "folder", "o.parquet"):
        assert read(tmp_path / path, "parquet") == expected, path
    for kind in ("csv", "json"):
        assert read(tmp_path / f"a.{kind}", kind) == expected, kind
    assert read(tmp_path / "d.parquet", "parquet") == [row for row in expected if row[0] < 3]
    assert sorted(tuple(row[name] for name in COLUMNS) for row in target) == expected


def test_copy_statements(
    strategy: Strategy, workers: list[WorkerProcess], split_table: Path, tmp_path: Path, expected: list[Any]
) -> None:
    """COPY of a query and of a table, with formats, options, partitions and a file name that needs quotes."""
    done = run(
        strategy,
        workers,
        split_table,
        f"""
        out = {str(tmp_path)!r}
        def copy(name, statement):
            counted(name, lambda: ctx.sql(statement.replace("OUT", out)).to_pydict()["count"])
        query = {QUERY!r}
        copy("parquet", f"COPY ({{query}}) TO 'OUT/a.parquet' OPTIONS ('compression' 'zstd(3)')")
        copy("csv", f"copy ({{query}}) to 'OUT/it''s.csv' stored as csv options ('format.has_header' 'true')")
        copy("json", f"COPY ({{query}}) TO 'OUT/a.json'")
        copy("parts", f"COPY ({{query}}) TO 'OUT/parts/' STORED AS PARQUET PARTITIONED BY (k)")
        copy("table", "COPY t TO 'OUT/t.parquet'")
        answer(done)
        """,
    )
    assert_workers_ran(strategy, {name: ran for name, ran in done.items() if name != "table"})
    assert {name: count for name, (count, _) in done.items()} == {
        "parquet": [10],
        "csv": [10],
        "json": [10],
        "parts": [10],
        "table": [1000],
    }
    assert read(tmp_path / "a.parquet", "parquet") == expected
    assert read(tmp_path / "it's.csv", "csv") == expected
    assert read(tmp_path / "a.json", "json") == expected
    ctx = datafusion.SessionContext()
    ctx.register_parquet("p", str(tmp_path / "parts"), table_partition_cols=[("k", pa.int64())])
    assert rows(ctx.sql("SELECT k, s, n FROM p")) == expected
    whole = ctx.read_parquet(str(tmp_path / "t.parquet")).to_pydict()
    assert sorted(whole["v"]) == list(range(1000))


def test_insert_statements(
    strategy: Strategy, workers: list[WorkerProcess], split_table: Path, tmp_path: Path, expected: list[Any]
) -> None:
    """INSERT into tables in memory and in files; a prepared frame inserts each time it is collected."""
    done, contents = run(
        strategy,
        workers,
        split_table,
        f"""
        query, out = {QUERY!r}, {str(tmp_path)!r}
        ctx.sql('CREATE TABLE "Memory" (k BIGINT, s BIGINT, n BIGINT, extra VARCHAR)').collect()
        ctx.sql(f"CREATE EXTERNAL TABLE files (k BIGINT, s BIGINT, n BIGINT) STORED AS PARQUET LOCATION '{{out}}/f/'")
        frame = ctx.sql(f'INSERT INTO "Memory" (s, k, n) SELECT s, k, n FROM ({{query}})')
        counted("memory", lambda: frame.to_pydict()["count"])
        counted("again", lambda: frame.to_pydict()["count"])
        counted("files", lambda: ctx.sql(f"INSERT INTO files {{query}}").to_pydict()["count"])
        ctx.sql("CREATE TABLE kept (k BIGINT, s BIGINT, n BIGINT)").collect()
        counted("overwrite", lambda: ctx.sql(f"INSERT INTO kept {{query}}").to_pydict()["count"])
        values = ctx.sql("INSERT INTO kept VALUES (-1, -2, -3)").to_pydict()["count"]
        answer([done, {{"memory": ctx.table('"Memory"').to_pylist(), "files": ctx.table("files").to_pylist(),
                        "kept": ctx.table("kept").to_pylist(), "values": values}}])
        """,
    )
    assert_workers_ran(strategy, done)
    assert {count[0] for count, _ in done.values()} == {10}

    def told(name: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row[column] for column in COLUMNS) for row in contents[name])

    assert told("memory") == sorted(expected * 2)
    assert {row["extra"] for row in contents["memory"]} == {None}
    assert told("files") == expected
    assert told("kept") == sorted([*expected, (-1, -2, -3)])
    assert contents["values"] == [1]


def test_tables_and_views_made_from_queries(
    strategy: Strategy, workers: list[WorkerProcess], split_table: Path, expected: list[Any]
) -> None:
    """CREATE TABLE AS computes on workers at once, a view each time it is read."""
    done, contents = run(
        strategy,
        workers,
        split_table,
        f"""
        counted("ctas", lambda: ctx.sql({"CREATE TABLE made AS " + QUERY!r}).collect() and None)
        ctx.sql({"CREATE VIEW seen AS " + QUERY!r}).collect()
        counted("view", lambda: ctx.table("seen").to_pylist())
        answer([done, ctx.table("made").to_pylist()])
        """,
    )
    assert_workers_ran(strategy, done)
    for table in (contents, done["view"][0]):
        assert sorted(tuple(row[name] for name in COLUMNS) for row in table) == expected


def test_explain_of_a_write_shows_the_workers(
    strategy: Strategy, workers: list[WorkerProcess], split_table: Path, tmp_path: Path, expected: list[Any]
) -> None:
    """EXPLAIN shows sink and distribution and writes nothing; EXPLAIN ANALYZE writes."""
    plain, analyzed, ran, exists = run(
        strategy,
        workers,
        split_table,
        f"""
        path = {str(tmp_path / "e.parquet")!r}
        plan = ctx.sql(f"EXPLAIN COPY ({QUERY}) TO '{{path}}'").to_pydict()["plan"][-1]
        exists = os.path.exists(path)
        before = tasks()
        analyzed = ctx.sql(f"EXPLAIN ANALYZE COPY ({QUERY}) TO '{{path}}'").to_pydict()["plan"][-1]
        answer([plan, analyzed, tasks() - before, exists])
        """,
    )
    for text in (plain, analyzed):
        assert "DataSinkExec" in text
        assert "Distributed" in text
    assert not exists
    assert ran > 0
    assert read(tmp_path / "e.parquet", "parquet") == expected


def test_a_failing_query_writes_no_rows(strategy: Strategy, workers: list[WorkerProcess], split_table: Path) -> None:
    """An error on a worker is the error of the write, and the target stays as it was."""
    message, left = run(
        strategy,
        workers,
        split_table,
        """
        ctx.sql("CREATE TABLE target (x BIGINT)").collect()
        try:
            ctx.sql("INSERT INTO target SELECT sum(10 / (v - 500)) FROM t GROUP BY k").collect()
            message = "no error"
        except Exception as error:
            message = str(error)
        answer([message, ctx.sql("SELECT count(*) AS n FROM target").to_pydict()["n"]])
        """,
    )
    assert "ivide by zero" in message
    assert left == [0]


def test_rows_stream_into_the_file(
    strategy: Strategy, workers: list[WorkerProcess], split_table: Path, tmp_path: Path
) -> None:
    """Ten million rows are written without being held."""
    grown, ran = run(
        strategy,
        workers,
        split_table,
        f"""
        import resource
        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        # What connections may hold is a budget of its own, 64 MiB each.
        ctx.sql("SET distributed.worker_connection_buffer_budget_bytes = 1048576").collect()
        ctx.sql({QUERY!r}).write_parquet({str(tmp_path / "warm.parquet")!r})
        before, started = peak(), tasks()
        many = "SELECT a.v AS x, b.v AS y, c.v AS z FROM t a CROSS JOIN t b CROSS JOIN (SELECT v FROM t WHERE v < 10) c"
        ctx.sql(many).write_parquet({str(tmp_path / "big.parquet")!r}, compression="uncompressed")
        answer([peak() - before, tasks() - started])
        """,
    )
    ctx = datafusion.SessionContext()
    ctx.register_parquet("big", str(tmp_path / "big.parquet"))
    assert ctx.sql("SELECT count(*) AS n, sum(x) AS x, sum(z) AS z FROM big").to_pydict() == {
        "n": [10_000_000],
        "x": [sum(range(1000)) * 10_000],
        "z": [45 * 1_000_000],
    }
    assert ran > 0
    assert grown < MEMORY_LIMIT_BYTES, f"{strategy.name} grew by {grown} bytes"


def test_set_changes_later_queries(strategy: Strategy, workers: list[WorkerProcess], split_table: Path) -> None:
    """`SET distributed.*` works on the session, and wrong keys and values are refused with what would be right."""
    shapes, errors, after = run(
        strategy,
        workers,
        split_table,
        f"""
        def shape():
            return plan_info(ctx.sql({QUERY!r}))["distributed"]
        shapes = [shape()]
        ctx.sql("SET distributed.file_scan_config_bytes_per_partition = 1073741824").collect()
        shapes.append(shape())
        ctx.sql("SET distributed.file_scan_config_bytes_per_partition TO '1'").collect()
        shapes.append(shape())
        errors = {{}}
        for statement in ("SET distributed.compresion = 'lz4'", "SET distributed.max_tasks_per_stage = 'many'",
                          "SET distributedx.y = 1"):
            try:
                ctx.sql(statement).collect()
                errors[statement] = None
            except Exception as error:
                errors[statement] = [type(error).__name__, str(error)]
        answer([shapes, errors, shape()])
        """,
    )
    assert shapes == [True, False, True]
    assert after
    unknown, value, namespace = errors.values()
    assert unknown is not None, "an unknown option was accepted"
    assert "compresion" in unknown[1]
    assert value is not None, "a number was expected, 'many' was accepted"
    assert namespace is not None
    assert "namespace" in namespace[1]
    assert all(error[0] == "ValueError" for error in (unknown, namespace)), errors
    assert all("Panic" not in error[0] for error in errors.values())
