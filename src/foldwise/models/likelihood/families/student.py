"""Student's t distribution: a location, a scale, and degrees of freedom that say how heavy the tails are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from foldwise.data.block import Floats
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
from foldwise.models.likelihood.families.location import QUARTILES
from foldwise.stats.univariate import Univariate

MOST = 1e6  # degrees of freedom: from here on the distribution is the normal one to six digits
_LEAST = 0.1
_GUESSES = (1.0, 2.0, 4.0, 8.0, 20.0, 100.0)


class StudentT(Family):
    """Student's t: `location`, `scale` and degrees of freedom `df`; df = 1 is Cauchy, and df without bound is normal.

    Where the tails are no heavier than the normal distribution's, the likelihood rises with df for ever: df is then 1e6, and
    the other two are the normal distribution's. As df and scale both go to 0 the likelihood is unbounded; it is the maximum
    at a positive scale that counts.
    """

    name = "student-t"
    parameters = (
        Parameter("location", "real", "value"),
        Parameter("scale", "positive", "value"),
        Parameter("df", "positive"),
    )
    passes = True

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        return stats.t(theta["df"], theta["location"], theta["scale"])

    def levels(self, fixed: Mapping[str, float]) -> tuple[float, ...]:
        return QUARTILES

    def _normal(self, values: Univariate, fixed: Mapping[str, float]) -> tuple[float, float]:
        """Where the normal distribution, which many degrees of freedom lead to, has its maximum."""
        location = fixed.get("location", values.mean)
        gap = float((values.centre[0] - location) + values.centre[1])
        return location, fixed.get("scale", math.sqrt(values.variance + gap * gap))

    def second_terms(
        self, values: SufficientStatistics, fixed: Mapping[str, float]
    ) -> Callable[[Floats], list[Floats]] | None:
        assert values.quantiles is not None
        location, scale = self._normal(values, fixed)
        middle = tuple(values.quantiles[1:3].tolist())
        return partial(_tails, location=location, scale=scale, middle=middle, exponent=values.exponent)

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        low, high = edges(values)
        if "scale" not in fixed and not (low == high and low != fixed.get("location", low)):
            spread(values, "the scale goes to 0")
        if "scale" in fixed or not isinstance(values, SufficientStatistics) or values.second_sums is None:
            return
        assert values.quantiles is not None
        df = fixed.get("df", 1.0)
        for middle, heap in zip(values.quantiles[1:3].tolist(), values.second_sums[1:].tolist(), strict=True):
            here = math.ldexp(middle, -values.exponent)
            if fixed.get("location", here) == here and heap >= df * (values.weight - heap):
                raise RefusalError(
                    f"{heap:,.10g} of the values are equal ({plain(middle)}), so the likelihood does not fall as the scale "
                    "goes to 0"
                )

    def closed(self, values: Univariate, fixed: Mapping[str, float]) -> Theta | None:
        if "df" in fixed:
            return None
        assert isinstance(values, SufficientStatistics)
        assert values.second_sums is not None
        # The slope of the likelihood by 1 / df at the normal distribution is a quarter of this.
        if float(values.second_sums[0]) > 0:
            return None
        location, scale = self._normal(values, fixed)
        return {"location": location, "scale": scale, "df": MOST}

    def bounds(self, values: Univariate, theta: Mapping[str, float]) -> dict[str, str]:
        if theta["df"] < MOST:
            return {}
        note = "the tails are no heavier than the normal distribution's, so the likelihood rises with df for ever: take normal"
        return {"df": note}

    def unusable(self, values: SufficientStatistics, theta: Mapping[str, float]) -> str | None:
        assert values.quantiles is not None
        half = float(values.quantiles[-1] / 2 - values.quantiles[0] / 2)  # the whole might leave float64
        if theta["df"] > 1.01 * _LEAST and theta["scale"] >= 2e-9 * half:
            return None
        return "the likelihood grows without bound as the scale goes to 0: too many of the values are equal"

    def starts(self, values: Univariate, fixed: Mapping[str, float]) -> list[Theta]:
        from scipy.special import stdtrit

        assert isinstance(values, SufficientStatistics)
        assert values.quantiles is not None
        first, lower, upper, third = (float(one) for one in np.ldexp(values.quantiles, -values.exponent))
        middle = lower / 2 + upper / 2
        half = (third - first) / 2 or math.sqrt(values.variance) / 10 or 1.0
        half = max(half, abs(middle - fixed.get("location", middle)))
        found = []
        for df in [fixed["df"]] if "df" in fixed else _GUESSES:
            wide = float(stdtrit(df, 0.75))
            found.append({"location": middle, "scale": half / wide, "df": df, **fixed})
        return found

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        return self.starts(values, fixed)[0]

    def chart(self, values: Univariate, fixed: Mapping[str, float], origin: Theta) -> Chart:
        return _Standardised(values, fixed, origin)


class _Standardised(Chart):
    """Location in units of the origin's scale, and the logarithms of scale and df."""

    n_terms = 10

    def __init__(self, values: Univariate, fixed: Mapping[str, float], origin: Theta) -> None:
        self._values, self._fixed, self._origin = values, dict(fixed), origin
        self._free = [j for j, name in enumerate(("location", "scale", "df")) if name not in fixed]
        self.dimension = len(self._free)

    def theta(self, eta: Floats) -> Theta:
        step = np.zeros(3)
        step[self._free] = eta
        scale, df = self._origin["scale"], self._origin["df"]
        return {
            "location": self._origin["location"] + float(step[0]) * scale,
            "scale": scale * math.exp(max(min(float(step[1]), 300.0), -300.0)),
            "df": df * math.exp(max(min(float(step[2]), 300.0), -300.0)),
        } | self._fixed

    def jacobian(self, eta: Floats) -> Floats:
        theta = self.theta(eta)
        slopes = np.diag([self._origin["scale"], theta["scale"], theta["df"]])
        return slopes[np.ix_(self._free, self._free)]

    def terms(self, eta: Floats) -> Callable[[Floats], list[Floats]]:
        location, scale, df = (self.theta(eta)[name] for name in ("location", "scale", "df"))
        return partial(_terms, location=location, scale=scale, df=df, exponent=self._values.exponent)

    def finish(self, eta: Floats, sums: Floats) -> Point:
        theta, n = self.theta(eta), self._values.weight
        df, scale, unit = theta["df"], theta["scale"], self._origin["scale"]
        if "df" not in self._fixed and not _LEAST <= df <= MOST:
            return Point(-math.inf, np.full(self.dimension, np.nan), np.full((self.dimension, self.dimension), np.nan))
        value, slope, t_slope, bend, t_bend, tt_bend, by_df, bend_df, cross, t_cross = (float(one) for one in sums)
        height, slope_df, height_bend = _height(df)
        ratio = unit / scale
        gradient = np.array([-slope * ratio, -t_slope - n, df * (by_df + n * slope_df)])
        hessian = np.array(
            [
                [bend * ratio**2, (slope + t_bend) * ratio, -cross * ratio * df],
                [0.0, t_slope + tt_bend, -t_cross * df],
                [0.0, 0.0, df * df * (bend_df + n * height_bend) + gradient[2]],
            ]
        )
        hessian = np.triu(hessian) + np.triu(hessian, 1).T
        value += n * (height - math.log(scale))
        return Point(value, gradient[self._free], hessian[np.ix_(self._free, self._free)])


