"""The 22 queries of both sets and their DataFrame forms, on real data, against two engines."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import datafusion
import duckdb
import pyarrow as pa
import pytest

import tpch
from harness.errors import UserError
from tpch.frames import load_frame
from tpch.oracles import cached_answer_path, datafusion_answer, duckdb_answer
from tpch.query_sets import QUERY_IDS, QUERY_SETS, Query, load_query
from tpch_helpers import assert_same_answer, assert_sorted

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpch.dataset import DataSet

EVERY_QUERY = pytest.mark.parametrize("query_id", QUERY_IDS)

ROWS_AT_SF001 = {
    "spec": [4, 4, 10, 5, 5, 1, 4, 2, 173, 20, 1, 2, 33, 1, 1, 296, 1, 2, 1, 1, 1, 7],
    "upstream": [4, 4, 138, 5, 5, 1, 4, 2, 173, 399, 359, 2, 33, 1, 1, 296, 1, 2, 1, 1, 1, 7],
}
"""Rows per query, q01 to q22, on which DuckDB and DataFusion agreed when the queries were written."""


@pytest.fixture(scope="module")
def session(tpch_sf001: DataSet) -> datafusion.SessionContext:
    """Open a stock session with the eight tables."""
    context = datafusion.SessionContext()
    for table, folder in tpch_sf001.tables.items():
        context.register_parquet(table, folder)
    return context


@EVERY_QUERY
@pytest.mark.parametrize("query_set", QUERY_SETS)
def test_both_oracles_give_the_same_answer(tpch_sf001: DataSet, query_set: str, query_id: str) -> None:
    query = load_query(query_set, query_id, tpch_sf001.sf)
    expected = duckdb_answer(tpch_sf001, query)
    answer = datafusion_answer(tpch_sf001, query)
    assert answer.num_rows == ROWS_AT_SF001[query_set][QUERY_IDS.index(query_id)]
    assert_same_answer(expected, answer, query)
    for table in (expected, answer):
        assert tuple(table.column_names) == query.columns
        assert_sorted(table, query)
        assert query.limit is None or table.num_rows <= query.limit


@EVERY_QUERY
def test_dataframe_code_gives_the_answer_of_the_sql_text(
    tpch_sf001: DataSet, session: datafusion.SessionContext, query_id: str
) -> None:
    query = load_query("spec", query_id, tpch_sf001.sf)
    answer = load_frame(query_id)(session, datafusion).to_arrow_table()
    expected = datafusion_answer(tpch_sf001, query)
    assert tuple(answer.column_names) == query.columns
    assert_same_answer(expected, answer, query)
    assert_sorted(answer, query)


def test_an_unknown_dataframe_query_is_refused() -> None:
    for name in ("q00", "q23", "q1", "", "q1x", "../q01", "__init__"):
        with pytest.raises(ValueError, match="unknown query"):
            load_frame(name)


def test_dataframe_code_needs_nothing_but_the_standard_library() -> None:
    """The arms' environments have no harness and none of its dependencies: no site-packages here either."""
    root = str(Path(tpch.__file__).parent.parent)
    code = (
        f"import sys; sys.path.insert(0, {root!r}); from tpch.frames import load_frame;"
        "print(len([load_frame(f'q{n:02d}') for n in range(1, 23)]));"
        "assert not [m for m in sys.modules if m.split('.')[0] in ('harness', 'datafusion', 'pydantic', 'pyarrow')]"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "22\n"


@pytest.mark.parametrize("engine", ["datafusion", "duckdb"])
def test_the_view_of_q15_can_be_dropped_at_any_time(tpch_sf001: DataSet, engine: str) -> None:
    """A failure leaves the view behind; cleaning up must work then, and also when there is nothing to clean."""
    run = _session(engine, tpch_sf001)
    query = load_query("upstream", "q15", tpch_sf001.sf)
    create, select, drop = query.statements
    (cleanup,) = query.cleanup
    run(cleanup)
    run(create)
    with pytest.raises(Exception, match=r"(?i)revenue0.*exist|exist.*revenue0"):
        run(create)  # what the next execution meets if nobody cleans up
    run(cleanup)
    run(create)
    assert query.sql == select
    assert run(select) == 1
    run(drop)
    run(cleanup)


def _session(engine: str, data: DataSet) -> Callable[[str], int]:
    """Open a session over the data: a function that runs one statement and returns its number of rows."""
    if engine == "datafusion":
        context = datafusion.SessionContext()
        for table, folder in data.tables.items():
            context.register_parquet(table, folder)
        return lambda statement: int(context.sql(statement).to_arrow_table().num_rows)
    connection = duckdb.connect()
    for table, folder in data.tables.items():
        connection.read_parquet(str(folder / "*.parquet")).create_view(table)
    return lambda statement: len(connection.execute(statement).fetchall())


@pytest.mark.parametrize("answer", [duckdb_answer, datafusion_answer], ids=["duckdb", "datafusion"])
def test_answers_are_cached_and_a_damaged_cache_is_repaired(
    tpch_sf001: DataSet, tmp_path: Path, answer: Callable[[DataSet, Query], pa.Table]
) -> None:
    data = dataclasses.replace(tpch_sf001, root=tmp_path)
    query = load_query("spec", "q06", data.sf)
    path = cached_answer_path(answer.__name__.removesuffix("_answer"), data, query)
    first = answer(data, query)
    content = path.read_bytes()
    changed = first.set_column(0, "revenue", pa.array([1.0]))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, changed.schema) as writer:
        writer.write_table(changed)
    assert answer(data, query).equals(changed), "the cached answer was not used"
    path.write_bytes(content[: len(content) // 2])
    assert answer(data, query).equals(first)
    assert path.read_bytes() == content
    assert [file.name for file in path.parent.iterdir()] == [path.name], "a temporary file was left behind"


def test_the_cache_tells_data_queries_and_engines_apart(tpch_sf001: DataSet) -> None:
    other = dataclasses.replace(tpch_sf001, fingerprint="0" * 64)
    paths = {
        cached_answer_path(engine, data, load_query(query_set, query_id, sf))
        for engine in ("duckdb", "datafusion")
        for data in (tpch_sf001, other)
        for query_set in QUERY_SETS
        for query_id, sf in (("q01", "0.01"), ("q02", "0.01"), ("q11", "0.01"), ("q11", "10"))
    }
    # Only the upstream Q11 is the same text at every scale factor.
    assert len(paths) == 2 * 2 * (4 + 3)


def test_an_oracle_that_is_not_installed_is_named(tpch_sf001: DataSet) -> None:
    with pytest.raises(UserError, match="pip install no-such-engine"):
        cached_answer_path("no-such-engine", tpch_sf001, load_query("spec", "q01", "0.01"))
