"""How each public method is called for the coverage check: `recipe(arm, ctx)` returns something comparable.

A text in place of a recipe is the reason why a method is not called. Recipes marked with `query` must reach workers.
"""

# mypy: disable-error-code="misc"

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa

Recipe = Callable[[Any, Any], Any]


def query(recipe: Recipe) -> Recipe:
    """Mark a recipe whose answer must come from workers."""
    recipe.runs_query = True  # type: ignore[attr-defined]
    return recipe


def frame(change: Callable[[Any, Any], Any]) -> Recipe:
    """A recipe from a change of the DataFrame of table `t`."""
    return query(lambda arm, ctx: change(ctx.table("t"), arm.df))


def _printed(act: Callable[[], Any]) -> int:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        act()
    return min(len(text.getvalue()), 1)


def _written(write: str, **options: Any) -> Recipe:
    def recipe(arm: Any, ctx: Any) -> Any:
        folder = arm.tmp / f"{write}-{id(ctx)}-{len(options)}"
        given = {name: make(arm.df) for name, make in options.items()}
        getattr(ctx.table("t"), write)(str(folder), **given)
        return sum(part.stat().st_size > 0 for part in folder.rglob("*.*")) > 0

    return query(recipe)


def unary(name: str) -> Recipe:
    """A method of Expr that takes nothing: on whichever column it works with."""

    def recipe(arm: Any, ctx: Any) -> Any:
        last: Exception | None = None
        for column in ("f", "s", "i", "a", "ts", "b", "y", "h", "m"):
            try:
                return [
                    repr(r)
                    for b in ctx.table("x").select(getattr(arm.df.col(column), name)().alias("x")).sort("x").collect()
                    for r in b.to_pylist()
                ]
            except Exception as error:
                last = error
        raise last or ValueError(name)

    return query(recipe)


def _agg(build: Callable[[Any, Any], Any]) -> Recipe:
    return query(
        lambda arm, ctx: ctx.table("t").aggregate([arm.df.col("k")], [build(arm.df.functions, arm.df.col).alias("x")])
    )


def _sel(build: Callable[[Any, Any, Any], Any], table: str = "x") -> Recipe:
    return query(lambda arm, ctx: ctx.table(table).select(build(arm.df.col, arm.df.lit, arm.df).alias("x")))


