"""Gamma, lognormal and Weibull distributions that begin at a location instead of 0.

Their likelihood is unbounded as the location comes close to the least value: it is the highest maximum further off that counts
(Smith 1985, "Maximum likelihood estimation in a class of nonregular cases"). Without skewness it rises as the location
goes away for ever. The location is therefore sought between two bounds, and it is said where it stands at one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from foldwise.data.block import Floats
from foldwise.kernels.series import excess, log_less_digamma, stirling, trigamma_excess
from foldwise.models.likelihood.families.base import (
    Chart,
    Family,
    Parameter,
    Point,
    RefusalError,
    SufficientStatistics,
    Theta,
    edges,
    plain,
    spread,
)
from foldwise.stats.univariate import Univariate

_EULER = 0.5772156649015329
_FURTHEST = 100.0  # standard deviations below the least value
_GUESSES = 12  # locations that are tried


class Shifted(Family):
    """A family on (location, infinity) with two more parameters; `sums` and `derivatives_by` are what it has to say."""

    begins = "location"
    support = "above the location"
    passes = True
    n_sums: ClassVar[int]

    def sums(self, y: Floats, a: float, b: float) -> list[Floats]:
        """What is summed over the distances y from the location."""
        raise NotImplementedError

    def derivatives_by(self, n: float, sums: Floats, a: float, b: float) -> tuple[float, Floats, Floats]:
        """The log-likelihood, its gradient and its Hessian by a shift of all y, and by the other parameters' coordinates."""
        raise NotImplementedError

    def guess(self, mean: float, log_mean: float, log_variance: float, fixed: Mapping[str, float]) -> Theta:
        """The other two parameters, roughly, from the mean of y and the moments of log y."""
        raise NotImplementedError

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        if "location" in fixed and fixed["location"] >= edges(values)[0]:
            raise RefusalError(f"{plain(values.low)} is not above the given location, where the distribution begins")
        spread(values, "the distribution narrows")
        if "location" not in fixed and values.rows < 4:
            raise RefusalError("three parameters need at least four values")
        if not reach(values)[0] > 0:
            raise RefusalError("the least value and the mean are too close for float64")

    def second_terms(
        self, values: SufficientStatistics, fixed: Mapping[str, float]
    ) -> Callable[[Floats], list[Floats]] | None:
        return partial(_log_moments, locations=_locations(values, fixed), exponent=values.exponent)

    def starts(self, values: Univariate, fixed: Mapping[str, float]) -> list[Theta]:
        assert isinstance(values, SufficientStatistics)
        assert values.second_sums is not None
        n, found = values.weight, []
        moments = values.second_sums.reshape(-1, 2) / n
        for location, (first, second) in zip(_locations(values, fixed), moments.tolist(), strict=True):
            mean = float((values.centre[0] - location) + values.centre[1])
            found.append(
                {"location": location, **self.guess(mean, first, max(second - first * first, 1e-12), fixed), **fixed}
            )
        return [{name: theta[name] for name in self.names} for theta in found]

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        starts = self.starts(values, fixed)
        return starts[len(starts) // 2]

    def best_start(self, starts: Sequence[Theta], likelihoods: Sequence[float]) -> Theta:
        """Starts go from the least value away. The first is a maximum of last resort: further up there it is unbounded."""
        value = np.where(np.isfinite(likelihoods), likelihoods, -np.inf)
        inner = [i for i in range(1, len(value) - 1) if value[i] >= value[i - 1] and value[i] >= value[i + 1]]
        tops = [i for i in (*inner, len(value) - 1) if value[i] > -np.inf and value[i] >= value[i - 1]]
        return starts[max(tops, key=lambda i: value[i])] if tops else starts[int(np.argmax(value))]

    def bounds(self, values: Univariate, theta: Mapping[str, float]) -> dict[str, str]:
        nearest, furthest = reach(values)
        away = edges(values)[0] - theta["location"]
        if away <= nearest * (1 + 1e-9):
            return {
                "location": "the likelihood rises as the location comes close to the least value, and may be unbounded there: "
                "the location is held below it by the mean distance over n, or at 0 if that is nearer, and the other "
                "parameters are the best for that"
            }
        if away >= furthest * (1 - 1e-9):
            return {
                "location": "the likelihood rises as the location goes away for ever, for the values are not skewed to the "
                f"right: the location is held {_FURTHEST:g} standard deviations below the least value"
            }
        return {}

    def bounded(self, values: Univariate, theta: Mapping[str, float]) -> Theta | None:
        low, (nearest, furthest) = edges(values)[0], reach(values)
        away = low - theta["location"]
        if 2.0 * nearest < away < 0.5 * furthest:
            return None
        return {**theta, "location": low - (nearest if away <= 2.0 * nearest else furthest)}

    def chart(self, values: Univariate, fixed: Mapping[str, float], origin: Theta) -> Chart:
        return _Distance(self, values, fixed, origin)


def reach(values: Univariate) -> tuple[float, float]:
    """The bounds of the distance of the location from the least value."""
    low = edges(values)[0]
    mean = float((values.centre[0] - low) + values.centre[1])
    nearest = mean / max(values.weight, 2.0)
    if 0.0 < low < nearest:  # so that the family without a shift is never better
        nearest = low
    nearest = max(nearest, 4.0 * math.ulp(low))
    furthest = _FURTHEST * math.sqrt(values.variance)
    return (nearest, furthest) if nearest < furthest else (0.0, furthest)


def _locations(values: Univariate, fixed: Mapping[str, float]) -> list[float]:
    if "location" in fixed:
        return [fixed["location"]]
    return [edges(values)[0] - float(away) for away in np.geomspace(*reach(values), _GUESSES)]


def _log_moments(x: Floats, locations: Sequence[float], exponent: int) -> list[Floats]:
    x = x if exponent == 0 else np.ldexp(x, -exponent)
    with np.errstate(all="ignore"):
        logs = [np.log(x - location) for location in locations]
    return [term for log in logs for term in (log, log * log)]


def _distances(x: Floats, family: Shifted, location: float, a: float, b: float, exponent: int) -> list[Floats]:
    with np.errstate(all="ignore"):
        return family.sums((x if exponent == 0 else np.ldexp(x, -exponent)) - location, a, b)


class _Distance(Chart):
    """The logarithm of the distance from location to least value, and the other two as logarithms if they are positive."""

    def __init__(self, family: Shifted, values: Univariate, fixed: Mapping[str, float], origin: Theta) -> None:
        self._family, self._values, self._fixed, self._origin = family, values, dict(fixed), origin
        self._free = [j for j, name in enumerate(family.names) if name not in fixed]
        self.dimension, self.n_terms = len(self._free), family.n_sums
        self._low, self._reach = edges(values)[0], reach(values)

    def theta(self, eta: Floats) -> Theta:
        step = np.zeros(3)
        step[self._free] = np.clip(eta, -300.0, 300.0)
        found = {}
        for parameter, by in zip(self._family.parameters, step.tolist(), strict=True):
            value = self._origin[parameter.name]
            if parameter.name == "location":
                found["location"] = self._low - (self._low - value) * math.exp(by)
            else:
                found[parameter.name] = value * math.exp(by) if parameter.kind == "positive" else value + by
        return found | self._fixed

    def jacobian(self, eta: Floats) -> Floats:
        theta = self.theta(eta)
        slopes = [
            theta["location"] - self._low if p.name == "location" else theta[p.name] if p.kind == "positive" else 1.0
            for p in self._family.parameters
        ]
        return np.diag(slopes)[np.ix_(self._free, self._free)]

    def terms(self, eta: Floats) -> Callable[[Floats], list[Floats]]:
        location, a, b = (self.theta(eta)[name] for name in self._family.names)
        return partial(_distances, family=self._family, location=location, a=a, b=b, exponent=self._values.exponent)

    def finish(self, eta: Floats, sums: Floats) -> Point:
        location, a, b = (self.theta(eta)[name] for name in self._family.names)
        away, (nearest, furthest) = self._low - location, self._reach
        searched = "location" not in self._fixed
        if not away > 0 or (searched and not nearest * (1 - 1e-9) <= away <= furthest * (1 + 1e-9)):
            return Point(-math.inf, np.full(self.dimension, np.nan), np.full((self.dimension, self.dimension), np.nan))
        value, gradient, hessian = self._family.derivatives_by(self._values.weight, sums, a, b)
        turn = np.array([away, 1.0, 1.0])
        hessian = hessian * np.outer(turn, turn)
        gradient = gradient * turn
        hessian[0, 0] += gradient[0]
        return Point(float(value), gradient[self._free], hessian[np.ix_(self._free, self._free)])


def _symmetric(rows: list[list[float]]) -> Floats:
    upper = np.triu(np.array(rows))
    return np.asarray(upper + np.triu(upper, 1).T)


def _by_shape(theta: Mapping[str, float], free: Collection[str]) -> float:
    """Where the density begins with the power shape - 1, the location is known to within n to the -1 / shape, up to a root."""
    return len(free) + ("location" in free) * (2.0 / min(max(theta["shape"], 1.0), 2.0) - 1.0)


class ShiftedGamma(Shifted):
    """The gamma distribution (`shape`, `rate`) that begins at `location`: Pearson's type III."""

    name = "shifted-gamma"
    parameters = (
        Parameter("location", "real", "value"),
        Parameter("shape", "positive"),
        Parameter("rate", "positive", "inverse"),
    )
    n_sums = 6

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.gamma(theta["shape"], theta["location"], 1.0 / theta["rate"])

    def counted(self, theta: Mapping[str, float], free: Collection[str]) -> float:
        return _by_shape(theta, free)

    def guess(self, mean: float, log_mean: float, log_variance: float, fixed: Mapping[str, float]) -> Theta:
        s = max(math.log(mean) - log_mean, 1e-12)
        shape = (3.0 - s + math.sqrt((s - 3.0) ** 2 + 24.0 * s)) / (12.0 * s)
        shape = fixed.get("shape", mean * fixed["rate"] if "rate" in fixed else shape)
        return {"shape": shape, "rate": shape / mean}

    def sums(self, y: Floats, a: float, b: float) -> list[Floats]:
        mean, one = a / b, 1.0 / y
        gap = y - mean
        return [np.log(y), gap / mean, excess(gap / mean), one, one * one, (b * gap + 1.0) * one]

    def derivatives_by(self, n: float, sums: Floats, a: float, b: float) -> tuple[float, Floats, Floats]:
        # In distances from the mean a / b, so that nothing cancels where the shape is large.
        log, gap, off, one, square, pull = (float(each) for each in sums)
        value = n * float(stirling(a)) - log - a * off
        by_shape = a * (n * float(log_less_digamma(a)) + gap - off)
        gradient = np.array([-pull, by_shape, -a * gap])
        bend = by_shape - n * (a + a * a * float(trigamma_excess(a)))
        rate = -a * (gap + n)
        return value, gradient, _symmetric([[-(a - 1.0) * square, a * one, -n * b], [0, bend, n * a], [0, 0, rate]])


class ShiftedLognormal(Shifted):
    """Values whose logarithms of x - `location` are normal: `mu` and `sigma` of these."""

    name = "shifted-lognormal"
    parameters = (
        Parameter("location", "real", "value"),
        Parameter("mu", "real", "log"),
        Parameter("sigma", "positive"),
    )
    n_sums = 6

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.lognorm(theta["sigma"], theta["location"], math.exp(theta["mu"]))

    def counted(self, theta: Mapping[str, float], free: Collection[str]) -> float:
        # Seen from the least of some hundred values the density begins with about the power 2 / sigma - 1.
        return len(free) + ("location" in free) * (min(max(theta["sigma"], 1.0), 2.0) - 1.0)

    def guess(self, mean: float, log_mean: float, log_variance: float, fixed: Mapping[str, float]) -> Theta:
        mu = fixed.get("mu", log_mean)
        return {"mu": mu, "sigma": math.sqrt(log_variance + (log_mean - mu) ** 2)}

    def sums(self, y: Floats, a: float, b: float) -> list[Floats]:
        one, gap = 1.0 / y, np.log(y) - a
        return [gap, gap * gap, one, one * one, gap * one, gap * one * one]

    def derivatives_by(self, n: float, sums: Floats, a: float, b: float) -> tuple[float, Floats, Floats]:
        gap, gaps, one, square, gap_one, gap_square = (float(each) for each in sums)
        p = 1.0 / (b * b)
        value = -n * (math.log(b) + 0.5 * math.log(2 * math.pi) + a) - gap - 0.5 * p * gaps
        gradient = np.array([-one - p * gap_one, p * gap, p * gaps - n])
        return (
            value,
            gradient,
            _symmetric(
                [
                    [square - p * (square - gap_square), p * one, 2.0 * p * gap_one],
                    [0, -n * p, -2.0 * p * gap],
                    [0, 0, -2.0 * p * gaps],
                ]
            ),
        )


class ShiftedWeibull(Shifted):
    """The Weibull distribution (`shape`, `scale`) that begins at `location`."""

    name = "shifted-weibull"
    parameters = (
        Parameter("location", "real", "value"),
        Parameter("shape", "positive"),
        Parameter("scale", "positive", "value"),
    )
    n_sums = 9

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.weibull_min(theta["shape"], theta["location"], theta["scale"])

    def counted(self, theta: Mapping[str, float], free: Collection[str]) -> float:
        return _by_shape(theta, free)

    def guess(self, mean: float, log_mean: float, log_variance: float, fixed: Mapping[str, float]) -> Theta:
        shape = fixed.get("shape", math.pi / math.sqrt(6.0 * log_variance))
        return {"shape": shape, "scale": math.exp(log_mean + _EULER / shape)}

    def sums(self, y: Floats, a: float, b: float) -> list[Floats]:
        one, log = 1.0 / y, np.log(y / b)
        t = np.exp(a * log)
        lt = log * t
        squares = one * one
        return [log, t, one, squares, lt, log * lt, t * one, t * squares, lt * one]

    def derivatives_by(self, n: float, sums: Floats, a: float, b: float) -> tuple[float, Floats, Floats]:
        log, t, one, square, lt, llt, t_one, t_square, lt_one = (float(each) for each in sums)
        value = n * (math.log(a) - math.log(b)) + (a - 1.0) * log - t
        gradient = np.array([(a - 1.0) * one - a * t_one, n + a * (log - lt), a * (t - n)])
        return (
            value,
            gradient,
            _symmetric(
                [
                    [
                        -(a - 1.0) * (square + a * t_square),
                        a * (one - t_one) - a * a * lt_one,
                        a * a * t_one,
                    ],
                    [0, a * (log - lt) - a * a * llt, a * (t - n) + a * a * lt],
                    [0, 0, -a * a * t],
                ]
            ),
        )
