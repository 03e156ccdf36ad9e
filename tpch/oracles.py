"""Two independent engines that say what the right answer is: DuckDB and single-node DataFusion, over the same files.

Answers are cached below the data root, keyed by everything that decides them: data, query, engine version.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from harness.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa

    from tpch.dataset import DataSet
    from tpch.query_sets import Query

CACHE_FOLDER = "oracles"
"""Folder below the data root that holds cached answers. May be removed at any time."""

KEY_LENGTH = 16
"""Hex digits of a digest in a cached file's name: 64 bits, plenty for the handful of files that can meet."""


def duckdb_answer(dataset: DataSet, query: Query) -> pa.Table:
    """Answer of DuckDB over the Parquet files of `dataset`; raises `UserError` if DuckDB is not installed."""
    return _cached("duckdb", dataset, query, _run_duckdb)


def datafusion_answer(dataset: DataSet, query: Query) -> pa.Table:
    """Answer of stock single-node DataFusion in this process; raises `UserError` if it is not installed.

    Strings are `string`, not DataFusion's `string_view`.
    """
    return _cached("datafusion", dataset, query, _run_datafusion)


def cached_answer_path(engine: str, dataset: DataSet, query: Query) -> Path:
    """File that holds (or would hold) the cached answer, an Arrow IPC file."""
    try:
        engine_version = version(engine)
    except PackageNotFoundError as error:
        msg = f"the oracle {engine!r} is not installed: run `python -m pip install {engine}`"
        raise UserError(msg) from error
    name = f"{query.query_set}-{query.id}-{query.digest[:KEY_LENGTH]}.arrow"
    return dataset.root / CACHE_FOLDER / dataset.fingerprint[:KEY_LENGTH] / f"{engine}-{engine_version}" / name


def _cached(engine: str, dataset: DataSet, query: Query, run: Callable[[DataSet, Query], pa.Table]) -> pa.Table:
    path = cached_answer_path(engine, dataset, query)
    answer = _read(path)
    if answer is None:
        answer = run(dataset, query)
        # The cache only saves time: a full or read-only disk must not cost the answer.
        with contextlib.suppress(OSError):
            _write(path, answer)
    return answer


def _read(path: Path) -> pa.Table | None:
    import pyarrow as pa

    try:
        with pa.OSFile(str(path)) as file:
            return pa.ipc.open_file(file).read_all()
    except (OSError, pa.ArrowException):  # absent, or damaged: compute it (again)
        return None


def _write(path: Path, answer: pa.Table) -> None:
    import pyarrow as pa

    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with pa.OSFile(str(temporary), "wb") as file, pa.ipc.new_file(file, answer.schema) as writer:
            writer.write_table(answer)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


# Both engines below live in memory and go away with the call, so statements after the answer (dropping a view) and
# `Query.cleanup` have nothing to do here.


def _run_duckdb(dataset: DataSet, query: Query) -> pa.Table:
    import duckdb

    with duckdb.connect() as connection:
        for table, folder in dataset.tables.items():
            connection.read_parquet(str(folder / "*.parquet")).create_view(table)
        for statement in query.statements[: query.result_statement]:
            connection.execute(statement)
        return connection.sql(query.sql).to_arrow_table()


def _run_datafusion(dataset: DataSet, query: Query) -> pa.Table:
    from datafusion import SessionContext

    context = SessionContext()
    for table, folder in dataset.tables.items():
        context.register_parquet(table, folder)
    for statement in query.statements[: query.result_statement]:
        context.sql(statement).collect()
    return _compact(context.sql(query.sql).to_arrow_table())


def _compact(answer: pa.Table) -> pa.Table:
    """Turn views into plain strings: a view keeps the whole buffers it points into, 15 times the answer for Q10."""
    import pyarrow as pa

    fields = [f.with_type(pa.string()) if pa.types.is_string_view(f.type) else f for f in answer.schema]
    return answer.cast(pa.schema(fields))
