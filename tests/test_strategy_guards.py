"""Answers that distribution would change, as whole kinds: each was seen wrong on the bare engine 4.0.0."""

from __future__ import annotations

import gzip
import textwrap
from pathlib import Path

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strategy_helpers import Strategy, WorkerProcess

TINY = '{"datafusion.execution.target_partitions": "2", "distributed.file_scan_config_bytes_per_partition": "1"}'

REPEATS = 20
"""A row limit picked anew per task shows only now and then; 20 runs missed it in none of 10 tries without the guard."""


@pytest.fixture(scope="module")
def build_and_probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """build(id 0..99) and probe(5000 rows, id = i % 100), four files each."""
    root = tmp_path_factory.mktemp("limits")
    for name, rows in (("build", range(100)), ("probe", range(5000))):
        folder = root / name
        folder.mkdir()
        chunk = len(rows) // 4
        for part in range(4):
            ids = [i % 100 for i in rows[part * chunk : (part + 1) * chunk]]
            pq.write_table(pa.table({"id": ids}), folder / f"{part}.parquet")
    return root


@pytest.mark.parametrize(
    "join",
    [
        "JOIN probe p ON b.id = p.id",
        "RIGHT JOIN probe p ON b.id = p.id WHERE b.id IS NOT NULL",
        "JOIN probe p ON b.id = p.id AND b.id <= p.id",
    ],
)
def test_limit_below_a_join_is_applied_once(
    strategy: Strategy, workers: list[WorkerProcess], build_and_probe: Path, join: str
) -> None:
    """50 build rows match 50 probe rows each."""
    code = f"""
    ctx = make_context({TINY}, urls)
    for name in ("build", "probe"):
        ctx.register_parquet(name, {str(build_and_probe)!r} + "/" + name)
    sql = "SELECT count(*) AS n FROM (SELECT id FROM build LIMIT 50) b {join}"
    answer(sorted({{ctx.sql(sql).to_pydict()["n"][0] for _ in range({REPEATS})}}))
    """
    assert strategy.run(textwrap.dedent(code), [w.url for w in workers]) == [2500]


def test_session_settings_reach_the_workers(strategy: Strategy, workers: list[WorkerProcess], tmp_path: Path) -> None:
    """The session's time zone decides what a zoneless string means, wherever the expression runs."""
    folder = tmp_path / "strings"
    folder.mkdir()
    for part in range(4):
        pq.write_table(pa.table({"s": ["2024-01-01T23:30:00"] * 10}), folder / f"{part}.parquet")
    code = f"""
    ctx = make_context({TINY}, urls)
    ctx.register_parquet("t", {str(folder)!r})
    ctx.sql("SET datafusion.execution.time_zone = '+08:00'").collect()
    before = tasks()
    got = ctx.sql("SELECT DISTINCT CAST(to_timestamp(s) AS VARCHAR) AS x FROM t").to_pydict()
    answer([got, tasks() - before])
    """
    got, ran = strategy.run(textwrap.dedent(code), [w.url for w in workers])
    single = datafusion.SessionContext()
    single.register_parquet("t", str(folder))
    single.sql("SET datafusion.execution.time_zone = '+08:00'").collect()
    assert got == single.sql("SELECT DISTINCT CAST(to_timestamp(s) AS VARCHAR) AS x FROM t").to_pydict()
    assert "+08:00" in got["x"][0]
    assert ran > 0


@pytest.mark.parametrize(
    ("options", "write", "suffix"),
    [
        ({"file_compression_type": "gzip", "file_extension": ".gz"}, "gzip", ".csv.gz"),
        ({"delimiter": "|"}, "pipe", ".csv"),
        ({}, "plain", ".csv"),
    ],
)
def test_csv_reader_options_survive(
    strategy: Strategy, workers: list[WorkerProcess], tmp_path: Path, options: dict[str, str], write: str, suffix: str
) -> None:
    """What the wire format drops keeps a table on the coordinator; the rest is distributed. Either way it is right."""
    folder = tmp_path / "csv"
    folder.mkdir()
    for part in range(3):
        separator = "|" if write == "pipe" else ","
        text = f"id{separator}name\n" + "".join(f"{part * 100 + i}{separator}n{i}\n" for i in range(100))
        path = folder / f"{part}{suffix}"
        if write == "gzip":
            path.write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text)
    code = f"""
    ctx = make_context({TINY}, urls)
    ctx.register_csv("c", {str(folder)!r}, has_header=True, **{options!r})
    answer(ctx.sql("SELECT count(*) AS n, sum(id) AS s FROM c WHERE id >= 0").to_pydict())
    """
    assert strategy.run(textwrap.dedent(code), [w.url for w in workers]) == {"n": [300], "s": [sum(range(300))]}


