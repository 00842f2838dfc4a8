"""Logarithms of positive values: their mean, their spread, and how far they lie below the logarithm of the mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from foldwise.data.block import Floats
from foldwise.kernels.series import excess, log_ratio

_NARROW = 0.1  # blocks whose values lie this close to their mean, relatively, get more careful logarithms


@dataclass(frozen=True)
class Logs:
    """Of values x with weights: a pivot and, of log(x / pivot), the mean `shift` and the centred sum of squares.

    `gap` is the sum of u - 1 - log u, with u = x / mean of x. No term of it is negative, so that log(mean x) - mean(log x),
    which is gap / n, has all its digits even where values differ in their last ones; so has the spread of the logarithms.
    """

    pivot: float
    shift: float
    squares: float
    gap: float

    @classmethod
    def of(cls, x: Floats, gaps: Floats, w: Floats | None, weight: float, pivot: float, rest: float) -> Logs:
        """Of positive values in hand, at least one; `pivot` and `rest` are their mean in two parts, `gaps` is x - pivot."""
        narrow = bool(x.min() > (1 - _NARROW) * pivot and x.max() < (1 + _NARROW) * pivot)
        if narrow:
            t = gaps / pivot
            logs, gap = np.log1p(t), total(excess(t), w)
            shift = total(logs, w) / weight
        else:
            logs = log_ratio(x, pivot, fine=False)
            shift = total(logs, w) / weight
            gap = max(weight * (rest / pivot) - shift * weight, 0.0)
        logs -= shift
        return cls(pivot, shift, total(logs * logs, w), gap)

    def merge(self, other: Logs, weight: float, its_weight: float, mean: float, apart: float) -> Logs:
        """Both sets together; `mean` is that of the values of both, `apart` the other's mean less this one's."""
        both = weight + its_weight
        share = its_weight / both
        delta = _log_of_ratio(other.pivot, self.pivot) + (other.shift - self.shift)
        # From its own mean to the common one, the gap of a part grows by a term that is not negative either.
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


def _log_of_ratio(a: float, b: float) -> float:
    t = (a - b) / b
    if abs(t) < 0.5:
        return math.log1p(t)
    return math.log(a) - math.log(b)


def total(values: Floats, w: Floats | None) -> float:
    """The (weighted) sum, pairwise."""
    return float(values.sum() if w is None else (values * w).sum())
