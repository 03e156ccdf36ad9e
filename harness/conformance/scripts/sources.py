"""Area 21: where tables come from. The right answer is computed without any engine."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import gzip
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .kit import BY_KEY, FILES, KEYS, ROWS, Arm, expected_by_key, rows


def _answers(arm: Arm, ctx: Any, table: str = "t", *, remote: bool = True) -> None:
    run = lambda: ctx.sql(BY_KEY.format(table=table)).to_pydict()
    arm.equal(run(), expected_by_key(), f"groups of `{table}`")
    if remote:
        arm.on_workers(run)


def _parts() -> list[list[tuple[int, int]]]:
    return [[(v % KEYS, v) for v in range(part, ROWS, FILES)] for part in range(FILES)]


def parquet_file(arm: Arm) -> None:
    path = arm.tmp / "one.parquet"
    pq.write_table(pa.table({"k": [v % KEYS for v in range(ROWS)], "v": list(range(ROWS))}), path, row_group_size=100)
    ctx = arm.context()
    ctx.register_parquet("t", str(path))
    _answers(arm, ctx)


def parquet_directory(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    _answers(arm, ctx)
    arm.equal(ctx.read_parquet(str(arm.parquet())).count(), ROWS, "rows by read_parquet")


def files_replaced(arm: Arm) -> None:
    """Caches of listings, footers and pages must not outlive the session, or must notice."""
    folder = arm.tmp / "replaced"
    folder.mkdir()
    contents: tuple[dict[str, list[Any]], ...] = (
        {"k": list(range(50)), "v": list(range(50))},
        {"k": [1, 2, 3], "v": [1, 2, 3]},
        {"k": ["a", "b"], "v": [[1], [2, 3]]},
    )
    for round_number, columns in enumerate(contents):
        rows_now = len(columns["k"])
        for part in range(2):
            pq.write_table(pa.table(columns), folder / f"{part}.parquet")
        ctx = arm.context()
        ctx.register_parquet("r", str(folder))
        got = rows(ctx.sql("SELECT k, count(*) AS n, min(v) AS low FROM r GROUP BY k"))
        want = rows(_plain_replaced(arm, str(folder)))
        arm.equal(got, want, f"a new session after the files were replaced {round_number} times")
        counted = ctx.sql("SELECT count(*) AS n FROM r WHERE v IS NOT NULL").to_pydict()
        arm.equal(counted, {"n": [2 * rows_now]}, f"rows after the files were replaced {round_number} times")


def _plain_replaced(arm: Arm, folder: str) -> Any:
    plain = arm.plain()
    plain.register_parquet("r", folder)
    return plain.sql("SELECT k, count(*) AS n, min(v) AS low FROM r GROUP BY k")


def parquet_partitioned(arm: Arm) -> None:
    root = arm.tmp / "hive"
    for key in range(KEYS):
        folder = root / f"k={key}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"v": list(range(key, ROWS, KEYS))}), folder / "0.parquet")
    ctx = arm.context()
    ctx.register_parquet("t", str(root), table_partition_cols=[("k", pa.int64())])
    _answers(arm, ctx)
    some = ctx.sql("SELECT count(*) AS n FROM t WHERE k IN (2, 3) AND v > 500").to_pydict()
    arm.equal(some, {"n": [sum(v > 500 and v % KEYS in (2, 3) for v in range(ROWS))]}, "filter on the partition column")


def parquet_glob(arm: Arm) -> None:
    folder = arm.parquet()
    (folder / "other.parquet").write_bytes((folder / "0.parquet").read_bytes())
    ctx = arm.context()
    ctx.register_parquet("t", f"{folder}/[0-9].parquet")
    _answers(arm, ctx)


def parquet_external_table(arm: Arm) -> None:
    ctx = arm.context()
    ctx.sql(f"CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{arm.parquet()}/'").collect()
    _answers(arm, ctx)


def csv(arm: Arm) -> None:
    folder = arm.tmp / "csv"
    folder.mkdir()
    for part, pairs in enumerate(_parts()):
        (folder / f"{part}.csv").write_text("k,v\n" + "".join(f"{k},{v}\n" for k, v in pairs))
    ctx = arm.context()
    ctx.register_csv("given", str(folder), schema=pa.schema([("k", pa.int64()), ("v", pa.int64())]))
    ctx.register_csv("inferred", str(folder))
    _answers(arm, ctx, "given")
    _answers(arm, ctx, "inferred")


def csv_options(arm: Arm) -> None:
    cases: dict[str, tuple[dict[str, Any], str, Any]] = {
        "gzip": ({"file_compression_type": "gzip", "file_extension": ".csv.gz"}, ".csv.gz", None),
        "delimiter": ({"delimiter": "|"}, ".csv", lambda text: text.replace(",", "|")),
        "no header": ({"has_header": False}, ".csv", lambda text: text.partition("\n")[2]),
    }
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    for name, (options, suffix, change) in cases.items():
        folder = arm.tmp / name.replace(" ", "-")
        folder.mkdir()
        for part, pairs in enumerate(_parts()):
            text = "k,v\n" + "".join(f"{k},{v}\n" for k, v in pairs)
            text = change(text) if change else text
            data = gzip.compress(text.encode()) if suffix.endswith(".gz") else text.encode()
            (folder / f"{part}{suffix}").write_bytes(data)
        ctx = arm.context()
        ctx.register_csv("t", str(folder), schema=schema, **options)
        arm.equal(ctx.sql(BY_KEY.format(table="t")).to_pydict(), expected_by_key(), f"option {name}")
    _csv_text_options(arm)


def _csv_text_options(arm: Arm) -> None:
    """Options of `CsvReadOptions`: quote, escape, comment, terminator, NULL pattern; the oracle is the plain session."""
    options = arm.df.CsvReadOptions
    texts = {
        "quote": (options(quote="'"), "a,b\n1,'x,y'\n2,'z'\n"),
        "escape": (options(escape="\\"), 'a,b\n1,"x\\"y"\n2,"z"\n'),
        "comment": (options(comment="#"), "a,b\n#9,no\n1,x\n2,y\n"),
        "terminator": (options(terminator=";"), "a,b;1,x;2,y;"),
        "null": (options(null_regex="^NA$"), "a,b\n1,NA\n2,y\n"),
        "truncated rows": (options(truncated_rows=True), "a,b\n1\n2,y\n"),
        "newlines in values": (options(newlines_in_values=True), 'a,b\n1,"x\ny"\n2,z\n'),
    }
    for name, (given, text) in texts.items():
        folder = arm.tmp / f"text-{name.replace(' ', '-')}"
        folder.mkdir()
        for part in range(3):
            (folder / f"{part}.csv").write_text(text)
        want, got = (_read_csv(ctx, str(folder), given) for ctx in (arm.plain(), arm.context()))
        arm.equal(got, want, f"reader option {name}, against single node")
        arm.figure.setdefault("read", []).extend([name] if isinstance(want, list) and want else [])
    arm.check(len(arm.figure["read"]) >= 5, f"single node reads only {arm.figure['read']}, so equality proves little")


def _read_csv(ctx: Any, folder: str, options: Any) -> Any:
    """The rows, or the type of the exception: some options cannot be combined with inferring the schema."""
    try:
        ctx.register_csv("c", folder, options=options)
        return rows(ctx.sql("SELECT a, b, count(*) AS n FROM c GROUP BY a, b"))
    except Exception as error:
        return type(error).__name__


def json(arm: Arm) -> None:
    import json as text

    for compressed in (False, True):
        folder = arm.tmp / f"json-{compressed}"
        folder.mkdir()
        for part, pairs in enumerate(_parts()):
            data = "".join(text.dumps({"k": k, "v": v}) + "\n" for k, v in pairs).encode()
            name = f"{part}.json.gz" if compressed else f"{part}.json"
            (folder / name).write_bytes(gzip.compress(data) if compressed else data)
        ctx = arm.context()
        options = {"file_extension": ".json.gz", "file_compression_type": "gzip"} if compressed else {}
        ctx.register_json("t", str(folder), **options)
        _answers(arm, ctx, remote=not compressed)


def arrow_ipc(arm: Arm) -> None:
    folder = arm.tmp / "arrow"
    folder.mkdir()
    for part, pairs in enumerate(_parts()):
        table = pa.table({"k": [k for k, _ in pairs], "v": [v for _, v in pairs]})
        with pa.ipc.new_file(folder / f"{part}.arrow", table.schema) as writer:
            writer.write_table(table)
    ctx = arm.context()
    ctx.register_arrow("t", str(folder))
    _answers(arm, ctx)


def avro(arm: Arm) -> None:
    folder = arm.tmp / "avro"
    folder.mkdir()
    for part, pairs in enumerate(_parts()):
        (folder / f"{part}.avro").write_bytes(_avro_file(pairs))
    plain = arm.plain()
    plain.register_avro("t", str(folder))
    arm.equal(plain.sql(BY_KEY.format(table="t")).to_pydict(), expected_by_key(), "the file itself, on a single node")
    ctx = arm.context()
    ctx.register_avro("t", str(folder))
    _answers(arm, ctx)


def _avro_file(pairs: list[tuple[int, int]]) -> bytes:
    """An Avro object container file with two long columns: header, one block, uncompressed."""

    def long(value: int) -> bytes:
        value = (value << 1) ^ (value >> 63)
        out = b""
        while value > 0x7F:
            out += bytes([(value & 0x7F) | 0x80])
            value >>= 7
        return out + bytes([value])

    def text(value: bytes) -> bytes:
        return long(len(value)) + value

    import json as texts

    fields = [{"name": "k", "type": "long"}, {"name": "v", "type": "long"}]
    schema = texts.dumps({"type": "record", "name": "row", "fields": fields}).encode()
    sync = bytes(range(16))
    meta = long(2) + text(b"avro.schema") + text(schema) + text(b"avro.codec") + text(b"null") + long(0)
    block = b"".join(long(k) + long(v) for k, v in pairs)
    return b"Obj\x01" + meta + sync + long(len(pairs)) + long(len(block)) + block + sync


def in_memory(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    names: dict[str, list[Any]] = {"k": [1, 2, 3], "name": ["a", "b", "c"]}
    batch = pa.record_batch(names)
    ctx.from_pydict(names, name="m1")
    ctx.from_arrow(pa.table(names), name="m2")
    ctx.from_pylist([{"k": k, "name": n} for k, n in zip(names["k"], names["name"], strict=True)], name="m3")
    ctx.register_record_batches("m4", [[batch], [batch.slice(0, 0)]])
    ctx.register_batch("m5", batch)
    ctx.register_table("m6", ctx.create_dataframe([[batch]]))
    want = {"name": ["a", "b", "c"], "n": [100, 100, 100]}
    for table in ("m1", "m2", "m3", "m4", "m5", "m6"):
        arm.equal(ctx.sql(f"SELECT sum(k) AS s FROM {table}").to_pydict(), {"s": [6]}, f"{table} alone")
        sql = f"SELECT m.name, count(*) AS n FROM t JOIN {table} m ON t.k = m.k GROUP BY 1 ORDER BY 1"
        arm.equal(ctx.sql(sql).to_pydict(), want, f"{table} joined with Parquet")
    arm.on_workers(lambda: ctx.sql("SELECT count(*) FROM t JOIN m1 ON t.k = m1.k GROUP BY name").collect(), "the join")


def from_pandas(arm: Arm) -> None:
    from .kit import Blocked

    try:
        import pandas as pd
    except ImportError as error:
        raise Blocked("pandas is not in the arm's environment") from error
    ctx = arm.context()
    ctx.from_pandas(pd.DataFrame({"k": [1, 2], "v": [10, 20]}), name="p")
    arm.equal(ctx.sql("SELECT k, v FROM p ORDER BY k").to_pydict(), {"k": [1, 2], "v": [10, 20]}, "rows of the frame")


def views(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    ctx.sql("CREATE VIEW one AS SELECT k, v FROM t WHERE v >= 0").collect()
    ctx.register_view("two", ctx.table("one"))
    ctx.register_table("three", ctx.table("two").into_view())
    for name in ("one", "two", "three"):
        _answers(arm, ctx, name)


def pyarrow_dataset(arm: Arm) -> None:
    import pyarrow.dataset as ds

    ctx = arm.with_table(arm.context())
    ctx.register_dataset("d", ds.dataset(str(arm.parquet())))
    arm.equal(ctx.sql(BY_KEY.format(table="d")).to_pydict(), expected_by_key(), "the dataset alone")
    got = ctx.sql("SELECT count(*) AS n FROM t JOIN d ON t.v = d.v WHERE d.v < 250").to_pydict()
    arm.equal(got, {"n": [250]}, "the dataset joined with Parquet")


def dataset_is_lazy(arm: Arm) -> None:
    import pyarrow.dataset as ds

    folder = arm.parquet()
    files = sorted(str(path) for path in folder.iterdir())
    bad = folder / "z.parquet"
    bad.write_bytes(b"PAR1 this is not a Parquet file PAR1")
    dataset = ds.FileSystemDataset.from_paths(
        [*files, str(bad)],
        schema=pq.read_schema(files[0]),
        format=ds.ParquetFileFormat(),
        filesystem=pa.fs.LocalFileSystem(),
    )
    answers: dict[str, Any] = {}
    for name, ctx in (("plain", arm.plain()), ("arm", arm.context())):
        ctx.register_dataset("d", dataset)
        try:
            answers[name] = len(ctx.sql("SELECT v FROM d LIMIT 5").to_pydict()["v"])
        except Exception as error:
            answers[name] = type(error).__name__
    arm.equal(answers["arm"], answers["plain"], "LIMIT 5 with an unreadable last file, against single node")


def table_function(arm: Arm) -> None:
    from pyarrow.dataset import dataset

    df = arm.df
    ctx = arm.with_table(arm.context())

    def first(count: Any) -> Any:
        number = count.python_value()
        return df.Table(dataset(pa.table({"k": list(range(number))})))

    ctx.register_udtf(df.udtf(first, "first_keys"))
    got = ctx.sql("SELECT count(*) AS n FROM t JOIN first_keys(3) f ON t.k = f.k").to_pydict()
    arm.equal(got, {"n": [300]}, "rows joined with a table function")


def catalogs(arm: Arm) -> None:
    ctx = arm.context()
    catalog = arm.df.catalog.Catalog.memory_catalog()
    ctx.register_catalog_provider("mine", catalog)
    schema = arm.df.catalog.Schema.memory_schema()
    ctx.catalog("mine").register_schema("here", schema)
    source = arm.with_table(arm.context())
    ctx.catalog("mine").schema("here").register_table("t", source.table_provider("t"))
    run = lambda: ctx.sql(BY_KEY.format(table="mine.here.t")).to_pydict()
    arm.equal(run(), expected_by_key(), "groups of mine.here.t")
    arm.on_workers(run)


def url_table(arm: Arm) -> None:
    ctx = arm.context().enable_url_table()
    got = ctx.sql(f"SELECT k, count(*) AS n, sum(v) AS s FROM '{arm.parquet()}/' GROUP BY k ORDER BY k").to_pydict()
    arm.equal(got, expected_by_key(), "groups of a path")
    arm.on_workers(lambda: ctx.sql(f"SELECT k, count(*) FROM '{arm.parquet()}/' GROUP BY k").collect())
