"""Families with a location and a scale whose likelihood takes a pass over the values for every point of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.kernels.series import log_ratio
from foldwise.models.likelihood.families.base import (
    Chart,
    Family,
    Parameter,
    Point,
    RefusalError,
    SufficientStatistics,
    Theta,
    edges,
    need,
    plain,
    spread,
)
from foldwise.models.likelihood.families.positive import mean_log
from foldwise.stats.univariate import Univariate

_EULER = 0.5772156649015329
QUARTILES = (0.25, 0.5 - 1e-12, 0.5 + 1e-12, 0.75)  # both values in the middle, if there are two


def _reach(scale: float, middle: float, fixed: Mapping[str, float]) -> float:
    """A scale to start from: wide enough for a location that was given far from the values, where exp would overflow."""
    return max(scale, abs(middle - fixed.get("location", middle))) or 1.0


class LocationScale(Family):
    """`bend(t)` gives the logarithm of the standard density and its first two derivatives."""

    parameters = (Parameter("location", "real", "value"), Parameter("scale", "positive", "value"))
    passes = True

    def bend(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        """The logarithm of the density of location 0 and scale 1, and its derivatives."""
        raise NotImplementedError

    def in_order(self) -> tuple[str, str]:
        """The parameter that moves with the location, and the one that moves with the scale."""
        return "location", "scale"

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        low, high = edges(values)
        if "scale" not in fixed and not (low == high and low != fixed.get("location", low)):
            spread(values, "the scale goes to 0")

    def chart(self, values: Univariate, fixed: Mapping[str, float], origin: Theta) -> Chart:
        return _Standardised(self, values, fixed, origin)

    def standard(self, values: Univariate, origin: Theta) -> Callable[[Floats], Floats]:
        """Values as distances from the origin's location in units of its scale."""
        return partial(_standardised, location=origin["location"], scale=origin["scale"], exponent=values.exponent)

    def moved(self, origin: Theta, shift: float, factor: float) -> Theta:
        """The parameters at coordinates `shift` and log `factor` from the origin."""
        return {"location": origin["location"] + shift * origin["scale"], "scale": origin["scale"] * factor}

    def slopes(self, origin: Theta, theta: Theta) -> Floats:
        """How the parameters (rows) change with shift and log factor (columns)."""
        return np.diag([origin["scale"], theta["scale"]])

    def unit(self, values: Univariate, origin: Theta) -> float:
        """The mean of what the density of a value has to be divided by, as a logarithm."""
        return math.log(origin["scale"])


class _Standardised(Chart):
    """Location in units of the origin's scale, and the logarithm of the scale relative to it."""

    n_terms = 6

    def __init__(self, family: LocationScale, values: Univariate, fixed: Mapping[str, float], origin: Theta) -> None:
        self._family, self._values, self._fixed, self._origin = family, values, dict(fixed), origin
        first, second = (name not in fixed for name in family.in_order())
        self._free = [j for j, free in enumerate((first, second)) if free]
        self.dimension = len(self._free)
        self._standard = family.standard(values, origin)

    def _pair(self, eta: Floats) -> tuple[float, float]:
        pair = [0.0, 0.0]
        for step, j in zip(eta, self._free, strict=True):
            pair[j] = float(step)
        return pair[0], math.exp(max(min(pair[1], 300.0), -300.0))

    def theta(self, eta: Floats) -> Theta:
        return self._family.moved(self._origin, *self._pair(eta)) | self._fixed

    def jacobian(self, eta: Floats) -> Floats:
        slopes = self._family.slopes(self._origin, self.theta(eta))
        rows = [j for j, name in enumerate(self._family.names) if name not in self._fixed]
        return slopes[np.ix_(rows, self._free)]

    def terms(self, eta: Floats) -> Callable[[Floats], list[Floats]]:
        return _Terms(self._family, self._standard, *self._pair(eta))

    def finish(self, eta: Floats, sums: Floats) -> Point:
        n = self._values.weight
        _, factor = self._pair(eta)
        value, slope, t_slope, bend, t_bend, tt_bend = (float(one) for one in sums)
        gradient = np.array([-slope / factor, -t_slope - n])
        cross = (slope + t_bend) / factor
        hessian = np.array([[bend / factor / factor, cross], [cross, t_slope + tt_bend]])
        value -= n * (math.log(factor) + self._family.unit(self._values, self._origin))
        return Point(value, gradient[self._free], hessian[np.ix_(self._free, self._free)])


