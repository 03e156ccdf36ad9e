"""Turns columns into integer codes and floats, so that equality becomes arithmetic on numpy arrays.

All sides to compare are encoded together. Two elements are equal exactly when their codes are equal and their float
payloads agree within tolerance, position by position: the code also covers structure (NULLs, list lengths, NaN and
infinities), hence equal codes imply payloads of equal length and meaning. That holds for nested types as well, which
is why one matching algorithm serves all types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from harness.validate.schema import (
    Approx,
    Exact,
    List,
    Map,
    Spec,
    Struct,
    Ticks,
    Unsupported,
    plain_type,
    tick_factor,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

_NULL = -1
_FINITE, _NAN, _POSITIVE_INFINITY, _NEGATIVE_INFINITY = range(4)
_CODE_LIMIT = 2**62
_INT64_DIGITS = 19


@dataclass(frozen=True)
class Encoded:
    """Elements as codes plus payloads: the floats of element `i` are `values[offsets[i]:offsets[i + 1]]`.

    Shapes: `codes` (n,), `offsets` (n + 1,), `values`, `absolute` and `relative` (number of floats,).
    """

    codes: IntArray
    offsets: IntArray
    values: FloatArray
    absolute: FloatArray
    relative: FloatArray

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def lengths(self) -> IntArray:
        """Number of floats of each element, shape (n,)."""
        return np.diff(self.offsets)

    def take(self, rows: IntArray) -> Encoded:
        """The elements at these positions."""
        picks = _ranges(self.offsets[:-1][rows], self.lengths[rows])
        offsets = _offsets(self.lengths[rows])
        return Encoded(self.codes[rows], offsets, self.values[picks], self.absolute[picks], self.relative[picks])


def encode(spec: Spec, arrays: Sequence[pa.Array]) -> Encoded:
    """Encodes the concatenation of the arrays in the common form that `spec` names.

    Raises:
        Unsupported: A value does not fit the common form (a decimal that needs more than 76 digits).
    """
    plain = [plain_array(array) for array in arrays]
    known = next((array.type for array in plain if not pa.types.is_null(array.type)), pa.null())
    plain = [pa.nulls(len(array), known) if pa.types.is_null(array.type) else array for array in plain]
    if isinstance(spec, Approx):
        return _encode_floats(spec, plain)
    if isinstance(spec, Struct):
        return _encode_struct(spec, plain)
    if isinstance(spec, List):
        return _encode_list(spec, plain)
    if isinstance(spec, Map):
        return _encode_map(spec, plain)
    return without_floats(_dictionary_codes(canonical(spec, plain)))


def canonical(spec: Exact | Ticks, arrays: Sequence[pa.Array]) -> pa.Array:
    """The arrays in one exact Arrow type, concatenated; times become integers (ticks).

    Raises:
        Unsupported: A value does not fit.
    """
    arrays = [plain_array(array) for array in arrays]
    if isinstance(spec, Ticks):
        return _canonical_ticks(spec, arrays)
    try:
        return pa.concat_arrays([array.cast(spec.target) for array in arrays])
    except pa.ArrowInvalid as error:
        msg = f"a value does not fit {spec.target}: {error}"
        raise Unsupported(msg) from error


def combine(columns: Sequence[Encoded], rows: int) -> Encoded:
    """Joins columns of `rows` elements each into one whose elements are whole rows."""
    codes = combine_codes([column.codes for column in columns], rows)
    payload = [column for column in columns if len(column.values)]
    if not payload:
        return without_floats(codes)
    lengths = np.sum([column.lengths for column in payload], axis=0)
    offsets = _offsets(lengths)
    out = [np.empty(offsets[-1]) for _ in range(3)]
    start = offsets[:-1].copy()
    for column in payload:
        places = _ranges(start, column.lengths)
        for target, source in zip(out, (column.values, column.absolute, column.relative), strict=True):
            target[places] = source
        start += column.lengths
    return Encoded(codes, offsets, out[0], out[1], out[2])


def combine_codes(columns: Sequence[IntArray], rows: int) -> IntArray:
    """One code from 0 per distinct tuple of codes."""
    result, size = np.zeros(rows, dtype=np.int64), 1
    for codes in columns:
        shifted = codes - codes.min(initial=0)
        span = int(shifted.max(initial=0)) + 1
        if size * span >= _CODE_LIMIT:
            result, size = _dense(result)
        result, size = result * span + shifted, size * span
    return _dense(result)[0]


def without_floats(codes: IntArray) -> Encoded:
    """Elements that are their codes and nothing else."""
    nothing = np.empty(0)
    return Encoded(codes, np.zeros(len(codes) + 1, dtype=np.int64), nothing, nothing, nothing)


def plain_array(array: Any) -> pa.Array:
    """Strips chunks, extension types, dictionaries and run-end encoding."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    while not array.type.equals(plain_type(array.type)):
        if isinstance(array.type, pa.BaseExtensionType):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            array = _decode(array)
        else:
            array = pc.run_end_decode(array)
    return array


def _decode(array: pa.DictionaryArray) -> pa.Array:
    values = array.dictionary
    # Arrow has no kernel that looks up views.
    if pa.types.is_string_view(values.type):
        values = values.cast(pa.large_string())
    elif pa.types.is_binary_view(values.type):
        values = values.cast(pa.large_binary())
    return values.take(array.indices)


def as_double(arrays: Sequence[Any]) -> pa.Array:
    """The arrays as double, concatenated."""
    return pa.concat_arrays([plain_array(array).cast(pa.float64()) for array in arrays])


