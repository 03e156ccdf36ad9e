"""Area 15: answers equal single node, over small tables that are split over tasks."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .kit import Arm, Partial, rows

SQL = {
    "filter": "SELECT v FROM t WHERE v % 7 = 3",
    "inner join": "SELECT a.v, b.w FROM t a JOIN u b ON a.k = b.k",
    "left join": "SELECT a.v, b.w FROM t a LEFT JOIN u b ON a.k = b.k AND b.w > 3",
    "right join": "SELECT a.v, b.w FROM u b RIGHT JOIN t a ON a.k = b.k AND b.w > 3",
    "full join": "SELECT a.v, b.w FROM t a FULL JOIN u b ON a.v = b.w * 300",
    "semi join": "SELECT v FROM t WHERE k IN (SELECT k FROM u WHERE w > 2)",
    "anti join": "SELECT v FROM t WHERE k NOT IN (SELECT k FROM u WHERE w > 2)",
    "cross join": "SELECT sum(t.v * u.w) FROM t CROSS JOIN u",
    "inequality join": "SELECT count(*) FROM t a JOIN u b ON a.v < b.w",
    "self join": "SELECT a.k, count(*) FROM t a JOIN t b ON a.v = b.v + 1 GROUP BY a.k",
    "having": "SELECT k, avg(v) FROM t GROUP BY k HAVING avg(v) > 500",
    "distinct": "SELECT DISTINCT k FROM t",
    "count distinct": "SELECT count(DISTINCT k), sum(DISTINCT k) FROM t",
    "filtered aggregate": "SELECT k, sum(v) FILTER (WHERE v > 500) FROM t GROUP BY k",
    "ordered aggregate": "SELECT k, array_agg(v ORDER BY v DESC) FROM t WHERE v < 100 GROUP BY k",
    "median": "SELECT k, median(v), stddev(v) FROM t GROUP BY k",
    "grouping sets": "SELECT k, v % 3 AS m, count(*), grouping(k) FROM t GROUP BY GROUPING SETS ((k), (k, v % 3), ())",
    "rollup": "SELECT k, v % 2, sum(v) FROM t GROUP BY ROLLUP (k, v % 2)",
    "cube": "SELECT k, v % 2, sum(v) FROM t GROUP BY CUBE (k, v % 2)",
    "window rank": "SELECT v, row_number() OVER (PARTITION BY k ORDER BY v) FROM t",
    "window frame": "SELECT v, sum(v) OVER (PARTITION BY k ORDER BY v ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) FROM t",
    "window whole": "SELECT v, sum(v) OVER () FROM t",
    "window lag": "SELECT v, lag(v, 2) OVER (ORDER BY v), lead(v) OVER (ORDER BY v) FROM t",
    "qualify": "SELECT v FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC) = 1",
    "union all": "SELECT k FROM t UNION ALL SELECT k FROM u",
    "union": "SELECT k FROM t UNION SELECT w FROM u",
    "intersect": "SELECT k FROM t INTERSECT SELECT w FROM u",
    "except": "SELECT k FROM t EXCEPT SELECT w FROM u",
    "scalar subquery": "SELECT v FROM t WHERE v > (SELECT avg(v) FROM t)",
    "two scalar subqueries": "SELECT (SELECT max(w) FROM u) + v FROM t WHERE v < (SELECT sum(w) FROM u)",
    "correlated exists": "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.w < 4)",
    "correlated scalar": "SELECT v FROM t WHERE v > (SELECT 200 * count(*) FROM u WHERE u.k = t.k)",
    "cte twice": "WITH c AS (SELECT k, count(*) n FROM t GROUP BY k) SELECT a.k, b.n FROM c a JOIN c b ON a.k = b.k",
    "recursive cte": "WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT r.n, count(*) FROM r JOIN t ON t.k = r.n GROUP BY 1",
    "order and limit": "SELECT v FROM t ORDER BY v DESC LIMIT 7",
    "offset": "SELECT v FROM t ORDER BY v LIMIT 5 OFFSET 990",
    "limit in subquery": "SELECT k, count(*) FROM (SELECT k FROM t ORDER BY v LIMIT 123) GROUP BY k",
    "topk per group": "SELECT k, v FROM (SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v) r FROM t) WHERE r <= 2",
    "unnest": "SELECT v, unnest(make_array(v, k)) FROM t WHERE v < 50",
    "struct": "SELECT named_struct('a', k, 'b', v)['b'] FROM t WHERE v < 20",
    "case": "SELECT CASE WHEN v > 500 THEN 'high' WHEN v > 100 THEN 'mid' END, count(*) FROM t GROUP BY 1",
    "values join": "SELECT t.v, x.name FROM t JOIN (VALUES (1, 'one'), (2, 'two')) x(k, name) ON t.k = x.k",
    "empty input": "SELECT k, sum(v) FROM t WHERE v < 0 GROUP BY k",
    "empty aggregate": "SELECT sum(v), count(*), max(v) FROM t WHERE v < 0",
    "lateral": "SELECT t.v, s.w FROM t, LATERAL (SELECT w FROM u WHERE u.k = t.k) s",
    "strings": "SELECT upper(concat('a', CAST(k AS VARCHAR))), count(*) FROM t GROUP BY 1",
    "dates": "SELECT date_trunc('month', DATE '2024-01-01' + CAST(v AS INT)), count(*) FROM t GROUP BY 1",
}

MAY_STAY_LOCAL = ("recursive cte",)
"""A recursive query keeps its working table in one process: no engine distributes it."""


def _tables(arm: Arm, ctx: Any) -> Any:
    folder = arm.tmp / "u"
    if not folder.is_dir():
        folder.mkdir()
        for part in range(3):
            pq.write_table(
                pa.table({"k": [part, part + 3, part], "w": [part, part + 2, part * 2]}), folder / f"{part}.parquet"
            )
    ctx.register_parquet("u", str(folder))
    return arm.with_table(ctx)


def _shapes(arm: Arm, shapes: dict[str, Any], run: Any) -> None:
    """Compare each shape; collect what is wrong and what stayed local, and name all of it at once."""
    ctx, plain = _tables(arm, arm.context()), _tables(arm, arm.plain())
    wrong, local = [], []
    for name, shape in shapes.items():
        want = rows(run(plain, shape))
        before = arm.tasks()
        try:
            got = rows(run(ctx, shape))
        except Exception as error:
            wrong.append(f"{name} ({type(error).__name__}: {str(error)[:150]})")
            continue
        if got != want:
            wrong.append(f"{name} ({len(got)} rows, expected {len(want)})")
        if arm.distributed and arm.tasks() == before and name not in MAY_STAY_LOCAL:
            local.append(f"{name} ({_why(ctx, shape)})")
    arm.figure.update({"shapes": len(shapes), "equal": len(shapes) - len(wrong), "local": local})
    arm.check(not wrong, "differs from single node: " + "; ".join(wrong))
    if local:
        raise Partial("right, but no worker took part in: " + ", ".join(local))


def _why(ctx: Any, shape: Any) -> str:
    """What EXPLAIN says about a plan that stays local."""
    if not isinstance(shape, str):
        return "no EXPLAIN"
    text = "\n".join(ctx.sql(f"EXPLAIN {shape}").to_pydict()["plan"])
    return next((line for line in text.splitlines() if "not distributed" in line), "EXPLAIN does not say why")


def sql_shapes(arm: Arm) -> None:
    _shapes(arm, SQL, lambda ctx, sql: ctx.sql(sql))


def dataframe_shapes(arm: Arm) -> None:
    col, lit, f = arm.df.col, arm.df.lit, arm.df.functions
    window = arm.df.expr.Window

    def t(ctx: Any) -> Any:
        return ctx.table("t")

    shapes = {
        "select": lambda c: t(c).select(col("v") + lit(1), (col("k") * lit(2)).alias("d")),
        "filter": lambda c: t(c).filter((col("v") > lit(10)) & ~(col("k") == lit(3))),
        "with_column": lambda c: t(c).with_column("w", col("v") % lit(7)).drop("v"),
        "aggregate": lambda c: t(c).aggregate([col("k")], [f.sum(col("v")), f.count(col("v")).alias("n")]),
        "filtered aggregate": lambda c: t(c).aggregate([col("k")], [f.sum(col("v"), filter=col("v") > lit(500))]),
        "window": lambda c: t(c).select(
            col("v"), f.row_number(partition_by=[col("k")], order_by=[col("v")]).alias("r")
        ),
        "window over": lambda c: t(c).select(
            col("v"), f.sum(col("v")).over(window(partition_by=[col("k")])).alias("s")
        ),
        "join": lambda c: t(c).join(c.table("u"), on="k"),
        "left join": lambda c: t(c).join(c.table("u"), on="k", how="left"),
        "semi join": lambda c: t(c).join(c.table("u"), on="k", how="semi"),
        "anti join": lambda c: t(c).join(c.table("u"), on="k", how="anti"),
        "join_on": lambda c: t(c).join_on(
            c.table("u").with_column_renamed("k", "j"), col("k") == col("j"), col("w") > lit(1)
        ),
        "union": lambda c: t(c).select(col("k")).union(c.table("u").select(col("k"))),
        "union_distinct": lambda c: t(c).select(col("k")).union_distinct(c.table("u").select(col("k"))),
        "intersect": lambda c: t(c).select(col("k")).intersect(c.table("u").select(col("k"))),
        "except_all": lambda c: t(c).select(col("k")).except_all(c.table("u").select(col("k"))),
        "distinct": lambda c: t(c).select(col("k")).distinct(),
        "sort limit": lambda c: t(c).sort(col("v").sort(ascending=False)).limit(5, offset=2),
        "head": lambda c: t(c).sort(col("v")).head(3),
        "tail": lambda c: t(c).sort(col("v")).tail(3),
        "repartition": lambda c: t(c).repartition(3).aggregate([], [f.sum(col("v"))]),
        "repartition_by_hash": lambda c: t(c).repartition_by_hash(col("k"), num=3).aggregate([], [f.sum(col("v"))]),
        "unnest": lambda c: t(c).select(col("v"), f.make_array(col("v"), col("k")).alias("a")).unnest_columns("a"),
        "cast": lambda c: t(c).cast({"v": pa.float64()}),
        "describe": lambda c: t(c).describe(),
        "cache": lambda c: t(c).aggregate([col("k")], [f.max(col("v"))]).cache(),
        "fill_null": lambda c: t(c).select(f.nullif(col("k"), lit(3)).alias("k")).fill_null(0),
        "distinct_on": lambda c: t(c).distinct_on([col("k")], [col("k"), col("v")], sort_expr=[col("k"), col("v")]),
        "case": lambda c: t(c).select(f.case(col("k")).when(lit(1), lit("one")).otherwise(lit("more"))),
    }
    _shapes(arm, shapes, lambda ctx, build: build(ctx))


def types(arm: Arm) -> None:
    day, moment = dt.date(2024, 1, 31), dt.datetime(2024, 1, 31, 23, 59, 58, 123456)  # noqa: DTZ001
    columns: dict[str, tuple[pa.DataType, list[Any]]] = {
        "bool": (pa.bool_(), [True, False]), "i8": (pa.int8(), [-128, 127]), "i16": (pa.int16(), [-1, 1]),
        "i32": (pa.int32(), [-1, 1]), "i64": (pa.int64(), [-(2**63), 2**63 - 1]), "u8": (pa.uint8(), [0, 255]),
        "u64": (pa.uint64(), [0, 2**64 - 1]), "f32": (pa.float32(), [1.5, -0.25]), "f64": (pa.float64(), [1e300, -1e-300]),
        "dec": (pa.decimal128(38, 10), [decimal.Decimal("12345678901234567890.0123456789"), decimal.Decimal("-0.5")]),
        "text": (pa.string(), ["", "äöü€𝄞"]), "large": (pa.large_string(), ["a", "b"]), "bytes": (pa.binary(), [b"\x00\xff", b""]),
        "fixed": (pa.binary(3), [b"abc", b"xyz"]), "date": (pa.date32(), [day, dt.date(1, 1, 1)]),
        "ts": (pa.timestamp("us"), [moment, moment]), "tz": (pa.timestamp("ms", "Europe/Paris"), [1_700_000_000_000, 0]),
        "ns": (pa.timestamp("ns"), [1000, 2000]), "time": (pa.time64("us"), [dt.time(1, 2, 3), dt.time(0)]),
        "list": (pa.list_(pa.int32()), [[1, None, 2], []]), "struct": (pa.struct([("a", pa.int8()), ("b", pa.string())]), [{"a": 1, "b": None}, {"a": 2, "b": "x"}]),
        "map": (pa.map_(pa.string(), pa.int32()), [[("a", 1)], []]), "dict": (pa.dictionary(pa.int32(), pa.string()), ["x", "y"]),
        "nested": (pa.list_(pa.struct([("z", pa.list_(pa.int8()))])), [[{"z": [1]}], [{"z": None}]]),
    }  # fmt: skip
    folder = arm.tmp / "types"
    folder.mkdir()
    for part in range(3):
        data = {
            name: pa.array([values[part % 2], None, values[(part + 1) % 2]], kind)
            for name, (kind, values) in columns.items()
        }
        pq.write_table(pa.table({"id": [part, part + 10, part + 20], **data}), folder / f"{part}.parquet")
    ctx, plain = arm.context(), arm.plain()
    for each in (ctx, plain):
        each.register_parquet("x", str(folder))
        each.from_pydict({"id": [0, 1, 2, 10, 11, 12, 20, 21, 22]}, name="ids")
    wrong = []
    for name in columns:
        # The join makes the column cross an exchange; without it a scan could answer on its own.
        sql = f'SELECT x.id, x."{name}" FROM x JOIN (SELECT id, count(*) AS n FROM x GROUP BY id) y ON x.id = y.id'
        want, got = plain.sql(sql), ctx.sql(sql)
        try:
            same = rows(got) == rows(want) and [f.type for f in got.schema()] == [f.type for f in want.schema()]
        except Exception as error:
            wrong.append(f"{name} ({type(error).__name__}: {str(error)[:120]})")
            continue
        wrong += [] if same else [name]
    arm.figure.update({"types": len(columns), "equal": len(columns) - len(wrong)})
    arm.check(not wrong, "types that differ from single node: " + ", ".join(wrong))
    arm.on_workers(lambda: ctx.sql('SELECT "text", count(*) FROM x GROUP BY 1').collect())


def deep_plans(arm: Arm) -> None:
    col, lit, f = arm.df.col, arm.df.lit, arm.df.functions

    def build(ctx: Any) -> Any:
        frame = ctx.table("t")
        for _ in range(30):
            frame = frame.aggregate([col("v")], [f.max(col("k")).alias("k")]).filter(col("v") >= lit(0))
            frame = frame.select((col("v") + lit(1)).alias("v"), col("k"))
        return frame

    ctx, plain = arm.with_table(arm.context()), arm.with_table(arm.plain())
    arm.same(build, ctx, plain, "30 rounds of aggregate, filter and projection", remote=False)


def limit_in_build_side(arm: Arm) -> None:
    for name, count in (("build", 100), ("probe", 5000)):
        folder = arm.tmp / name
        folder.mkdir()
        for part in range(4):
            chunk = range(part * count // 4, (part + 1) * count // 4)
            pq.write_table(pa.table({"id": [i % 100 for i in chunk]}), folder / f"{part}.parquet")
    ctx = arm.context()
    for name in ("build", "probe"):
        ctx.register_parquet(name, str(arm.tmp / name))
    sql = "SELECT count(*) AS n FROM (SELECT id FROM build LIMIT 50) b JOIN probe p ON b.id = p.id"
    seen = [ctx.sql(sql).to_pydict()["n"][0] for _ in range(20)]
    arm.figure["answers"] = sorted(set(seen))
    arm.equal(sorted(set(seen)), [2500], "answers in 20 runs")
