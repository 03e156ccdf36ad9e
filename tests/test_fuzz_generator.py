"""The generator: the seed decides everything, every shape turns up, and hardly any query is refused or empty."""

from __future__ import annotations

import hashlib
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harness.fuzz.batch import Batch, make_batch
from harness.fuzz.judge import SHAPES
from harness.fuzz.kinds import Kind
from harness.fuzz.model import FuzzSettings
from harness.fuzz.options import DISTRIBUTED_CHOICES, SESSION_CHOICES, WORKER_COUNTS, sample_options
from harness.fuzz.queries import QueryMaker
from harness.fuzz.scope import Field, Scope
from harness.fuzz.tables import make_tables, registration, write_table

SETTINGS = FuzzSettings(arms=("inline",), seed=5)
QUERIES = 60

DIGEST = """
import hashlib
from harness.fuzz.model import FuzzSettings
from harness.fuzz.batch import make_batch
batch = make_batch(FuzzSettings(arms=("inline",), seed=5), 3, 60)
print(hashlib.sha256(repr(batch).encode()).hexdigest())
"""


def batches(count: int) -> list[Batch]:
    return [make_batch(SETTINGS, number, QUERIES) for number in range(count)]


def test_a_batch_is_the_same_in_every_process() -> None:
    """Hash randomisation, and whatever ran before, must not move anything."""
    here = hashlib.sha256(repr(make_batch(SETTINGS, 3, QUERIES)).encode()).hexdigest()
    root = str(Path(__file__).parents[1])
    for hash_seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": root}
        done = subprocess.run([sys.executable, "-c", DIGEST], env=env, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == here, f"hash seed {hash_seed}"


def test_a_query_depends_on_seed_and_place_only() -> None:
    long, short = make_batch(SETTINGS, 1, QUERIES), make_batch(SETTINGS, 1, 7)
    assert long.queries[:7] == short.queries
    assert long.queries != make_batch(SETTINGS.model_copy(update={"seed": 6}), 1, QUERIES).queries
    assert make_batch(SETTINGS, 0, 7).queries != short.queries


def test_every_shape_turns_up() -> None:
    text = "\n".join(query.sql() for batch in batches(12) for query in batch.queries)
    missing = [shape for shape in SHAPES if shape not in text]
    assert not missing


def test_every_kind_and_layout_of_tables_turns_up() -> None:
    rng = random.Random(1)
    tables = [table for _ in range(60) for table in make_tables(rng, 4)]
    assert {column.kind for table in tables for column in table.columns} == set(Kind) - {Kind.INEXACT}
    assert {table.layout for table in tables} == {"plain", "sorted", "partitioned", "csv", "json"}
    assert any(table.rows == 0 for table in tables), "no empty table"
    assert any(not file for table in tables for file in table.files if table.rows), "no empty file beside full ones"
    for table in tables:
        ids = [row[0] for file in table.files for row in file]
        assert len(ids) == len(set(ids)), f"{table.name}: `id` repeats, so limits over it would have no one answer"


def test_every_option_turns_up() -> None:
    rng = random.Random(1)
    drawn = [sample_options(rng) for _ in range(400)]
    for section, choices in (("session", SESSION_CHOICES), ("distributed", DISTRIBUTED_CHOICES)):
        for key, values in choices.items():
            assert {getattr(options, section)[key] for options in drawn} == set(values), key
    assert {options.workers for options in drawn} == set(WORKER_COUNTS)


def test_single_node_sessions_get_no_distributed_options() -> None:
    options = sample_options(random.Random(1))
    assert not [key for key in options.config(distributed=False) if key.startswith("distributed.")]
    assert options.config(distributed=True)["distributed.file_scan_config_bytes_per_partition"] == "1"


def test_what_depends_on_the_place_of_a_row_stands_over_a_total_order() -> None:
    """Otherwise one node alone has several right answers, and any other one looks like a fault."""
    scope = Scope((Field("t1.k", Kind.INT), Field("t1.s", Kind.TEXT), Field("t1.id", Kind.INT)), key=("t1.id",))
    seen = 0
    for seed in range(600):
        text = QueryMaker(random.Random(seed)).over(scope).sql()
        call, _, over = text.partition(" OVER (")
        if call.removeprefix("CAST(").startswith(("row_number", "ntile", "lag", "lead", "nth_value")):
            seen += 1
            assert re.search(r"ORDER BY .*t1\.id (ASC|DESC)", over), text
    assert seen > 60


@pytest.mark.parametrize("layout", ["plain", "sorted", "partitioned", "csv", "json"])
def test_tables_read_back_as_they_were_made(tmp_path: Path, layout: str) -> None:
    from datafusion import SessionContext

    rng = random.Random(3)
    table = next(t for _ in range(200) for t in make_tables(rng, 4) if t.layout == layout and t.rows > 5)
    folder = tmp_path / table.name
    write_table(table, folder)
    ctx = SessionContext()
    statement = registration(table, folder)
    if statement:
        ctx.sql(statement).collect()
    else:
        ctx.register_parquet(table.name, str(folder))
    answer = ctx.sql(f"SELECT id FROM {table.name} ORDER BY id").to_pydict()["id"]
    assert answer == sorted(row[0] for file in table.files for row in file)
    names = ctx.sql(f"SELECT * FROM {table.name} LIMIT 0").schema().names
    assert set(names) == {column.name for column in table.visible}


def test_sorted_files_are_sorted(tmp_path: Path) -> None:
    rng = random.Random(3)
    table = next(t for _ in range(200) for t in make_tables(rng, 4) if t.layout == "sorted" and t.rows > 5)
    write_table(table, tmp_path / "t")
    for path in (tmp_path / "t").glob("*.parquet"):
        ids = pq.read_table(path)["id"].to_pylist()
        assert ids == sorted(ids), path.name


def test_most_queries_run_and_have_rows(tmp_path: Path) -> None:
    """What one node refuses, or answers with nothing, tests nothing."""
    from datafusion import SessionContext

    refused, empty, run = [], 0, 0
    for batch in batches(2):
        ctx = SessionContext()
        for table in batch.tables:
            folder = tmp_path / str(batch.number) / table.name
            write_table(table, folder)
            ctx.sql(statement).collect() if (statement := registration(table, folder)) else ctx.register_parquet(
                table.name, str(folder)
            )
        for query in batch.queries:
            run += 1
            try:
                rows = sum(part.num_rows for part in ctx.sql(query.sql()).collect())
            except Exception as error:  # noqa: BLE001 - any refusal counts
                refused.append(str(error).splitlines()[0])
                continue
            empty += not rows
    assert len(refused) / run < 0.08, refused
    assert empty / run < 0.35
