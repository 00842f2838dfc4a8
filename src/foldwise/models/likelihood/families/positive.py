"""Positive values with formulas for their parameters: exponential, Rayleigh and inverse Gaussian."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from foldwise.models.likelihood.families.base import Family, Parameter, Point, RefusalError, Theta, edges, need, spread
from foldwise.stats.univariate import Univariate


def mean_log(values: Univariate) -> float:
    """The mean logarithm, in units of 2 to the exponent."""
    assert values.logs is not None
    return values.logs.mean - values.exponent * math.log(2.0)


class Exponential(Family):
    """The exponential distribution with `rate`, one over its mean."""

    name = "exponential"
    parameters = (Parameter("rate", "positive", "inverse"),)
    support = "at least 0"

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.expon(scale=1.0 / theta["rate"])

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        need(values, "not negative")
        if values.high == 0 and "rate" not in fixed:
            raise RefusalError("all values are 0, so the likelihood grows without bound as the rate does")

    def closed(self, values: Univariate, fixed: Mapping[str, float]) -> Theta | None:
        return {"rate": fixed.get("rate", 1.0 / (values.mean or 1.0))}

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        return {"rate": 2.0 / edges(values)[1], **fixed}

    def derivatives(self, values: Univariate, theta: Mapping[str, float]) -> Point:
        n, rate = values.weight, theta["rate"]
        value = n * (math.log(rate) - rate * values.mean)
        return Point(value, np.array([n * (1.0 / rate - values.mean)]), np.array([[-n / rate**2]]))


class Rayleigh(Family):
    """The Rayleigh distribution: lengths of vectors whose two coordinates are normal with deviation `scale`."""

    name = "rayleigh"
    parameters = (Parameter("scale", "positive", "value"),)
    parts = frozenset({"logs"})
    support = "greater than 0"

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.rayleigh(scale=theta["scale"])

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        need(values, "positive")

    def closed(self, values: Univariate, fixed: Mapping[str, float]) -> Theta | None:
        return {"scale": fixed.get("scale", math.sqrt((values.variance + values.mean**2) / 2))}

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        return {"scale": edges(values)[1] / 2, **fixed}

    def derivatives(self, values: Univariate, theta: Mapping[str, float]) -> Point:
        n, scale = values.weight, theta["scale"]
        half = (values.variance + values.mean**2) / (2.0 * scale * scale)
        value = n * (mean_log(values) - 2.0 * math.log(scale) - half)
        gradient = 2.0 * n * (half - 1.0) / scale
        return Point(value, np.array([gradient]), np.array([[n * (2.0 - 6.0 * half) / scale**2]]))


class InverseGaussian(Family):
    """The inverse Gaussian (Wald) distribution: `mean` and `shape`, with variance mean^3 / shape."""

    name = "inverse-gaussian"
    parameters = (Parameter("mean", "positive", "value"), Parameter("shape", "positive", "value"))
    parts = frozenset({"logs", "inverse"})
    support = "greater than 0"

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.invgauss(theta["mean"] / theta["shape"], scale=theta["shape"])

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        need(values, "positive")
        if "shape" not in fixed and not ("mean" in fixed and edges(values)[0] != fixed["mean"]):
            spread(values, "the shape does")
        assert values.inverse is not None
        if not math.isfinite(values.inverse):
            raise RefusalError("sums of 1 / x leave the range of float64", advice="Multiply the values by a constant")

    def _bend(self, values: Univariate, mean: float) -> float:
        """The mean of (x - mean)^2 / (mean^2 x)."""
        assert values.inverse is not None
        m, ratio = values.mean, values.mean / mean - 1.0
        return values.inverse / values.weight / m / m + ratio * ratio / m

    def closed(self, values: Univariate, fixed: Mapping[str, float]) -> Theta | None:
        mean = fixed.get("mean", values.mean)
        return {"mean": mean, "shape": fixed["shape"] if "shape" in fixed else 1.0 / self._bend(values, mean)}

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        mean = fixed.get("mean", edges(values)[0] / 2 + values.mean / 2)
        return {"mean": mean, "shape": mean, **fixed}

    def derivatives(self, values: Univariate, theta: Mapping[str, float]) -> Point:
        n, mean, shape = values.weight, theta["mean"], theta["shape"]
        bend, ratio = self._bend(values, mean), values.mean / mean - 1.0
        value = 0.5 * n * (math.log(shape / (2 * math.pi)) - 3.0 * mean_log(values) - shape * bend)
        gradient = np.array([n * shape * ratio / mean / mean, 0.5 * n * (1.0 / shape - bend)])
        cross = n * ratio / mean / mean
        slope = -n * shape * (1.0 + 3.0 * ratio) / mean / mean / mean
        return Point(value, gradient, np.array([[slope, cross], [cross, -0.5 * n / shape / shape]]))
