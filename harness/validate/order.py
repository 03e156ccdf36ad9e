"""ORDER BY: is an answer sorted, and which rows are tied with the last one before a LIMIT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.errors import UserError
from harness.validate.encode import BoolArray, IntArray, as_double, canonical, encode, numpy_of
from harness.validate.schema import Approx, Exact, Spec, Ticks, Unsupported, unify

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.validate.model import SortKey, Tolerance


def resolve_keys(order_by: Sequence[SortKey], names: Sequence[str]) -> list[int]:
    """Column position of every key.

    Raises:
        UserError: A key names no column, several columns, or a position past the end.
    """
    positions = []
    for key in order_by:
        if isinstance(key.column, int):
            found = [key.column] if key.column < len(names) else []
        else:
            found = [i for i, name in enumerate(names) if name.casefold() == key.column.casefold()]
        if len(found) != 1:
            problem = "is in no column" if not found else f"is in columns {found}; give a position"
            msg = f"sort key {key.column!r} {problem} of the answer, whose columns are {list(names)}"
            raise UserError(msg)
        positions.append(found[0])
    return positions


def first_unsorted(table: pa.Table, keys: Sequence[SortKey], positions: Sequence[int], tolerance: Tolerance) -> int:
    """Position of the first row that belongs before its predecessor; -1 if the table is sorted.

    Sorting is judged by the table's own values, exactly: an engine sorts what it computed, whatever another got.
    """
    columns = []
    for key, position in zip(keys, positions, strict=True):
        column = table.column(position)
        columns.append(_ranks(unify(column.type, column.type, tolerance), [column], key))
    sign = _lexicographic([np.sign(np.diff(ranks)) for ranks in columns], max(table.num_rows - 1, 0))
    wrong = np.flatnonzero(sign < 0)
    return int(wrong[0]) + 1 if len(wrong) else -1


def compare_to_row(
    table: pa.Table, row: pa.Table, keys: Sequence[SortKey], positions: Sequence[int], tolerance: Tolerance
) -> IntArray:
    """Where each row of `table` sorts relative to the single row: -1 before, 0 tied within tolerance, 1 after."""
    signs = []
    for key, position in zip(keys, positions, strict=True):
        pair = [row.column(position), table.column(position)]
        spec = unify(pair[0].type, pair[1].type, tolerance)
        ranks = _ranks(spec, pair, key)
        sign = np.sign(ranks[1:] - ranks[0])
        sign[_near_first(spec, pair)] = 0
        signs.append(sign)
    return _lexicographic(signs, table.num_rows)


def _lexicographic(signs: Sequence[IntArray], rows: int) -> IntArray:
    """The first sign of each row that is not zero."""
    result = np.zeros(rows, dtype=np.int64)
    for sign in signs:
        result = np.where(result == 0, sign, result)
    return result


def _near_first(spec: Spec, arrays: Sequence[Any]) -> BoolArray:
    """Which elements after the first equal the first, within tolerance."""
    encoded = encode(spec, arrays)
    same = encoded.codes[1:] == encoded.codes[0]
    if isinstance(spec, Approx) and encoded.lengths[0]:
        rows = np.flatnonzero(same)
        first, others = encoded.values[0], encoded.values[encoded.offsets[1:-1][rows]]
        slack = spec.absolute + spec.relative * np.maximum(np.abs(first), np.abs(others))
        same[rows] = np.abs(first - others) <= slack
    return np.asarray(same, dtype=np.bool_)


def _ranks(spec: Spec, arrays: Sequence[Any], key: SortKey) -> IntArray:
    """Integers that sort as the key asks, over the concatenation of the arrays."""
    if isinstance(spec, Approx):
        column = as_double(arrays)
        nulls = numpy_of(column.is_null(), np.bool_)
        # numpy puts NaN last, as both engines do, and takes -0.0 for 0.0.
        _, inverse = np.unique(numpy_of(column.fill_null(0.0), np.float64), return_inverse=True)
        ranks: IntArray = inverse.reshape(-1).astype(np.int64)
    elif isinstance(spec, (Exact, Ticks)):
        coded = canonical(spec, arrays).dictionary_encode()
        nulls = numpy_of(coded.indices.is_null(), np.bool_)
        # One more rank than values, so that a NULL of an all-NULL column has something to look up.
        lookup = np.append(_sorted_positions(coded.dictionary), 0)
        ranks = lookup[numpy_of(coded.indices.fill_null(0))]
    else:
        msg = f"sort key {key.column!r} is nested; no order is defined for it"
        raise Unsupported(msg)
    if key.descending:
        ranks = -ranks
    ranks[nulls] = ranks.min(initial=0) - 1 if key.nulls_lead else ranks.max(initial=0) + 1
    return ranks


def _sorted_positions(values: pa.Array) -> IntArray:
    """Rank of each distinct value."""
    try:
        order = numpy_of(pc.array_sort_indices(values))
    except pa.ArrowNotImplementedError as error:
        msg = f"no order is defined for type {values.type}"
        raise Unsupported(msg) from error
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.arange(len(values))
    return ranks
