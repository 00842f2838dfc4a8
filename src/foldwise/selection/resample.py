"""Drawing rows at random: how often each is drawn depends on the seed and the row's number only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from foldwise.data.block import Block, Floats
from foldwise.data.source import Source
from foldwise.data.subset import collect
from foldwise.errors import DataError
from foldwise.fold.passes import Passes
from foldwise.models.hashing import scrambled

_MOST_SUMMED = 500.0  # of an expected number of draws; beyond it, the normal approximation


@dataclass(frozen=True)
class Draw:
    """Rows drawn with replacement (`replace`), `rate` times their weight on average, or without.

    A weight counts as repetition: a row of weight w is drawn as often as w equal rows would be. With replacement, that is a
    Poisson number (the numbers of all rows are then independent, unlike those of a draw of fixed size, so that each can be
    worked out where the row is); without, a binomial one.
    """

    replace: bool
    rate: float
    seed: int
    number: int  # of the repeat

    def counts(self, start: int, n_rows: int, weights: Floats | None) -> Floats:
        """How often each of the rows from number `start` on is drawn."""
        chance = _uniform(self.seed, 2 * self.number, start, n_rows)
        if self.replace:
            mean = np.full(n_rows, self.rate) if weights is None else weights * self.rate
            return _poisson(chance, mean)
        if weights is None:
            return _binomial(chance, np.ones(n_rows), self.rate)
        whole = np.floor(weights)
        more = _uniform(self.seed, 2 * self.number + 1, start, n_rows) < self.rate
        return _binomial(chance, whole, self.rate) + (weights - whole) * more

    def __call__(self, block: Block) -> Block:
        """The drawn rows of a block, with their numbers of draws as weights."""
        counts = self.counts(block.start, block.n_rows, block.weights)
        which = np.flatnonzero(counts)
        found = block.take(which)
        return type(found)(found.unchecked, 0, counts[which])

    def rows(self, passes: Passes) -> Source:
        """The drawn rows of all blocks, in memory."""
        blocks = [block for block in passes.each(self) if block.n_rows]
        if not blocks:
            raise DataError("no row was drawn", where=passes.source.where, advice="There are too few rows, or weights")
        found: Any = collect(blocks, passes.source)
        found.names = passes.source.names
        return found  # type: ignore[no-any-return]


def _uniform(seed: int, stream: int, start: int, n_rows: int) -> Floats:
    """A number between 0 and 1 for each row."""
    key = scrambled(scrambled(np.array([seed & (2**64 - 1)], dtype=np.uint64)) + np.uint64(stream + 1))
    numbers = np.arange(start, start + n_rows, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray((scrambled(scrambled(numbers + key)) >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _poisson(chance: Floats, mean: Floats) -> Floats:
    """The Poisson numbers at which the distribution function passes `chance`."""
    return _inverted(chance, np.exp(-np.minimum(mean, _MOST_SUMMED)), lambda j, i: mean[i] / j, mean, mean)


def _binomial(chance: Floats, trials: Floats, rate: float) -> Floats:
    """The binomial numbers at which the distribution function passes `chance`."""
    if rate > 0.5:  # p(0) would leave the range of numbers
        return trials - _binomial(1 - chance, trials, 1 - rate)
    odds, mean = rate / (1 - rate), trials * rate
    none = np.exp(trials * np.log1p(-rate))
    found = _inverted(chance, none, lambda j, i: (trials[i] - j + 1) / j * odds, mean, mean * (1 - rate))
    return np.minimum(found, trials)


def _inverted(chance: Floats, none: Floats, ratio: Any, mean: Floats, variance: Floats) -> Floats:
    """Numbers from probabilities p(0) = `none` and p(j) = p(j - 1) * ratio(j, rows)."""
    from scipy.special import ndtri

    out, many = np.zeros(len(chance)), mean > _MOST_SUMMED / 2
    if many.any():
        out[many] = np.maximum(np.rint(mean[many] + np.sqrt(variance[many]) * ndtri(chance[many])), 0.0)
    left = np.flatnonzero(~many & (chance >= none))
    p, total, j = none.copy(), none.copy(), 0
    while len(left) and j < 2 * _MOST_SUMMED:
        j += 1
        p[left] *= ratio(j, left)
        total[left] += p[left]
        out[left] = j
        left = left[(chance[left] >= total[left]) & (p[left] > 0)]
    return out


def effective_rows(replace: bool, rate: float, weight: float) -> float:
    """The number of fresh rows whose fit would differ from that of all rows as much as the fit of a draw does.

    The variance of an estimate from m rows is V/m. The fit of a draw with replacement of the share r of n rows varies about
    the fit of all of them by V/(rn), one without by V/(rn) - V/n; the fit of m fresh rows differs from it by V/m + V/n. So
    half of the rows with replacement, or a third without, stand for as many fresh rows as there are.

    >>> effective_rows(True, 1 / 2, 300.0), round(effective_rows(False, 1 / 3, 300.0), 9)
    (300.0, 300.0)
    """
    return rate * weight / (1 - rate if replace else 1 - 2 * rate)
