"""From an estimate to a word: faster, slower, equivalent, inconclusive or not comparable.

Two guards stand between a difference and the word for it. The confidence interval answers "is it noise within this
run"; the recurrence (the same queries again, in new processes, on new clusters, under a new seed) answers "is it an
accident of this run's processes", which no number of rounds inside one process can. A `likely` candidate that has not
been seen twice is `inconclusive`, with its tier kept beside it so that the caller knows what to run again.

Arms with different numbers of workers (a single node and a cluster) differ by far on most queries, and no claim about
how a strategy binds rests on it. Running all of that again would double a run, so it is not: what is `confirmed` there
is stated as what it is, a `single_run`, and what is merely `likely` stays `inconclusive`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from harness.model import Estimate, Frozen, Tier, Verdict, VerdictKind
from harness.stats.estimators import (
    RESAMPLES,
    complete,
    paired_ratios,
    suite_ratio,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Times = Sequence[float | None]
    SuiteTimes = Mapping[str, Times]

MARGIN = 0.05
"""Relative change that matters: the least that 10 rounds resolve safely, a suite's interval being about 3.4 % wide."""

FLOOR_MS = 5.0
"""Absolute change that matters up to SF1: 5 % of the shortest queries there (40 ms) is 2 ms, scheduling jitter."""

FLOOR_GROWTH = math.log10(2.0)
"""Exponent by which the floor grows with the scale factor, fixed by 5 ms at SF1 and 10 ms at SF10."""

MIN_ROUNDS_FOR_VERDICT = 5
"""Fewest rounds for any verdict: the range of 4 rounds contains the true median in 87.5 % of cases, of 5 in 94 %."""

DEFAULT_ROUNDS = 10
"""Default rounds: intervals of 10 rounds contain the truth in 94 to 95 % of cases, those of 7 rounds in only 87 %."""

NOT_RUN_AGAIN = "not run again: a single node against a cluster is no claim about binding"
"""Why a difference between arms with different numbers of workers has no re-run."""

_ROUNDING = 1e-9
"""Slack on a margin taken from data, so that the pair it was taken from does not exceed it by a rounding error."""


class NoiseMargin(Frozen):
    """Margins once the A/A pair was heard, as relative changes (0.05 is 5 %), and the sentence that a report prints."""

    query: float = Field(description="Margin for a verdict on one query")
    suite: float = Field(description="Margin for the verdict on the suite")
    worst_query: str | None = Field(default=None, description="A/A query that raised the margin; null if none did")
    queries: int = Field(description="Queries of the A/A pair that had a time in every round")
    reason: str


def absolute_floor_ms(scale_factor: float) -> float:
    """Return the smallest change in milliseconds that can be flagged: 5 up to SF1, 10 at SF10, doubling per decade.

    Raises ValueError for a scale factor that is not positive.
    """
    if not scale_factor > 0:
        msg = f"expected a positive scale factor, got {scale_factor}"
        raise ValueError(msg)
    # Below SF1 the floor stays: a scheduler's jitter does not shrink with the data.
    return FLOOR_MS * math.pow(max(1.0, scale_factor), FLOOR_GROWTH)


def not_comparable(reason: str) -> Verdict:
    """Return the verdict for arms that must not be compared, for the reason given."""
    return Verdict(kind=VerdictKind.NOT_COMPARABLE, reason=reason)


def query_verdict(
    base: Times,
    new: Times,
    *,
    sf: float,
    seed: int,
    margin: float = MARGIN,
    resamples: int = RESAMPLES,
) -> Verdict:
    """Judge one query from paired rounds: `base[i]` and `new[i]` are milliseconds of round i, None where none exists.

    `margin` is `NoiseMargin.query` when an A/A pair ran. A `likely` candidate comes back as `inconclusive` with its
    tier set; run it again and pass both verdicts to `settle`. A query with a failed round is `not_comparable`: its
    remaining rounds are a selection.

    Raises ValueError for unequal numbers of rounds or for times that are not finite and positive.
    """
    if len(base) != len(new):
        msg = f"expected as many base as new rounds, got {len(base)} and {len(new)}"
        raise ValueError(msg)
    missing = _missing_words(base, new)
    if missing:
        return not_comparable(missing)
    base_ms, new_ms = [time for time in base if time is not None], [time for time in new if time is not None]
    return query_verdicts([base_ms], [new_ms], sf=sf, seed=seed, margins=[margin], resamples=resamples)[0]


