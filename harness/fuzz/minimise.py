"""From a query that fails to the smallest case that fails the same way."""

from __future__ import annotations

import time
from collections.abc import Iterator

from harness.fuzz.check import Checker, replace_session
from harness.fuzz.judge import Judged, signature, sort_keys
from harness.fuzz.model import BAD, Case, Finding, Verdict
from harness.fuzz.options import ALWAYS_DISTRIBUTE, Options
from harness.fuzz.shrink import MAX_ATTEMPTS, shrink, smaller_queries, smaller_settings, smaller_tables
from harness.fuzz.tables import DataTable
from harness.fuzz.tree import Query

REPETITIONS = 8
"""Runs of a failing case that tell how often it fails."""

SLOW_BUDGET = 25
"""Cases tried when each costs a restart or a timeout: a crash, a hang, an error that takes long to come."""

RESERVE = 80
"""Cases tried at least by each step of a shrink that is not slow: enough to halve a small table to a few rows."""

SLOW_S = 9.0
"""Seconds after which a failing case is slow. Queries take milliseconds, on a busy machine a second or two; a task that
waits for a plan that never comes gives up after ten."""

ERROR_HEAD = 60
"""Characters of an error that must stay the same while a case shrinks."""


class Minimiser:
    """Shrinks failing cases of one arm."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker

    def finding(
        self, query: Query, tables: tuple[DataTable, ...], options: Options, judged: Judged, seed: str, *, small: bool
    ) -> Finding | None:
        """The finding for a failing query; None if it does not fail again or proves nothing. `small`: shrink it."""
        case = Case(sql=query.sql(), tables=tables, options=options)
        begun = time.monotonic()
        again = self._checker.check(case, sort_keys(query), tries=REPETITIONS)
        slow = again.verdict in (Verdict.CRASH, Verdict.TIMEOUT) or time.monotonic() - begun > SLOW_S
        if again.verdict is Verdict.UNSTABLE:
            return None
        original, repeats = case.sql, again.verdict in BAD
        if repeats and small:
            query, case = self._shrink(query, case, again, slow=slow)
        final = again if repeats else judged
        slow = slow or final.verdict in (Verdict.CRASH, Verdict.TIMEOUT)
        return Finding(
            arm=self._checker.arm.arm.name,
            verdict=final.verdict,
            signature=signature(final, case.sql),
            reason=final.reason,
            seed=seed,
            case=case,
            original_sql=original,
            shrunk=repeats and small,
            rate=None
            if slow or final.verdict in (Verdict.CRASH, Verdict.TIMEOUT)
            else self._checker.rate(case, sort_keys(query), REPETITIONS),
        )

    def _shrink(self, query: Query, case: Case, judged: Judged, *, slow: bool) -> tuple[Query, Case]:
        budget = SLOW_BUDGET if slow else MAX_ATTEMPTS
        # A fault that shows now and then must be given as many chances as it took to see it.
        often = slow or self._checker.rate(case, sort_keys(query), REPETITIONS) > 0.9
        tries = 1 if often else REPETITIONS

        def fails(candidate: tuple[Query, tuple[DataTable, ...], Options]) -> bool:
            text, tables, options = candidate
            found = self._checker.check(
                Case(sql=text.sql(), tables=tables, options=options), sort_keys(text), tries=tries
            )
            return _same(found, judged)

        state = (query, case.tables, case.options)
        for step in (_queries, _settings, _tables, _queries, _tables, _settings):
            # A query that takes all attempts would leave none for the data, which a reader has to look at too.
            state, budget = shrink(state, step, fails, budget if slow else max(budget, RESERVE))
        return state[0], Case(sql=state[0].sql(), tables=state[1], options=state[2])


State = tuple[Query, tuple[DataTable, ...], Options]


def _queries(state: State) -> Iterator[State]:
    query, tables, options = state
    return ((smaller, tables, options) for smaller in smaller_queries(query))


def _tables(state: State) -> Iterator[State]:
    query, tables, options = state
    return ((query, smaller, options) for smaller in smaller_tables(tables, query.sql()))


def _settings(state: State) -> Iterator[State]:
    query, tables, options = state
    for session in smaller_settings(options.session, frozenset({"datafusion.catalog.information_schema"})):
        yield query, tables, options.model_copy(update={"session": session})
    for distributed in smaller_settings(options.distributed, frozenset(ALWAYS_DISTRIBUTE)):
        yield query, tables, options.model_copy(update={"distributed": distributed})
    for count in (1, 2, 3):
        if count < options.workers:
            yield query, tables, options.model_copy(update={"workers": count})
    partitions = "datafusion.execution.target_partitions"
    if partitions not in options.session:
        # Left to the machine, the case would be another one elsewhere.
        yield query, tables, replace_session(options, {partitions: "2"})


def _same(found: Judged, wanted: Judged) -> bool:
    if found.verdict is not wanted.verdict:
        return False
    if wanted.verdict is Verdict.MISMATCH:
        return True
    # Names and numbers may change; what kind of error it is may not.
    return signature(found, "").split(":", 2)[1][:ERROR_HEAD] == signature(wanted, "").split(":", 2)[1][:ERROR_HEAD]
