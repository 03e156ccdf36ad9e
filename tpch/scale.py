"""What TPC-H fixes per scale factor, and how this project lays a scale factor out on disk."""

from __future__ import annotations

from typing import Literal, get_args

from harness.errors import UserError

ScaleFactor = Literal["0.01", "0.1", "1", "10"]
"""Scale factors with exactly known row counts that fit the machines this runs on. A string, as in folder names."""

SCALE_FACTORS: tuple[ScaleFactor, ...] = get_args(ScaleFactor)

Table = Literal["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]
"""The tables of TPC-H clause 1.2."""

TABLES: tuple[Table, ...] = get_args(Table)

ROWS_AT_SF1: dict[str, int] = {
    "supplier": 10_000,
    "customer": 150_000,
    "part": 200_000,
    "partsupp": 800_000,
    "orders": 1_500_000,
}
"""Rows of the tables that grow exactly with the scale factor (clause 4.2.5)."""

FIXED_ROWS: dict[str, int] = {"nation": 25, "region": 5}
"""Rows of the tables that do not grow (clause 4.2.5)."""

LINEITEM_ROWS: dict[ScaleFactor, int] = {"0.01": 60_175, "0.1": 600_572, "1": 6_001_215, "10": 59_986_052}
"""`lineitem` only grows roughly with the scale factor: 1 and 10 from clause 4.2.5, the smaller ones counted in the
output of the reference generator's algorithm, which is deterministic."""

PARTS: dict[ScaleFactor, int] = {"0.01": 4, "0.1": 4, "1": 4, "10": 8}
"""Files per table, except `nation` and `region` (always one). 4 divides evenly over 1, 2 and 4 workers and gives even
the smallest table enough files to be split over tasks; at SF10 8 keep a `lineitem` file below 300 MB."""

BYTES_PER_SF = 400_000_000
"""Parquet bytes per unit of scale factor with the generator's defaults (Snappy): 363 MB measured at SF1, with 10 % room
for what the file system adds and for longer keys at larger scale factors."""

BYTES_FLOOR = 8_000_000
"""Least free bytes asked for: footers and dictionaries do not shrink with the scale factor (SF0.01 takes 3.6 MB)."""


def check_scale_factor(sf: str) -> ScaleFactor:
    """Return `sf` as a `ScaleFactor`; raises `UserError` that lists the known ones."""
    if sf not in SCALE_FACTORS:
        msg = f"unknown scale factor {sf!r}: expected one of {', '.join(SCALE_FACTORS)}"
        raise UserError(msg)
    return sf


def expected_rows(sf: ScaleFactor) -> dict[str, int]:
    """Exact number of rows of every table at `sf`."""
    grown = {table: round(rows * float(sf)) for table, rows in ROWS_AT_SF1.items()}
    return {**grown, **FIXED_ROWS, "lineitem": LINEITEM_ROWS[sf]}


def expected_bytes(sf: ScaleFactor) -> int:
    """Upper estimate of the Parquet bytes of all tables at `sf`."""
    return max(BYTES_FLOOR, round(BYTES_PER_SF * float(sf)))
