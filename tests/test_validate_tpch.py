"""The 22 answers of two real engines: equal as they are, unequal as soon as one cell of any column changes."""

from __future__ import annotations

import dataclasses
import re
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from harness.model import Validation
from harness.validate import SortKey, compare, validate_answer
from tpch.generate import DataSet
from tpch.oracles import datafusion_answer, duckdb_answer
from tpch.query_sets import QUERY_IDS, Query, load_query
from validate_helpers import assert_verdict


def without_limit(query: Query) -> Query:
    """The same query with its final LIMIT taken off."""
    sql, cuts = re.subn(r"(?is)\blimit\s+\d+\s*;?\s*$", "", query.sql.strip())
    assert cuts == (query.limit is not None), f"{query.id}: expected a final LIMIT {query.limit} in {query.sql!r}"
    statements = tuple(sql if text == query.sql else text for text in query.statements)
    return dataclasses.replace(query, statements=statements, limit=None)


def keys(query: Query) -> list[SortKey]:
    """ORDER BY of the query in the comparator's terms."""
    return [SortKey(column=key.column, descending=key.descending) for key in query.order_by]


def changed(value: Any) -> Any:
    """A wrong value: just outside the tolerance of an average, the least change of everything else."""
    if isinstance(value, Decimal):
        unit = Decimal(1).scaleb(int(value.as_tuple().exponent))
        return value + max(unit, (abs(value) * Decimal("1e-8") + Decimal("3e-6")).quantize(unit))
    if isinstance(value, date):
        return value + timedelta(days=1)
    return value + "." if isinstance(value, str) else value + 1


@pytest.mark.parametrize("query_id", QUERY_IDS)
def test_two_engines_agree_and_one_changed_cell_does_not(query_id: str, tpch_sf001: DataSet) -> None:
    query = load_query("spec", query_id, "0.01")
    whole = without_limit(query)
    cut = query.limit is not None
    answer = datafusion_answer(tpch_sf001, query)
    oracles = {"duckdb": duckdb_answer(tpch_sf001, query), "datafusion": answer}
    candidates = {"duckdb": duckdb_answer(tpch_sf001, whole), "datafusion": datafusion_answer(tpch_sf001, whole)}
    facts: dict[str, Any] = {"order_by": keys(query), "limit": query.limit, "boundaries": candidates if cut else None}
    verdict, _, reason = validate_answer(answer, oracles, **facts)
    assert verdict is Validation.VALIDATED, f"{query_id}: {reason}"
    row = answer.num_rows - 1
    for position, name in enumerate(answer.column_names):
        column = answer.column(position).combine_chunks()
        old = column[row].as_py()
        if old is None:  # q17 finds nothing at this scale
            continue
        cell = pa.array([changed(old)], column.type)
        wrong = answer.set_column(position, name, pa.concat_arrays([column.slice(0, row), cell]))
        verdict, each, reason = validate_answer(wrong, oracles, **facts)
        assert set(each.values()) == {Validation.MISMATCH}, f"{query_id}.{name}: {old!r} -> {cell[0]}: {each}, {reason}"


def test_rows_tied_at_the_limit_of_a_real_query(tpch_sf001: DataSet) -> None:
    """A LIMIT that cuts q16 between two equal counts: the other row of the tie passes, an invented one does not."""
    whole = duckdb_answer(tpch_sf001, load_query("spec", "q16", "0.01"))
    counts = whole.column(3).to_pylist()
    limit = next(i for i in range(1, len(counts)) if counts[i - 1] == counts[i])
    facts: dict[str, Any] = {"order_by": [SortKey(column=3, descending=True)], "limit": limit, "boundary": whole}
    expected, other = whole.slice(0, limit), whole.take([*range(limit - 1), limit])
    assert_verdict(compare(expected, other, **facts), Validation.VALIDATED)
    sizes = [*other.column(2).to_pylist()[:-1], 99]
    invented = other.set_column(2, "p_size", pa.array(sizes, other.schema.field(2).type))
    assert_verdict(
        compare(expected, invented, **facts), Validation.MISMATCH, f"limit: row {limit - 1}", "'p_size'", "got 99"
    )
