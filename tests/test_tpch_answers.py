"""The published SF1 answers, as stored, against both oracles on real SF1 data.

SF1 goes into the ordinary data root, where the rest of the project needs it too: made once, then reused.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from harness.errors import UserError
from tpch.answers import DECIMALS, KNOWN_DIFFERENCES, ROUNDED_KEY, SCALE_FACTOR, official_answer
from tpch.generate import DataSet, ensure_data
from tpch.oracles import datafusion_answer, duckdb_answer
from tpch.query_sets import QUERY_IDS, load_query
from tpch_helpers import assert_same_answer

ROWS_AT_SF1 = [4, 100, 10, 5, 5, 1, 4, 2, 175, 20, 1048, 2, 42, 1, 1, 18314, 1, 57, 1, 186, 100, 7]
"""Rows of the TPC's validation output, q01 to q22."""


@pytest.fixture(scope="module")
def sf1() -> DataSet:
    """Make or find the real SF1 data."""
    return ensure_data(SCALE_FACTOR, progress=False)


@pytest.mark.parametrize("query_id", QUERY_IDS)
def test_both_oracles_give_the_published_answer(sf1: DataSet, query_id: str) -> None:
    query = load_query("spec", query_id, SCALE_FACTOR)
    published = official_answer(query_id)
    assert published.num_rows == ROWS_AT_SF1[QUERY_IDS.index(query_id)]
    for answer in (duckdb_answer(sf1, query), datafusion_answer(sf1, query)):
        assert_same_answer(published, answer, query)


def test_columns_have_the_types_that_the_loader_promises() -> None:
    schema = official_answer("q01").schema
    assert [str(field.type) for field in schema] == ["string"] * 2 + ["decimal128(38, 2)"] * 7 + ["int64"]
    rounded = [field.name for field in schema if field.metadata]
    assert rounded == ["sum_disc_price", "sum_charge", "avg_qty", "avg_price", "avg_disc"]
    assert schema.field("avg_qty").metadata == {ROUNDED_KEY: str(DECIMALS).encode()}
    assert official_answer("q03").schema.field("o_orderdate").type == pa.date32()


def test_columns_are_those_of_the_queries() -> None:
    for query_id in QUERY_IDS:
        assert tuple(official_answer(query_id).column_names) == load_query("spec", query_id, SCALE_FACTOR).columns


def test_known_differences_name_queries() -> None:
    assert set(KNOWN_DIFFERENCES) <= set(QUERY_IDS)


def test_an_unknown_answer_is_refused() -> None:
    with pytest.raises(UserError, match="no answer for 'q23'"):
        official_answer("q23")
