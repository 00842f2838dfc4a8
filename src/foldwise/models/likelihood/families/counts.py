"""Counts with formulas for their parameters: Bernoulli, binomial, geometric and Poisson."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from foldwise.kernels.series import divergence, factorial_rest
from foldwise.models.likelihood.families.base import Family, Parameter, Point, RefusalError, Theta, need
from foldwise.stats.logs import total
from foldwise.stats.univariate import MOST_COUNTS, Univariate


def _times_log(weight: float, p: float) -> float:
    """weight * log p, and 0 where nothing is weighed."""
    if weight == 0.0:
        return 0.0
    return weight * math.log(p) if p > 0 else -math.inf


def _trials(hits: float, misses: float, p: float) -> Point:
    """So many hits with probability p and misses with 1 - p."""
    if not 0 < p < 1:
        value = _times_log(hits, p) + _times_log(misses, 1.0 - p)
        return Point(value, np.full(1, np.nan), np.full((1, 1), np.nan))
    value = hits * math.log(p) + misses * math.log1p(-p)
    gradient = hits / p - misses / (1.0 - p)
    return Point(value, np.array([gradient]), np.array([[-hits / p**2 - misses / (1.0 - p) ** 2]]))


def _edge(p: float, trials: float, tail: float) -> dict[str, tuple[float, float]]:
    """Clopper and Pearson's limits where all trials went one way."""
    reach = -math.expm1(math.log(tail) / trials)
    return {"p": (0.0, reach) if p == 0 else (1.0 - reach, 1.0)}


class _Discrete(Family):
    parts = frozenset({"counts"})
    discrete = True
    support = "0, 1, 2, ..."


class Bernoulli(_Discrete):
    """A coin: 1 with probability `p`, else 0."""

    name = "bernoulli"
    parameters = (Parameter("p", "share"),)
    support = "0 or 1"

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.bernoulli(theta["p"])

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        need(values, "coin")

    def closed(self, values: Univariate, fixed: Mapping[str, float]) -> Theta | None:
        return {"p": fixed.get("p", _mean(values))}

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        return {"p": 0.5, **fixed}

    def derivatives(self, values: Univariate, theta: Mapping[str, float]) -> Point:
        hits = values.weight * _mean(values)
        return _trials(hits, values.weight - hits, theta["p"])

    def edge_interval(
        self, values: Univariate, theta: Mapping[str, float], tail: float
    ) -> dict[str, tuple[float, float]]:
        return _edge(theta["p"], values.weight, tail)


class Binomial(_Discrete):
    """Hits in `n` trials, which must be given (`fixed={"n": 10}`), each with probability `p`."""

    name = "binomial"
    parameters = (Parameter("n", "count"), Parameter("p", "share"))

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.binom(int(theta["n"]), theta["p"])

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        need(values, "counts")
        if "n" not in fixed:
            raise RefusalError("the number of trials is not known", advice='Give it, as in fixed={"n": 10}')
        if values.high > fixed["n"]:
            raise RefusalError(f"{values.high:g} hits are more than n = {fixed['n']:g} trials")
        if values.counts is None:
            raise RefusalError(f"counts of {MOST_COUNTS:,} and more are not handled", advice="Try poisson or normal")

    def closed(self, values: Univariate, fixed: Mapping[str, float]) -> Theta | None:
        return {"n": fixed["n"], "p": fixed.get("p", _mean(values) / fixed["n"])}

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        return {"n": fixed["n"], "p": fixed.get("p", 0.5)}

    def derivatives(self, values: Univariate, theta: Mapping[str, float]) -> Point:
        assert values.counts is not None
        assert values.rests is not None
        assert values.divergence is not None
        n, p, weight, mean = theta["n"], theta["p"], values.weight, _mean(values)
        if n < values.high:
            return Point(-math.inf, np.full(2, np.nan), np.full((2, 2), np.nan))
        x, counts, rest = np.arange(len(values.counts), dtype=np.float64), values.counts, float(values.centre[1])
        # Loader's way: no factorials and powers, which would cancel, but how far hits and misses lie from what p expects.
        ways = weight * float(factorial_rest(n)) - values.rests - total(factorial_rest(n - x), counts)
        apart = values.divergence + total(divergence((mean - x) + rest, n - mean), counts)
        gap = (mean - n * p) + rest
        off = weight * float(divergence(gap, n * p) + divergence(-gap, n * (1.0 - p)))
        point = _trials(weight * mean, weight * (n - mean), p)
        return Point(
            ways - apart - off, np.append(np.nan, point.gradient), np.pad(point.hessian, (1, 0), constant_values=np.nan)
        )

    def edge_interval(
        self, values: Univariate, theta: Mapping[str, float], tail: float
    ) -> dict[str, tuple[float, float]]:
        return _edge(theta["p"], values.weight * theta["n"], tail)