def query_verdicts(
    base: Sequence[Sequence[float]],
    new: Sequence[Sequence[float]],
    *,
    sf: float,
    seed: int,
    margins: Sequence[float],
    resamples: int = RESAMPLES,
) -> list[Verdict]:
    """Judge many complete series at once, each with its own margin: what `query_verdict` does for one.

    Raises ValueError for unequal numbers of rounds or times that are not finite and positive.
    """
    ratios = paired_ratios(base, new, seed=seed, resamples=resamples)
    base_ms, new_ms = np.array(base, dtype=np.float64), np.array(new, dtype=np.float64)
    changes = np.median(new_ms - base_ms, axis=1).tolist()
    longest = np.maximum(np.median(base_ms, axis=1), np.median(new_ms, axis=1)).tolist()
    floor_ms = absolute_floor_ms(sf)
    return [
        judge(ratio, margin=margin, change_ms=change, floor_ms=floor_ms, of_ms=of_ms)
        for ratio, margin, change, of_ms in zip(ratios, margins, changes, longest, strict=True)
    ]


def suite_verdict(
    base: SuiteTimes,
    new: SuiteTimes,
    *,
    seed: int,
    margin: float = MARGIN,
    resamples: int = RESAMPLES,
) -> Verdict:
    """Judge a whole suite, or refuse: both arms must have a time in every round of exactly the same queries.

    Give every planned query for both arms; a query that an arm never ran is given as an empty sequence or left out.
    `margin` is `NoiseMargin.suite` when an A/A pair ran. No absolute floor: a suite's time is far above it.

    Raises ValueError as `suite_ratio` does, but an empty suite is a verdict (`not_comparable`), not an error.
    """
    base_valid = {name for name, times in base.items() if complete(times)}
    new_valid = {name for name, times in new.items() if complete(times)}
    planned = len(set(base) | set(new))
    if base_valid != new_valid:
        return not_comparable(
            f"valid queries differ: base {len(base_valid)} of {planned}, new {len(new_valid)} of {planned}"
            f" ({', '.join(sorted(base_valid ^ new_valid))})"
        )
    if not base_valid:
        return not_comparable(f"no query has a time in both arms (0 of {planned})")
    ratio = suite_ratio(base, new, seed=seed, resamples=resamples)
    return judge(ratio.plain(), margin=margin)


def judge(
    ratio: Estimate,
    *,
    margin: float = MARGIN,
    change_ms: float | None = None,
    floor_ms: float = 0.0,
    of_ms: float = math.inf,
) -> Verdict:
    """Turn an estimate into a verdict. All verdicts, of queries, suites and the calibration, come from here.

    `change_ms` is the median paired difference and `floor_ms` the least that counts; without `change_ms` there is no
    floor. `of_ms` is the longer of the two arms' median times: the floor as a share of it widens what may be called
    equivalent, a raised margin does not. The margin is symmetric on the log scale: 5 % faster is
    1/1.05.
    """
    if ratio.n < MIN_ROUNDS_FOR_VERDICT:
        reason = f"{_rounds(ratio.n)}, a verdict needs {MIN_ROUNDS_FOR_VERDICT}"
        return Verdict(kind=VerdictKind.INCONCLUSIVE, ratio=ratio, margin=margin, reason=reason)
    limit = math.log1p(margin)
    near = max(math.log(ratio.low), -math.log(ratio.high))
    above_floor = change_ms is None or abs(change_ms) >= floor_ms
    if near > limit and above_floor:
        kind = VerdictKind.SLOWER if ratio.value > 1 else VerdictKind.FASTER
        reason = f"interval {_interval(ratio)} lies wholly beyond the margin of {margin:.1%}"
        return Verdict(kind=kind, tier=Tier.CONFIRMED, ratio=ratio, margin=margin, reason=reason)
    if near > 0 and abs(math.log(ratio.value)) > limit and above_floor:
        reason = (
            f"{_direction(ratio)} beyond the margin of {margin:.1%}, interval {_interval(ratio)} excludes 1;"
            " not yet seen again in an independent re-run"
        )
        return Verdict(kind=VerdictKind.INCONCLUSIVE, tier=Tier.LIKELY, ratio=ratio, margin=margin, reason=reason)
    return _unflagged(ratio, margin=margin, change_ms=change_ms, floor_ms=floor_ms, of_ms=of_ms)


