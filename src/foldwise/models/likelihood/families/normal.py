"""The normal distribution, of values or of their logarithms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from foldwise.models.likelihood.families.base import Family, Parameter, Point, Theta, edges, need, spread
from foldwise.stats.univariate import Univariate

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def _derivatives(n: float, gap: float, squares: float, sigma: float) -> Point:
    """Of n values with that sum of squares about their mean, which lies `gap` above mu."""
    precision = 1.0 / (sigma * sigma)
    about = squares + n * gap * gap
    value = -n * (math.log(sigma) + _HALF_LOG_2PI) - 0.5 * about * precision
    gradient = np.array([n * gap * precision, (about * precision - n) / sigma])
    cross = -2.0 * n * gap * precision / sigma
    hessian = np.array([[-n * precision, cross], [cross, (n - 3.0 * about * precision) * precision]])
    return Point(value, gradient, hessian)


class Normal(Family):
    """The normal distribution: `mean` and standard deviation `sigma`."""

    name = "normal"
    parameters = (Parameter("mean", "real", "value"), Parameter("sigma", "positive", "value"))

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.norm(theta["mean"], theta["sigma"])

    def _gap(self, values: Univariate, theta: Mapping[str, float]) -> float:
        return float((values.centre[0] - theta["mean"]) + values.centre[1])

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        if "sigma" not in fixed and not (
            values.low == values.high and "mean" in fixed and edges(values)[0] != fixed["mean"]
        ):
            spread(values, "sigma goes to 0")

    def closed(self, values: Univariate, fixed: Mapping[str, float]) -> Theta | None:
        theta = {"mean": values.mean, **fixed}
        about = values.variance + self._gap(values, theta) ** 2
        return {"mean": theta["mean"], "sigma": fixed.get("sigma", math.sqrt(about))}

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        low, high = edges(values)
        return {"mean": low / 2 + high / 2, "sigma": (high - low) / 4 or 1.0, **fixed}

    def derivatives(self, values: Univariate, theta: Mapping[str, float]) -> Point:
        return _derivatives(values.weight, self._gap(values, theta), values.squares, theta["sigma"])


class Lognormal(Family):
    """Values whose logarithms are normal: `mu` and `sigma` of the logarithms."""

    name = "lognormal"
    parameters = (Parameter("mu", "real", "log"), Parameter("sigma", "positive"))
    parts = frozenset({"logs", "log squares"})
    support = "greater than 0"

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.lognorm(theta["sigma"], scale=math.exp(theta["mu"]))

    def _gap(self, values: Univariate, theta: Mapping[str, float]) -> float:
        assert values.logs is not None
        return (math.log(values.logs.pivot) - values.exponent * math.log(2.0) - theta["mu"]) + values.logs.shift

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        need(values, "positive")
        if "sigma" not in fixed:
            spread(values, "sigma goes to 0")

    def closed(self, values: Univariate, fixed: Mapping[str, float]) -> Theta | None:
        assert values.logs is not None
        theta = {"mu": self._gap(values, {"mu": 0.0}), **fixed}
        about = values.logs.squares / values.weight + self._gap(values, theta) ** 2
        return {"mu": theta["mu"], "sigma": fixed.get("sigma", math.sqrt(about))}

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        low, high = (math.log(edge) - values.exponent * math.log(2.0) for edge in (values.low, values.high))
        return {"mu": (low + high) / 2, "sigma": (high - low) / 4 or 1.0, **fixed}

    def derivatives(self, values: Univariate, theta: Mapping[str, float]) -> Point:
        assert values.logs is not None
        n = values.weight
        point = _derivatives(n, self._gap(values, theta), values.logs.squares, theta["sigma"])
        return Point(point.value - n * self._gap(values, {"mu": 0.0}), point.gradient, point.hessian)
