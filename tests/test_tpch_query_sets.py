"""Query sets as data: selection of queries, parameters, metadata that agrees with the text, stable hashes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserError
from tpch.query_sets import QUERY_IDS, QUERY_SETS, load_query, parse_query_selection, query_set_hash

NUMBERS = st.integers(min_value=1, max_value=22)

HASHES = {
    "spec": "6be0a42ff0d46d7b5c4e0b49f18bbf9e73bfd3498a4e0c134cb6316ae3203e02",
    "upstream": "2389611106d423a1d4e87e3fde2f15781fea60e1f20ffd808d3986087bf53a97",
}
"""Changing a query changes what every earlier run measured: if this fails on purpose, say so in the changelog."""


@given(st.lists(NUMBERS, min_size=1))
def test_a_list_selects_each_query_once_in_ascending_order(numbers: list[int]) -> None:
    expected = tuple(QUERY_IDS[n - 1] for n in sorted(set(numbers)))
    assert parse_query_selection(",".join(map(str, numbers))) == expected
    assert parse_query_selection(" , ".join(f"Q{n:02d}" for n in numbers)) == expected


@given(NUMBERS, NUMBERS)
def test_a_range_selects_both_ends_and_what_is_between(one: int, other: int) -> None:
    first, last = sorted((one, other))
    assert parse_query_selection(f"{first}-{last}") == QUERY_IDS[first - 1 : last]
    if first < last:
        with pytest.raises(UserError, match="runs backwards"):
            parse_query_selection(f"{last}-{first}")


def test_forms_can_be_mixed() -> None:
    assert parse_query_selection("18-20, q01,6") == ("q01", "q06", "q18", "q19", "q20")
    assert parse_query_selection("all") == QUERY_IDS


@given(st.one_of(st.just(0), st.integers(min_value=23, max_value=10**12)))
def test_an_unknown_number_is_named(number: int) -> None:
    for text in (str(number), f"1,{number}", f"1-{number}"):
        with pytest.raises(UserError, match=f"unknown query {number} .*expected numbers from 1 to 22"):
            parse_query_selection(text)


@given(st.text(max_size=12))
def test_any_text_is_a_selection_or_a_user_error(text: str) -> None:
    try:
        chosen = parse_query_selection(text)
    except UserError:
        return
    assert chosen
    assert set(chosen) <= set(QUERY_IDS)


@pytest.mark.parametrize("text", ["", ",", "1,", "-1", "1--2", "q", "1.5", "one", "1;2", "\u0661"])
def test_unreadable_text_is_quoted_in_the_error(text: str) -> None:
    with pytest.raises(UserError, match=r"cannot read .* in the query selection"):
        parse_query_selection(text)


@pytest.mark.parametrize(("sf", "fraction"), [("0.01", "0.01"), ("0.1", "0.001"), ("1", "0.0001"), ("10", "0.00001")])
def test_the_fraction_of_q11_is_scaled_and_written_in_full(sf: str, fraction: str) -> None:
    assert f" * {fraction}\n" in load_query("spec", "q11", sf).sql
    assert " * 0.0001\n" in load_query("upstream", "q11", sf).sql


@pytest.mark.parametrize("query_set", QUERY_SETS)
@pytest.mark.parametrize("query_id", QUERY_IDS)
def test_metadata_agrees_with_the_text(query_set: str, query_id: str) -> None:
    query = load_query(query_set, query_id, "1")
    limit = re.search(r"^LIMIT ([0-9]+)$", query.sql, re.MULTILINE)
    assert (int(limit[1]) if limit else None) == query.limit
    order = re.search(r"^ORDER BY (.*)$", query.sql, re.MULTILINE)
    keys = [f"{query.columns[key.column]}{' DESC' if key.descending else ''}" for key in query.order_by]
    assert (order[1].split(", ") if order else []) == keys
    assert not any("{" in statement or "--" in statement or ";" in statement for statement in query.statements)
    assert len(query.statements) == (3 if (query_set, query_id) == ("upstream", "q15") else 1)
    assert bool(query.cleanup) == (len(query.statements) > 1)


def test_the_sets_differ_where_they_should() -> None:
    specs = {q: load_query("spec", q, "1").statements for q in QUERY_IDS}
    differ = {q for q in QUERY_IDS if load_query("upstream", q, "1").statements != specs[q]}
    # At SF1 the fraction of Q11 is the same in both.
    assert differ == set(parse_query_selection("1,2,3,5,6,10,12,14,15,18,21"))
    assert load_query("upstream", "q11", "10").statements != load_query("spec", "q11", "10").statements


@pytest.mark.parametrize("query_set", QUERY_SETS)
def test_hashes_are_stable(query_set: str) -> None:
    assert query_set_hash(query_set) == HASHES[query_set]


def test_digests_tell_queries_apart_and_repeat() -> None:
    queries = [load_query(s, q, "1") for s in QUERY_SETS for q in QUERY_IDS]
    digests = [query.digest for query in queries]
    assert len(set(digests)) == len(digests)
    assert load_query("spec", "q11", "1").digest != load_query("spec", "q11", "10").digest
    assert load_query("spec", "q01", "1").digest == load_query("spec", "q01", "10").digest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tpcds", "q01", "1"), "unknown query set 'tpcds': expected one of spec, upstream"),
        (("spec", "q23", "1"), "unknown query 'q23': expected one of q01 to q22"),
        (("spec", "q01", "3"), "unknown scale factor '3': expected one of 0.01, 0.1, 1, 10"),
    ],
)
def test_unknown_names_are_refused(arguments: tuple[str, str, str], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        load_query(*arguments)
