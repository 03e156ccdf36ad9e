"""The comparator on real answers: DuckDB and DataFusion spell the same answer in different types and names."""

from __future__ import annotations

import datafusion
import duckdb
import pyarrow as pa
import pytest

from harness.model import Validation
from harness.validate import SortKey, compare
from validate_helpers import assert_verdict

ROWS = 997
"""A prime, so that averages do not come out even."""

SAME = {
    "average of decimals": "SELECT g, avg(d) AS a FROM t GROUP BY g",
    "sum of integers": "SELECT g, sum(i) AS s, count(*) AS n FROM t GROUP BY g",
    "sum of decimals": "SELECT g, sum(d * (1 - d)) AS s FROM t GROUP BY g",
    "division of decimals": "SELECT g, sum(d) / 7.0 AS q FROM t GROUP BY g",
    "sum and average of doubles": "SELECT g, sum(x) AS s, avg(x) AS a, stddev(x) AS sd FROM t GROUP BY g",
    "year of a date": "SELECT extract(year FROM day) AS y, count(*) AS n FROM t GROUP BY 1",
    "made-up names": "SELECT g, sum(i), min(x), count(*) FROM t GROUP BY g",
    "NULLs": "SELECT g, NULL AS nothing, max(CASE WHEN i < 0 THEN i END) AS m FROM t GROUP BY g",
    "text": "SELECT DISTINCT upper(s) AS u, s LIKE 'a%' AS starts FROM t",
    "lists": "SELECT g, array_agg(i ORDER BY i) AS l FROM t GROUP BY g",
}


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    """A table with a column of most types that queries use."""
    numbers = list(range(ROWS))
    return pa.table(
        {
            "g": pa.array([i % 7 for i in numbers], pa.int32()),
            "i": pa.array([None if i % 11 == 0 else i * i % 1009 for i in numbers], pa.int64()),
            "d": pa.array([i * 37 % 10_007 for i in numbers]).cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2)),
            "x": pa.array([i * 0.1 for i in numbers]),
            "day": pa.array([i * 3 for i in numbers], pa.int32()).cast(pa.date32()),
            "s": pa.array([("abc" * 3)[i % 9 :] for i in numbers]),
        }
    )


def answers(sql: str, t: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The answer of DuckDB and that of DataFusion."""
    with duckdb.connect() as connection:
        connection.register("t", t)
        expected = connection.sql(sql).to_arrow_table()
    context = datafusion.SessionContext()
    context.register_record_batches("t", [t.to_batches()])
    frame = context.sql(sql)
    return expected, pa.Table.from_batches(frame.collect(), schema=frame.schema())


@pytest.mark.parametrize("sql", SAME.values(), ids=SAME.keys())
def test_two_engines_give_equal_answers(sql: str, rows: pa.Table) -> None:
    expected, actual = answers(sql, rows)
    result = compare(expected, actual)
    assert_verdict(result, Validation.VALIDATED)
    assert_verdict(compare(actual, expected), Validation.VALIDATED)
    assert result.rows == expected.num_rows > 0


def test_a_limit_that_cuts_ties_is_judged_by_the_answer_without_limit(rows: pa.Table) -> None:
    sql = "SELECT g, x FROM t ORDER BY g DESC"
    keys = [SortKey(column="g", descending=True)]
    whole = answers(sql, rows)[0]
    expected, actual = answers(f"{sql} LIMIT 200", rows)
    assert_verdict(compare(expected, actual, order_by=keys, limit=200, boundary=whole), Validation.VALIDATED)
    assert_verdict(compare(expected, actual.slice(1), order_by=keys, limit=200, boundary=whole), Validation.MISMATCH)


def test_a_query_that_differs_in_one_predicate_is_a_mismatch(rows: pa.Table) -> None:
    expected = answers("SELECT g, sum(x) AS s FROM t GROUP BY g", rows)[0]
    wrong = answers("SELECT g, sum(x) AS s FROM t WHERE i IS NOT NULL GROUP BY g", rows)[1]
    assert_verdict(compare(expected, wrong), Validation.MISMATCH, "column 1 's'")
