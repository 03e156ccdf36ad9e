"""Point estimates and confidence intervals for paired timings.

Two arms are compared only within a round, never across rounds: a round is the smallest unit in which both arms saw
the same machine. Everything is computed on log-ratios, so that "twice as slow" and "twice as fast" are the same
distance from "unchanged".

The bootstrap resamples rounds. Rounds are first put into a canonical order (by their own log-ratio) and every drawn
resample is used together with its mirror image. Neither changes the bootstrap distribution; together they make the
interval independent of the order in which rounds were stored, and exactly reciprocal when the arms are swapped.
"""

from __future__ import annotations

import statistics
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pydantic import Field

from harness.model import Estimate, Frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

RESAMPLES = 10_000
"""Bootstrap resamples: the 2.5 % quantile then rests on 250 resamples, so its own error is far below one round's."""

CONFIDENCE = 0.95
"""Nominal coverage; for the median of 10 rounds the simulated coverage is in the calibration table."""


class SuiteEstimate(Estimate):
    """Geometric mean over `queries` of their paired ratios. `n` is the number of rounds."""

    queries: tuple[str, ...] = Field(description="Queries with a time in every round of both arms, sorted")
    excluded: tuple[str, ...] = Field(description="All other queries given for either arm, sorted")

    def plain(self) -> Estimate:
        """Return the figures alone, as a record that any report reads."""
        return Estimate(value=self.value, low=self.low, high=self.high, n=self.n)


class Spread(Frozen):
    """How one series of times lies: milliseconds, `n` values that exist, `missing` that do not."""

    median: float
    p95: float
    mad: float = Field(description="Median absolute deviation from the median, unscaled")
    n: int
    missing: int


class Intervals(NamedTuple):
    """Log-scale estimates of many series at once, each array of shape (series,)."""

    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class _MedianPairs(NamedTuple):
    """Which two order statistics average to the median of a resample, and how many resamples share that pair."""

    lower: NDArray[np.intp]
    upper: NDArray[np.intp]
    weight: NDArray[np.int64]


