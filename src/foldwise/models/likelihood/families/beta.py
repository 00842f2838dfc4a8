"""The beta distribution, from the mean and the logarithms of x and 1 - x."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.kernels.series import excess, log_less_digamma, stirling, trigamma_excess
from foldwise.models.likelihood.families.base import Chart, Family, Parameter, Point, RefusalError, Theta, need, spread
from foldwise.stats.univariate import Univariate


class Beta(Family):
    """The beta distribution on (0, 1): `a` and `b`, with mean a / (a + b)."""

    name = "beta"
    parameters = (Parameter("a", "positive"), Parameter("b", "positive"))
    parts = frozenset({"logs", "complement"})
    support = "strictly between 0 and 1"

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.beta(theta["a"], theta["b"])

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        need(values, "inside")
        if not fixed:
            spread(values, "a and b do")
        if values.complement is None:
            raise RefusalError("values below 1e-100 are too small for a beta distribution")

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        mean, variance = values.mean, values.variance
        total = max(mean * (1.0 - mean) / variance - 1.0, 0.1) if variance > 0 else 10.0
        if "a" in fixed and "b" in fixed:
            return {"a": fixed["a"], "b": fixed["b"]}
        if "a" in fixed:
            return {"a": fixed["a"], "b": fixed["a"] * (1.0 - mean) / mean}
        if "b" in fixed:
            return {"a": fixed["b"] * mean / (1.0 - mean), "b": fixed["b"]}
        return {"a": mean * total, "b": (1.0 - mean) * total}

    def rough(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        return self.start(values, fixed) if fixed else {"a": 1.0, "b": 1.0}

    def derivatives(self, values: Univariate, theta: Mapping[str, float]) -> Point:
        point, slopes = _at(values, theta["a"], theta["b"])
        a, b = theta["a"], theta["b"]
        size = a + b
        whole = 1.0 / size + float(trigamma_excess(size))
        own = [1.0 / k + float(trigamma_excess(k)) for k in (a, b)]
        n = values.weight
        hessian = n * np.array([[whole - own[0], whole], [whole, whole - own[1]]])
        return Point(point.value, n * slopes, hessian)

    def chart(self, values: Univariate, fixed: Mapping[str, float], origin: Theta) -> Chart:
        return super().chart(values, fixed, origin) if fixed else _MeanAndSize(values, origin)


def _at(values: Univariate, a: float, b: float) -> tuple[Point, Floats]:
    """Value and derivatives by mean and size (a + b), and the slopes by a and b for one value.

    Written in differences from the mean of the values, so that nothing cancels where a and b are large.
    """
    assert values.logs is not None
    assert values.complement is not None
    n, m = values.weight, values.mean
    size = a + b
    mean, other = a / size, b / size
    gap = (m - mean) + float(values.centre[1])
    low, high = values.logs.gap / n, values.complement.gap / n
    pull = mean * float(excess(gap / mean)) + other * float(excess(-gap / other))
    logs = values.logs.mean + values.complement.mean
    value = float(stirling(a) + stirling(b) - stirling(size)) - logs - size * pull - a * low - b * high
    whole = float(log_less_digamma(size))
    slopes = np.array(
        [
            float(log_less_digamma(a)) - whole + math.log1p(gap / mean) - low,
            float(log_less_digamma(b)) - whole + math.log1p(-gap / other) - high,
        ]
    )
    bends = [float(trigamma_excess(k)) for k in (a, b)]
    by_mean, by_size = size * (slopes[0] - slopes[1]), mean * slopes[0] + other * slopes[1]
    cross = (slopes[0] - slopes[1]) - a * bends[0] + b * bends[1]
    hessian = np.array(
        [
            [-size * size * (1.0 / a + bends[0] + 1.0 / b + bends[1]), cross],
            [cross, float(trigamma_excess(size)) - mean * mean * bends[0] - other * other * bends[1]],
        ]
    )
    return Point(n * value, n * np.array([by_mean, by_size]), n * hessian), slopes


class _MeanAndSize(Chart):
    """The logit of the mean and the logarithm of a + b."""

    dimension = 2

    def __init__(self, values: Univariate, origin: Theta) -> None:
        self._values, self._origin = values, origin

    def _pair(self, eta: Floats) -> tuple[float, float]:
        a, b = self._origin["a"], self._origin["b"]
        size = (a + b) * math.exp(min(float(eta[1]), 700.0))
        odds = a / b * math.exp(min(float(eta[0]), 700.0))
        return size * odds / (1.0 + odds), size / (1.0 + odds)

    def theta(self, eta: Floats) -> Theta:
        a, b = self._pair(eta)
        return {"a": a, "b": b}

    def jacobian(self, eta: Floats) -> Floats:
        a, b = self._pair(eta)
        tilt = a * b / (a + b)
        return np.array([[tilt, a], [-tilt, b]])

    def at(self, eta: Floats) -> Point:
        a, b = self._pair(eta)
        point, _ = _at(self._values, a, b)
        size = a + b
        mean = a / size
        slopes = np.array([mean * (b / size), size])
        bends = np.array([slopes[0] * (1.0 - 2.0 * mean), size])
        hessian = point.hessian * np.outer(slopes, slopes) + np.diag(point.gradient * bends)
        return Point(point.value, point.gradient * slopes, hessian)
