"""Is an answer right? Asks the validating process, and remembers what it said about the very same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model import Validation
from harness.provenance import file_hash
from harness.runner.answers import OracleAnswers
from harness.validate import Judgement, QueryMeta, SortKey
from tpch.query_sets import Query

if TYPE_CHECKING:
    from harness.validate import Validator


def query_meta(query: Query) -> QueryMeta:
    """What the text of a query promises about its answer, in the validator's words."""
    keys = tuple(SortKey(column=key.column, descending=key.descending) for key in query.order_by)
    return QueryMeta(order_by=keys, limit=query.limit)


class Judge:
    """Judges answers of one run. The comparison runs in another process, never inside a timed window."""

    def __init__(self, validator: Validator, oracles: Mapping[str, OracleAnswers]) -> None:
        self._validator = validator
        self._oracles = oracles
        self._known: dict[tuple[str, str], Judgement] = {}

    def judge(self, query: Query, result: Path) -> Judgement:
        """Verdict over all oracles on the Arrow file `result`. A missing or broken file is `not_validated`."""
        if not result.is_file():
            return Judgement(validation=Validation.NOT_VALIDATED, reason="the arm wrote no answer")
        key = (query.id, file_hash(result))
        if key not in self._known:
            judged = self._ask(query, result)
            # A verdict may be remembered, a failure to reach one may not.
            if judged.validation is Validation.NOT_VALIDATED:
                return judged
            self._known[key] = judged
        return self._known[key]

    def _ask(self, query: Query, result: Path) -> Judgement:
        oracles, meta = self._oracles[query.id], query_meta(query)
        judged = self._validator.validate(result, meta, oracles.answers)
        if judged.validation is Validation.NOT_VALIDATED and oracles.boundaries:
            # Rows tied at the LIMIT: only the answer without LIMIT, which is much larger, can tell.
            return self._validator.validate(result, meta, oracles.answers, oracles.boundaries)
        return judged
