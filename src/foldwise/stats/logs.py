"""Logarithms of positive values: their mean, sum of squares, and distance below the logarithm of the mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from foldwise.data.block import Floats
from foldwise.kernels.series import excess, log_ratio

_AT_ONCE = 16384  # values processed at a time, so that their logarithms stay in the cache
_NARROW = 0.1  # blocks whose values are within this relative distance of their mean need accurate logarithms
_SAFE = 2.0**-120  # products of eight numbers between this and its inverse stay in range


@dataclass(frozen=True)
class Logs:
    """For weighted values x: a pivot, and the mean `shift` and centred sum of squares of log(x / pivot).

    `gap` is the sum of u - 1 - log u, with u = x / mean of x. No term is negative, so log(mean x) - mean(log x), which is
    gap / n, is accurate even where values differ only in their last digits; so is the variance of the logarithms.
    """

    pivot: float
    shift: float
    squares: float
    gap: float

    @classmethod
    def of(
        cls,
        x: Floats,
        w: Floats | None,
        weight: float,
        pivot: float,
        rest: float,
        *,
        of_one: float | None = None,
        spread: bool = True,
    ) -> Logs:
        """From at least one positive value; `pivot` and `rest` are their mean in two parts.

        With `of_one`, which is then the mean of x, the record is for 1 - x, and `pivot` and `rest` are the mean of that.
        Without `spread`, squares are not computed (NaN), and far fewer logarithms are needed.
        """
        low, high = float(x.min()), float(x.max())
        low, high = (low, high) if of_one is None else (1.0 - high, 1.0 - low)
        narrow = low > (1 - _NARROW) * pivot and high < (1 + _NARROW) * pivot
        together = not narrow and w is None and low / pivot > _SAFE and high / pivot < 1 / _SAFE
        sums = []
        for start in range(0, len(x), _AT_ONCE):
            some = x[start : start + _AT_ONCE]
            v = None if w is None else w[start : start + _AT_ONCE]
            gap, all_of, squares = 0.0, 0.0, np.nan
            if narrow:
                # 1 - x as a difference from 1 - mean, because near 0, 1 - x loses digits of x.
                t = (some - pivot if of_one is None else of_one - some) / pivot
                logs, gap = np.log1p(t), total(excess(t), v)
            else:
                values = some if of_one is None else 1.0 - some
                if together:
                    all_of = float(_of_products(values / pivot).sum())
                logs = log_ratio(values, pivot, fine=False) if spread or not together else values[:0]
            own = total(logs, v)
            if spread:
                squares = total(np.square(logs), v)
            # The sum comes from the products wherever possible, so that it does not depend on the other figures requested.
            sums.append((all_of if together else own, own, squares, gap))
        all_logs, own, squares, gap = np.sum(sums, axis=0)
        shift = float(all_logs) / weight
        if not narrow:
            gap = max(weight * (rest / pivot) - shift * weight, 0.0)
        return cls(pivot, shift, np.maximum(squares - own * (own / weight), 0.0).item(), float(gap))

    def merge(self, other: Logs, weight: float, its_weight: float, mean: float, apart: float) -> Logs:
        """Both sets together; `mean` is the common mean of the values, `apart` the other's mean minus this one's."""
        both = weight + its_weight
        share = its_weight / both
        delta = _log_of_ratio(other.pivot, self.pivot) + (other.shift - self.shift)
        # Moving from its own mean to the common one adds a non-negative term to the gap of a part.
        mine, its = -apart * share / mean, apart * (1 - share) / mean
        gap = self.gap + other.gap + float(weight * excess(mine) + its_weight * excess(its))
        return Logs(
            self.pivot,
            self.shift + delta * share,
            self.squares + other.squares + delta * delta * (weight * share),
            gap,
        )

    @property
    def mean(self) -> float:
        """The mean logarithm."""
        return math.log(self.pivot) + self.shift


def _of_products(ratios: Floats) -> Floats:
    """Logarithms with the same sum, of products of eight values: as accurate in an eighth of the time."""
    whole = len(ratios) // 8 * 8
    products = np.multiply.reduce(ratios[:whole].reshape(8, -1), axis=0)
    return np.asarray(np.log(np.concatenate([products, ratios[whole:]])))


def _log_of_ratio(a: float, b: float) -> float:
    t = (a - b) / b
    if abs(t) < 0.5:
        return math.log1p(t)
    return math.log(a) - math.log(b)


def total(values: Floats, w: Floats | None) -> float:
    """The (weighted) sum, pairwise."""
    return float(values.sum() if w is None else (values * w).sum())