def _height(df: float) -> tuple[float, float, float]:
    """The logarithm of the density at 0, and its derivatives by df, which would cancel for many degrees of freedom."""
    from scipy.special import betaln, digamma, polygamma

    value = -float(betaln(0.5 * df, 0.5)) - 0.5 * math.log(df)
    if df > 1000.0:
        r = 1.0 / df
        return value, r * r * (0.25 - r * r * (0.125 - 0.25 * r * r)), -(r**3) * (0.5 - r * r * (0.5 - 1.5 * r * r))
    half, more = 0.5 * df, 0.5 * (df + 1.0)
    slope = 0.5 * float(digamma(more) - digamma(half)) - 0.5 / df
    return value, slope, 0.25 * float(polygamma(1, more) - polygamma(1, half)) + 0.5 / df**2


def _terms(x: Floats, location: float, scale: float, df: float, exponent: int) -> list[Floats]:
    """The log density of each value, less that at 0, and its derivatives by t and df, multiplied by what they go with."""
    with np.errstate(over="ignore", invalid="ignore"):
        t = ((x if exponent == 0 else np.ldexp(x, -exponent)) - location) / scale
        t = np.clip(t, -1e75, 1e75)
        square = t * t
        s = square / df
        below = df + square
        log = np.log1p(s)
        share = s / (1.0 + s)
        slope = -(df + 1.0) * (t / below)
        bend = -(df + 1.0) / below * ((df - square) / below)
        by_df = 0.5 * (share - log) + 0.5 * share / df
        bend_df = 0.5 * share / df * (share - (2.0 - share) / df)
        cross = -(t / below) * ((square - 1.0) / below)
        return [
            -0.5 * (df + 1.0) * log,
            slope,
            t * slope,
            bend,
            t * bend,
            t * (t * bend),
            by_df,
            bend_df,
            cross,
            t * cross,
        ]


def _tails(x: Floats, location: float, scale: float, middle: tuple[float, ...], exponent: int) -> list[Floats]:
    z = ((x if exponent == 0 else np.ldexp(x, -exponent)) - location) / (scale or 1.0)
    square = np.minimum(z * z, 1e150)
    return [square * (square - 2.0) - 1.0, *((x == one).astype(np.float64) for one in middle)]