def paired_ratio(
    base: Sequence[float],
    new: Sequence[float],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Estimate new/base of one query from paired rounds: median log-ratio with a percentile bootstrap interval.

    `base[i]` and `new[i]` are the times of round i in any one unit. The answer is on the ratio scale: below 1 means
    `new` is faster. The same input and seed give the same answer, bit for bit.

    Raises ValueError for unequal lengths, no rounds, or a time that is missing, not finite or not positive.
    """
    return paired_ratios([base], [new], seed=seed, resamples=resamples, confidence=confidence)[0]


def paired_ratios(
    base: Sequence[Sequence[float]],
    new: Sequence[Sequence[float]],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> list[Estimate]:
    """Return `paired_ratio` of many series at once; all must have the same number of rounds. Raises as it does."""
    logs = log_ratios(base, new)
    intervals = paired_log_intervals(logs, seed=seed, resamples=resamples, confidence=confidence)
    figures = np.exp(np.stack(intervals)).T.tolist()
    return [_estimate(value, low, high, logs.shape[1]) for value, low, high in figures]


def log_ratios(
    base: Sequence[Sequence[float]], new: Sequence[Sequence[float]], names: Sequence[str] | None = None
) -> NDArray[np.float64]:
    """Return log(new) - log(base) of many series: (series, rounds). `names` are for the error message.

    Raises ValueError for unequal lengths, no rounds, or a time that is missing, not finite or not positive.
    """
    lengths = {len(series) for arm in (base, new) for series in arm}
    if len(lengths) > 1:
        msg = f"expected the same number of rounds in both arms and all series, got {sorted(lengths)}"
        raise ValueError(msg)
    if lengths in (set(), {0}):
        msg = "expected at least one round, got none"
        raise ValueError(msg)
    times = np.array([base, new], dtype=np.float64)
    bad = np.argwhere(~(np.isfinite(times) & (times > 0)))
    if bad.size:
        arm, series, position = bad[0]
        of_query = f" of {names[series]}" if names else ""
        msg = (
            f"expected positive finite times, got {times[arm, series, position]} in round {position}{of_query}"
            f" of {('base', 'new')[arm]}"
        )
        raise ValueError(msg)
    # The difference of logs, not the log of the quotient: it changes nothing but its sign when the arms are swapped.
    logs = np.log(times)
    difference: NDArray[np.float64] = logs[1] - logs[0]
    return difference


def paired_log_intervals(
    logs: NDArray[np.float64],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Intervals:
    """Do the work of `paired_ratio` for many series at once: `logs` is (series, rounds) of paired log-ratios.

    The median of a resample is the mean of two order statistics, so the resamples reduce to a short weighted list of
    rank pairs that all series share. The interval is the one that sorting every resample gives, far sooner.
    """
    _check_bootstrap(resamples, confidence)
    ranked = np.sort(logs, axis=1)
    pairs = _median_pairs(logs.shape[1], resamples, seed)
    medians = 0.5 * (ranked[:, pairs.lower] + ranked[:, pairs.upper])
    order = np.argsort(medians, axis=1, kind="stable")
    medians = np.take_along_axis(medians, order, axis=1)
    reached = np.cumsum(pairs.weight[order], axis=1)
    tail = (1.0 - confidence) / 2.0
    low = _weighted_quantile(medians, reached, tail, resamples)
    high = _weighted_quantile(medians, reached, 1.0 - tail, resamples)
    return Intervals(np.median(logs, axis=1), low, high)


def suite_ratio(
    base: Mapping[str, Sequence[float | None]],
    new: Mapping[str, Sequence[float | None]],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> SuiteEstimate:
    """Estimate new/base of a suite: geometric mean of the per-query paired ratios, whole rounds resampled jointly.

    A time is None where that execution gave no usable time. A query counts only if it has a time in every round of
    both arms: the rounds that fail are rarely the fast ones, so the remaining rounds of a flaky query would flatter it.
    Rounds are resampled for all queries together because whatever disturbed a round disturbed all of its queries.

    Raises ValueError if no query qualifies, if arms or queries differ in the number of rounds, or for a time that is
    not finite or not positive.
    """
    _check_bootstrap(resamples, confidence)
    names = sorted(set(base) | set(new))
    included = [name for name in names if complete(base.get(name)) and complete(new.get(name))]
    if not included:
        msg = f"expected at least one query with times in every round of both arms, got none of {len(names)} queries"
        raise ValueError(msg)
    logs = log_ratios([_times(base[name]) for name in included], [_times(new[name]) for name in included], included)
    boot = suite_log_resamples(logs, seed=seed, resamples=resamples)
    tail = (1.0 - confidence) / 2.0
    low, high = np.exp(np.quantile(boot, [tail, 1.0 - tail]))
    figures = _estimate(float(np.exp(suite_log_value(logs))), float(low), float(high), logs.shape[1])
    excluded = tuple(name for name in names if name not in set(included))
    return SuiteEstimate(**figures.model_dump(), queries=tuple(included), excluded=excluded)


def suite_log_value(logs: NDArray[np.float64]) -> float:
    """Return the mean over queries of the median over rounds; `logs` is (queries, rounds)."""
    return float(np.median(logs, axis=1).mean())


def suite_log_resamples(logs: NDArray[np.float64], *, seed: int, resamples: int = RESAMPLES) -> NDArray[np.float64]:
    """Return the suite's log-ratio in each bootstrap resample of whole rounds; `logs` is (queries, rounds)."""
    queries, rounds = logs.shape
    logs = logs[:, np.argsort(logs.mean(axis=0), kind="stable")]
    counts = _resample_counts(rounds, resamples, seed)
    total = np.zeros(resamples)
    for log in logs:
        order = np.argsort(log, kind="stable")
        lower, upper = _median_ranks(counts[order])
        ranked = log[order]
        total += ranked[lower]
        total += ranked[upper]
    total /= 2.0 * queries
    return total


def complete(times: Sequence[float | None] | None) -> bool:
    """Tell whether a series has a time in every round and at least one round."""
    return times is not None and len(times) > 0 and all(time is not None for time in times)


def spread(times: Iterable[float | None]) -> Spread | None:
    """Summarise one series; None marks an execution without a time. Returns None when no time exists at all."""
    given = list(times)
    values = sorted(time for time in given if time is not None)
    if not values:
        return None
    median = statistics.median(values)
    # Linear interpolation between order statistics, as numpy's default quantile, which is slow for a handful of values.
    place = 0.95 * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return Spread(
        median=median,
        p95=values[below] + (values[above] - values[below]) * (place - below),
        mad=statistics.median(abs(value - median) for value in values),
        n=len(values),
        missing=len(given) - len(values),
    )


def _estimate(value: float, low: float, high: float, rounds: int) -> Estimate:
    # A resampled median may miss the sample median by one rounding step when all rounds agree.
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=rounds)


