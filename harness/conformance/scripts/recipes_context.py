"""Recipes for the methods of SessionContext, see `recipes.py`."""

# mypy: disable-error-code="func-returns-value"

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

BATCH = pa.record_batch({"a": [1, 2, 3]})


def _file(arm: Any, kind: str) -> str:
    path = arm.tmp / f"one.{kind}"
    table = pa.Table.from_batches([BATCH])
    if not path.exists():
        if kind == "parquet":
            pq.write_table(table, path)
        elif kind == "arrow":
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
        else:
            path.write_text({"csv": "a\n1\n2\n3\n", "json": '{"a":1}\n{"a":2}\n{"a":3}\n'}[kind])
    return str(path)


def _read(kind: str) -> Any:
    return lambda arm, ctx: getattr(ctx, f"read_{kind}")(_file(arm, kind))


def _register(kind: str) -> Any:
    def recipe(arm: Any, ctx: Any) -> Any:
        getattr(ctx, f"register_{kind}")(f"r_{kind}", _file(arm, kind))
        return ctx.sql(f"SELECT sum(a) AS s FROM r_{kind}")

    return recipe


def _then(act: Any, sql: str = "SELECT sum(a) AS s FROM made") -> Any:
    """Do something to the session, then ask it something."""

    def recipe(arm: Any, ctx: Any) -> Any:
        act(arm, ctx)
        answer = ctx.sql(sql).to_pydict()
        if ctx.table_exist("made"):
            ctx.deregister_table("made")
        return answer

    return recipe


def _udf(arm: Any, name: str) -> Any:
    return arm.df.udf(lambda values: values, [pa.int64()], pa.int64(), "immutable", name)


def _udaf(arm: Any, name: str) -> Any:
    base = arm.df.Accumulator

    class Nothing(base):  # type: ignore[misc, valid-type]
        def update(self, values: Any) -> None: ...
        def merge(self, states: Any) -> None: ...
        def state(self) -> Any:
            return [pa.scalar(0)]

        def evaluate(self) -> Any:
            return pa.scalar(0)

    return arm.df.udaf(Nothing, [pa.int64()], pa.int64(), [pa.int64()], "immutable", name)


def _udwf(arm: Any, name: str) -> Any:
    base = arm.df.user_defined.WindowEvaluator

    class Same(base):  # type: ignore[misc, valid-type]
        def evaluate_all(self, values: Any, num_rows: int) -> Any:
            return values[0]

    return arm.df.udwf(Same, pa.int64(), pa.int64(), "immutable", name)


def _gone(register: Any, deregister: str, listing: str) -> Any:
    def recipe(arm: Any, ctx: Any) -> Any:
        register(arm, ctx)
        there = "gone_soon" in getattr(ctx, listing)()
        getattr(ctx, deregister)("gone_soon")
        return there, "gone_soon" in getattr(ctx, listing)()

    return recipe


def _udtf(arm: Any, ctx: Any) -> None:
    from pyarrow.dataset import dataset

    table = pa.Table.from_batches([BATCH])
    ctx.register_udtf(arm.df.udtf(lambda: arm.df.Table(dataset(table)), "made_up"))


def _catalog(arm: Any, ctx: Any) -> None:
    ctx.register_catalog_provider("other", arm.df.catalog.Catalog.memory_catalog())


def _execute(arm: Any, ctx: Any) -> Any:
    plan = ctx.sql("SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY k").execution_plan()
    return sum(batch.to_pyarrow().num_rows for part in range(plan.partition_count) for batch in ctx.execute(plan, part))