class Geometric(_Discrete):
    """Trials until the first hit, each with probability `p`: counted with it (`start` 1) or only those before it (`start` 0).

    Where the start is not given it is 0 if there is a value 0, and else 1. SciPy's begins at 1, R's at 0.
    """

    name = "geometric"
    parameters = (Parameter("start", "start"), Parameter("p", "share"))
    support = "0, 1, 2, ... or 1, 2, 3, ..."

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.geom(theta["p"], loc=_start(theta) - 1.0)

    def settled(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        return {"start": 1.0 if values.low >= 1 else 0.0, **fixed}

    def remarks(self, theta: Mapping[str, float]) -> tuple[str, ...]:
        if _start(theta):
            return ("start 1: values count the trials up to and with the first hit (1, 2, 3, ...), as in SciPy",)
        return ("start 0: values count the misses before the first hit (0, 1, 2, ...), as in R",)

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        need(values, "from one" if _start(fixed) else "counts")

    def closed(self, values: Univariate, fixed: Mapping[str, float]) -> Theta | None:
        start = _start(fixed)
        return {"start": start, "p": fixed.get("p", 1.0 / (_mean(values) - start + 1.0))}

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        return {"p": 0.5, **fixed}

    def derivatives(self, values: Univariate, theta: Mapping[str, float]) -> Point:
        point = _trials(values.weight, values.weight * (_mean(values) - _start(theta)), theta["p"])
        gradient, hessian = np.append(np.nan, point.gradient), np.pad(point.hessian, (1, 0), constant_values=np.nan)
        return Point(point.value, gradient, hessian)

    def edge_interval(
        self, values: Univariate, theta: Mapping[str, float], tail: float
    ) -> dict[str, tuple[float, float]]:
        return _edge(theta["p"], values.weight, tail)


def _start(theta: Mapping[str, float]) -> float:
    return theta.get("start", 1.0)  # older files do not have it


class Poisson(_Discrete):
    """The Poisson distribution: counts with mean `rate`."""

    name = "poisson"
    parameters = (Parameter("rate", "positive"),)

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.poisson(theta["rate"])

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        need(values, "counts")

    def closed(self, values: Univariate, fixed: Mapping[str, float]) -> Theta | None:
        return {"rate": fixed.get("rate", _mean(values))}

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        return {"rate": values.high / 2 or 1.0, **fixed}

    def derivatives(self, values: Univariate, theta: Mapping[str, float]) -> Point:
        assert values.rests is not None
        assert values.divergence is not None
        n, mean, rate = values.weight, _mean(values), theta["rate"]
        gap = (mean - rate) + float(values.centre[1])
        value = -values.rests - values.divergence - n * float(divergence(gap, rate))
        if rate == 0:
            return Point(value, np.full(1, np.nan), np.full((1, 1), np.nan))
        return Point(value, np.array([n * gap / rate]), np.array([[-n * mean / rate**2]]))

    def edge_interval(
        self, values: Univariate, theta: Mapping[str, float], tail: float
    ) -> dict[str, tuple[float, float]]:
        return {"rate": (0.0, -math.log(tail) / values.weight)}


def _mean(values: Univariate) -> float:
    return math.ldexp(values.mean, values.exponent)
