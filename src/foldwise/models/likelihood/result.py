"""A fitted distribution: the estimates, how sure they are, and what can be done with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.source import Source
from foldwise.errors import DataError, ParameterError
from foldwise.fold.manifest import Manifest
from foldwise.fold.outcome import Outcome
from foldwise.fold.passes import Passes
from foldwise.models.likelihood.families import FAMILIES
from foldwise.models.likelihood.families.base import Family, SufficientStatistics
from foldwise.models.likelihood.goodness import Goodness, goodness_of_fit
from foldwise.models.likelihood.ranking import score
from foldwise.models.likelihood.repr import described
from foldwise.models.likelihood.sufficient_statistics import log_likelihoods
from foldwise.models.session import open_passes
from foldwise.reportable import Reportable


@dataclass(frozen=True, repr=False)
class FittedDistribution(Reportable):
    """One family, fitted.

    `parameters` has all of them by name, `fixed` names those that were given. `standard_errors`, `intervals` and `covariance`
    are of the free ones, by the observed Fisher information; intervals are symmetric on the scale that `interval_scales` names
    (log for positive parameters, logit for probabilities). What does not exist is NaN, and `notes` says why. `n` is the total
    weight. `outcome`, `trace` and `manifest` say how it was found.
    """

    family: str
    parameters: dict[str, float]
    standard_errors: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    interval_scales: dict[str, str]
    confidence: float
    covariance: Floats
    fixed: tuple[str, ...]
    max_log_likelihood: float
    n: float
    method: str
    notes: tuple[str, ...]
    outcome: Outcome
    manifest: Manifest
    column: str | None
    statistics: SufficientStatistics = field(repr=False)

    @property
    def source(self) -> Source | None:
        """The data of the fit; a fit that was loaded, unpickled or copied has none."""
        return self.__dict__.get("_source")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_source"}

    @property
    def trace(self) -> tuple[dict[str, float], ...]:
        """The ascent, point by point: parameters, log-likelihood and the norm of its gradient; empty for a closed form.

        The gradient is by the coordinates of the climb: logarithms of positive parameters, and so on.
        """
        return self.outcome.trace

    @property
    def free(self) -> tuple[str, ...]:
        """The parameters that were estimated."""
        return tuple(name for name in self.parameters if name not in self.fixed)

    @property
    def aic(self) -> float:
        """Akaike's criterion: twice the number of free parameters less twice the log-likelihood.

        Families whose support has estimated limits cannot be compared by it; `Comparison.score` is what can.
        """
        return 2.0 * len(self.free) - 2.0 * self.max_log_likelihood

    @property
    def bic(self) -> float:
        """Schwarz's criterion, which counts each parameter log n times."""
        return math.log(self.n) * len(self.free) - 2.0 * self.max_log_likelihood

    @property
    def discrete(self) -> bool:
        """Whether values are counts, so that `pdf` is a probability."""
        return self._family.discrete

    @property
    def _family(self) -> Family:
        return FAMILIES[self.family]

    # ---------------------------------------------------------------- the likelihood

    def log_likelihood(self, theta: Any = None, **parameters: float) -> Any:
        """The log-likelihood of the data at other parameters; those not named stay as they are.

        `theta` is a dict, or a number (or array of numbers) for the only free parameter. Weibull, logistic, Laplace, Cauchy,
        Gumbel, Student's t and the shifted families pass over the data again for it.
        """
        if theta is not None and not isinstance(theta, Mapping):
            if len(self.free) != 1:
                raise ParameterError(
                    f"several parameters are free ({', '.join(self.free)}): name the ones that are meant."
                )
            theta = {self.free[0]: theta}
        wanted = {**(theta or {}), **parameters}
        for name in wanted:
            if name not in self.parameters:
                raise ParameterError(f"{self.family} has no parameter {name!r}; it has {', '.join(self.parameters)}.")
        arrays = (
            np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in wanted.values())) if wanted else []
        )
        shape = arrays[0].shape if arrays else ()
        points = [
            {**self.parameters, **{name: float(value) for name, value in zip(wanted, values, strict=True)}}
            for values in (zip(*(array.ravel() for array in arrays), strict=True) if arrays else [()])
        ]
        with self._passes() as passes:
            found = np.array(log_likelihoods(self._family, self.statistics, points, passes))
        return found.reshape(shape) if shape else float(found[0])

    def _passes(self) -> AbstractContextManager[Passes | None]:
        return nullcontext() if self.source is None else open_passes(self.source, n_threads=self.manifest.threads)

    def curve(self, parameter: str | None = None, *, points: int = 101, reach: float = 4.0) -> tuple[Floats, Floats]:
        """The log-likelihood along one parameter, the others as estimated: values of the parameter and log-likelihoods.

        It goes `reach` standard errors to either side.
        """
        name = parameter or (self.free[0] if self.free else next(iter(self.parameters)))
        if name not in self.parameters:
            raise ParameterError(f"{self.family} has no parameter {name!r}; it has {', '.join(self.parameters)}.")
        centre, error = self.parameters[name], self.standard_errors.get(name, math.nan)
        low, high = centre - reach * error, centre + reach * error
        if not (math.isfinite(low) and low < high):
            width = 0.1 * abs(centre) or 0.1
            low, high = centre - width, centre + width
        kind = next(p.kind for p in self._family.parameters if p.name == name)
        if kind in ("positive", "share") and low <= 0:
            low = centre / 50 if centre > 0 else high / 1000
        if kind == "share":
            high = min(high, 1.0 - (1.0 - centre) / 50 if centre < 1 else 1.0 - 1e-9)
        values = np.linspace(low, high, points)
        if kind == "count":
            values = np.unique(np.round(values))
        return values, np.asarray(self.log_likelihood({name: values}))

    # ---------------------------------------------------------------- the distribution

    @property
    def scipy(self) -> Any:
        """The same as a frozen distribution of scipy.stats."""
        return self._family.scipy(self.parameters)

    def pdf(self, x: Any) -> Any:
        """The density, or for counts the probability."""
        return self.scipy.pmf(x) if self.discrete else self.scipy.pdf(x)

    def logpdf(self, x: Any) -> Any:
        """The logarithm of `pdf`."""
        return self.scipy.logpmf(x) if self.discrete else self.scipy.logpdf(x)

    def cdf(self, x: Any) -> Any:
        """The probability of values up to x."""
        return self.scipy.cdf(x)

    def quantile(self, q: Any) -> Any:
        """The value that is not exceeded with probability q."""
        return self.scipy.ppf(q)

    def sample(self, size: Any = None, random_state: Any = None) -> NDArray[Any]:
        """Random values."""
        rng = random_state if isinstance(random_state, np.random.Generator) else np.random.default_rng(random_state)
        return np.asarray(self.scipy.rvs(size=size, random_state=rng))

    def goodness_of_fit(
        self, *, resamples: int = 199, most: int = 2000, random_state: int = 0, engine: Any = None
    ) -> Goodness:
        """How well the family describes the data, with a p-value that knows that parameters were estimated.

        Continuous families: Kolmogorov-Smirnov and Anderson-Darling on at most `most` values, to which the family is fitted
        anew, with p-values by parametric bootstrap (`resamples` samples of the fit, each fitted again). Counts: chi-square on
        all values. Needs the data.
        """
        return goodness_of_fit(self, resamples=resamples, most=most, seed=random_state, engine=engine)

    def __repr__(self) -> str:
        return described(self)


