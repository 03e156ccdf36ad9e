"""Decides whether two Arrow types mean the same thing, and in which common form their values are compared.

Engines disagree about physical types (int32 or int64 for a year, utf8 or utf8view, decimal or double for an average)
without being wrong. `unify` maps a pair of types to one `Spec`; a pair without common meaning is a `TypeMismatchError`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from harness.errors import HarnessFault, UserError
from harness.validate.model import QUOTIENT_SCALE

if TYPE_CHECKING:
    from harness.validate.model import Tolerance

_INT_DIGITS = 20
"""Digits of the largest 64-bit integer, signed or not."""
_MAX_DIGITS_128 = 38
_MAX_DIGITS_256 = 76
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SECONDS_PER_DAY = 86_400
_EXPRESSION = re.compile(r"[()]|\s(?:[-+*/%<>=|]+|AND|OR|IS|NOT)\s|^\w+\.\w+$", re.IGNORECASE)
"""A column name that an engine made up from the text of an expression: `sum(x)`, `t.a + t.b`, `t.a`."""


class TypeMismatchError(UserError):
    """The two types do not mean the same thing. Internal: becomes a failure of the schema step."""


class Unsupported(HarnessFault):
    """The comparator has no rule for this type, so the answer is left `not_validated`."""


@dataclass(frozen=True)
class Exact:
    """Values are cast to `target` and must be identical."""

    target: pa.DataType


@dataclass(frozen=True)
class Ticks:
    """Points or spans of time: compared as whole ticks, `per_second` of them; or days when that is 0."""

    per_second: int


@dataclass(frozen=True)
class Approx:
    """Values are cast to double; `a` matches `b` within `absolute + relative * max(|a|, |b|)`."""

    absolute: float
    relative: float


@dataclass(frozen=True)
class Struct:
    """Fields in order."""

    fields: tuple[Spec, ...]


@dataclass(frozen=True)
class List:
    """Elements in order, of any list layout."""

    item: Spec


@dataclass(frozen=True)
class Map:
    """Entries in any order."""

    key: Spec
    value: Spec


Spec = Exact | Ticks | Approx | Struct | List | Map


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """The type without its encoding: dictionary, run-end and extension types become what they hold."""
    while True:
        if isinstance(dtype, pa.BaseExtensionType):
            dtype = dtype.storage_type
        elif pa.types.is_dictionary(dtype) or pa.types.is_run_end_encoded(dtype):
            dtype = dtype.value_type
        else:
            return dtype


def is_expression(name: str) -> bool:
    """Whether an engine made this column name up from an expression; each engine spells those its own way."""
    return _EXPRESSION.search(name) is not None


def same_name(expected: str, actual: str) -> bool:
    """Whether two column names agree: without case, or both are made up by their engines."""
    return expected.casefold() == actual.casefold() or (is_expression(expected) and is_expression(actual))


def unify(expected: pa.DataType, actual: pa.DataType, tolerance: Tolerance) -> Spec:
    """Common form of two types.

    Raises:
        TypeMismatchError: The types mean different things.
        Unsupported: The comparator has no rule for the type.
    """
    left, right = plain_type(expected), plain_type(actual)
    if pa.types.is_null(left) or pa.types.is_null(right):
        # An all-NULL literal column has no type of its own; it takes the other side's.
        left = right = left if pa.types.is_null(right) else right
    for rule in (_numbers, _text, _times, _nested):
        spec = rule(left, right, tolerance)
        if spec is not None:
            return spec
    if left.equals(right) and (pa.types.is_null(left) or left == pa.month_day_nano_interval()):
        return Exact(left)
    if left.equals(right):
        msg = f"type {left} cannot be compared; cast it in the query"
        raise Unsupported(msg)
    msg = f"expected type {expected}, got {actual}"
    raise TypeMismatchError(msg)


def _numbers(left: pa.DataType, right: pa.DataType, tolerance: Tolerance) -> Spec | None:
    types = pa.types
    if types.is_boolean(left) and types.is_boolean(right):
        return Exact(pa.int8())
    exact = [types.is_integer(t) or types.is_decimal(t) for t in (left, right)]
    floating = [types.is_floating(t) for t in (left, right)]
    if all(exact):
        return Exact(_exact_number(left, right))
    if any(floating) and all(f or types.is_decimal(t) for f, t in zip(floating, (left, right), strict=True)):
        return _approx(left, right, tolerance)
    return None


def _exact_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Narrowest type that holds both, so that a decimal is compared by value whatever its scale."""
    if not any(pa.types.is_decimal(t) or pa.types.is_uint64(t) for t in (left, right)):
        return pa.int64()
    digits = [(t.precision, t.scale) if pa.types.is_decimal(t) else (_INT_DIGITS, 0) for t in (left, right)]
    scale = max(s for _, s in digits)
    precision = scale + max(p - s for p, s in digits)
    if precision <= _MAX_DIGITS_128:
        return pa.decimal128(precision, scale)
    return pa.decimal256(min(precision, _MAX_DIGITS_256), scale)


