"""Area 23: what a query leaves on disk, read back without the engine."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from .kit import BY_KEY, KEYS, ROWS, Arm, expected_by_key

WANT = sorted((v % KEYS, v) for v in range(ROWS))


def _files(path: Path) -> list[Path]:
    found = [path] if path.is_file() else sorted(part for part in path.rglob("*") if part.is_file())
    return [part for part in found if not part.name.startswith((".", "_"))]


def _parquet_rows(path: Path) -> list[tuple[int, int]]:
    found = []
    for part in _files(path):
        table = pq.ParquetFile(part).read().to_pydict()
        key = next((int(p.partition("=")[2]) for p in part.parts if p.startswith("k=")), None)
        keys = table.get("k") or [key] * len(table["v"])
        found += list(zip(keys, table["v"], strict=True))
    return sorted(found)


def _written(arm: Arm, path: Path, what: str) -> None:
    arm.equal(len(_parquet_rows(path)), ROWS, f"number of rows of {what}")
    arm.equal(_parquet_rows(path), WANT, f"rows of {what}")
    arm.figure[f"files of {what}"] = len(_files(path))


def write_parquet(arm: Arm) -> None:
    df = arm.df
    frame = arm.with_table(arm.context()).table("t")
    frame.write_parquet(str(arm.tmp / "plain"))
    _written(arm, arm.tmp / "plain", "write_parquet")
    frame.write_parquet(str(arm.tmp / "one.parquet"), compression="snappy")
    _written(arm, arm.tmp / "one.parquet", "write_parquet to a file")
    codec = pq.ParquetFile(_files(arm.tmp / "one.parquet")[0]).metadata.row_group(0).column(0).compression
    arm.equal(codec, "SNAPPY", "the compression that was asked for")
    options = df.DataFrameWriteOptions(partition_by="k")
    frame.write_parquet(str(arm.tmp / "hive"), write_options=options)
    _written(arm, arm.tmp / "hive", "partitioned write_parquet")
    arm.equal(len(list((arm.tmp / "hive").glob("k=*"))), KEYS, "folders of the partitioned write")
    frame.write_parquet_with_options(str(arm.tmp / "opts"), df.ParquetWriterOptions(max_row_group_size=50))
    _written(arm, arm.tmp / "opts", "write_parquet_with_options")
    arm.on_workers(lambda: frame.write_parquet(str(arm.tmp / "again")), "the write")


def write_csv(arm: Arm) -> None:
    frame = arm.with_table(arm.context()).table("t")
    frame.write_csv(str(arm.tmp / "csv"), with_header=True)
    found = []
    for part in _files(arm.tmp / "csv"):
        with part.open(newline="") as stream:
            found += [(int(row["k"]), int(row["v"])) for row in csv.DictReader(stream)]
    arm.equal(sorted(found), WANT, "rows of write_csv")
    arm.on_workers(lambda: frame.write_csv(str(arm.tmp / "again")), "the write")


def write_json(arm: Arm) -> None:
    frame = arm.with_table(arm.context()).table("t")
    frame.write_json(str(arm.tmp / "json"))
    lines = [line for part in _files(arm.tmp / "json") for line in part.read_text().splitlines()]
    arm.equal(sorted((row["k"], row["v"]) for row in map(json.loads, lines)), WANT, "rows of write_json")
    arm.on_workers(lambda: frame.write_json(str(arm.tmp / "again")), "the write")


def copy_to(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    copied = ctx.sql(f"COPY (SELECT k, v FROM t) TO '{arm.tmp}/copy/' STORED AS PARQUET").to_pydict()
    arm.equal(copied, {"count": [ROWS]}, "the count that COPY answers with")
    _written(arm, arm.tmp / "copy", "COPY TO Parquet")
    ctx.sql(f"COPY t TO '{arm.tmp}/hive/' STORED AS PARQUET PARTITIONED BY (k)").collect()
    _written(arm, arm.tmp / "hive", "COPY TO with partitions")
    ctx.sql(f"COPY t TO '{arm.tmp}/copy.csv' STORED AS CSV OPTIONS ('format.has_header' 'true')").collect()
    with (arm.tmp / "copy.csv").open(newline="") as stream:
        arm.equal(sorted((int(r["k"]), int(r["v"])) for r in csv.DictReader(stream)), WANT, "rows of COPY TO CSV")
    ctx.sql(f"COPY t TO '{arm.tmp}/copy.json' STORED AS JSON").collect()
    lines = (arm.tmp / "copy.json").read_text().splitlines()
    arm.equal(sorted((r["k"], r["v"]) for r in map(json.loads, lines)), WANT, "rows of COPY TO JSON")
    arm.on_workers(lambda: ctx.sql(f"COPY t TO '{arm.tmp}/more/' STORED AS PARQUET").collect(), "COPY")


def insert_into(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    (arm.tmp / "sink").mkdir()
    ctx.sql(f"CREATE EXTERNAL TABLE sink (k BIGINT, v BIGINT) STORED AS PARQUET LOCATION '{arm.tmp}/sink/'").collect()
    arm.equal(
        ctx.sql("INSERT INTO sink SELECT k, v FROM t").to_pydict(),
        {"count": [ROWS]},
        "the count that INSERT answers with",
    )
    _written(arm, arm.tmp / "sink", "INSERT INTO")
    ctx.sql("CREATE TABLE memory (k BIGINT, v BIGINT)").collect()
    ctx.sql("INSERT INTO memory VALUES (1, 2), (3, 4)").collect()
    ctx.sql("INSERT INTO memory SELECT k, v FROM t WHERE v < 10").collect()
    arm.equal(
        ctx.sql("SELECT count(*) AS n, sum(v) AS s FROM memory").to_pydict(), {"n": [12], "s": [51]}, "in-memory INSERT"
    )
    arm.on_workers(lambda: ctx.sql("INSERT INTO sink SELECT k, v FROM t").collect(), "INSERT INTO")


def create_table_as(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    ctx.sql("CREATE TABLE made AS SELECT k, v FROM t").collect()
    arm.equal(ctx.sql(BY_KEY.format(table="made")).to_pydict(), expected_by_key(), "groups of the created table")
    got = ctx.sql("SELECT count(*) AS n FROM made JOIN t ON made.v = t.v").to_pydict()
    arm.equal(got, {"n": [ROWS]}, "the created table joined with Parquet")
    ctx.sql("DROP TABLE made").collect()
    arm.check(not ctx.table_exist("made"), "DROP TABLE left the table behind")
    arm.on_workers(
        lambda: ctx.sql("CREATE TABLE two AS SELECT k, count(*) AS n FROM t GROUP BY k").collect(), "CREATE TABLE AS"
    )


def write_table(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    (arm.tmp / "sink").mkdir()
    ctx.sql(f"CREATE EXTERNAL TABLE sink (k BIGINT, v BIGINT) STORED AS PARQUET LOCATION '{arm.tmp}/sink/'").collect()
    result: Any = ctx.table("t").write_table("sink")
    arm.equal(result, None, "the answer of write_table")
    _written(arm, arm.tmp / "sink", "write_table")
