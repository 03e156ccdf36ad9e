"""The `decorator` strategy's classes: they are the stock ones with an addition, and nothing loses it on the way."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.environments import ArmEnvironment
from strategy_helpers import OPEN, Strategy, WorkerProcess, cluster

QUERY = "SELECT k, sum(v) AS s FROM t GROUP BY k"

SETUP = """
from datafusion_decorator import DistributedExtension, distributed
from datafusion_decorator.session import DistributedDataFrame, DistributedSessionContext
query = "SELECT k, sum(v) AS s FROM t GROUP BY k"
def raised(call):
    try:
        call()
    except Exception as error:
        return [type(error).__name__, str(error)]
    return None
from datafusion import functions as f
EMPTY = "SELECT unnest(make_array(k, v)) AS u FROM t WHERE 1 IS NULL"
def deep(ctx):
    frame = ctx.table("t")
    for _ in range(30):
        frame = (frame.aggregate([df.col("k")], [f.max(df.col("v")).alias("m")])
                 .select(df.col("k"), (df.col("m") + df.lit(1)).alias("v")))
    return frame.sort(df.col("k"))
def lambdas(ctx):
    array = f.make_array(df.col("v"), df.lit(2))
    return ctx.table("t").select(f.any_match(array, lambda x: x > df.lit(1)).alias("a"), df.col("v")).sort(df.col("v"))
def empty(ctx):
    return ctx.sql(EMPTY)