@dataclass(frozen=True)
class _Terms:
    """What is summed at one point: the log density of each value and its derivatives, multiplied by what they go with."""

    family: LocationScale
    standard: Callable[[Floats], Floats]
    shift: float
    factor: float

    def __call__(self, x: Floats) -> list[Floats]:
        with np.errstate(over="ignore", invalid="ignore"):
            t = (self.standard(x) - self.shift) / self.factor
            value, slope, bend = self.family.bend(t)
            return [value, slope, t * slope, bend, t * bend, t * (t * bend)]


def _in_units(x: Floats, exponent: int) -> Floats:
    return x if exponent == 0 else np.ldexp(x, -exponent)


def _standardised(x: Floats, location: float, scale: float, exponent: int) -> Floats:
    return (_in_units(x, exponent) - location) / scale


def _log_standardised(x: Floats, shape: float, scale: float, fine: bool) -> Floats:
    return np.asarray(shape * log_ratio(x, scale, fine=fine))


def _distance(x: Floats, location: float, exponent: int) -> list[Floats]:
    return [np.abs(_in_units(x, exponent) - location)]


def _equal(x: Floats, values: tuple[float, ...]) -> list[Floats]:
    return [(x == value) * 1.0 for value in values]


class Logistic(LocationScale):
    """The logistic distribution: `location` and `scale`."""

    name = "logistic"

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.logistic(theta["location"], theta["scale"])

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        scale = _reach(math.sqrt(values.variance) * math.sqrt(3) / math.pi, values.mean, fixed)
        return {"location": values.mean, "scale": scale, **fixed}

    def bend(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        size = np.abs(t)
        away = np.exp(-size)
        slope = np.copysign((1.0 - away) / (1.0 + away), -t)
        return -size - 2.0 * np.log1p(away), slope, -2.0 * away / (1.0 + away) ** 2


class Gumbel(LocationScale):
    """The Gumbel distribution of largest values: `location` and `scale`."""

    name = "gumbel"

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.gumbel_r(theta["location"], theta["scale"])

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        scale = _reach(math.sqrt(values.variance) * math.sqrt(6) / math.pi, values.mean, fixed)
        scale = fixed.get("scale", scale)
        return {"location": values.mean - _EULER * scale, "scale": scale, **fixed}

    def bend(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        away = np.exp(-t)
        return -t - away, away - 1.0, -away


class Cauchy(LocationScale):
    """The Cauchy distribution: `location` and `scale`. For a given scale there may be several maxima: the best found counts."""

    name = "cauchy"

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.cauchy(theta["location"], theta["scale"])

    def levels(self, fixed: Mapping[str, float]) -> tuple[float, ...]:
        return QUARTILES if "scale" not in fixed else tuple(np.arange(1, 34) / 34)

    def second_terms(
        self, values: SufficientStatistics, fixed: Mapping[str, float]
    ) -> Callable[[Floats], list[Floats]] | None:
        if "scale" in fixed:
            return None
        assert values.quantiles is not None
        return partial(_equal, values=tuple(values.quantiles[1:3]))

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        super().check(values, fixed)
        if "scale" not in fixed and isinstance(values, SufficientStatistics) and values.second_sums is not None:
            assert values.quantiles is not None
            for middle, heap in zip(values.quantiles[1:3].tolist(), values.second_sums, strict=True):
                here = math.ldexp(middle, -values.exponent)
                if heap * 2 >= values.weight and fixed.get("location", here) == here:
                    raise RefusalError(
                        f"half of the values or more are equal ({plain(middle)}), so the likelihood does not fall as the "
                        "scale goes to 0"
                    )

    def starts(self, values: Univariate, fixed: Mapping[str, float]) -> list[Theta]:
        assert isinstance(values, SufficientStatistics)
        assert values.quantiles is not None
        points = np.ldexp(values.quantiles, -values.exponent)
        if "scale" in fixed:
            return [{"location": float(place), **fixed} for place in ([0.0] if "location" in fixed else points)]
        return [self.start(values, fixed)]

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        assert isinstance(values, SufficientStatistics)
        assert values.quantiles is not None
        points = np.ldexp(values.quantiles, -values.exponent)
        middle = float(points[1] / 2 + points[2] / 2)
        width = _reach(float(points[-1] - points[0]) / 2 or math.sqrt(values.variance) / 10, middle, fixed)
        return {"location": middle, "scale": width, **fixed}

    def bend(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        far = np.minimum(np.abs(t), 1e150)
        one = 1.0 + far * far
        inside = -2.0 * np.copysign(far, t) / one
        return -math.log(math.pi) - np.log(one), inside, -2.0 / one * ((1.0 - far * far) / one)


class Laplace(LocationScale):
    """The Laplace (double exponential) distribution: its `location` is the median, its `scale` the mean distance from it."""

    name = "laplace"
    corners = frozenset({"location"})

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.laplace(theta["location"], theta["scale"])

    def levels(self, fixed: Mapping[str, float]) -> tuple[float, ...]:
        return () if "location" in fixed else (0.5,)

    def _location(self, values: SufficientStatistics, fixed: Mapping[str, float]) -> float:
        if "location" in fixed:
            return fixed["location"]
        assert values.quantiles is not None
        return math.ldexp(float(values.quantiles[0]), -values.exponent)

    def second_terms(
        self, values: SufficientStatistics, fixed: Mapping[str, float]
    ) -> Callable[[Floats], list[Floats]] | None:
        return partial(_distance, location=self._location(values, fixed), exponent=values.exponent)

    def closed(self, values: Univariate, fixed: Mapping[str, float]) -> Theta | None:
        assert isinstance(values, SufficientStatistics)
        assert values.second_sums is not None
        return {
            "location": self._location(values, fixed),
            "scale": fixed.get("scale", float(values.second_sums[0]) / values.weight),
        }

    def errors(self, values: Univariate, theta: Mapping[str, float]) -> Theta:
        return {"location": theta["scale"] / math.sqrt(values.weight)}

    def bend(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        return -math.log(2.0) - np.abs(t), -np.sign(t), np.zeros_like(t)


class Weibull(LocationScale):
    """The Weibull distribution: `shape` and `scale`. Logarithms of its values have a location and a scale."""

    name = "weibull"
    parameters = (Parameter("shape", "positive"), Parameter("scale", "positive", "value"))
    parts = frozenset({"logs", "log squares"})
    support = "greater than 0"

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.weibull_min(theta["shape"], scale=theta["scale"])

    def in_order(self) -> tuple[str, str]:
        return "scale", "shape"

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        need(values, "positive")
        low, _ = edges(values)
        if "shape" not in fixed and low == fixed.get("scale", low):
            spread(values, "the shape does")

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        assert values.logs is not None
        width = math.sqrt(values.logs.squares / values.weight) * math.sqrt(6) / math.pi
        pivot = math.ldexp(values.logs.pivot, -values.exponent)
        if "scale" in fixed:  # of the logarithms that is the location
            width = max(width, abs(math.log(pivot) - math.log(fixed["scale"]) + values.logs.shift))
        shape = fixed.get("shape", 1.0 / width if width > 0 else 1.0)
        return {"shape": shape, "scale": pivot * math.exp(values.logs.shift + _EULER / shape), **fixed}

    def bend(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        up = np.exp(t)
        return t - up, 1.0 - up, -up

    def standard(self, values: Univariate, origin: Theta) -> Callable[[Floats], Floats]:
        assert values.logs is not None
        scale = math.ldexp(origin["scale"], values.exponent)
        fine = values.logs.squares < 0.01 * values.weight
        return partial(_log_standardised, shape=origin["shape"], scale=scale, fine=fine)

    def moved(self, origin: Theta, shift: float, factor: float) -> Theta:
        return {
            "shape": origin["shape"] / factor,
            "scale": origin["scale"] * math.exp(max(min(shift / origin["shape"], 300.0), -300.0)),
        }

    def slopes(self, origin: Theta, theta: Theta) -> Floats:
        return np.array([[0.0, -theta["shape"]], [theta["scale"] / origin["shape"], 0.0]])

    def unit(self, values: Univariate, origin: Theta) -> float:
        return mean_log(values) - math.log(origin["shape"])