def _approx(left: pa.DataType, right: pa.DataType, tolerance: Tolerance) -> Approx:
    absolute, relative = tolerance.absolute, tolerance.relative
    for dtype in (left, right):
        if pa.types.is_decimal(dtype) and dtype.scale >= QUOTIENT_SCALE:
            absolute = max(absolute, tolerance.decimal_ulps * 10.0**-dtype.scale)
        elif pa.types.is_float16(dtype):
            relative = max(relative, tolerance.float16_relative)
        elif pa.types.is_float32(dtype):
            relative = max(relative, tolerance.float32_relative)
    return Approx(absolute, relative)


def _is_text(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype))


def _is_bytes(dtype: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(dtype)
        or types.is_large_binary(dtype)
        or types.is_binary_view(dtype)
        or types.is_fixed_size_binary(dtype)
    )


def _text(left: pa.DataType, right: pa.DataType, _: Tolerance) -> Spec | None:
    if _is_text(left) and _is_text(right):
        return Exact(pa.large_string())
    if _is_bytes(left) and _is_bytes(right):
        return Exact(pa.large_binary())
    return None


def ticks_per_second(dtype: pa.DataType) -> int:
    """Resolution of a time type; 0 for date32, which counts days."""
    if pa.types.is_date32(dtype):
        return 0
    return 1000 if pa.types.is_date64(dtype) else _UNITS[dtype.unit]


def tick_factor(dtype: pa.DataType, per_second: int) -> int:
    """By what to multiply the ticks of `dtype` to count in `per_second`."""
    own = ticks_per_second(dtype)
    if own == 0:
        return _SECONDS_PER_DAY * per_second if per_second else 1
    return per_second // own


def _times(left: pa.DataType, right: pa.DataType, _: Tolerance) -> Spec | None:
    types = pa.types
    same_kind = (
        (types.is_date(left) and types.is_date(right))
        or (types.is_time(left) and types.is_time(right))
        or (types.is_duration(left) and types.is_duration(right))
        # Zones are a way of writing an instant, so any two agree; a timestamp without zone is no instant.
        or (types.is_timestamp(left) and types.is_timestamp(right) and (left.tz is None) == (right.tz is None))
    )
    return Ticks(max(ticks_per_second(left), ticks_per_second(right))) if same_kind else None


def _is_list(dtype: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_list(dtype)
        or types.is_large_list(dtype)
        or types.is_fixed_size_list(dtype)
        or types.is_list_view(dtype)
        or types.is_large_list_view(dtype)
    )


def _nested(left: pa.DataType, right: pa.DataType, tolerance: Tolerance) -> Spec | None:
    if pa.types.is_map(left) and pa.types.is_map(right):
        key = unify(left.key_type, right.key_type, tolerance)
        return Map(key, unify(left.item_type, right.item_type, tolerance))
    if _is_list(left) and _is_list(right):
        return List(unify(left.value_type, right.value_type, tolerance))
    if not (pa.types.is_struct(left) and pa.types.is_struct(right)):
        return None
    if left.num_fields != right.num_fields:
        msg = f"expected {left.num_fields} struct fields, got {right.num_fields}"
        raise TypeMismatchError(msg)
    pairs = [(left.field(i), right.field(i)) for i in range(left.num_fields)]
    for a, b in pairs:
        if not same_name(a.name, b.name):
            msg = f"expected struct field {a.name!r}, got {b.name!r}"
            raise TypeMismatchError(msg)
    return Struct(tuple(unify(a.type, b.type, tolerance) for a, b in pairs))