def needs_recurrence(verdict: Verdict, *, workers: tuple[int, int] = (0, 0)) -> bool:
    """Tell whether the query should run again, independently, before the verdict is final.

    Candidates of both tiers must, because a re-run is what guards against an accident of one process. `workers` are
    the numbers of worker processes of the two arms, 0 for a single node: only arms that have as many are run again.
    """
    candidate = verdict.recurred is None and verdict.tier in (Tier.LIKELY, Tier.CONFIRMED)
    return candidate and workers[0] == workers[1]


def stated_once(verdict: Verdict) -> Verdict:
    """Turn a candidate between a single node and a cluster, which is not run again, into what may be said of it.

    Raises ValueError if it is no candidate or has been settled.
    """
    if verdict.ratio is None or not needs_recurrence(verdict):
        msg = f"expected a candidate that has not been re-run, got {verdict.kind.value} (recurred={verdict.recurred})"
        raise ValueError(msg)
    seen = f"{_direction(verdict.ratio)} in a single run, interval {_interval(verdict.ratio)}"
    if verdict.tier is Tier.CONFIRMED:
        reason = f"{seen} wholly beyond the margin of {verdict.margin or 0:.1%}; {NOT_RUN_AGAIN}"
        return verdict.model_copy(update={"tier": Tier.SINGLE_RUN, "reason": reason})
    reason = f"{seen} excludes 1 but is not wholly beyond the margin of {verdict.margin or 0:.1%}; {NOT_RUN_AGAIN}"
    return verdict.model_copy(update={"reason": reason})


def settle(first: Verdict, rerun: Verdict) -> Verdict:
    """Combine a candidate with the verdict of its independent re-run. The first run's figures and tier are kept.

    They agree if the re-run is a candidate of either tier in the same direction. If not, the answer is `inconclusive`.

    Raises ValueError if `first` was no candidate or has already been settled.
    """
    if first.ratio is None or not needs_recurrence(first):
        msg = f"expected a candidate that has not been re-run, got {first.kind.value} (recurred={first.recurred})"
        raise ValueError(msg)
    again = rerun.ratio
    agrees = again is not None and rerun.tier is not None and (again.value > 1) == (first.ratio.value > 1)
    seen = f"re-run {again.value:.3f} ({_interval(again)})" if again else f"re-run {rerun.kind.value}"
    if not agrees:
        reason = f"{_direction(first.ratio)} at first ({_interval(first.ratio)}), but did not recur: {seen}"
        return first.model_copy(
            update={"kind": VerdictKind.INCONCLUSIVE, "tier": None, "recurred": False, "reason": reason}
        )
    kind = VerdictKind.SLOWER if first.ratio.value > 1 else VerdictKind.FASTER
    reason = f"{_direction(first.ratio)} beyond the margin of {first.margin or 0:.1%} and recurred: {seen}"
    return first.model_copy(update={"kind": kind, "recurred": True, "reason": reason})


def flagged(verdict: Verdict) -> bool:
    """Tell whether a verdict claims a difference."""
    return verdict.kind in (VerdictKind.FASTER, VerdictKind.SLOWER)