def test_deep_plans_answer(strategy: Strategy, workers: list[WorkerProcess], split_table: Path) -> None:
    """30 rounds of aggregate, filter and projection nest deeper than protobuf decodes: they stay on the coordinator."""
    code = f"""
    ctx = make_context({TINY}, urls)
    ctx.register_parquet("t", {str(split_table)!r})
    from importlib import import_module
    f = import_module(df.__name__ + ".functions")
    frame = ctx.table("t")
    for _ in range(30):
        frame = (frame.filter(df.col("v") > df.lit(0)).aggregate([df.col("k")], [f.max(df.col("v")).alias("m")])
                 .select(df.col("k"), (df.col("m") + df.lit(1)).alias("v")))
    answer(frame.aggregate([], [f.sum(df.col("v")).alias("s")]).to_pydict())
    """
    got = strategy.run(textwrap.dedent(code), [w.url for w in workers])
    assert got == {"s": [sum(range(990, 1000)) + 300]}


ORDERED_BY_EQUALITY = (
    "SELECT a.v, sum(b.v) OVER (PARTITION BY b.k, a.k ORDER BY a.v) AS s FROM t a JOIN t b ON a.k = b.k AND a.v = b.v",
    """SELECT rank() OVER (PARTITION BY a.v ORDER BY a.k) m, rank() OVER (PARTITION BY b.v ORDER BY a.k) n
    FROM t a JOIN t b ON a.v = b.v""",
    "SELECT v, sum(v) OVER (PARTITION BY k, v ORDER BY v) AS s FROM t WHERE k = 3",
)


@pytest.mark.parametrize("query", ORDERED_BY_EQUALITY)
def test_a_window_ordered_by_an_equality_below_an_exchange(
    strategy: Strategy, workers: list[WorkerProcess], split_table: Path, query: str
) -> None:
    """A worker sees columns and not that two are equal, nor that one is constant: such a window stays local."""
    code = f"""
    ctx, plain = make_context({TINY}, urls), df.SessionContext()
    for each in (ctx, plain):
        each.register_parquet("t", {str(split_table)!r})
    answer([sorted(map(str, each.sql({query!r}).to_pylist())) for each in (ctx, plain)])
    """
    ours, alone = strategy.run(textwrap.dedent(code), [w.url for w in workers])
    assert ours
    assert ours == alone


UNSENDABLE_OPERATORS = (
    (
        "enable_window_topn",
        "SELECT v, n FROM (SELECT v, row_number() OVER (PARTITION BY k ORDER BY v) n FROM t) WHERE n <= 1",
    ),
    ("enable_piecewise_merge_join", "SELECT count(*) AS n FROM t a JOIN t b ON a.v < b.v"),
)


@pytest.mark.parametrize(("option", "query"), UNSENDABLE_OPERATORS)
def test_operators_without_a_wire_form_stay_local(
    strategy: Strategy, workers: list[WorkerProcess], split_table: Path, option: str, query: str
) -> None:
    """The engine would let the workers wait ten seconds for a plan that cannot be encoded, and then name neither."""
    code = f"""
    ctx = make_context({{**{TINY}, "datafusion.optimizer.{option}": "true"}}, urls)
    plain = df.SessionContext()
    for each in (ctx, plain):
        each.register_parquet("t", {str(split_table)!r})
    answer([sorted(map(str, each.sql({query!r}).to_pylist())) for each in (ctx, plain)])
    """
    ours, alone = strategy.run(textwrap.dedent(code), [w.url for w in workers])
    assert ours == alone


