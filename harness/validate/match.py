"""Multiset matching of encoded rows: which rows of one side have no partner on the other.

Rows with the same code are candidates for each other. Without floats the k-th expected row of a code is the partner of
the k-th actual one. With floats "equal" is no longer transitive, so sorting both sides and comparing line by line can
pair wrongly; instead the candidates are split into clusters that no tolerance can bridge, and only what stays
ambiguous inside a cluster goes through an exact bipartite matching. All but that last step is vectorised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.errors import HarnessFault
from harness.validate.encode import BoolArray, Encoded, FloatArray, IntArray, combine_codes

MAX_PAIRS = 4_000_000
"""Largest ambiguous cluster (rows times rows) that is matched exactly: about a second. Beyond it the comparator says
that it does not know. A cluster needs many rows that equal each other almost, in every column, yet not mutually."""

_PAIR = 2
"""Two rows in one label were compared with each other when it was split; more were only compared with neighbours."""


class TooAmbiguous(HarnessFault):
    """Too many rows are nearly equal to decide in reasonable time which belongs to which."""


@dataclass(frozen=True)
class Unmatched:
    """Positions of rows without partner, ascending. Optional expected rows are never listed."""

    expected: IntArray
    actual: IntArray

    def __bool__(self) -> bool:
        return bool(len(self.expected) or len(self.actual))


def match(rows: Encoded, boundary: int, optional: BoolArray | None = None) -> Unmatched:
    """Matches `rows[:boundary]` (expected) with `rows[boundary:]` (actual) one to one.

    `optional`, shape (boundary,), marks expected rows that need no partner: the candidates at a LIMIT.

    Raises:
        TooAmbiguous: See `MAX_PAIRS`.
    """
    is_actual = np.arange(len(rows)) >= boundary
    required = np.ones(len(rows), dtype=np.bool_)
    if optional is not None:
        required[:boundary] = ~optional
    sides = _Sides(is_actual, required)
    labels = rows.codes
    if len(rows.values):
        labels = _split(rows, labels)
        loose = _loose(rows, labels)
        unmatched = _surplus(np.flatnonzero(~loose), labels, sides)
        unmatched[_match_loose(rows, labels, np.flatnonzero(loose), sides)] = True
    else:
        unmatched = _surplus(np.arange(len(rows)), labels, sides)
    unmatched &= required
    return Unmatched(np.flatnonzero(unmatched[:boundary]), np.flatnonzero(unmatched[boundary:]))


def near(rows: Encoded, left: int, right: IntArray) -> BoolArray:
    """Whether row `left` equals each of the rows `right`."""
    same: BoolArray = rows.codes[right] == rows.codes[left]
    for place in range(int(rows.lengths[left])):
        at = rows.offsets[left] + place
        candidates = np.flatnonzero(same)
        others = rows.values[rows.offsets[:-1][right[candidates]] + place]
        same[candidates] = _close(rows.values[at], others, rows.absolute[at], rows.relative[at])
    return same


@dataclass(frozen=True)
class _Sides:
    is_actual: BoolArray
    required: BoolArray


def _close(
    left: FloatArray | np.float64,
    right: FloatArray,
    absolute: FloatArray | np.float64,
    relative: FloatArray | np.float64,
) -> BoolArray:
    with np.errstate(over="ignore"):
        gap = np.abs(left - right)
        return np.asarray(gap <= absolute + relative * np.maximum(np.abs(left), np.abs(right)), dtype=np.bool_)


def _surplus(rows: IntArray, labels: IntArray, sides: _Sides) -> BoolArray:
    """Which of `rows` find no partner when all rows with the same label are equal. Shape: all rows.

    Within a label, required rows are served before optional ones.
    """
    unmatched = np.zeros(len(labels), dtype=np.bool_)
    if not len(rows):
        return unmatched
    label = labels[rows]
    counts = [np.bincount(label[sides.is_actual[rows] == side], minlength=label.max() + 1) for side in (False, True)]
    for side in (False, True):
        own = rows[sides.is_actual[rows] == side]
        own = own[np.lexsort((~sides.required[own], labels[own]))]
        firsts = np.concatenate(([0], np.cumsum(counts[side])))[labels[own]]
        nth = np.arange(len(own)) - firsts
        unmatched[own] = nth >= counts[not side][labels[own]]
    return unmatched


def _matrix(rows: Encoded, picks: IntArray, width: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    places = rows.offsets[:-1][picks][:, None] + np.arange(width)
    return rows.values[places], rows.absolute[places], rows.relative[places]


def _split(rows: Encoded, labels: IntArray) -> IntArray:
    """Labels refined until no gap wider than the tolerance is left inside a label, in any float column.

    Rows that end up in different labels cannot match: if the gap between two neighbours is wider than their
    tolerance, so is the gap between any value below and any value above (relative tolerance below 1).
    """
    labels = labels.copy()
    widths, sizes = rows.lengths, np.bincount(labels)[labels]
    for width in np.unique(widths):
        if not width:
            continue
        # The usual case, one expected and one actual row of their kind, needs no sorting.
        _split_pairs(rows, labels, np.flatnonzero((widths == width) & (sizes == _PAIR)), int(width))
        picks = np.flatnonzero((widths == width) & (sizes > _PAIR))
        if not len(picks):
            continue
        values, absolute, relative = _matrix(rows, picks, int(width))
        refined, before, groups = labels[picks], -1, 0
        while before != groups:
            before = groups
            for column in range(int(width)):
                refined = _split_column(refined, values[:, column], absolute[:, column], relative[:, column])
            groups = int(refined.max()) + 1
        labels[picks] = refined + (labels.max() + 1)
    return combine_codes([labels], len(labels))


def _split_pairs(rows: Encoded, labels: IntArray, picks: IntArray, width: int) -> None:
    """Gives the second row of a label, in place, a label of its own if it does not match the first."""
    picks = picks[np.argsort(labels[picks], kind="stable")]
    first, second = picks[::2], picks[1::2]
    left, absolute, relative = _matrix(rows, first, width)
    apart = ~_close(left, _matrix(rows, second, width)[0], absolute, relative).all(axis=1)
    labels[second[apart]] = labels.max(initial=0) + 1 + np.arange(apart.sum())


def _split_column(labels: IntArray, values: FloatArray, absolute: FloatArray, relative: FloatArray) -> IntArray:
    order = np.lexsort((values, labels))
    label, value = labels[order], values[order]
    far = ~_close(value[:-1], value[1:], absolute[order][1:], relative[order][1:])
    starts = np.concatenate(([True], (label[1:] != label[:-1]) | far))
    refined = np.empty_like(labels)
    refined[order] = np.cumsum(starts) - 1
    return refined


def _loose(rows: Encoded, labels: IntArray) -> BoolArray:
    """Which rows are in a label whose members do not all equal each other for certain."""
    sizes = np.bincount(labels)
    loose_label = np.zeros(len(sizes), dtype=np.bool_)
    widths = rows.lengths
    for width in np.unique(widths):
        picks = np.flatnonzero((widths == width) & (sizes[labels] > _PAIR))
        if not width or not len(picks):
            continue
        picks = picks[np.argsort(labels[picks], kind="stable")]
        label = labels[picks]
        starts = np.flatnonzero(np.concatenate(([True], label[1:] != label[:-1])))
        values, absolute, relative = _matrix(rows, picks, int(width))
        with np.errstate(over="ignore"):
            spread = np.maximum.reduceat(values, starts) - np.minimum.reduceat(values, starts)
        # The smallest magnitude has the tightest tolerance: if even that admits the spread, every pair matches.
        slack = absolute[starts] + relative[starts] * np.minimum.reduceat(np.abs(values), starts)
        loose_label[label[starts[(spread > slack).any(axis=1)]]] = True
    return loose_label[labels]


def _match_loose(rows: Encoded, labels: IntArray, picks: IntArray, sides: _Sides) -> IntArray:
    """Rows without partner among the ambiguous clusters."""
    if not len(picks):
        return picks
    picks = picks[np.argsort(labels[picks], kind="stable")]
    cuts = np.flatnonzero(np.diff(labels[picks])) + 1
    lost: list[IntArray] = []
    for cluster in np.split(picks, cuts):
        expected, actual = (cluster[sides.is_actual[cluster] == side] for side in (False, True))
        lost.append(_match_cluster(rows, expected, actual, sides.required))
    return np.concatenate(lost)


def _match_cluster(rows: Encoded, expected: IntArray, actual: IntArray, required: BoolArray) -> IntArray:
    if not len(expected) or not len(actual):
        return np.concatenate((expected, actual))
    width = int(rows.lengths[expected[0]])
    left, absolute, relative = _matrix(rows, expected, width)
    right = _matrix(rows, actual, width)[0]
    left_order, right_order = np.lexsort(left.T[::-1]), np.lexsort(right.T[::-1])
    if len(left) == len(right) and _close(left[left_order], right[right_order], absolute, relative).all():
        return np.empty(0, dtype=np.int64)
    if len(left) * len(right) > MAX_PAIRS:
        msg = f"{len(left)} expected and {len(right)} actual rows are too alike to tell which belongs to which"
        raise TooAmbiguous(msg)
    edges = np.ones((len(left), len(right)), dtype=np.bool_)
    for column in range(width):
        edges &= _close(left[:, column, None], right[None, :, column], absolute[0, column], relative[0, column])
    # Mendelsohn-Dulmage: if one matching covers all actual rows and another all required expected ones, some
    # matching covers both; so the two questions may be asked one at a time.
    need = required[expected]
    return np.concatenate((expected[need][_uncovered(edges[need])], actual[_uncovered(edges.T)]))


def _uncovered(edges: BoolArray) -> IntArray:
    """Rows of the bipartite graph that a maximum matching leaves out (augmenting paths, breadth first)."""
    partner = np.full(edges.shape[1], -1, dtype=np.int64)
    left_out = [row for row in range(len(edges)) if not _augment(edges, partner, row)]
    return np.array(left_out, dtype=np.int64)


def _augment(edges: BoolArray, partner: IntArray, root: int) -> bool:
    reached_from = np.full(edges.shape[1], -1, dtype=np.int64)
    queue = [root]
    for row in queue:
        new = np.flatnonzero(edges[row] & (reached_from < 0))
        reached_from[new] = row
        free = new[partner[new] < 0]
        if len(free):
            _flip(partner, reached_from, int(free[0]), root)
            return True
        queue.extend(partner[new].tolist())
    return False


def _flip(partner: IntArray, reached_from: IntArray, column: int, root: int) -> None:
    """Turns the path from `root` to the free `column` around: every row on it takes its next column."""
    while True:
        row = int(reached_from[column])
        previous = np.flatnonzero(partner == row)
        partner[column] = row
        if row == root:
            return
        column = int(previous[0])