KINDS = [deep, lambdas, empty]
"""


@pytest.fixture(scope="module")
def decorator(environments: dict[str, ArmEnvironment]) -> Strategy:
    """The strategy that this file is about."""
    python = environments["decorator"].python
    assert python is not None
    return Strategy("decorator", python)


@pytest.fixture(scope="module")
def urls(decorator: Strategy) -> Iterator[list[str]]:
    """Two worker processes."""

    def url(worker: WorkerProcess) -> str:
        return worker.url

    with cluster(decorator, 2) as processes:
        yield [url(process) for process in processes]


def run(decorator: Strategy, urls: list[str], table: Path, code: str) -> Any:
    """Run `code` with `session()` defined."""
    return decorator.run(OPEN.format(table=str(table)) + SETUP + textwrap.dedent(code), urls)


def test_decorated_objects_are_stock_objects(decorator: Strategy, urls: list[str], split_table: Path) -> None:
    """Contexts and frames, however derived, are instances of the stock classes and of ours."""
    kinds, ways = run(
        decorator,
        urls,
        split_table,
        """
        ctx = session()
        frame = ctx.sql(query)
        contexts = {
            "distributed": ctx,
            "with_extensions": ctx.with_extensions(),
            "inlining": ctx.with_python_udf_inlining(enabled=True),
            "urls": ctx.enable_url_table(),
        }
        frames = {
            "sql": frame, "table": ctx.table("t"), "from_pydict": ctx.from_pydict({"a": [1]}),
            "select": frame.select("k"), "getitem": frame["k"], "filter": frame.filter(df.col("k") > df.lit(1)),
            "sort": frame.sort("k"), "limit": frame.limit(2), "join": frame.join(ctx.from_pydict({"k": [1]}), on="k"),
            "union": frame.union(frame), "distinct": frame.distinct(), "describe": frame.describe(),
            "cache": frame.cache(), "alias": frame.alias("x"), "transform": frame.transform(lambda f: f.head(1)),
            "again": contexts["inlining"].sql(query), "copy": ctx.sql("COPY t TO '/nowhere/x.csv'"),
            "plan": ctx.create_dataframe_from_logical_plan(frame.logical_plan()),
        }
        kinds = {name: [isinstance(x, df.SessionContext), isinstance(x, DistributedSessionContext)]
                 for name, x in contexts.items()}
        ways = {name: [isinstance(x, df.DataFrame), isinstance(x, DistributedDataFrame)] for name, x in frames.items()}
        answer([kinds, ways])
        """,
    )
    assert all(all(of) for of in kinds.values()), kinds
    assert all(all(of) for of in ways.values()), ways


def test_every_stock_method_that_returns_a_frame_is_decorated(
    decorator: Strategy, urls: list[str], split_table: Path
) -> None:
    """A method that a later 55.x adds is decorated too, as long as it says that it returns a frame."""
    told = run(
        decorator,
        urls,
        split_table,
        """
        import inspect
        missing = []
        for stock, ours in ((df.SessionContext, DistributedSessionContext), (df.DataFrame, DistributedDataFrame)):
            for name, method in vars(stock).items():
                told = getattr(method, "__annotations__", {}).get("return")
                if inspect.isfunction(method) and told in ("DataFrame", "SessionContext") and name not in vars(ours):
                    missing.append(name)
        writers = [name for name in vars(df.DataFrame) if name.startswith("write_")]
        answer([missing, writers, [name for name in writers if name not in vars(DistributedDataFrame)],
                inspect.signature(DistributedDataFrame.write_csv) == inspect.signature(df.DataFrame.write_csv)])
        """,
    )
    missing, writers, plain, same = told
    assert missing == []
    assert len(writers) >= 5
    assert plain == []
    assert same


def test_an_extension_bundle_decorates_too(
    decorator: Strategy, urls: list[str], split_table: Path, tmp_path: Path
) -> None:
    """`with_extensions`, alone and beside another bundle, gives a context that writes what workers compute."""
    told = run(
        decorator,
        urls,
        split_table,
        f"""
        class Other:
            def __datafusion_session_components__(self, ctx):
                return df.SessionExtensionComponents()
        small = {{"distributed.file_scan_config_bytes_per_partition": "1"}}
        told = []
        for name, bundles in (("alone", lambda ours: [ours]), ("first", lambda ours: [ours, Other()]),
                              ("last", lambda ours: [Other(), ours])):
            ctx = df.SessionContext().with_extensions(*bundles(DistributedExtension(urls, options=small)))
            ctx.register_parquet("t", {str(split_table)!r})
            before = tasks()
            ctx.sql(query).write_parquet({str(tmp_path)!r} + "/" + name + ".parquet")
            told.append([isinstance(ctx, DistributedSessionContext), tasks() - before])
        answer(told)
        """,
    )
    assert all(decorated and ran > 0 for decorated, ran in told), told
    assert {path.name for path in tmp_path.iterdir()} == {"alone.parquet", "first.parquet", "last.parquet"}


def test_a_handle_that_is_not_decorated_refuses_to_write(
    decorator: Strategy, urls: list[str], split_table: Path, tmp_path: Path
) -> None:
    """The stock context that was given to `distributed` shares the session, and never writes on one node."""
    insert, explain, copy, prepared, left = run(
        decorator,
        urls,
        split_table,
        f"""
        plain = df.SessionContext()
        ctx = distributed(plain, urls, options={{"distributed.file_scan_config_bytes_per_partition": "1"}})
        plain.register_parquet("t", {str(split_table)!r})
        plain.sql("CREATE TABLE target (k BIGINT, s BIGINT)").collect()
        insert = raised(lambda: plain.sql("INSERT INTO target " + query).collect())
        explain = raised(lambda: plain.sql("EXPLAIN ANALYZE INSERT INTO target " + query).collect())
        copy = raised(lambda: plain.sql(query).write_parquet({str(tmp_path / "x.parquet")!r}))
        ctx.sql("PREPARE p AS INSERT INTO target " + query).collect()
        prepared = raised(lambda: ctx.sql("EXECUTE p").collect())
        answer([insert, explain, copy, prepared, ctx.table("target").count()])
        """,
    )
    for error in (insert, explain):
        assert error is not None
        assert "distributed(...)" in error[1]
    assert copy is not None
    assert "Panic" not in copy[0]
    assert prepared is not None
    assert "INSERT" in prepared[1]
    assert left == 0
    assert list(tmp_path.iterdir()) == []


def test_changes_made_by_the_table_itself(decorator: Strategy, urls: list[str], split_table: Path) -> None:
    """DELETE and UPDATE have no query to distribute: they give what the stock session gives."""
    ours, stock = run(
        decorator,
        urls,
        split_table,
        """
        def changed(ctx):
            told = []
            ctx.sql("CREATE TABLE m AS SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, 'c')) v(n, s)").collect()
            for statement in ("DELETE FROM m WHERE n = 1", "UPDATE m SET s = 'z' WHERE n = 2", "EXPLAIN DELETE FROM m",
                              "TRUNCATE TABLE m"):
                try:
                    told.append([len(ctx.sql(statement).collect()), sorted(map(str, ctx.table("m").to_pylist()))])
                except Exception as error:
                    told.append(str(error))
            return told
        answer([changed(session()), changed(df.SessionContext())])
        """,
    )
    assert ours == stock


def test_a_frame_keeps_its_session_alive(decorator: Strategy, urls: list[str], split_table: Path) -> None:
    """A frame of a context that nobody holds still runs and writes; when both are gone, so is the session."""
    rows, inserted, held = run(
        decorator,
        urls,
        split_table,
        """
        import gc, weakref
        gc.disable()
        ctx = session()
        ctx.sql("CREATE TABLE target (k BIGINT, s BIGINT)").collect()
        frame, insert, gone = ctx.sql(query), ctx.sql("INSERT INTO target " + query), weakref.ref(ctx)
        del ctx
        rows, inserted = len(frame.to_pylist()), insert.to_pydict()["count"]
        del frame, insert
        plan_info(session().sql(query))  # what a plan held is let go at the next call into this library
        answer([rows, inserted, gone() is not None])
        """,
    )
    assert rows == 10
    assert inserted == [10]
    assert not held, "a context that nobody uses waits for the garbage collector"


def test_options_belong_to_one_session(decorator: Strategy, urls: list[str], split_table: Path) -> None:
    """SET reaches every handle on a session, and no other session; RESET goes back to what was given; SHOW tells."""
    shown, others, back, typo, refused = run(
        decorator,
        urls,
        split_table,
        """
        extension = DistributedExtension(urls, options={"compression": "zstd"})
        one, two = df.SessionContext().with_extensions(extension), df.SessionContext().with_extensions(extension)
        handle = one.with_python_udf_inlining(enabled=True)
        def show(ctx):
            return ctx.sql("SHOW distributed.compression").to_pydict()["value"][0]
        one.sql("set Distributed.Compression to lz4").collect()
        shown, others = [show(one), show(handle)], show(two)
        one.sql("RESET distributed.compression")
        no_statements = df.SQLOptions().with_allow_statements(False)
        refused = raised(lambda: one.sql("SET distributed.compression = 'none'", no_statements))
        answer([shown, others, show(one), raised(lambda: one.sql("SET distributed.compresion = 'lz4'")), refused])
        """,
    )
    assert shown == ["lz4", "lz4"]
    assert others == "zstd"
    assert back == "zstd"
    assert typo[0] == "ValueError"
    assert "did you mean 'compression'" in typo[1]
    assert refused is not None
    assert "not supported" in refused[1]


def test_frames_as_parameters_and_views(decorator: Strategy, urls: list[str], split_table: Path) -> None:
    """A frame given to SQL is distributed with it; a view that hides its query answers from the coordinator."""
    counts, ran, tables = run(
        decorator,
        urls,
        split_table,
        """
        ctx = session()
        frame, before = ctx.sql(query), tasks()
        counts = [ctx.sql("SELECT count(*) AS n FROM $f", f=frame).to_pydict()["n"][0]]
        ran = tasks() - before
        ctx.sql("CREATE TABLE target (k BIGINT, s BIGINT)").collect()
        counts += ctx.sql("INSERT INTO target SELECT * FROM $f", f=frame).to_pydict()["count"]
        ctx.register_view("seen", frame)
        ctx.register_table("hidden", frame.into_view(temporary=True))
        counts += [ctx.sql(f"SELECT count(*) AS n FROM {name}").to_pydict()["n"][0] for name in ("seen", "hidden")]
        answer([counts, ran, sorted(ctx.catalog().schema().names())])
        """,
    )
    assert counts == [10, 10, 10, 10]
    assert ran > 0
    assert tables == ["hidden", "seen", "t", "target"], "a parameter left a table behind"


def test_a_decorated_class_is_not_called(decorator: Strategy, urls: list[str], split_table: Path) -> None:
    """Calling the class says how to make such a context."""
    kind, message = run(decorator, urls, split_table, "answer(raised(lambda: DistributedSessionContext()))")
    assert kind == "TypeError"
    assert "distributed(ctx, workers)" in message


def test_what_cannot_leave_the_host_is_planned_by_it(
    decorator: Strategy, urls: list[str], split_table: Path, tmp_path: Path
) -> None:
    """Plans without a wire form give the stock answer by every way to it, and EXPLAIN says where they run."""
    told = run(
        decorator,
        urls,
        split_table,
        f"""
        ctx, stock = session(), df.SessionContext(df.SessionConfig().with_target_partitions(2))
        stock.register_parquet("t", {str(split_table)!r})
        told = {{}}
        for kind in KINDS:
            want, path = kind(stock).to_pydict(), {str(tmp_path)!r} + "/" + kind.__name__ + ".parquet"
            kind(ctx).write_parquet(path)
            ways = [kind(ctx).to_pydict(), kind(ctx).cache().to_pydict(), kind(ctx).to_arrow_table().to_pydict(),
                    pa.table(kind(ctx)).to_pydict(), stock.read_parquet(path).to_pydict()]
            counted = kind(ctx).count() == kind(stock).count()
            told[kind.__name__] = [counted, [way == want for way in ways]]
        told["explain"] = ctx.sql("EXPLAIN " + EMPTY).to_pydict()["plan"]
        answer(told)
        """,
    )
    explain = told.pop("explain")
    assert told == {kind: [True, [True] * 5] for kind in ("deep", "lambdas", "empty")}
    assert any("not distributed: its plan cannot leave the host" in plan for plan in explain)


def test_only_plans_that_cannot_leave_fall_back(decorator: Strategy, urls: list[str], split_table: Path) -> None:
    """A strict session refuses them, and errors of the query or of the cluster stay what they were."""
    strict, wrong, lost = run(
        decorator,
        urls,
        split_table,
        """
        strict = raised(lambda: lambdas(session(strict=True)).collect())
        wrong = raised(lambda: session().sql("SELECT k / 0 FROM t").collect())
        urls[:] = ["http://127.0.0.1:1", "http://127.0.0.1:2"]
        lost = raised(lambda: session().sql(query).collect())
        answer([strict, wrong, lost])
        """,
    )
    assert strict[0] == "ValueError"
    assert "strict" in strict[1]
    assert "ivide by zero" in wrong[1]
    assert "127.0.0.1" in lost[1]