DATAFRAME: dict[str, Any] = {
    "aggregate": frame(lambda t, d: t.aggregate(["k"], [d.functions.sum(d.col("v"))])),
    "alias": frame(lambda t, d: t.alias("q").select(d.col("q.v"))),
    "cache": frame(lambda t, d: t.filter(d.col("v") < d.lit(5)).cache()),
    "cast": frame(lambda t, d: t.cast({"v": pa.float64()})),
    "col": frame(lambda t, d: t.select(t.col("v"))),
    "collect": frame(lambda t, d: sorted(v for b in t.collect() for v in b.column("v").to_pylist())),
    "collect_column": frame(lambda t, d: sorted(t.collect_column("v").to_pylist())),
    "collect_partitioned": frame(lambda t, d: sum(b.num_rows for p in t.collect_partitioned() for b in p)),
    "column": frame(lambda t, d: t.select(t.column("v"))),
    "count": frame(lambda t, d: t.filter(d.col("v") > d.lit(3)).count()),
    "default_str_repr": lambda arm, ctx: arm.df.DataFrame.default_str_repr(
        [pa.record_batch({"a": [1]})], pa.schema([("a", pa.int64())]), has_more=False
    ),
    "describe": frame(lambda t, d: t.describe().select("describe").to_pydict()),
    "distinct": frame(lambda t, d: t.select("k").distinct()),
    "distinct_on": frame(
        lambda t, d: t.distinct_on([d.col("k")], [d.col("k"), d.col("v")], sort_expr=[d.col("k"), d.col("v")])
    ),
    "drop": frame(lambda t, d: t.drop("v")),
    "except_all": frame(lambda t, d: t.select("k").except_all(t.filter(d.col("k") < d.lit(5)).select("k"))),
    "execute_stream": frame(lambda t, d: sum(b.to_pyarrow().num_rows for b in t.execute_stream())),
    "execute_stream_partitioned": frame(
        lambda t, d: sum(b.to_pyarrow().num_rows for s in t.execute_stream_partitioned() for b in s)
    ),
    "execution_plan": lambda arm, ctx: type(ctx.table("t").execution_plan()).__name__,
    "explain": lambda arm, ctx: _printed(lambda: ctx.table("t").explain()) >= 0,
    "fill_nan": query(lambda arm, ctx: ctx.table("x").select("f").fill_nan(0.0)),
    "fill_null": query(lambda arm, ctx: ctx.table("x").select("s").fill_null("none")),
    "filter": frame(lambda t, d: t.filter(d.col("v") > d.lit(10), "k = 3")),
    "find_qualified_columns": frame(lambda t, d: t.select(*t.find_qualified_columns("v"))),
    "head": frame(lambda t, d: t.sort("v").head(3)),
    "intersect": frame(
        lambda t, d: t.select("k").intersect(t.filter(d.col("v") < d.lit(3)).select("k"), distinct=True)
    ),
    "into_view": query(
        lambda arm, ctx: (ctx.register_table(f"iv{id(ctx)}", ctx.table("t").into_view()), ctx.table(f"iv{id(ctx)}"))[1]
    ),
    "join": query(
        lambda arm, ctx: ctx.table("t").join(
            ctx.table("x").select(arm.df.col("i"), arm.df.col("b")), left_on="v", right_on="i", how="left"
        )
    ),
    "join_on": query(
        lambda arm, ctx: ctx.table("t").join_on(ctx.table("x").select("i"), arm.df.col("v") == arm.df.col("i"))
    ),
    "limit": frame(lambda t, d: t.sort("v").limit(4, offset=2)),
    "logical_plan": lambda arm, ctx: str(ctx.table("t").filter("v > 3").logical_plan()),
    "optimized_logical_plan": lambda arm, ctx: str(ctx.table("t").filter("v > 3").optimized_logical_plan()),
    "parse_sql_expr": frame(lambda t, d: t.select(t.parse_sql_expr("v + 1"))),
    "repartition": frame(lambda t, d: t.repartition(3)),
    "repartition_by_hash": frame(lambda t, d: t.repartition_by_hash("k", num=3)),
    "schema": lambda arm, ctx: str(ctx.table("x").schema()),
    "select": frame(lambda t, d: t.select("k", d.col("v") * d.lit(2))),
    "select_exprs": frame(lambda t, d: t.select_exprs("v + 1 AS w", "k")),
    "show": lambda arm, ctx: _printed(lambda: ctx.table("t").show(3)) >= 0,
    "sort": frame(lambda t, d: t.sort(d.col("v").sort(ascending=False)).to_pydict()),
    "sort_by": frame(lambda t, d: t.sort_by("v").to_pydict()),
    "tail": frame(lambda t, d: t.sort("v").tail(3)),
    "to_arrow_table": frame(lambda t, d: t.sort("v").to_arrow_table().to_pydict()),
    "to_pandas": "pandas is not in the arms' environments",
    "to_polars": "polars is not in the arms' environments",
    "to_pydict": frame(lambda t, d: t.sort("v").to_pydict()),
    "to_pylist": frame(lambda t, d: t.sort("v").to_pylist()),
    "transform": frame(lambda t, d: t.transform(lambda q, n: q.filter(d.col("v") < d.lit(n)), 7)),
    "union": frame(lambda t, d: t.union(t)),
    "union_by_name": frame(lambda t, d: t.union_by_name(t.select("v", "k"))),
    "union_distinct": frame(lambda t, d: t.union_distinct(t)),
    "unnest_columns": query(lambda arm, ctx: ctx.table("x").select("i", "a").unnest_columns("a")),
    "window": frame(
        lambda t, d: t.window(d.functions.sum(d.col("v")).over(d.expr.Window(partition_by=[d.col("k")])).alias("s"))
    ),
    "with_column": frame(lambda t, d: t.with_column("w", d.col("v") + d.lit(1))),
    "with_column_renamed": frame(lambda t, d: t.with_column_renamed("v", "w")),
    "with_columns": frame(lambda t, d: t.with_columns((d.col("v") + d.lit(1)).alias("a"), b=d.col("k"))),
    "write_csv": _written("write_csv"),
    "write_json": _written("write_json"),
    "write_parquet": _written("write_parquet"),
    "write_parquet_with_options": _written("write_parquet_with_options", options=lambda d: d.ParquetWriterOptions()),
    "write_table": lambda arm, ctx: (
        ctx.sql(f"CREATE TABLE sink{id(ctx)} (k BIGINT, v BIGINT)").collect(),
        ctx.table("t").write_table(f"sink{id(ctx)}"),
        ctx.table(f"sink{id(ctx)}").count(),
    )[2],
}

