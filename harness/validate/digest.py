"""A canonical hash of an answer: same values, same hash, whatever the row order and the physical types."""

from __future__ import annotations

import hashlib
from decimal import Context
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.validate.encode import as_double, canonical, list_parts, map_as_list, numpy_of, plain_array
from harness.validate.model import DEFAULT_TOLERANCE
from harness.validate.schema import Approx, Exact, Map, Spec, Struct, Ticks, unify

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

HASH_DIGITS = 9
"""Significant digits of a float that enter the hash, as many as the comparator's relative tolerance looks at."""

_NANOSECONDS = 10**9
_WIDE = Context(prec=100)
"""More digits than any Arrow decimal has, so that normalising never rounds."""


def answer_hash(table: pa.Table) -> str:
    """SHA-256 (hex) over the multiset of rows.

    Integer widths, string layouts, decimal scales, time units and the order of rows and of map entries do not matter;
    column order does; column names do not. Floats enter with `HASH_DIGITS` digits: equal hashes mean equal answers to
    that precision, but two floats within tolerance can still round to different digits, so unequal hashes of answers
    with floats prove nothing. Judge with `compare`.

    Raises:
        Unsupported: A column has a type without a rule (a union, for example).
    """
    columns = [_tokens(table.column(i)) for i in range(table.num_columns)]
    rows = sorted(map("".join, zip(*columns, strict=True)))
    digest = hashlib.sha256(f"{table.num_columns} columns, {table.num_rows} rows\n".encode())
    for row in rows:
        digest.update(row.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _token(text: str) -> str:
    """Text that can be joined to others unambiguously: it tells its length first."""
    return f"{len(text)}:{text}"


_NULL = _token("null")


def _tokens(column: Any) -> list[str]:
    """Canonical token of every element."""
    array = plain_array(column)
    return _spell(unify(array.type, array.type, DEFAULT_TOLERANCE), array)


def _spell(spec: Spec, array: pa.Array) -> list[str]:
    if isinstance(spec, (Exact, Ticks, Approx)):
        return _spell_leaf(spec, array)
    if isinstance(spec, Struct):
        fields = [_tokens(child) for child in array.flatten()]
        rows = map("".join, zip(*fields, strict=True)) if fields else [""] * len(array)
        return _with_nulls(array, [f"{{{row}}}" for row in rows])
    if isinstance(spec, Map):
        return _spell_map(array)
    return _spell_list(array)


def _spell_leaf(spec: Exact | Ticks | Approx, array: pa.Array) -> list[str]:
    plain = as_double([array]) if isinstance(spec, Approx) else canonical(spec, [array])
    coded = plain.dictionary_encode()
    spell = _speller(spec, array.type)
    tokens = [_token(spell(value)) for value in coded.dictionary.to_pylist()]
    # Distinct values are few in most columns: each is spelled once. NULL is spelled by the last entry.
    lookup = np.array([*tokens, _NULL], dtype=object)
    spelled: list[str] = lookup[numpy_of(coded.indices.fill_null(len(tokens)))].tolist()
    return spelled


def _speller(spec: Exact | Ticks | Approx, dtype: pa.DataType) -> Callable[[Any], str]:
    if isinstance(spec, Approx):
        # Adding zero turns -0.0 into 0.0.
        return lambda value: f"f{value + 0.0:.{HASH_DIGITS}g}"
    if isinstance(spec, Ticks):
        per_tick = _NANOSECONDS // spec.per_second if spec.per_second else 86_400 * _NANOSECONDS
        kind = _time_kind(dtype)
        return lambda value: f"{kind}{int(value) * per_tick}"
    kind = str(spec.target).split("(")[0].split("[")[0]
    if kind in {"int64", "decimal128", "decimal256"}:
        return lambda value: f"n{_WIDE.normalize(_WIDE.create_decimal(value)):f}"
    return lambda value: f"{kind}{value.hex() if isinstance(value, bytes) else value}"


def _time_kind(dtype: pa.DataType) -> str:
    name = str(dtype)
    if name.startswith("timestamp"):
        return "instant" if dtype.tz else "timestamp"
    return "date" if name.startswith("date") else "duration" if name.startswith("duration") else "time"


def _with_nulls(array: pa.Array, texts: list[str]) -> list[str]:
    return [_NULL if null else _token(text) for null, text in zip(array.is_null().to_pylist(), texts, strict=True)]


def _grouped(array: pa.Array, spell_items: Callable[[pa.Array], list[str]]) -> list[list[str]]:
    """Texts of the elements of each list."""
    items, lengths, _ = list_parts([array])
    texts = spell_items(items[0])
    ends = np.cumsum(lengths).tolist()
    return [texts[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]


def _spell_list(array: pa.Array) -> list[str]:
    return _with_nulls(array, [f"[{''.join(items)}]" for items in _grouped(array, _tokens)])


def _spell_map(array: pa.Array) -> list[str]:
    entries = _grouped(map_as_list(array), _tokens)
    return _with_nulls(array, [f"<{''.join(sorted(items))}>" for items in entries])