@dataclass(frozen=True, repr=False)
class Comparison(Reportable):
    """Several families fitted to the same values: `fits`, best first by `score`, and why others were `refused`.

    `comparison["gamma"]` is one of the fits, `best` the first. Scores are AIC or BIC (`criterion`) made comparable: a limit of
    the support that was estimated (both of uniform's) counts as two parameters, AIC is corrected for few values, and where
    counts and densities compete for whole numbers, a density counts by the probability of half a unit to either side
    (`log_probabilities`).
    """

    fits: tuple[FittedDistribution, ...]
    refused: dict[str, str]
    criterion: str
    log_probabilities: dict[str, float] = field(default_factory=dict)

    @property
    def best(self) -> FittedDistribution:
        """The family with the lowest score."""
        if not self.fits:
            raise DataError("none of these families can have such values", advice=f"See `refused`: {self.refused}")
        return self.fits[0]

    def score(self, fit: FittedDistribution) -> float:
        """By what families are ranked; lower is better, and only differences mean something."""
        value = self.log_probabilities.get(fit.family, fit.max_log_likelihood)
        return score(fit, self.criterion, value)

    def behind(self, fit: FittedDistribution) -> float:
        """How much larger the score is than the best."""
        here, best = self.score(fit), self.score(self.best)
        return 0.0 if here == best else here - best

    def __getitem__(self, family: str) -> FittedDistribution:
        for fit in self.fits:
            if fit.family == family:
                return fit
        raise KeyError(self.refused.get(family, f"{family} is not one of the families that were compared"))

    def __iter__(self) -> Any:
        return iter(self.fits)

    def __len__(self) -> int:
        return len(self.fits)

    def __repr__(self) -> str:
        from foldwise.models.likelihood.repr import compared

        return compared(self)
