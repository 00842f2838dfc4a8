"""The negative binomial distribution: counts that spread more than Poisson's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.kernels.series import (
    divergence,
    excess,
    log_less_digamma,
    log_ratio,
    stirling,
    stirling_rest,
    trigamma_excess,
)
from foldwise.models.likelihood.families.base import Chart, Family, Parameter, Point, RefusalError, Theta, need
from foldwise.stats.term_sums import TermSums
from foldwise.stats.univariate import Univariate

_LARGE = 12.0


class NegativeBinomial(Family):
    """Counts with `mean` and `size`; their variance is mean + mean^2 / size. SciPy has p = size / (size + mean)."""

    name = "negative-binomial"
    parameters = (Parameter("size", "positive"), Parameter("mean", "positive"))
    parts = frozenset({"counts"})
    discrete = True
    passes = True
    support = "0, 1, 2, ..."

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.nbinom(theta["size"], theta["size"] / (theta["size"] + theta["mean"]))

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        need(values, "counts")
        if values.high == 0 and "mean" not in fixed:
            raise RefusalError("all values are 0, so the mean is at the edge of its range", advice="Try poisson")
        if values.high == 0 and "size" not in fixed:
            raise RefusalError(
                "all values are 0, so the likelihood grows as the size goes to 0", advice="Give the size"
            )
        mean = fixed.get("mean", values.mean)
        if "size" not in fixed and not values.variance + (values.mean - mean) ** 2 > values.mean:
            # As the size grows the slope of the likelihood has the sign of sum x - sum (x - mean)^2, whatever mean was given.
            spread = values.variance + (values.mean - mean) ** 2
            raise RefusalError(
                f"the values spread no more (mean square {spread:.4g} about {mean:.4g}) than a Poisson distribution's would "
                f"(mean {values.mean:.4g}), so the size grows without bound",
                advice="Try poisson",
            )

    def closed(self, values: Univariate, fixed: Mapping[str, float]) -> Theta | None:
        return {"size": fixed["size"], "mean": fixed.get("mean", values.mean)} if "size" in fixed else None

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        mean = fixed.get("mean", values.mean)
        more = values.variance + (values.mean - mean) ** 2 - values.mean
        size = fixed.get("size", mean * mean / more if more > 0 else 1.0)
        return {"size": size, "mean": mean}

    def chart(self, values: Univariate, fixed: Mapping[str, float], origin: Theta) -> Chart:
        return _SizeAndMean(values, fixed, origin)

    def log_likelihood(self, values: Univariate, theta: Mapping[str, float]) -> float:
        return _SizeAndMean(values, theta, dict(theta)).at(np.zeros(0)).value


class _SizeAndMean(Chart):
    """The logarithms of size and mean, which do not pull at each other."""

    def __init__(self, values: Univariate, fixed: Mapping[str, float], origin: Theta) -> None:
        self._values, self._origin = values, origin
        self._free = [j for j, name in enumerate(("size", "mean")) if name not in fixed]
        self.dimension = len(self._free)
        self.n_terms = 0 if values.counts is not None else 3

    def _pair(self, eta: Floats) -> tuple[float, float]:
        pair = [self._origin["size"], self._origin["mean"]]
        for step, j in zip(eta, self._free, strict=True):
            pair[j] *= math.exp(min(float(step), 700.0))
        return pair[0], pair[1]

    def theta(self, eta: Floats) -> Theta:
        size, mean = self._pair(eta)
        return {"size": size, "mean": mean}

    def jacobian(self, eta: Floats) -> Floats:
        pair = self._pair(eta)
        return np.diag([pair[j] for j in self._free])

    def terms(self, eta: Floats) -> Callable[[Floats], list[Floats]]:
        size, mean = self._pair(eta)
        return partial(_terms, r=size, mean=mean)

    def at(self, eta: Floats) -> Point:
        counts = self._values.counts
        assert counts is not None
        return self.finish(
            eta, TermSums.of_values(np.arange(len(counts), dtype=np.float64), counts, self.terms(eta), 3).value
        )

    def finish(self, eta: Floats, sums: Floats) -> Point:
        assert self._values.rests is not None
        n, m = self._values.weight, self._values.mean
        r, mean = self._pair(eta)
        both = r + mean
        value = sums[0] - self._values.rests
        gap = (m - mean) + float(self._values.centre[1])
        if r > mean:  # then the terms of the sums have their largest part, x / r, taken out
            by_size = sums[1] + n * (gap / r + float(excess(mean / r)) - gap / both)
            bend = sums[2] - n * (gap / r / r + mean * mean / (r * r * both)) + n * gap / both**2
        else:
            by_size = sums[1] - n * (math.log1p(mean / r) + gap / both)
            bend = sums[2] + n * (mean / (r * both) + gap / both**2)
        by_mean = n * r * gap / (mean * both)
        cross = n * gap / both**2
        slope = n * ((m + r) / both**2 - m / mean**2)
        scale = np.array([r, mean])
        gradient = np.array([by_size, by_mean]) * scale
        hessian = np.array([[bend, cross], [cross, slope]]) * np.outer(scale, scale) + np.diag(gradient)
        return Point(float(value), gradient[self._free], hessian[np.ix_(self._free, self._free)])


def _terms(x: Floats, r: float, mean: float) -> list[Floats]:
    """log P(x) + `factorial_rest(x)`, and the derivatives by r of log Gamma(x + r) - log Gamma(r).

    For r above the mean, x / r and -x / r^2 are taken out of the derivatives, which else would cancel later.
    """
    y, t = x + r, x / r
    less, value = r > mean, -_apart(x, r, mean)
    if r >= _LARGE:
        value += stirling_rest(y) - stirling_rest(r) - 0.5 * np.log1p(t)
        slope = (-excess(t) if less else np.log1p(t)) + (log_less_digamma(r) - log_less_digamma(y))
        bend = (x * (t / r) / y if less else -t / y) - (trigamma_excess(r) - trigamma_excess(y))
        return [value, slope, bend]
    from scipy.special import digamma, polygamma

    value += float(stirling(r)) - stirling(y)
    slope = digamma(y) - float(digamma(r)) - (t if less else 0.0)
    bend = polygamma(1, y) - float(polygamma(1, r)) + (t / r if less else 0.0)
    nothing = x == 0
    return [value, *(np.where(nothing, 0.0, term) for term in (slope, bend))]


def _apart(x: Floats, r: float, mean: float) -> Floats:
    """x log(x / mean) - (x + r) log((x + r) / (mean + r)), the way in which it cancels least."""
    gap = x - mean
    if r > mean:
        return np.asarray(divergence(gap, mean) - divergence(gap, mean + r))
    some = np.maximum(x, 1.0)
    one = np.where(x > 0, some * (math.log1p(r / mean) - np.log1p(r / some)), 0.0)
    return np.asarray(one - r * log_ratio(x + r, mean + r, fine=True))
