"""The expressions of the generator, as data: what a rule gives, its SQL, and what it is made of.

Nothing here may fail on some rows only: which rows an expression sees depends on the plan, so an error that one plan
meets and another does not would be no difference worth a report. Hence `nullif(x, 0)` and `try_cast`.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.fuzz.kinds import COLUMN_KINDS, SORTABLE, Kind

INT, SMALL, FLOAT, INEXACT, DECIMAL, TEXT, BOOL, DATE, TIME, INSTANT, LIST, RECORD = Kind


class Rule(NamedTuple):
    """`template` over arguments of the kinds `takes` gives a value of kind `gives`."""

    gives: Kind
    template: str
    takes: tuple[Kind, ...]


class Aggregate(NamedTuple):
    """An aggregate function."""

    gives: Kind
    template: str
    takes: Kind
    windowed: bool = True
    """Whether it may stand before OVER."""


def _rules() -> tuple[Rule, ...]:
    rows: list[tuple[Kind, str, tuple[Kind, ...]]] = []
    for kind in (INT, FLOAT, DECIMAL):
        rows += [(kind, f"({{0}} {sign} {{1}})", (kind, kind)) for sign in "+-"]
    rows += [(kind, "coalesce({0}, {1})", (kind, kind)) for kind in Kind if kind is not INEXACT]
    rows += [(kind, "CASE WHEN {0} THEN {1} ELSE {2} END", (BOOL, kind, kind)) for kind in Kind if kind is not INEXACT]
    rows += [(kind, "nullif({0}, {1})", (kind, kind)) for kind in (INT, TEXT, DATE)]
    comparable = (INT, SMALL, FLOAT, DECIMAL, TEXT, DATE, TIME, INSTANT)
    rows += [(BOOL, f"({{0}} {sign} {{1}})", (kind, kind)) for kind in comparable for sign in ("=", "<", ">=", "<>")]
    rows += [(BOOL, f"({{0}} IS {no}NULL)", (kind,)) for kind in Kind if kind is not INEXACT for no in ("", "NOT ")]
    rows += [(BOOL, f"({{0}} IS {no}DISTINCT FROM {{1}})", (kind, kind)) for kind in comparable for no in ("", "NOT ")]
    rows += [(BOOL, "({0} BETWEEN {1} AND {2})", (kind, kind, kind)) for kind in (INT, TEXT, DATE)]
    rows += [(TEXT, "CAST({0} AS VARCHAR)", (kind,)) for kind in (INT, FLOAT, DECIMAL, BOOL, DATE, TIME, INSTANT)]
    return tuple(Rule(*row) for row in (*rows, *OTHERS))


OTHERS: tuple[tuple[Kind, str, tuple[Kind, ...]], ...] = (
    (INT, "abs({0})", (INT,)),
    (INT, "({0} * {1} % 1000)", (INT, INT)),
    (INT, "({0} / nullif({1}, 0))", (INT, INT)),
    (INT, "({0} & 7)", (INT,)),
    (INT, "greatest({0}, {1})", (INT, INT)),
    (INT, "least({0}, {1})", (INT, INT)),
    (INT, "CAST(character_length({0}) AS BIGINT)", (TEXT,)),
    (INT, "CAST(strpos({0}, {1}) AS BIGINT)", (TEXT, TEXT)),
    (INT, "CAST(ascii({0}) AS BIGINT)", (TEXT,)),
    (INT, "try_cast({0} AS BIGINT)", (TEXT,)),
    (INT, "CAST({0} AS BIGINT)", (SMALL,)),
    (INT, "CAST({0} AS BIGINT)", (BOOL,)),
    (INT, "CAST(date_part('day', {0}) AS BIGINT)", (DATE,)),
    (INT, "CAST(date_part('hour', {0}) AS BIGINT)", (TIME,)),
    (INT, "CAST(date_part('hour', {0}) AS BIGINT)", (INSTANT,)),
    (INT, "CAST(extract(dow FROM {0}) AS BIGINT)", (DATE,)),
    (INT, "CAST(array_length({0}) AS BIGINT)", (LIST,)),
    (INT, "CAST(cardinality({0}) AS BIGINT)", (LIST,)),
    (INT, "{0}[1]", (LIST,)),
    (INT, "array_position({0}, {1})::BIGINT", (LIST, INT)),
    (INT, "get_field({0}, 'x')", (RECORD,)),
    (TEXT, "get_field({0}, 'y')", (RECORD,)),
    (SMALL, "CAST({0} % 100 AS INT)", (INT,)),
    (SMALL, "CAST(date_part('month', {0}) AS INT)", (DATE,)),
    (FLOAT, "CAST({0} AS DOUBLE)", (INT,)),
    (FLOAT, "floor({0})", (FLOAT,)),
    (FLOAT, "abs({0})", (FLOAT,)),
    (INEXACT, "sqrt(abs({0}))", (FLOAT,)),
    (INEXACT, "({0} / nullif({1}, 0))", (FLOAT, FLOAT)),
    (INEXACT, "CAST({0} AS DOUBLE)", (DECIMAL,)),
    (DECIMAL, "round({0}, 1)", (DECIMAL,)),
    (DECIMAL, "CAST({0} AS DECIMAL(20, 2))", (INT,)),
    (TEXT, "upper({0})", (TEXT,)),
    (TEXT, "lower({0})", (TEXT,)),
    (TEXT, "trim({0})", (TEXT,)),
    (TEXT, "reverse({0})", (TEXT,)),
    (TEXT, "({0} || {1})", (TEXT, TEXT)),
    (TEXT, "concat({0}, '-', {1})", (TEXT, TEXT)),
    (TEXT, "concat_ws('/', {0}, {1})", (TEXT, TEXT)),
    (TEXT, "substr({0}, 2, 3)", (TEXT,)),
    (TEXT, "left({0}, 2)", (TEXT,)),
    (TEXT, "lpad({0}, 5, '*')", (TEXT,)),
    (TEXT, "replace({0}, 'a', 'oo')", (TEXT,)),
    (TEXT, "regexp_replace({0}, '[aeiou]', '_')", (TEXT,)),
    (TEXT, "split_part({0}, 'p', 1)", (TEXT,)),
    (TEXT, "initcap({0})", (TEXT,)),
    (TEXT, "md5({0})", (TEXT,)),
    (TEXT, "to_char({0}, '%Y/%m/%d')", (DATE,)),
    (TEXT, "to_char({0}, '%d %H:%M')", (TIME,)),
    (TEXT, "array_to_string({0}, ',')", (LIST,)),
    (TEXT, "arrow_typeof({0})", (TEXT,)),
    (TEXT, "arrow_typeof({0})", (INSTANT,)),
    (BOOL, "({0} AND {1})", (BOOL, BOOL)),
    (BOOL, "({0} OR {1})", (BOOL, BOOL)),
    (BOOL, "(NOT {0})", (BOOL,)),
    (BOOL, "({0} LIKE '%a%')", (TEXT,)),
    (BOOL, "({0} ILIKE 'a%')", (TEXT,)),
    (BOOL, "({0} NOT LIKE '_b')", (TEXT,)),
    (BOOL, "({0} ~ '^[a-z]+$')", (TEXT,)),
    (BOOL, "starts_with({0}, 'a')", (TEXT,)),
    (BOOL, "({0} IN (0, 1, 2, 5))", (INT,)),
    (BOOL, "({0} NOT IN (1, 3))", (INT,)),
    (BOOL, "({0} IN ('a', 'b', 'zoo'))", (TEXT,)),
    (BOOL, "({0} IS NOT TRUE)", (BOOL,)),
    (BOOL, "array_has({0}, {1})", (LIST, INT)),
    (BOOL, "array_has_any({0}, {1})", (LIST, LIST)),
    (BOOL, "({0} = DATE '2024-03-01')", (DATE,)),
    (BOOL, "({0} > TIMESTAMP '2024-02-28T00:00:00')", (TIME,)),
    (BOOL, "({0} > '2024-02-28T00:00:00')", (INSTANT,)),
    (BOOL, "({0} < '2024-02-28')", (DATE,)),
    (DATE, "CAST({0} AS DATE)", (TIME,)),
    (DATE, "CAST({0} AS DATE)", (INSTANT,)),
    (DATE, "({0} + INTERVAL '1' DAY)", (DATE,)),
    (DATE, "try_cast({0} AS DATE)", (TEXT,)),
    (TIME, "date_trunc('day', {0})", (TIME,)),
    (TIME, "date_trunc('hour', {0})", (TIME,)),
    (TIME, "date_bin(INTERVAL '3 hours', {0})", (TIME,)),
    (TIME, "({0} + INTERVAL '90 minutes')", (TIME,)),
    (TIME, "({0} - INTERVAL '1 month')", (TIME,)),
    (TIME, "CAST({0} AS TIMESTAMP)", (DATE,)),
    (TIME, "to_local_time({0})", (INSTANT,)),
    (INSTANT, "date_trunc('day', {0})", (INSTANT,)),
    (INSTANT, "({0} + INTERVAL '1 day')", (INSTANT,)),
    (INSTANT, "({0} AT TIME ZONE 'Europe/Brussels')", (INSTANT,)),
    (INSTANT, "CAST({0} AS TIMESTAMP WITH TIME ZONE)", (TIME,)),
    (LIST, "make_array({0}, {1})", (INT, INT)),
    (LIST, "array_append({0}, {1})", (LIST, INT)),
    (LIST, "array_concat({0}, {1})", (LIST, LIST)),
    (LIST, "array_distinct({0})", (LIST,)),
    (LIST, "array_sort({0})", (LIST,)),
    (LIST, "array_slice({0}, 1, 2)", (LIST,)),
    (RECORD, "named_struct('x', {0}, 'y', {1})", (INT, TEXT)),
)

RULES = _rules()

LITERALS: dict[Kind, tuple[str, ...]] = {
    INT: ("0", "1", "2", "5", "-1", "CAST(NULL AS BIGINT)"),
    SMALL: ("CAST(1 AS INT)", "CAST(-2 AS INT)"),
    FLOAT: ("CAST(0.5 AS DOUBLE)", "CAST(-1.25 AS DOUBLE)", "CAST(2 AS DOUBLE)"),
    INEXACT: ("CAST(0.1 AS DOUBLE)",),
    DECIMAL: ("CAST(1.25 AS DECIMAL(12, 2))", "CAST(-0.50 AS DECIMAL(12, 2))"),
    TEXT: ("'a'", "'Apple'", "''", "'42'", "CAST(NULL AS VARCHAR)"),
    BOOL: ("TRUE", "FALSE", "TRUE"),
    DATE: ("DATE '2024-02-29'", "DATE '2024-03-05'"),
    TIME: ("TIMESTAMP '2024-02-28T01:30:00'", "to_timestamp('2024-02-27T23:30:00')"),
    INSTANT: (
        "CAST('2024-02-28T01:30:00Z' AS TIMESTAMP WITH TIME ZONE)",
        "CAST('2024-02-28T01:30:00' AS TIMESTAMP WITH TIME ZONE)",
    ),
    LIST: ("make_array(1, 2, 3)", "make_array(5, NULL)"),
    RECORD: ("named_struct('x', 1, 'y', 'a')",),
}

AGGREGATES: tuple[Aggregate, ...] = (
    Aggregate(INT, "count(*)", INT),
    *(Aggregate(INT, "count({0})", kind) for kind in (INT, TEXT, BOOL, LIST)),
    *(Aggregate(INT, "count(DISTINCT {0})", kind, windowed=False) for kind in (INT, TEXT, DATE)),
    Aggregate(INT, "sum({0})", INT),
    Aggregate(INT, "sum(DISTINCT {0})", INT, windowed=False),
    Aggregate(FLOAT, "sum({0})", FLOAT),
    Aggregate(INEXACT, "sum({0})", INEXACT),
    Aggregate(INEXACT, "avg({0})", FLOAT),
    Aggregate(INEXACT, "avg({0})", INT),
    Aggregate(INEXACT, "stddev({0})", FLOAT),
    Aggregate(INEXACT, "var_pop({0})", INT),
    Aggregate(INEXACT, "corr({0}, {0} * 2)", FLOAT),
    Aggregate(FLOAT, "median({0})", FLOAT, windowed=False),
    *(Aggregate(kind, f"{name}({{0}})", kind) for name in ("min", "max") for kind in COLUMN_KINDS if kind in SORTABLE),
    Aggregate(BOOL, "bool_and({0})", BOOL),
    Aggregate(BOOL, "bool_or({0})", BOOL),
    Aggregate(INT, "bit_and({0})", INT, windowed=False),
    Aggregate(INT, "bit_xor({0})", INT, windowed=False),
    Aggregate(LIST, "array_agg({0} ORDER BY {0} ASC NULLS LAST)", INT, windowed=False),
    Aggregate(LIST, "array_agg(DISTINCT {0} ORDER BY {0} DESC NULLS FIRST)", INT, windowed=False),
    Aggregate(TEXT, "string_agg({0}, '|' ORDER BY {0} ASC NULLS LAST)", TEXT, windowed=False),
    Aggregate(INT, "first_value({0} ORDER BY {0} ASC NULLS LAST)", INT, windowed=False),
    Aggregate(TEXT, "last_value({0} ORDER BY {0} ASC NULLS FIRST)", TEXT, windowed=False),
    Aggregate(INT, "nth_value({0}, 2 ORDER BY {0} ASC NULLS LAST)", INT, windowed=False),
    Aggregate(INT, "count(*) FILTER (WHERE {0})", BOOL, windowed=False),
    Aggregate(INT, "sum({0}) FILTER (WHERE {0} > 1)", INT, windowed=False),
    Aggregate(INT, "CAST(approx_distinct({0}) AS BIGINT)", INT, windowed=False),
)  # fmt: skip

RANKS = ("rank()", "dense_rank()")
"""Window functions that give rows tied on the sort keys the same value."""

POSITIONS = (
    (INT, "CAST(row_number() {0} AS BIGINT)"),
    (INT, "CAST(ntile(3) {0} AS BIGINT)"),
    (INT, "lag({1}, 1) {0}"),
    (INT, "lead({1}, 2, -7) {0}"),
    (INT, "first_value({1}) {0}"),
    (INT, "last_value({1}) {0}"),
    (INT, "nth_value({1}, 2) {0}"),
)
"""Window functions whose value depends on the place of a row: only over a total order. `{0}` is OVER, `{1}` what it
takes."""

FRAMES = (
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
)
"""Frames counted in rows: only over a total order."""

RANGES = (
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN 2 PRECEDING AND 2 FOLLOWING",
    "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
)
"""Frames that take whole groups of tied rows."""

JOINS = ("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI", "RIGHT SEMI", "RIGHT ANTI", "CROSS")

SET_OPERATIONS = ("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
