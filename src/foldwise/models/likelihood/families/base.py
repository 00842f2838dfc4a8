"""What a family of distributions is: its parameters, its support, and its log-likelihood as a function of a folded record."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from foldwise.data.block import Floats
from foldwise.stats.univariate import Univariate

Theta: TypeAlias = dict[str, float]


class RefusalError(Exception):
    """Why a family cannot be fitted to these values; `row` is where the first value stands that forbids it, if one does."""

    def __init__(self, what: str, *, row: int | None = None, advice: str | None = None) -> None:
        super().__init__(what)
        self.what, self.row, self.advice = what, row, advice


@dataclass(frozen=True)
class Parameter:
    """A parameter: `kind` says which values it may have, `unit` what becomes of it when the data are multiplied.

    Kinds: real, positive, share (from 0 to 1), count (whole, not estimated), start (0 or 1, not estimated). Units: value (as
    the data), inverse (of the data), log (the data's logarithm), none.
    """

    name: str
    kind: str
    unit: str = "none"

    def check(self, value: float) -> str | None:
        """What is wrong with a value, or None."""
        if not math.isfinite(value):
            return "must be a finite number"
        if self.kind == "positive" and not value > 0:
            return "must be greater than 0"
        if self.kind == "share" and not 0 < value < 1:
            return "must lie between 0 and 1"
        if self.kind == "count" and not (value >= 1 and value == math.floor(value)):
            return "must be a whole number of at least 1"
        if self.kind == "start" and value not in (0.0, 1.0):
            return "must be 0 or 1"
        return None

    @property
    def scale(self) -> str:
        """On which scale its confidence interval is symmetric."""
        return {"positive": "log", "share": "logit"}.get(self.kind, "plain")

    def scaled(self, value: float, exponent: int) -> float:
        """The parameter of data that were multiplied by 2 to the exponent."""
        if exponent == 0 or self.unit == "none":
            return value
        if self.unit == "log":
            return value + exponent * math.log(2.0)
        with np.errstate(over="ignore", under="ignore"):  # whoever uses it looks whether it is finite
            return float(np.ldexp(value, exponent if self.unit == "value" else -exponent))


@dataclass(frozen=True)
class Point:
    """A log-likelihood with its first and second derivatives, in the coordinates of a chart."""

    value: float
    gradient: Floats
    hessian: Floats


@dataclass(frozen=True)
class SufficientStatistics(Univariate):
    """The record of the values with what some families need in addition: quantiles, and sums over a second pass."""

    quantiles: Floats | None = None
    second_sums: Floats | None = None


Ends: TypeAlias = tuple[float, float]
FULL_ENDS: Ends = (1.0, 1.0)


class Family:
    """A family: frozen, without state; parameters are dicts by name, in units of 2 to the record's exponent.

    `parts` is what a record must have beyond moments (`Univariate.of`). In the parameters named in `corners` the likelihood
    has a corner at its maximum: no ascent can find it, and there is no curvature to read a standard error from. `passes` says
    that a point of the likelihood may take a pass over the values, as no record of fixed size says all. `begins` and `ends`
    name the parameters at which the support begins and ends, if it does so at a parameter.
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]]
    parts: ClassVar[frozenset[str]] = frozenset()
    support: ClassVar[str] = "any number"
    discrete: ClassVar[bool] = False
    corners: ClassVar[frozenset[str]] = frozenset()
    passes: ClassVar[bool] = False
    begins: ClassVar[str | None] = None
    ends: ClassVar[str | None] = None

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names."""
        return tuple(parameter.name for parameter in self.parameters)

    def scipy(self, theta: Mapping[str, float]) -> Any:
        """The same distribution as a frozen one of scipy.stats."""
        from scipy import stats

        return self.frozen(stats, theta)

    def frozen(self, stats: Any, theta: Mapping[str, float]) -> Any:
        """The same, made by `stats`."""
        raise NotImplementedError

    def check(self, values: Univariate, fixed: Mapping[str, float]) -> None:
        """Raise `RefusalError` unless the likelihood of these values has a maximum inside of the family."""

    def settled(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        """The fixed parameters, with those that are conventions which the values settle."""
        return dict(fixed)

    def counted(self, theta: Mapping[str, float], free: Collection[str]) -> float:
        """How many parameters a comparison of families must count.

        An ordinary parameter is known to within one over the root of n, a limit of the support at which the density jumps to
        within one over n: the fit gains twice as much from it by chance, and it counts as two (in AIC and in BIC alike).
        """
        return len(free) + sum(name in free for name in (self.begins, self.ends))

    def widened(self, theta: Mapping[str, float], free: Collection[str], half: float, ends: Ends = FULL_ENDS) -> Theta:
        """The parameters for values rounded by up to `half`: a limit of the support read off them is uncertain by that.

        `ends` are the shares of the values that equal the least and the greatest one: if few are rounded to these, the support
        begins or ends inside their interval, and not at its outer edge.
        """
        return dict(theta)

    def levels(self, fixed: Mapping[str, float]) -> tuple[float, ...]:
        """The quantiles that `SufficientStatistics` must have."""
        return ()

    def second_terms(
        self, values: SufficientStatistics, fixed: Mapping[str, float]
    ) -> Callable[[Floats], list[Floats]] | None:
        """Terms whose sums `SufficientStatistics` must have, and which take quantiles to write down; picklable."""
        return None

    def closed(self, values: Univariate, fixed: Mapping[str, float]) -> Theta | None:
        """All parameters at the maximum, where a formula gives them."""
        return None

    def start(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        """A rough guess from which to climb."""
        raise NotImplementedError

    def starts(self, values: Univariate, fixed: Mapping[str, float]) -> list[Theta]:
        """Several guesses, where there may be several maxima."""
        return [self.start(values, fixed)]

    def best_start(self, starts: Sequence[Theta], likelihoods: Sequence[float]) -> Theta:
        """Where to begin, given the log-likelihoods of the guesses."""
        return starts[int(np.argmax(likelihoods))]

    def bounds(self, values: Univariate, theta: Mapping[str, float]) -> dict[str, str]:
        """Parameters that stand at a bound of their range, beyond which the likelihood still rises, and what that means."""
        return {}

    def bounded(self, values: Univariate, theta: Mapping[str, float]) -> Theta | None:
        """Where an ascent that got stuck there has run into a bound: the same at the bound."""
        return None

    def remarks(self, theta: Mapping[str, float]) -> tuple[str, ...]:
        """What a reader of these parameters should know."""
        return ()

    def unusable(self, values: SufficientStatistics, theta: Mapping[str, float]) -> str | None:
        """Why an ascent that ended there, in units of the data, found nothing, if so."""
        return None

    def rough(self, values: Univariate, fixed: Mapping[str, float]) -> Theta:
        """Where the gradient begins: further off, so that there is something to climb."""
        return self.start(values, fixed)

    def errors(self, values: Univariate, theta: Mapping[str, float]) -> Theta:
        """Standard errors at corners, where theory has them."""
        return {}

    def edge_interval(
        self, values: Univariate, theta: Mapping[str, float], tail: float
    ) -> dict[str, tuple[float, float]]:
        """Exact limits for a parameter that was estimated at the edge of its range; `tail` is left out on either side."""
        return {}

    def derivatives(self, values: Univariate, theta: Mapping[str, float]) -> Point:
        """The log-likelihood and its derivatives by the parameters themselves."""
        raise NotImplementedError

    def chart(self, values: Univariate, fixed: Mapping[str, float], origin: Theta) -> Chart:
        """Coordinates of the free parameters, without bounds, with `origin` at 0."""
        return Natural(self, values, fixed, origin)

    def log_likelihood(self, values: Univariate, theta: Mapping[str, float]) -> float:
        """The log-likelihood alone; -inf where the parameters forbid the data."""
        return self.derivatives(values, theta).value


class Chart:
    """Coordinates in which to climb: what they mean, and the likelihood there."""

    dimension: int
    n_terms: int = 0  # how many sums over the values a point takes; 0 where the record says all

    def theta(self, eta: Floats) -> Theta:
        """All parameters."""
        raise NotImplementedError

    def jacobian(self, eta: Floats) -> Floats:
        """How the free parameters (rows) change with the coordinates (columns)."""
        raise NotImplementedError

    def at(self, eta: Floats) -> Point:
        """Value and derivatives by the coordinates; for families whose record says all."""
        raise NotImplementedError

    def terms(self, eta: Floats) -> Callable[[Floats], list[Floats]]:
        """What is to be summed over the values of the data for a point, as a picklable function; for the other families."""
        raise NotImplementedError

    def finish(self, eta: Floats, sums: Floats) -> Point:
        """The point, from the sums."""
        raise NotImplementedError


class Natural(Chart):
    """Each free parameter for itself: logarithms of positive ones, logits of shares, others in units of the spread."""

    def __init__(self, family: Family, values: Univariate, fixed: Mapping[str, float], origin: Theta) -> None:
        self._family, self._values = family, values
        self._fixed, self._origin = dict(fixed), origin
        self._free = [(j, p) for j, p in enumerate(family.parameters) if p.name not in fixed]
        self.dimension = len(self._free)
        logs = values.logs.squares / values.weight if values.logs is not None else math.nan
        self._units = {"value": math.sqrt(values.variance) or 1.0, "log": math.sqrt(logs) or 1.0}

    def _of(self, parameter: Parameter, eta: float) -> tuple[float, float, float]:
        """Value, slope and curvature of a parameter as a function of its coordinate."""
        start = self._origin[parameter.name]
        if parameter.kind == "positive":
            value = start * math.exp(min(eta, 700.0))
            return value, value, value
        if parameter.kind == "share":
            odds = start / (1.0 - start) * math.exp(min(eta, 700.0))
            p = odds / (1.0 + odds)
            slope = p / (1.0 + odds)
            return p, slope, slope * (1.0 - 2.0 * p)
        unit = self._units.get(parameter.unit, 1.0)
        return start + unit * eta, unit, 0.0

    def theta(self, eta: Floats) -> Theta:
        found = {p.name: self._of(p, float(eta[i]))[0] for i, (_, p) in enumerate(self._free)}
        return {name: found[name] if name in found else self._fixed[name] for name in self._family.names}

    def jacobian(self, eta: Floats) -> Floats:
        return np.diag([self._of(p, float(eta[i]))[1] for i, (_, p) in enumerate(self._free)])

    def at(self, eta: Floats) -> Point:
        point = self._family.derivatives(self._values, self.theta(eta))
        where = [j for j, _ in self._free]
        slopes = np.array([self._of(p, float(eta[i]))[1] for i, (_, p) in enumerate(self._free)])
        bends = np.array([self._of(p, float(eta[i]))[2] for i, (_, p) in enumerate(self._free)])
        gradient = point.gradient[where]
        hessian = point.hessian[np.ix_(where, where)] * np.outer(slopes, slopes) + np.diag(gradient * bends)
        return Point(point.value, gradient * slopes, hessian)


def edges(values: Univariate) -> tuple[float, float]:
    """The least and the greatest value, in the units in which parameters are."""
    return math.ldexp(values.low, -values.exponent), math.ldexp(values.high, -values.exponent)


def plain(value: float) -> str:
    """A number as people write it.

    >>> plain(0.3), plain(2.0), plain(1e300)
    ('0.3', '2', '1e+300')
    """
    return repr(value).removesuffix(".0")


def need(values: Univariate, support: str) -> None:
    """Raise `RefusalError` unless all values lie in a support: "positive", "inside" (of 0 to 1), "counts" or "from one"."""
    kinds = {
        "positive": (("negative", "zero"), "greater than 0"),
        "inside": (("negative", "zero", "one", "above one"), "strictly between 0 and 1"),
        "not negative": (("negative",), "at least 0"),
        "counts": (("fraction", "negative"), "a count (0, 1, 2, ...)"),
        "from one": (("fraction", "negative", "zero"), "a count from 1 on (1, 2, 3, ...)"),
        "coin": (("fraction", "negative", "above one"), "0 or 1"),
    }[support]
    found = [place for kind in kinds[0] if (place := values.first(kind)) is not None]
    if found:
        row, value = min(found)
        raise RefusalError(f"{plain(value)} is not {kinds[1]}", row=row)
    if support in ("counts", "from one") and values.high >= 2.0**53:
        raise RefusalError(f"{values.high:.3g} is too large for a count: float64 cannot tell it from the next one")


def spread(values: Univariate, what: str) -> None:
    """Raise `RefusalError` where all values are equal."""
    if values.low == values.high:
        raise RefusalError(
            f"all values are equal ({plain(values.low)}), so the likelihood grows without bound as {what}",
            advice="At least two different values are needed",
        )
