"""How far apart near and typical rows of a sample are: the scale of a kernel, and the graphs that a start is made from.

Weights mean repetition throughout: a row of weight 3 has two neighbours at distance 0.
"""

from __future__ import annotations

import numpy as np

from foldwise.data.block import Floats

_NEAR = 7  # the neighbour whose distance is "near" (Zelnik-Manor and Perona 2004)
_TYPICAL, _LOCAL = 15.0, 0.5
_NARROW = 4.0  # times the usual gamma at most: rows that are like themselves alone stay in whatever cluster they are
_WIDE = (5.0, 2.0, 0.7)  # of the median squared distance: its inverse times these


def repetitions(weights: Floats | None, n: int) -> Floats:
    """How often each row counts; weights that sum to less than the rows are shares, not counts."""
    if weights is None:
        return np.ones(n)
    return np.asarray(weights * max(1.0, np.count_nonzero(weights) / weights.sum()))


class NearestRows:
    """The nearest rows of each row of a sample, itself among them, by rising squared distance."""

    def __init__(self, squares: Floats, count: Floats, most: int = 15) -> None:
        n = len(squares)
        # So many are enough if none counts less than once; shares of a row take more of them.
        size = n if count.min() < 1 else min(most + 1, n)
        which = np.argpartition(squares, size - 1, axis=1)[:, :size] if size < n else np.tile(np.arange(n), (n, 1))
        ranked = np.take_along_axis(squares, which, axis=1)
        order = np.argsort(ranked, axis=1, kind="stable")
        self._ranked = np.take_along_axis(ranked, order, axis=1)
        self._running = np.cumsum(count[np.take_along_axis(which, order, axis=1)], axis=1)
        next_ = np.min(np.where(squares > 0, squares, np.inf), axis=1)
        self._next = np.where(np.isfinite(next_), next_, 1.0)

    def distance_to(self, neighbour: int) -> Floats:
        """The squared distance of each row to that neighbour of it, or to the next one that is not equal to it."""
        wanted = np.minimum(neighbour + 1.0, self._running[:, -1:]) * (1 - 1e-12)
        place = np.argmax(self._running >= wanted, axis=1)
        found = self._ranked[np.arange(len(place)), place]
        return np.asarray(np.where(found > 0, found, self._next))


def weighted_median(values: Floats, count: Floats) -> float:
    """The weighted median."""
    if len(count) and count.min() == count.max() > 0:  # no need to sort
        middle = (len(values) + 1) // 2 - 1
        return float(np.partition(values, middle)[middle])
    order = np.argsort(values, kind="stable")
    running = np.cumsum(count[order])
    return float(values[order][np.argmax(running >= running[-1] / 2 * (1 - 1e-12))])


def gammas_of_distances(squares: Floats, weights: Floats | None) -> tuple[float, ...]:
    """Gammas from distances of a sample: first the usual one, then one for narrow shapes, and wider ones for groups with tails.

    The inverse of the first is a fifteenth of the median squared distance, or twice that of near rows if that is more: the
    first rule keeps a kernel narrower than the whole; the second keeps rows from being all alone, as they would be in many
    columns, where near rows are not much nearer than others. The narrow one has the second rule alone, within limits; the
    widest kernel is nearly plain k-means.
    """
    count = repetitions(weights, len(squares))
    upper = np.triu_indices(len(squares), 1)
    pairs, twice = squares[upper], (count[:, None] * count)[upper]
    alike = np.maximum(count * (count - 1) / 2, 0.0)
    if alike.any():
        pairs_and_own, how_often = np.append(pairs, np.zeros(len(count))), np.append(twice, alike)
    else:
        pairs_and_own, how_often = pairs, twice
    typical = weighted_median(pairs_and_own, how_often) if len(pairs) else 0.0
    near = weighted_median(NearestRows(squares, count).distance_to(_NEAR), count) if len(pairs) else 0.0
    positive = pairs[pairs > 0]
    if typical <= 0 and len(positive):  # more than half of all pairs are equal rows
        typical = float(positive.mean())
    if typical <= 0:
        return (1.0,)
    width = max(typical / _TYPICAL, near / _LOCAL)
    others = [max(near / _LOCAL, width / _NARROW), *(max(typical / each, width) for each in _WIDE)]
    widths = [width, *(each for each in others if each > 0 and each != width)]
    return tuple(1.0 / each for each in widths)