EXPR: dict[str, Any] = {
    "alias": _sel(lambda c, _l, _d: c("i").alias("q")),
    "between": _sel(lambda c, _l, _d: c("i").between(3, 5)),
    "canonical_name": lambda arm, ctx: arm.df.col("a").canonical_name(),
    "cast": _sel(lambda c, _l, _d: c("i").cast(pa.string())),
    "try_cast": _sel(lambda c, _l, _d: c("s").try_cast(pa.int64())),
    "column": _sel(lambda _c, _l, d: d.Expr.column("i")),
    "column_name": lambda arm, ctx: arm.df.col("v").column_name(ctx.table("t").logical_plan()),
    "distinct": _agg(lambda f, c: f.count(c("v")).distinct().build()),
    "filter": _agg(lambda f, c: f.sum(c("v")).filter(c("v") > 5).build()),
    "order_by": _agg(lambda f, c: f.array_agg(c("v")).order_by(c("v")).build()),
    "null_treatment": _agg(lambda f, c: f.first_value(c("v"), order_by=[c("v")])),
    "partition_by": _sel(lambda c, _l, d: d.functions.row_number().partition_by(c("k")).order_by(c("v")).build(), "t"),
    "window_frame": _sel(
        lambda c, _l, d: d.functions.sum(c("v")).over(
            d.expr.Window(order_by=[c("v")], window_frame=d.WindowFrame("rows", 1, 1))
        ),
        "t",
    ),
    "over": _sel(lambda c, _l, d: d.functions.sum(c("v")).over(d.expr.Window(partition_by=[c("k")])), "t"),
    "fill_nan": _sel(lambda c, l, _d: c("f").fill_nan(l(0.0))),
    "fill_null": _sel(lambda c, _l, _d: c("s").fill_null("none")),
    "literal": _sel(lambda c, _l, d: c("i") + d.Expr.literal(2)),
    "literal_with_metadata": lambda arm, ctx: str(arm.df.Expr.literal_with_metadata(2, {"a": "b"})),
    "string_literal": _sel(lambda c, _l, d: d.functions.concat(c("s"), d.Expr.string_literal("!"))),
    "python_value": lambda arm, ctx: arm.df.lit(5).python_value(),
    "rex_call_operands": lambda arm, ctx: str((arm.df.col("a") + arm.df.lit(1)).rex_call_operands()),
    "rex_call_operator": lambda arm, ctx: (arm.df.col("a") + arm.df.lit(1)).rex_call_operator(),
    "rex_type": lambda arm, ctx: str(arm.df.col("a").rex_type()),
    "schema_name": lambda arm, ctx: arm.df.col("a").schema_name(),
    "sort": query(lambda arm, ctx: ctx.table("t").sort(arm.df.col("v").sort(ascending=False)).limit(3)),
    "to_bytes": lambda arm, ctx: len((arm.df.col("a") + arm.df.lit(1)).to_bytes(ctx)) > 0,
    "from_bytes": query(
        lambda arm, ctx: ctx.table("t").select(
            arm.df.Expr.from_bytes((arm.df.col("v") + arm.df.lit(1)).to_bytes(ctx), ctx)
        )
    ),
    "to_variant": lambda arm, ctx: type(arm.df.col("a").to_variant()).__name__,
    "types": lambda arm, ctx: str(arm.df.lit(5).types().python_type),
    "variant_name": lambda arm, ctx: arm.df.col("a").variant_name(),
}

CONFIG: dict[str, Any] = {
    name: lambda arm, ctx, name=name, value=value: (
        ctx.table("t").count() if getattr(arm.df.SessionConfig(), name)(*value) is not None else None
    )
    for name, value in {
        "set": ("datafusion.execution.batch_size", "100"),
        "with_batch_size": (64,),
        "with_create_default_catalog_and_schema": (True,),
        "with_default_catalog_and_schema": ("c", "s"),
        "with_information_schema": (True,),
        "with_parquet_pruning": (False,),
        "with_repartition_aggregations": (False,),
        "with_repartition_file_min_size": (10,),
        "with_repartition_file_scans": (False,),
        "with_repartition_joins": (False,),
        "with_repartition_sorts": (False,),
        "with_repartition_windows": (False,),
        "with_target_partitions": (3,),
    }.items()
}
CONFIG |= {
    "with_extension": "takes a capsule of a compiled extension, and none is in the arms' environments",
    "with_distributed": lambda arm, ctx: arm.context().sql("SELECT 1 AS n").to_pydict(),
}

PREDICATES = ("any_match", "array_any_match", "list_any_match", "array_filter", "list_filter")
TRANSFORMS = ("array_transform", "list_transform")