def test_strict_session_refuses_what_stays_local(
    strategy: Strategy, workers: list[WorkerProcess], tmp_path: Path
) -> None:
    """Strict turns a silent local run into an error that says why."""
    folder = tmp_path / "gz"
    folder.mkdir()
    (folder / "0.csv.gz").write_bytes(gzip.compress(b"id\n1\n2\n"))
    code = f"""
    from importlib import import_module
    build = {{
        "datafusion.distributed": lambda: df.SessionContext(df.SessionConfig().with_distributed(urls, strict=True)),
        "datafusion_external": lambda: df.DistributedSessionContext(workers=urls, strict=True),
        "datafusion_decorator": lambda: import_module(package).distributed(df.SessionContext(), urls, strict=True),
    }}
    ctx = build[package]()
    ctx.register_csv("c", {str(folder)!r}, file_compression_type="gzip", file_extension=".gz")
    try:
        ctx.sql("SELECT sum(id) FROM c").collect()
    except Exception as error:
        answer(str(error))
    else:
        answer("ran")
    """
    message = strategy.run(textwrap.dedent(code), [w.url for w in workers])
    assert "strict" in message
    assert "compression" in message


ONE_PARTITION = """
import pyarrow as pa, pyarrow.parquet as pq, tempfile
folder = tempfile.mkdtemp()
pq.write_table(pa.table({"id": list(range(4000))}), folder + "/t.parquet", row_group_size=1000)
options = {"datafusion.execution.target_partitions": "2", "distributed.file_scan_config_bytes_per_partition": "1"}
ctx = make_context({**options, **%r}, urls)
ctx.register_parquet("t", folder)
before = tasks()
got = ctx.sql(%r).to_pydict()
answer([got, tasks() - before])
"""


@pytest.mark.parametrize(
    ("sql", "settings", "right"),
    [
        (
            (
                "SELECT k, max(n) AS n FROM (SELECT id % 3 AS k, row_number() OVER (ORDER BY id) AS n FROM t) "
                "GROUP BY k ORDER BY k"
            ),
            {},
            {"k": [0, 1, 2], "n": [4000, 3998, 3999]},
        ),
        (
            (
                "SELECT k, max(n) AS n FROM (SELECT id % 3 AS k, sum(id) OVER (ORDER BY id) AS n FROM t) "
                "GROUP BY k ORDER BY k"
            ),
            {},
            {"k": [0, 1, 2], "n": [sum(range(4000)), sum(range(3998)), sum(range(3999))]},
        ),
        (
            (
                "SELECT k, max(n) AS n FROM (SELECT id % 3 AS k, row_number() OVER (PARTITION BY id % 2 ORDER BY id) "
                "AS n FROM t) GROUP BY k ORDER BY k"
            ),
            {},
            {"k": [0, 1, 2], "n": [2000, 1999, 2000]},
        ),
        (
            "SELECT k, count(*) AS n FROM (SELECT id % 3 AS k FROM t LIMIT 7) GROUP BY k ORDER BY k",
            {},
            {"k": [0, 1, 2], "n": [3, 2, 2]},
        ),
        (
            "SELECT id % 2 AS k, count(*) AS n FROM (SELECT id FROM t LIMIT 5 OFFSET 3) GROUP BY 1 ORDER BY 1",
            {},
            {"k": [0, 1], "n": [2, 3]},
        ),
        (
            (
                "SELECT k, rank() OVER (PARTITION BY k ORDER BY k) AS n FROM (SELECT DISTINCT id % 3 AS k FROM t) "
                "ORDER BY k"
            ),
            {"datafusion.optimizer.repartition_aggregations": "false"},
            {"k": [0, 1, 2], "n": [1, 1, 1]},
        ),
        (
            (
                "SELECT k, n, rank() OVER (PARTITION BY n ORDER BY k) AS r FROM "
                "(SELECT id % 3 AS k, count(*) AS n FROM t GROUP BY id % 3) ORDER BY k"
            ),
            {"datafusion.optimizer.repartition_aggregations": "false"},
            {"k": [0, 1, 2], "n": [1334, 1333, 1333], "r": [1, 1, 2]},
        ),
        (
            (
                "SELECT a.id FROM t a CROSS JOIN (SELECT count(*) AS n FROM t WHERE id < 10) b "
                "WHERE a.id < b.n ORDER BY a.id"
            ),
            {},
            {"id": list(range(10))},
        ),
    ],
)
@pytest.mark.parametrize("round_robin", ["true", "false"])
def test_what_needs_all_rows_in_one_place_has_them(
    strategy: Strategy,
    workers: list[WorkerProcess],
    sql: str,
    settings: dict[str, str],
    right: dict[str, list[int]],
    round_robin: str,
) -> None:
    """A file of one partition satisfies every requirement without an exchange; split over tasks, it no longer does."""
    settings = {**settings, "datafusion.optimizer.enable_round_robin_repartition": round_robin}
    got, _ = strategy.run(ONE_PARTITION % (settings, sql), [w.url for w in workers])
    assert got == right


