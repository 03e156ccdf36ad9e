"""Records of the validation layer: what to check, how tolerant, what came out. No pyarrow here, on purpose."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from pydantic import Field, NonNegativeFloat, NonNegativeInt

from harness.model import Frozen, Validation

FLOAT_RELATIVE = 1e-9
"""Relative slack of a double. Summing n values in another order moves the sum by about n * 2**-53 at worst; that is
7e-10 for the 6 million rows of lineitem at SF1, and an error that a person would call wrong is far above it."""

FLOAT_ABSOLUTE = 1e-10
"""Absolute slack of a double, for sums that cancel to about zero. One rounding of TPC-H's largest price (1.1e5) leaves
at most 1.2e-11, so this admits some eight of them; the smallest amount that is not zero is 0.01."""

FLOAT32_RELATIVE = 1e-6
"""Relative slack when either side is float32: its 24 bits resolve 6e-8, and engines differ in where they widen."""

FLOAT16_RELATIVE = 2e-3
"""Relative slack when either side is float16: its 11 bits resolve 5e-4."""

QUOTIENT_SCALE = 4
"""From this scale on a decimal is taken for a quotient. DataFusion computes averages and divisions of decimals with
four more digits than the input and cuts the rest off, DuckDB computes them as double; below it a decimal is a sum,
which is exact, and gets no slack beyond that of the double it is compared with."""

DECIMAL_ULPS = 1
"""Units in the last place allowed to a quotient against a double: one, because the decimal is cut off, not rounded."""


class Step(str, Enum):
    """The checks, in the order in which they run."""

    SCHEMA = "schema"
    ROW_COUNT = "row_count"
    ORDER = "order"
    """Rows are sorted by the ORDER BY keys, NULLs where they belong."""
    LIMIT = "limit"
    """Rows tied with the last key before LIMIT: any of the tied ones may be there."""
    VALUES = "values"
    ORACLE = "oracle"
    """The expected side contradicts itself, so nothing can be validated with it."""


class SortKey(Frozen):
    """One ORDER BY key, as a column of the answer.

    `column` is a name (compared without case) or a position from 0, which is needed when names repeat. `nulls_first`
    left out means what SQL engines of the PostgreSQL family do: NULL sorts as if larger than everything.
    """

    column: str | NonNegativeInt
    descending: bool = False
    nulls_first: bool | None = None

    @property
    def nulls_lead(self) -> bool:
        """Whether NULLs stand before the other values."""
        return self.descending if self.nulls_first is None else self.nulls_first

    def __str__(self) -> str:
        """The key as SQL spells it."""
        direction = "DESC" if self.descending else "ASC"
        return f"{self.column} {direction} NULLS {'FIRST' if self.nulls_lead else 'LAST'}"


class Tolerance(Frozen):
    """How far two floating-point values may lie apart: `absolute + relative * max(|a|, |b|)`.

    Integers, strings, dates, times and decimals against decimals are always exact.
    """

    relative: NonNegativeFloat = Field(default=FLOAT_RELATIVE, lt=1)
    absolute: NonNegativeFloat = FLOAT_ABSOLUTE
    float32_relative: NonNegativeFloat = Field(default=FLOAT32_RELATIVE, lt=1)
    float16_relative: NonNegativeFloat = Field(default=FLOAT16_RELATIVE, lt=1)
    decimal_ulps: NonNegativeFloat = DECIMAL_ULPS


DEFAULT_TOLERANCE = Tolerance()


class QueryMeta(Frozen):
    """What the text of a query promises about its answer."""

    order_by: tuple[SortKey, ...] = ()
    limit: NonNegativeInt | None = None
    tolerance: Tolerance = DEFAULT_TOLERANCE


class Failure(NamedTuple):
    """One failed check."""

    step: Step
    message: str


class Comparison(Frozen):
    """Result of comparing one answer with one expected answer."""

    validation: Validation
    failures: tuple[Failure, ...] = ()
    rows: int = Field(default=0, description="Rows of the answer whose values were compared")
    notes: tuple[str, ...] = Field(default=(), description="Differences of type or name that were normalised away")

    @property
    def reason(self) -> str | None:
        """All failures in one line, or nothing."""
        return "; ".join(f"{step.value}: {message}" for step, message in self.failures) or None


class Judgement(Frozen):
    """Combined verdict over all oracles. `reason` is set for everything but `validated` and `vacuous`."""

    validation: Validation
    oracles: dict[str, Validation] = Field(default_factory=dict)
    reason: str | None = None
    rows: int | None = Field(default=None, description="Rows of the answer; null if it could not be read")
    notes: tuple[str, ...] = ()
    elapsed_ms: float | None = Field(default=None, description="Time that validating took, in its own process")