def noise_margin(
    base: SuiteTimes,
    aa: SuiteTimes,
    *,
    sf: float,
    seed: int,
    margin: float = MARGIN,
    resamples: int = RESAMPLES,
) -> NoiseMargin:
    """Raise the margin to the A/A pair's own noise: one strategy against itself, under two names and in two processes.

    The margin becomes the smallest at which the A/A pair would show no candidate of either tier: the largest change
    among its queries whose interval excludes 1 and which is above the floor. Sampling noise, which the interval
    covers already, therefore hardly raises it; a difference between two processes of the same build does. Of the rules
    tried in simulation (none, upper quantile of the A/A changes, random-effects spread, confirmed queries only) it is
    the simplest that kept false flags below 5 % of suites in every world tried; see the row `process_effects`.

    Raises ValueError for unequal numbers of rounds or times that are not finite and positive.
    """
    names = sorted(name for name in base if complete(base[name]) and complete(aa.get(name)))
    if not names or len(base[names[0]]) < MIN_ROUNDS_FOR_VERDICT:
        reason = f"margin {margin:.1%}, not raised: the A/A pair has no query with {MIN_ROUNDS_FOR_VERDICT} rounds"
        return NoiseMargin(query=margin, suite=margin, queries=0, reason=reason)
    verdicts = {
        name: query_verdict(base[name], aa[name], sf=sf, seed=seed, margin=margin, resamples=resamples)
        for name in names
    }
    suite = suite_ratio(base, aa, seed=seed, resamples=resamples)
    return noise_from(verdicts, judge(suite.plain(), margin=margin), margin=margin)


def noise_from(verdicts: Mapping[str, Verdict], suite: Verdict | None, *, margin: float = MARGIN) -> NoiseMargin:
    """Do the work of `noise_margin` from the A/A pair's verdicts at the unraised margin; None: suite inside it."""
    changes = {name: change for name, verdict in verdicts.items() if (change := _candidate_change(verdict)) is not None}
    worst = max(changes, key=lambda name: changes[name], default=None)
    raised = changes[worst] if worst else margin
    suite_raised = _candidate_change(suite) or margin
    if worst:
        words = f"margin raised from {margin:.1%} to {raised:.1%}: the A/A pair differs by that much on {worst}"
    else:
        words = f"margin {margin:.1%}: the A/A pair shows no larger change on any of {len(verdicts)} queries"
    if suite_raised > margin:
        words += f"; suite margin raised to {suite_raised:.1%}, the A/A pair's own suite ratio"
    return NoiseMargin(query=raised, suite=suite_raised, worst_query=worst, queries=len(verdicts), reason=words)


def _candidate_change(verdict: Verdict | None) -> float | None:
    if verdict is None or verdict.tier is None or verdict.ratio is None:
        return None
    return math.expm1(abs(math.log(verdict.ratio.value))) * (1 + _ROUNDING)


def _unflagged(ratio: Estimate, *, margin: float, change_ms: float | None, floor_ms: float, of_ms: float) -> Verdict:
    # A margin raised by noise makes a change harder to claim; it must not make equality easier.
    strict = min(margin, MARGIN)
    wide = strict if change_ms is None else max(strict, floor_ms / of_ms)
    far = max(math.log(ratio.high), -math.log(ratio.low))
    if far < math.log1p(wide):
        reason = f"interval {_interval(ratio)} lies inside the margin of {wide:.1%}"
        if wide > strict:
            reason += f" ({floor_ms:g} ms of {of_ms:.1f} ms)"
        return Verdict(kind=VerdictKind.EQUIVALENT, ratio=ratio, margin=wide, reason=reason)
    if change_ms is not None and abs(change_ms) < floor_ms and abs(math.log(ratio.value)) > math.log1p(margin):
        reason = f"{_direction(ratio)} by {abs(change_ms):.1f} ms, below the floor of {floor_ms:g} ms"
    else:
        reason = (
            f"interval {_interval(ratio)} shows neither a change beyond {margin:.1%} nor equality within {wide:.1%}"
        )
    return Verdict(kind=VerdictKind.INCONCLUSIVE, ratio=ratio, margin=margin, reason=reason)


def _missing_words(base: Times, new: Times) -> str | None:
    if not base:
        return "no rounds: nothing ran"
    gaps = [(arm, sum(time is None for time in times)) for arm, times in (("base", base), ("new", new))]
    words = [f"{arm} has no valid time in {count} of {_rounds(len(base))}" for arm, count in gaps if count]
    return "; ".join(words) or None


def _direction(ratio: Estimate) -> str:
    return "slower" if ratio.value > 1 else "faster"


def _interval(ratio: Estimate) -> str:
    return f"{ratio.low:.3f} to {ratio.high:.3f}"


def _rounds(count: int) -> str:
    return f"{count} round" if count == 1 else f"{count} rounds"