FUNCTIONS: dict[str, Any] = {
    "array_first": _sel(lambda c, l, d: d.functions.array_first(c("a"), lambda x: x > l(3))),
    "list_first": _sel(lambda c, l, d: d.functions.list_first(c("a"), lambda x: x > l(3))),
    **{
        name: _sel(lambda c, l, d, name=name: getattr(d.functions, name)(c("fa"), c("fa")), "floats")
        for name in ("array_add", "array_subtract", "list_add", "list_subtract")
    },
    **{
        name: _sel(lambda c, l, d, name=name: getattr(d.functions, name)(c("fa")), "floats")
        for name in ("array_normalize", "list_normalize")
    },
    "array_replace_n": _sel(lambda c, l, d: d.functions.array_replace_n(c("a"), l(3), l(9), l(1))),
    "list_replace_n": _sel(lambda c, l, d: d.functions.list_replace_n(c("a"), l(3), l(9), l(1))),
    "arrow_cast": _sel(lambda c, _l, d: d.functions.arrow_cast(c("i"), "Float32")),
    "arrow_try_cast": _sel(lambda c, _l, d: d.functions.arrow_try_cast(c("s"), "Int32")),
    "date_bin": query(
        lambda arm, ctx: ctx.sql("SELECT date_bin(INTERVAL '3 hours', ts, TIMESTAMP '2024-01-01') AS x FROM x")
    ),
    "grouping": query(lambda arm, ctx: ctx.sql("SELECT k, grouping(k) AS g FROM t GROUP BY ROLLUP (k)")),
    "with_metadata": _sel(lambda c, _l, d: d.functions.with_metadata(c("i"), {"a": "b"})),
    "spark": "a module, not a function",
    "union_extract": "takes a union, which Parquet cannot hold",
    "union_tag": "takes a union, which Parquet cannot hold",
    **{
        name: _sel(lambda c, l, d, name=name: getattr(d.functions, name)(c("a"), lambda x: x > l(3)))
        for name in PREDICATES
    },
    **{
        name: _sel(lambda c, l, d, name=name: getattr(d.functions, name)(c("a"), lambda x: x + l(1)))
        for name in TRANSFORMS
    },
    "lambda_": _sel(
        lambda c, l, d: d.functions.array_transform(
            c("a"), d.functions.lambda_(["x"], d.functions.lambda_var("x") + l(1))
        )
    ),
    "lambda_var": _sel(
        lambda c, l, d: d.functions.array_filter(c("a"), d.functions.lambda_(["x"], d.functions.lambda_var("x") > l(2)))
    ),
    "in_list": _sel(lambda c, l, d: d.functions.in_list(c("i"), [l(3), l(4)])),
    "case": _sel(lambda c, l, d: d.functions.case(c("i")).when(l(1), l("one")).otherwise(l("more"))),
    "when": _sel(lambda c, l, d: d.functions.when(c("i") > l(3), l("more")).otherwise(l("less"))),
    "alias": _sel(lambda c, _l, d: d.functions.alias(c("i"), "q")),
    "col": _sel(lambda _c, _l, d: d.functions.col("i")),
    "count_star": _agg(lambda f, _c: f.count_star()),
    "order_by": query(
        lambda arm, ctx: ctx.table("t").sort(arm.df.functions.order_by(arm.df.col("v"), ascending=False)).limit(3)
    ),
    "first_value": _agg(lambda f, c: f.first_value(c("v"), order_by=[c("v")])),
    "last_value": _agg(lambda f, c: f.last_value(c("v"), order_by=[c("v")])),
    "nth_value": _agg(lambda f, c: f.nth_value(c("v"), 2, order_by=[c("v")])),
    "array_agg": _agg(lambda f, c: f.array_agg(c("v"), order_by=[c("v")])),
    "string_agg": query(
        lambda arm, ctx: ctx.table("x").aggregate(
            [], [arm.df.functions.string_agg(arm.df.col("h"), ",", order_by=[arm.df.col("h")]).alias("x")]
        )
    ),
    "lag": _sel(lambda c, _l, d: d.functions.lag(c("v"), 1, order_by=[c("v")]), "t"),
    "lead": _sel(lambda c, _l, d: d.functions.lead(c("v"), 1, order_by=[c("v")]), "t"),
    "rank": _sel(lambda c, _l, d: d.functions.rank(order_by=[c("k")]), "t"),
    "dense_rank": _sel(lambda c, _l, d: d.functions.dense_rank(order_by=[c("k")]), "t"),
    "percent_rank": _sel(lambda c, _l, d: d.functions.percent_rank(order_by=[c("k")]), "t"),
    "cume_dist": _sel(lambda c, _l, d: d.functions.cume_dist(order_by=[c("k")]), "t"),
    "row_number": _sel(lambda c, _l, d: d.functions.row_number(order_by=[c("v")]), "t"),
    "ntile": _sel(lambda c, _l, d: d.functions.ntile(4, order_by=[c("v")]), "t"),
}
