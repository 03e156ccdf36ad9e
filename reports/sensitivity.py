"""How firmly a ranking stands: Dirichlet weights, the smallest single-weight change that flips it, correlated criteria.

Pure arithmetic on arrays. `values` is (criteria, options) with entries from 0 (worst) to 1 (best); `weights` is
(criteria,) and sums to 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CORRELATED = 0.95
"""Absolute correlation over options from which two criteria are taken to say the same. Three options give three
points, so this is a hint for a reader, never a reason to drop a criterion."""


class WeightFlip(NamedTuple):
    """Setting one criterion's weight to `to` (the others keep their proportions) makes `winner` come first."""

    criterion: int
    before: float
    to: float
    winner: int


def normalise(weights: Array) -> Array:
    """Weights as shares that sum to 1.

    Raises ValueError when a weight is negative or all are zero.
    """
    if weights.size == 0 or np.any(weights < 0) or weights.sum() <= 0:
        msg = f"expected weights of which none is negative and one is positive, got {weights.tolist()}"
        raise ValueError(msg)
    shares: Array = weights / weights.sum()
    return shares


def totals(values: Array, weights: Array) -> Array:
    """Weighted sum per option, shape (options,)."""
    result: Array = weights @ values
    return result


class Dirichlet(NamedTuple):
    """How weights are drawn: a higher concentration keeps them closer to the given ones."""

    concentration: float
    draws: int
    seed: int


def rank1_probability(low: Array, high: Array, weights: Array, how: Dirichlet) -> Array:
    """Share of draws in which each option comes first, shape (options,); a tie is shared.

    Weights are Dirichlet around `weights`; each value is uniform between its `low` and `high`.
    """
    generator = np.random.default_rng(how.seed)
    drawn = generator.dirichlet(np.maximum(weights * how.concentration, 1e-9), size=how.draws)
    sampled = low + (high - low) * generator.random((how.draws, *low.shape))
    scores = np.einsum("dc,dco->do", drawn, sampled)
    best = scores >= scores.max(axis=1, keepdims=True) - 1e-12
    shares: Array = (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares


def smallest_flip(values: Array, weights: Array) -> WeightFlip | None:
    """The smallest change of one weight after which another option leads; None when no single weight can do it."""
    scores = totals(values, weights)
    leader = int(np.argmax(scores))
    best: WeightFlip | None = None
    for criterion in range(len(weights)):
        for other in range(values.shape[1]):
            if other == leader:
                continue
            to = _crossing(values[:, leader] - values[:, other], weights, criterion)
            if to is None:
                continue
            if best is None or abs(to - weights[criterion]) < abs(best.to - best.before):
                best = WeightFlip(criterion, float(weights[criterion]), to, other)
    return best


def _crossing(lead: Array, weights: Array, criterion: int) -> float | None:
    """Weight of `criterion` at which the lead is zero, with the other weights scaled to keep the sum at 1."""
    rest = 1.0 - weights[criterion]
    if rest <= 0:
        return None
    own = float(lead[criterion])
    others = float((weights @ lead - weights[criterion] * own) / rest)
    if abs(others - own) < 1e-12:
        return None
    to = others / (others - own)
    return float(to) if 0.0 <= to <= 1.0 else None


def value_flips(values: Array, weights: Array, step: Array) -> list[tuple[int, int, int]]:
    """Single values whose change by `step` (shape of `values`, zero: not changed) up or down gives another leader.

    Returns (criterion, option, +1 or -1) triples.
    """
    leader = int(np.argmax(totals(values, weights)))
    found = []
    for criterion, option in zip(*np.nonzero(step), strict=True):
        for direction in (1, -1):
            moved = values.copy()
            moved[criterion, option] = np.clip(moved[criterion, option] + direction * step[criterion, option], 0.0, 1.0)
            scores = totals(moved, weights)
            if int(np.argmax(scores)) != leader and scores.max() > scores[leader] + 1e-12:
                found.append((int(criterion), int(option), direction))
    return found


def correlated_pairs(values: Array, threshold: float = CORRELATED) -> list[tuple[int, int, float]]:
    """Pairs of criteria whose values over the options move together: (first, second, correlation)."""
    found: list[tuple[int, int, float]] = []
    if values.shape[1] == 0:
        # Every option failed a gate: there is nothing to compare.
        return found
    for first in range(values.shape[0]):
        for second in range(first + 1, values.shape[0]):
            if np.ptp(values[first]) < 1e-9 or np.ptp(values[second]) < 1e-9:
                continue
            correlation = float(np.corrcoef(values[first], values[second])[0, 1])
            if abs(correlation) >= threshold:
                found.append((first, second, correlation))
    return found
