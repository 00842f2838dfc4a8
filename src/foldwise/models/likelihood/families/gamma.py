"""The gamma distribution: no formula gives its shape, so the likelihood is climbed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.kernels.series import excess, log_less_digamma, stirling, trigamma_excess
from foldwise.models.likelihood.families.base import Chart, Family, Parameter, Point, Theta, need, spread
from foldwise.models.likelihood.families.positive import mean_log
from foldwise.stats.univariate import Univariate


class Gamma(Family):
    """The gamma distribution: `shape` a and `rate` b, with density b^a x^(a-1) e^(-bx) / Gamma(a) and mean a / b."""

    name = "gamma"
    parameters = (Parameter("shape", "positive"), Parameter("rate", "positive", "inverse"))
    parts = frozenset({"logs"})
    support = "greater than 0"

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.gamma(theta["shape"], scale=1.0 / theta["rate"])

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        need(values, "positive")
        if not fixed:
            spread(values, "the shape does")

    def closed(self, values: Univariate, fixed: Mapping[str, float]) -> Theta | None:
        if "shape" not in fixed:
            return None
        return {"shape": fixed["shape"], "rate": fixed.get("rate", fixed["shape"] / values.mean)}

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        assert values.logs is not None
        if "shape" in fixed:
            shape = fixed["shape"]
            return {"shape": shape, "rate": fixed.get("rate", 0.5 * shape / values.mean)}
        if "rate" in fixed:
            return {"shape": values.mean * fixed["rate"], "rate": fixed["rate"]}
        s = max(values.logs.gap / values.weight, 1e-300)
        # Good to a per cent for any shape (Minka 2002); 1 / (2 s) is what it comes to where s is small.
        shape = 0.5 / s if s < 1e-8 else (3.0 - s + math.sqrt((s - 3.0) ** 2 + 24.0 * s)) / (12.0 * s)
        return {"shape": shape, "rate": shape / values.mean}

    def rough(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        return self.start(values, fixed) if fixed else {"shape": 1.0, "rate": 1.0 / values.mean}

    def chart(self, values: Univariate, fixed: Mapping[str, float], origin: Theta) -> Chart:
        return _ShapeAndMean(values, fixed, origin)

    def log_likelihood(self, values: Univariate, theta: Mapping[str, float]) -> float:
        return _at(values, theta["shape"], theta["shape"] / theta["rate"]).value


def _at(values: Univariate, shape: float, mean: float) -> Point:
    """The log-likelihood by the logarithms of shape and mean, which do not pull at each other as shape and rate do."""
    assert values.logs is not None
    n, k, s = values.weight, shape, values.logs.gap / values.weight
    ratio = values.mean / mean
    away = float(excess(ratio - 1.0))
    value = n * float(stirling(k) - mean_log(values) - k * (away + s))
    slope = k * float(log_less_digamma(k) - away - s)
    cross = k * (ratio - 1.0)
    bend = slope - k * k * float(trigamma_excess(k))
    return Point(value, n * np.array([slope, cross]), n * np.array([[bend, cross], [cross, -k * ratio]]))


class _ShapeAndMean(Chart):
    """The logarithms of shape and mean, or what is left of them where the shape or the rate is given."""

    def __init__(self, values: Univariate, fixed: Mapping[str, float], origin: Theta) -> None:
        self._values, self._fixed, self._origin = values, dict(fixed), origin
        # How log shape and log mean change with each coordinate; the rate is their quotient.
        turn = {
            (): [[1.0, 0.0], [0.0, 1.0]],
            ("rate",): [[1.0], [1.0]],
            ("shape",): [[0.0], [1.0]],
            ("rate", "shape"): [[], []],
        }[tuple(sorted(fixed))]
        self._turn = np.array(turn).reshape(2, -1)
        self.dimension = self._turn.shape[1]
        self._mean = origin["shape"] / origin["rate"]

    def _pair(self, eta: Floats) -> tuple[float, float]:
        step = np.minimum(self._turn @ eta, 700.0)
        return self._origin["shape"] * math.exp(step[0]), self._mean * math.exp(step[1])

    def theta(self, eta: Floats) -> Theta:
        shape, mean = self._pair(eta)
        return {"shape": shape, "rate": shape / mean} | self._fixed

    def jacobian(self, eta: Floats) -> Floats:
        shape, mean = self._pair(eta)
        both = np.array([[shape, 0.0], [shape / mean, -shape / mean]]) @ self._turn
        return np.asarray(both[[name not in self._fixed for name in ("shape", "rate")]])

    def at(self, eta: Floats) -> Point:
        point = _at(self._values, *self._pair(eta))
        return Point(point.value, self._turn.T @ point.gradient, self._turn.T @ point.hessian @ self._turn)
