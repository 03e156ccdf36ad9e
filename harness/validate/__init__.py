"""Judges answers: is what an arm returned the same table that an independent engine returns?

What lives here: the comparator (`compare`), the combined verdict over several oracles (`validate_answer`), a canonical
hash (`answer_hash`) and the process that runs them apart from everything timed (`Validator`). May import
`harness.model` and `harness.errors`; imported by the runner and the conformance checks. Never runs a query, never
reads the data set, and never says `validated` by default.

Modules, in the order in which an answer passes them: `schema` (are the types the same thing?), `encode` (columns to
integer codes and floats), `order` (ORDER BY, LIMIT), `match` (multisets with tolerance), `describe` (the first
difference in words), `comparator` (the sequence of checks), `verdict` (several oracles), `worker` and `client` (the
separate process).

Names are resolved on first use, so that the harness process, which only needs `Validator`, loads no pyarrow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harness.validate.model import (
    Comparison,
    Failure,
    Judgement,
    QueryMeta,
    SortKey,
    Step,
    Tolerance,
)

if TYPE_CHECKING:
    from harness.validate.client import Validator
    from harness.validate.comparator import compare
    from harness.validate.digest import answer_hash
    from harness.validate.verdict import judge, validate_answer

_LAZY = {
    "Validator": "harness.validate.client",
    "answer_hash": "harness.validate.digest",
    "compare": "harness.validate.comparator",
    "judge": "harness.validate.verdict",
    "validate_answer": "harness.validate.verdict",
}

__all__ = [
    "Comparison",
    "Failure",
    "Judgement",
    "QueryMeta",
    "SortKey",
    "Step",
    "Tolerance",
    "Validator",
    "answer_hash",
    "compare",
    "judge",
    "validate_answer",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(_LAZY[name]), name)