def _dense(codes: IntArray) -> tuple[IntArray, int]:
    unique, inverse = np.unique(codes, return_inverse=True)
    return inverse.reshape(-1).astype(np.int64, copy=False), len(unique)


def _offsets(lengths: IntArray) -> IntArray:
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def _ranges(starts: IntArray, lengths: IntArray) -> IntArray:
    """Positions `starts[i] .. starts[i] + lengths[i] - 1` of every i, one after the other."""
    if not len(lengths):
        return np.empty(0, dtype=np.int64)
    ends = np.cumsum(lengths)
    return np.arange(ends[-1], dtype=np.int64) + np.repeat(starts - ends + lengths, lengths)


def numpy_of(array: pa.Array, dtype: type[np.generic] = np.int64) -> Any:
    """The array, which has no NULLs, as numpy."""
    return array.to_numpy(zero_copy_only=False).astype(dtype, copy=False)


def _dictionary_codes(array: pa.Array) -> IntArray:
    codes: IntArray = numpy_of(array.dictionary_encode().indices.fill_null(_NULL))
    return codes


def _nulls(array: pa.Array) -> BoolArray:
    mask: BoolArray = numpy_of(array.is_null(), np.bool_)
    return mask


def _ticks(array: pa.Array) -> pa.Array:
    if array.type.bit_width == pa.int32().bit_width:
        array = array.cast(pa.int32())
    return array.cast(pa.int64())


def _canonical_ticks(spec: Ticks, arrays: Sequence[pa.Array]) -> pa.Array:
    factors = [tick_factor(array.type, spec.per_second) for array in arrays]
    ticks = [_ticks(array) for array in arrays]
    try:
        return pa.concat_arrays([pc.multiply_checked(t, f) for t, f in zip(ticks, factors, strict=True)])
    except pa.ArrowInvalid:
        # Year 9999 in seconds does not fit 64-bit nanoseconds: count in decimals instead.
        wide = pa.decimal128(_INT64_DIGITS, 0)
        product = pa.decimal128(2 * _INT64_DIGITS, 0)
        scaled = [
            pc.multiply(t.cast(wide), pa.scalar(f).cast(wide)).cast(product)
            for t, f in zip(ticks, factors, strict=True)
        ]
        return pa.concat_arrays(scaled)


def _encode_floats(spec: Approx, arrays: Sequence[pa.Array]) -> Encoded:
    column = as_double(arrays)
    values: FloatArray = numpy_of(column.fill_null(0.0), np.float64)
    codes = np.full(len(values), _FINITE, dtype=np.int64)
    codes[np.isnan(values)] = _NAN
    codes[np.isposinf(values)] = _POSITIVE_INFINITY
    codes[np.isneginf(values)] = _NEGATIVE_INFINITY
    codes[_nulls(column)] = _NULL
    finite = codes == _FINITE
    floats = values[finite]
    return Encoded(
        codes,
        _offsets(finite.astype(np.int64)),
        floats,
        np.full(len(floats), spec.absolute),
        np.full(len(floats), spec.relative),
    )


def _encode_struct(spec: Struct, arrays: Sequence[pa.Array]) -> Encoded:
    children = [array.flatten() for array in arrays]
    nulls = np.concatenate([_nulls(array) for array in arrays])
    columns = [encode(field, [child[i] for child in children]) for i, field in enumerate(spec.fields)]
    return combine([without_floats(nulls.astype(np.int64)), *columns], len(nulls))


def list_parts(arrays: Sequence[pa.Array]) -> tuple[list[pa.Array], IntArray, BoolArray]:
    """Flattened elements per array, and over all arrays the number of elements and the NULLs."""
    lengths = [numpy_of(pc.list_value_length(array).fill_null(0)) for array in arrays]
    items = [pc.list_flatten(array) for array in arrays]
    return items, np.concatenate(lengths), np.concatenate([_nulls(array) for array in arrays])


def map_as_list(array: pa.Array) -> pa.Array:
    """A map as list of its entries, for which kernels exist."""
    entry = pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])
    return array.cast(pa.list_(entry))


def _encode_list(spec: List, arrays: Sequence[pa.Array]) -> Encoded:
    items, lengths, nulls = list_parts(arrays)
    return _pack(encode(spec.item, items), lengths, nulls)


def _encode_map(spec: Map, arrays: Sequence[pa.Array]) -> Encoded:
    items, lengths, nulls = list_parts([map_as_list(array) for array in arrays])
    fields = [item.flatten() for item in items]
    keys = encode(spec.key, [field[0] for field in fields])
    values = encode(spec.value, [field[1] for field in fields])
    # A map has no order: sort the entries of each row by key, by its code first, then by its first float if any.
    owner = np.repeat(np.arange(len(lengths)), lengths)
    first = np.zeros(len(keys))
    first[keys.lengths > 0] = keys.values[keys.offsets[:-1][keys.lengths > 0]]
    order = np.lexsort((first, keys.codes, owner))
    return _pack(combine([keys, values], len(keys)).take(order), lengths, nulls)


def _pack(items: Encoded, lengths: IntArray, nulls: BoolArray) -> Encoded:
    """Groups consecutive elements into lists: a list's code names the sequence of its elements' codes."""
    bounds = _offsets(lengths)
    known: dict[bytes, int] = {}
    codes = np.array(
        [
            known.setdefault(items.codes[start:end].tobytes(), len(known))
            for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        ],
        dtype=np.int64,
    )
    codes[nulls] = _NULL
    return Encoded(codes, items.offsets[bounds], items.values, items.absolute, items.relative)