def _times(times: Sequence[float | None]) -> list[float]:
    return [time for time in times if time is not None]


def _check_bootstrap(resamples: int, confidence: float) -> None:
    if resamples < 1:
        msg = f"expected at least one resample, got {resamples}"
        raise ValueError(msg)
    if not 0.0 < confidence < 1.0:
        msg = f"expected a confidence between 0 and 1, got {confidence}"
        raise ValueError(msg)


@lru_cache(maxsize=16)
def _resample_counts(rounds: int, resamples: int, seed: int) -> NDArray[np.unsignedinteger]:
    """Return how often each round is drawn: (rounds, resamples), the second half mirroring the first."""
    drawn = np.random.default_rng(seed).integers(0, rounds, size=(-(-resamples // 2), rounds))
    index = np.concatenate([drawn, rounds - 1 - drawn])[:resamples]
    flat = index + rounds * np.arange(resamples)[:, None]
    counts = np.bincount(flat.ravel(), minlength=rounds * resamples).reshape(resamples, rounds)
    small = np.ascontiguousarray(counts.T.astype(np.min_scalar_type(rounds)))
    small.setflags(write=False)
    return small


@lru_cache(maxsize=16)
def _median_pairs(rounds: int, resamples: int, seed: int) -> _MedianPairs:
    lower, upper = _median_ranks(_resample_counts(rounds, resamples, seed))
    code, weight = np.unique(lower.astype(np.int64) * rounds + upper, return_counts=True)
    return _MedianPairs(code // rounds, code % rounds, weight)


def _median_ranks(counts: NDArray[np.unsignedinteger]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the two ranks whose mean is each resample's median, for counts (rounds, resamples) in sorted order."""
    rounds = counts.shape[0]
    reached = counts.copy()
    for rank in range(1, rounds):  # row by row: numpy's own cumsum down the columns is twenty times slower here
        reached[rank] += reached[rank - 1]
    return _ranks_below(reached, (rounds - 1) // 2), _ranks_below(reached, rounds // 2)


def _ranks_below(reached: NDArray[np.unsignedinteger], position: int) -> NDArray[np.intp]:
    fits = (reached <= position).view(np.uint8)
    return np.asarray(fits.sum(axis=0, dtype=reached.dtype), dtype=np.intp)


def _weighted_quantile(
    values: NDArray[np.float64], reached: NDArray[np.int64], quantile: float, total: int
) -> NDArray[np.float64]:
    """Return the linearly interpolated quantile of sorted values (series, kinds) repeated to `reached` in all."""
    position = quantile * (total - 1)
    below = int(np.floor(position))
    above = min(below + 1, total - 1)
    first = np.take_along_axis(values, (reached <= below).sum(axis=1)[:, None], axis=1)[:, 0]
    second = np.take_along_axis(values, (reached <= above).sum(axis=1)[:, None], axis=1)[:, 0]
    interpolated: NDArray[np.float64] = first + (second - first) * (position - below)
    return interpolated
