"""One answer beside the single-node answer: the verdict, and a signature that groups verdicts of the same kind."""

from __future__ import annotations

import re
from typing import NamedTuple

from harness.errors import UserError
from harness.fuzz.kinds import SORTABLE
from harness.fuzz.model import Verdict
from harness.fuzz.session import Answer
from harness.fuzz.tree import Query, Select, SetOperation
from harness.model import Status, Validation
from harness.validate import Comparison, SortKey, compare

SHAPES = (
    "RECURSIVE", "CROSS JOIN", "FULL JOIN", "RIGHT SEMI", "RIGHT ANTI", "LEFT SEMI", "LEFT ANTI", "LEFT JOIN",
    "RIGHT JOIN", "INNER JOIN", "USING", "NOT IN (SELECT", "IN (SELECT", "EXISTS", "UNION ALL", "UNION",
    "INTERSECT ALL", "INTERSECT", "EXCEPT ALL", "EXCEPT", "GROUPING SETS", "ROLLUP", "CUBE", "GROUP BY", "HAVING",
    "DISTINCT", "OVER", "unnest", "LIMIT", "OFFSET", "ORDER BY", "generate_series", "VALUES",
)  # fmt: skip
"""Parts of a query that say what kind of plan it has."""


class Judged(NamedTuple):
    """A verdict with its reason; `vacuous` for an equal answer without rows."""

    verdict: Verdict
    reason: str = ""
    step: str = ""
    vacuous: bool = False


def sort_keys(query: Query) -> tuple[SortKey, ...]:
    """The leading sort keys of the outermost query that are columns of its answer, by position."""
    names: list[str] = []
    if isinstance(query, Select):
        names = [item.name for item in query.items]
    elif isinstance(query, SetOperation):
        return ()
    else:
        return sort_keys(query.body)
    keys: list[SortKey] = []
    for key in query.order:
        if key.expr.args or key.expr.template not in names or key.expr.kind not in SORTABLE:
            break
        place = names.index(key.expr.template)
        keys.append(SortKey(column=place, descending=key.descending, nulls_first=key.nulls_first))
    return tuple(keys)


def judge(local: Answer, arm: Answer, order_by: tuple[SortKey, ...] = ()) -> Judged:
    """Compare an arm's answer with the single-node one."""
    if arm.status in (Status.CRASH, Status.OOM):
        return Judged(Verdict.CRASH, arm.reason)
    if arm.status is Status.TIMEOUT:
        return Judged(Verdict.TIMEOUT, arm.reason)
    if local.status is not Status.OK:
        return Judged(Verdict.UNSUPPORTED if arm.status is not Status.OK else Verdict.ERROR_ONLY_LOCAL, local.reason)
    if arm.status is not Status.OK or local.table is None or arm.table is None:
        return Judged(Verdict.ERROR_ONLY_DISTRIBUTED, arm.reason)
    try:
        found: Comparison = compare(local.table, arm.table, order_by=order_by)
    except UserError as error:
        return Judged(Verdict.UNSUPPORTED, f"cannot be compared: {error}")
    if found.validation in (Validation.VALIDATED, Validation.VACUOUS):
        return Judged(Verdict.EQUAL, vacuous=found.validation is Validation.VACUOUS)
    if found.validation is Validation.NOT_VALIDATED:
        return Judged(Verdict.UNSUPPORTED, f"cannot be compared: {found.reason}")
    return Judged(Verdict.MISMATCH, found.reason or "", found.failures[0].step.value if found.failures else "")


def signature(judged: Judged, sql: str) -> str:
    """Groups findings: verdict, failed check or error (without names and numbers), parts of the query."""
    if judged.verdict is Verdict.MISMATCH:
        what = judged.step
    else:
        what = re.sub(r"\d+", "#", re.sub(r"\b[a-z]\d+(\.\w+)?\b", "x", judged.reason))[:90]
    left, shapes = sql, []
    for shape in SHAPES:
        if shape in left:
            shapes.append(shape)
            left = left.replace(shape, "")
    return f"{judged.verdict.value}: {what}: {' + '.join(sorted(shapes)) or 'scan'}"
