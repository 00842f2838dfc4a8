"""Families whose support begins or ends with a parameter: uniform, Pareto and the shifted exponential distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from foldwise.models.likelihood.families.base import (
    FULL_ENDS,
    Ends,
    Family,
    Parameter,
    Point,
    RefusalError,
    Theta,
    edges,
    need,
    plain,
    spread,
)
from foldwise.models.likelihood.families.positive import mean_log
from foldwise.stats.univariate import Univariate


class Uniform(Family):
    """The uniform distribution from `low` to `high`."""

    name = "uniform"
    parameters = (Parameter("low", "real", "value"), Parameter("high", "real", "value"))
    corners = frozenset({"low", "high"})
    begins, ends = "low", "high"

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.uniform(theta["low"], theta["high"] - theta["low"])

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        low, high = edges(values)
        if fixed.get("low", low) > low or fixed.get("high", high) < high:
            raise RefusalError(
                f"values from {plain(values.low)} to {plain(values.high)} do not lie between the given limits"
            )
        if len(fixed) == 2 and fixed["low"] == fixed["high"]:
            raise RefusalError("the given limits are equal, so there is no density between them")
        if fixed.get("low", low) == fixed.get("high", high):
            spread(values, "low and high meet")

    def widened(self, theta: Mapping[str, float], free: Collection[str], half: float, ends: Ends = FULL_ENDS) -> Theta:
        if half == 0:
            return dict(theta)
        inner = (theta["high"] - theta["low"]) / (2.0 * half) - 1.0  # units that are all inside
        share = (1.0 - ends[0] - ends[1]) / inner if inner > 0.5 else 0.0
        first, last = (min(max(end / share, 0.01), 1.0) if share > 0 else 1.0 for end in ends)
        return {
            "low": theta["low"] + (half - 2.0 * half * first) * ("low" in free),
            "high": theta["high"] - (half - 2.0 * half * last) * ("high" in free),
        }

    def closed(self, values: Univariate, fixed: Mapping[str, float]) -> Theta | None:
        low, high = edges(values)
        return {"low": low, "high": high} | dict(fixed)

    def derivatives(self, values: Univariate, theta: Mapping[str, float]) -> Point:
        low, high = edges(values)
        width = theta["high"] - theta["low"]
        inside = theta["low"] <= low and high <= theta["high"] and width > 0
        value = -values.weight * math.log(width) if inside else -math.inf
        return Point(value, np.full(2, np.nan), np.full((2, 2), np.nan))


class Pareto(Family):
    """The Pareto distribution: from `scale` on, with a tail that falls with the power `shape`."""

    name = "pareto"
    parameters = (Parameter("scale", "positive", "value"), Parameter("shape", "positive"))
    parts = frozenset({"logs"})
    support = "greater than 0"
    corners = frozenset({"scale"})
    begins = "scale"

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.pareto(theta["shape"], scale=theta["scale"])

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        need(values, "positive")
        if edges(values)[0] == 0:
            raise RefusalError("the least and the greatest value are too far apart for float64")
        if fixed.get("scale", 0.0) > edges(values)[0]:
            raise RefusalError(f"{plain(values.low)} lies below the given scale, where the distribution begins")
        if "shape" not in fixed and fixed.get("scale", edges(values)[0]) == edges(values)[0]:
            spread(values, "the shape does")

    def widened(self, theta: Mapping[str, float], free: Collection[str], half: float, ends: Ends = FULL_ENDS) -> Theta:
        if "scale" not in free or half == 0:
            return dict(theta)
        top = theta["scale"] + half

        def shape_for(scale: float) -> float:
            if "shape" not in free:
                return theta["shape"]
            above = 1.0 / theta["shape"] + math.log(theta["scale"] / scale)  # the mean of log(x / scale)
            return 1.0 / above if above > 0 else math.inf

        def first(scale: float) -> float:
            return -math.expm1(shape_for(scale) * math.log(scale / top))

        scale = _begins(first, max(theta["scale"] - half, theta["scale"] / 2), top, ends[0])
        return {"scale": scale, "shape": shape_for(scale)}

    def _above(self, values: Univariate, scale: float) -> float:
        """The mean of log(x / scale)."""
        assert values.logs is not None
        pivot = math.ldexp(values.logs.pivot, -values.exponent)
        t = (pivot - scale) / scale
        return (math.log1p(t) if t < 0.5 else math.log(pivot) - math.log(scale)) + values.logs.shift

    def closed(self, values: Univariate, fixed: Mapping[str, float]) -> Theta | None:
        scale = fixed.get("scale", edges(values)[0])
        return {"scale": scale, "shape": fixed["shape"] if "shape" in fixed else 1.0 / self._above(values, scale)}

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        return {"scale": edges(values)[0], "shape": 1.0, **fixed}

    def derivatives(self, values: Univariate, theta: Mapping[str, float]) -> Point:
        n, scale, shape = values.weight, theta["scale"], theta["shape"]
        above = self._above(values, scale)
        value = n * (math.log(shape) - shape * above - mean_log(values))
        if scale > edges(values)[0]:
            value = -math.inf
        gradient = np.array([n * shape / scale, n * (1.0 / shape - above)])
        cross = n / scale
        return Point(value, gradient, np.array([[-n * shape / scale**2, cross], [cross, -n / shape**2]]))


class ShiftedExponential(Family):
    """The exponential distribution that begins at `location` instead of 0; one over the `rate` is the mean distance from it."""

    name = "shifted-exponential"
    parameters = (Parameter("location", "real", "value"), Parameter("rate", "positive", "inverse"))
    support = "from the location on"
    corners = frozenset({"location"})
    begins = "location"

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.expon(theta["location"], 1.0 / theta["rate"])

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        low = edges(values)[0]
        if fixed.get("location", low) > low:
            raise RefusalError(f"{plain(values.low)} lies below the given location, where the distribution begins")
        if "rate" not in fixed and fixed.get("location", low) == low:
            spread(values, "the rate does")

    def widened(self, theta: Mapping[str, float], free: Collection[str], half: float, ends: Ends = FULL_ENDS) -> Theta:
        if "location" not in free or half == 0:
            return dict(theta)
        top, mean = theta["location"] + half, theta["location"] + 1.0 / theta["rate"]

        def rate_for(location: float) -> float:
            if "rate" not in free:
                return theta["rate"]
            return 1.0 / (mean - location) if mean > location else math.inf

        def first(location: float) -> float:
            return -math.expm1(rate_for(location) * (location - top))

        location = _begins(first, theta["location"] - half, top, ends[0])
        return {"location": location, "rate": rate_for(location)}

    def _above(self, values: Univariate, location: float) -> float:
        """The mean distance from the location."""
        return float((values.centre[0] - location) + values.centre[1])

    def closed(self, values: Univariate, fixed: Mapping[str, float]) -> Theta | None:
        location = fixed.get("location", edges(values)[0])
        return {"location": location, "rate": fixed["rate"] if "rate" in fixed else 1.0 / self._above(values, location)}

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        low, high = edges(values)
        return {"location": low, "rate": 2.0 / (high - fixed.get("location", low) or 1.0), **fixed}

    def derivatives(self, values: Univariate, theta: Mapping[str, float]) -> Point:
        n, rate, above = values.weight, theta["rate"], self._above(values, theta["location"])
        value = n * (math.log(rate) - rate * above)
        if theta["location"] > edges(values)[0]:
            value = -math.inf
        gradient = np.array([n * rate, n * (1.0 / rate - above)])
        return Point(value, gradient, np.array([[0.0, n], [n, -n / rate**2]]))


def _begins(first: Callable[[float], float], low: float, top: float, share: float) -> float:
    """Where the support begins between `low` and `top`, the interval that is rounded to the least value.

    `first` is the probability of that interval, which falls as the beginning moves up; `share` is what was seen of it.
    """
    if first(low) <= share:
        return low
    at, end = low, top
    for _ in range(60):
        middle = (at + end) / 2
        at, end = (middle, end) if first(middle) > share else (at, middle)
    return at