CONTEXT: dict[str, Any] = {
    "add_physical_optimizer_rule": "takes a capsule of a compiled rule, and none is in the arms' environments",
    "catalog": lambda arm, ctx: sorted(ctx.catalog().names()),
    "catalog_names": lambda arm, ctx: sorted(ctx.catalog_names()),
    "copied_config": lambda arm, ctx: type(ctx.copied_config()).__name__,
    "create_dataframe": lambda arm, ctx: ctx.create_dataframe([[BATCH]]),
    "create_dataframe_from_logical_plan": lambda arm, ctx: ctx.create_dataframe_from_logical_plan(
        ctx.table("t").logical_plan()
    ),
    "deregister_object_store": lambda arm, ctx: (
        ctx.register_object_store("file://", arm.df.object_store.LocalFileSystem(), "gone"),
        ctx.deregister_object_store("file://", "gone"),
    )[1],
    "deregister_table": lambda arm, ctx: (
        ctx.register_batch("made", BATCH),
        ctx.deregister_table("made"),
        ctx.table_exist("made"),
    )[2],
    "deregister_udaf": _gone(lambda arm, ctx: ctx.register_udaf(_udaf(arm, "gone_soon")), "deregister_udaf", "udafs"),
    "deregister_udf": _gone(lambda arm, ctx: ctx.register_udf(_udf(arm, "gone_soon")), "deregister_udf", "udfs"),
    "deregister_udtf": lambda arm, ctx: (_udtf(arm, ctx), ctx.deregister_udtf("made_up"))[1],
    "deregister_udwf": _gone(lambda arm, ctx: ctx.register_udwf(_udwf(arm, "gone_soon")), "deregister_udwf", "udwfs"),
    "empty_table": lambda arm, ctx: ctx.empty_table(),
    "enable_ident_normalization": lambda arm, ctx: ctx.enable_ident_normalization(),
    "enable_spark_functions": _then(lambda arm, ctx: ctx.enable_spark_functions(), "SELECT sum(v) AS s FROM t"),
    "enable_url_table": lambda arm, ctx: (
        ctx.enable_url_table().sql(f"SELECT sum(a) AS s FROM '{_file(arm, 'parquet')}'").to_pydict()
    ),
    "execute": _execute,
    "execute_logical_plan": lambda arm, ctx: ctx.execute_logical_plan(ctx.table("t").logical_plan()),
    "from_arrow": lambda arm, ctx: ctx.from_arrow(pa.Table.from_batches([BATCH])),
    "from_pandas": "pandas is not in the arms' environments",
    "from_polars": "polars is not in the arms' environments",
    "from_pydict": lambda arm, ctx: ctx.from_pydict({"a": [1, 2]}),
    "from_pylist": lambda arm, ctx: ctx.from_pylist([{"a": 1}, {"a": 2}]),
    "global_ctx": lambda arm, ctx: arm.df.SessionContext.global_ctx().sql("SELECT 1 AS n").to_pydict(),
    "logical_extension_codec_ids": lambda arm, ctx: isinstance(ctx.logical_extension_codec_ids(), list),
    "parse_capacity_limit": lambda arm, ctx: arm.df.SessionContext.parse_capacity_limit("x", "10M"),
    "parse_sql_expr": lambda arm, ctx: str(ctx.parse_sql_expr("1 + 2", arm.df.DFSchema.empty())),
    "physical_extension_codec_ids": lambda arm, ctx: isinstance(ctx.physical_extension_codec_ids(), list),
    "read_arrow": _read("arrow"),
    "read_avro": "covered by the check sources.avro, which makes an Avro file",
    "read_batch": lambda arm, ctx: ctx.read_batch(BATCH),
    "read_batches": lambda arm, ctx: ctx.read_batches([BATCH, BATCH]),
    "read_csv": _read("csv"),
    "read_empty": lambda arm, ctx: ctx.read_empty(),
    "read_json": _read("json"),
    "read_parquet": _read("parquet"),
    "read_table": lambda arm, ctx: ctx.read_table(ctx.table_provider("t")),
    "refresh_catalogs": _then(lambda arm, ctx: ctx.refresh_catalogs(), "SELECT sum(v) AS s FROM t"),
    "register_arrow": _register("arrow"),
    "register_avro": "covered by the check sources.avro, which makes an Avro file",
    "register_batch": _then(lambda arm, ctx: ctx.register_batch("made", BATCH)),
    "register_catalog_provider": lambda arm, ctx: (_catalog(arm, ctx), "other" in ctx.catalog_names())[1],
    "register_catalog_provider_list": "replaces every catalog of the session; covered one by one by sources.catalogs",
    "register_csv": _register("csv"),
    "register_dataset": _then(
        lambda arm, ctx: ctx.register_dataset(
            "made", __import__("pyarrow.dataset").dataset.dataset(pa.Table.from_batches([BATCH]))
        )
    ),
    "register_json": _register("json"),
    "register_listing_table": _then(lambda arm, ctx: ctx.register_listing_table("made", _file(arm, "parquet"))),
    "register_object_store": lambda arm, ctx: ctx.register_object_store(
        "file://", arm.df.object_store.LocalFileSystem(), None
    ),
    "register_parquet": _register("parquet"),
    "register_record_batches": _then(lambda arm, ctx: ctx.register_record_batches("made", [[BATCH]])),
    "register_table": _then(lambda arm, ctx: ctx.register_table("made", ctx.create_dataframe([[BATCH]]))),
    "register_table_factory": "takes a factory of a compiled extension or a Python one that needs CREATE EXTERNAL TABLE of its own format",
    "register_table_provider": _then(
        lambda arm, ctx: ctx.register_table_provider("made", ctx.create_dataframe([[BATCH]]).into_view())
    ),
    "register_udaf": lambda arm, ctx: (ctx.register_udaf(_udaf(arm, "own_total")), "own_total" in ctx.udafs())[1],
    "register_udf": lambda arm, ctx: (ctx.register_udf(_udf(arm, "own_same")), "own_same" in ctx.udfs())[1],
    "register_udtf": lambda arm, ctx: (_udtf(arm, ctx), ctx.sql("SELECT sum(a) AS s FROM made_up()").to_pydict())[1],
    "register_udwf": lambda arm, ctx: (ctx.register_udwf(_udwf(arm, "own_window")), "own_window" in ctx.udwfs())[1],
    "register_view": _then(lambda arm, ctx: ctx.register_view("made", ctx.create_dataframe([[BATCH]]))),
    "remove_optimizer_rule": lambda arm, ctx: ctx.remove_optimizer_rule("no_such_rule"),
    "session_id": lambda arm, ctx: len(ctx.session_id()) > 0,
    "session_start_time": lambda arm, ctx: len(ctx.session_start_time()) > 0,
    "set_query_planner": "takes a capsule of a compiled planner; the decorator's own installation is this call",
    "sql": lambda arm, ctx: ctx.sql(
        "SELECT k, sum(v) AS s FROM t WHERE v < $limit GROUP BY k", param_values={"limit": 500}
    ),
    "sql_with_options": lambda arm, ctx: ctx.sql_with_options("SELECT count(*) AS n FROM t", arm.df.SQLOptions()),
    "table": lambda arm, ctx: ctx.table("t"),
    "table_exist": lambda arm, ctx: (ctx.table_exist("t"), ctx.table_exist("nowhere")),
    "table_provider": lambda arm, ctx: str(ctx.table_provider("t").schema),
    "udaf": lambda arm, ctx: type(ctx.udaf("sum")).__name__,
    "udafs": lambda arm, ctx: "sum" in ctx.udafs(),
    "udf": lambda arm, ctx: type(ctx.udf("abs")).__name__,
    "udfs": lambda arm, ctx: "abs" in ctx.udfs(),
    "udwf": lambda arm, ctx: type(ctx.udwf("row_number")).__name__,
    "udwfs": lambda arm, ctx: "row_number" in ctx.udwfs(),
    "with_extensions": "covered by codecs.atomic_install",
    "with_logical_extension_codec": "takes a capsule of a compiled codec; the decorator's own installation is this call",
    "with_physical_extension_codec": "takes a capsule of a compiled codec; the decorator's own installation is this call",
    "with_python_udf_inlining": lambda arm, ctx: (
        ctx.with_python_udf_inlining(enabled=False).sql("SELECT sum(v) AS s FROM t").to_pydict()
    ),
}
"""Methods that make small tables run on one node whatever the arm, so none of these is asked for tasks on workers."""