def test_a_column_that_the_reader_makes_stays_on_the_coordinator(
    strategy: Strategy, workers: list[WorkerProcess], split_table: Path
) -> None:
    code = f"""
    ctx = make_context({{"distributed.file_scan_config_bytes_per_partition": "1"}}, urls)
    ctx.register_parquet("t", {str(split_table)!r})
    frame = ctx.table("t").select(df.functions.file_row_index().alias("i"))
    rows = sorted(frame.to_pydict()["i"])
    answer([rows, plan_info(frame)["distributed"]])
    """
    rows, told = strategy.run(textwrap.dedent(code), [w.url for w in workers])
    assert rows == sorted(list(range(250)) * 4)
    assert told is False


def test_a_query_as_a_table_of_another_one(strategy: Strategy, workers: list[WorkerProcess], split_table: Path) -> None:
    """A temporary view is planned inside of the plan that reads it: one distributed plan within another is none."""
    code = f"""
    ctx = make_context({{"datafusion.execution.target_partitions": "2",
                         "distributed.file_scan_config_bytes_per_partition": "1"}}, urls)
    ctx.register_parquet("t", {str(split_table)!r})
    view = ctx.sql("SELECT k, sum(v) AS s FROM t GROUP BY k").into_view(temporary=True)
    ctx.register_table("w", view)
    joined = "SELECT count(*) AS n, sum(w.s) AS s FROM t JOIN w ON t.k = w.k WHERE t.v < 100"
    answer([ctx.sql("SELECT sum(s) AS s FROM w").to_pydict(), ctx.sql(joined).to_pydict()])
    """
    one, two = strategy.run(textwrap.dedent(code), [w.url for w in workers])
    assert one == {"s": [sum(range(1000))]}
    assert two == {"n": [100], "s": [10 * sum(range(1000))]}


def test_a_pattern_in_a_path_reads_only_what_it_names(
    strategy: Strategy, workers: list[WorkerProcess], split_table: Path, tmp_path: Path
) -> None:
    """Another file beside them is not part of the table, however the table was made."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    for path in split_table.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    pq.write_table(pa.table({"k": [0], "v": [10**9]}), folder / "other.parquet")
    pattern = str(folder / "[0-9].parquet")
    code = f"""
    ctx = make_context({{"datafusion.execution.target_partitions": "2",
                         "distributed.file_scan_config_bytes_per_partition": "1"}}, urls)
    def told(read):
        try:
            return read()
        except NotImplementedError as error:
            return str(error)
    def registered():
        ctx.register_parquet("t", {pattern!r})
        return ctx.sql("SELECT k, max(v) AS v FROM t GROUP BY k ORDER BY v DESC LIMIT 1").to_pydict()
    def external():
        ctx.sql("CREATE EXTERNAL TABLE u STORED AS PARQUET LOCATION '{pattern}'")
        return ctx.sql("SELECT k, v FROM u WHERE v > 998").to_pydict()
    def read():
        return ctx.read_parquet({pattern!r}).filter(df.col("v") > 998).to_pydict()
    answer([told(registered), told(external), told(read)])
    """
    answers = strategy.run(textwrap.dedent(code), [w.url for w in workers])
    if strategy.name == "decorator":
        # Its limit: the wire format of a logical plan has no place for the pattern. Refused, never answered wrongly.
        assert all("pattern" in answer for answer in answers)
    else:
        assert answers == [{"k": [9], "v": [999]}] * 3
