"""`fit_distribution`: maximum likelihood for one column of values."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any

from foldwise.data.missing import allow_missing, drop_incomplete
from foldwise.data.single_column import scan_column
from foldwise.data.source import Source
from foldwise.errors import DataError, ParameterError
from foldwise.fold.passes import Passes
from foldwise.models.base import warn_of_shares
from foldwise.models.likelihood.families import FAMILIES
from foldwise.models.likelihood.families.base import Family, RefusalError
from foldwise.models.likelihood.heaps import heap_notes
from foldwise.models.likelihood.probabilities import log_probabilities
from foldwise.models.likelihood.result import Comparison, FittedDistribution
from foldwise.models.likelihood.solve import Estimates, Limits, Problem, prepare, solve
from foldwise.models.likelihood.sufficient_statistics import summarise
from foldwise.models.session import open_checkpoint, open_passes
from foldwise.stats.observed import ObservedColumns

_MAX_ITER = {"auto": 500, "newton": 500, "gradient": 50_000}


def fit_distribution(
    x: Any,
    family: str | Sequence[str] = "all",
    *,
    fixed: Mapping[str, Any] | None = None,
    method: str = "auto",
    column: Any = None,
    sample_weight: Any = None,
    missing: str = "error",
    confidence: float = 0.95,
    criterion: str = "bic",
    max_iter: int | None = None,
    time_budget: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    n_threads: int | None = None,
    engine: Any = None,
) -> FittedDistribution | Comparison:
    """Fit a distribution to one column of values by maximum likelihood, or compare several.

    Parameters
    ----------
    x : an array or list of numbers, a Series, a frame, a path, SQL text or `fw.scan(...)`; `column` is a name or position.
    family : normal, logistic, laplace, cauchy, student-t, gumbel, uniform, exponential, gamma, weibull, lognormal,
        inverse-gaussian, rayleigh, pareto, beta, shifted-exponential, shifted-gamma, shifted-weibull, shifted-lognormal (these
        begin at a location), bernoulli, binomial, geometric (from 0 or 1: `start`), poisson or negative-binomial; a list of
        them or "all" compares: the result is then a `Comparison`, in which families that the values forbid are listed with the
        reason. Where all values are whole numbers, a density counts by the probability of half a unit to either side.
    fixed : parameters that are known, as in {"sigma": 5}; for several families by family: {"normal": {"sigma": 5}}.
    method : "auto" takes a formula where there is one and else climbs by Newton's method; "newton" and "gradient" always climb,
        and `trace` shows how. "gradient" is the textbook's ascent, with a step that never lets the likelihood fall.
    sample_weight : how many times each value counts: one number for each, or the name of a column.
    missing : "error" refuses missing values (NaN); "drop" leaves them out, and a note says how many.
    confidence : of the intervals.
    criterion : "bic" or "aic", by which a comparison is sorted, made fair to families whose support has estimated limits: see
        `Comparison.score`. BIC finds the right family with enough values; AIC has one parameter too many in one of six samples.
    max_iter, time_budget (seconds), checkpoint (a file): for families that pass over the values at every step (weibull,
        logistic, cauchy, gumbel, student-t, shifted ones): a fit that was killed goes on from its checkpoint and ends with
        the same bits.
    n_threads, engine : threads, and who runs the passes (`fw.engine`); the result does not depend on either.

    Exponential families need a single pass, however many are compared. Citation: Casella and Berger, Statistical Inference.

    >>> import foldwise as fw
    >>> fw.fit_distribution([1] * 55 + [0] * 45, "bernoulli").parameters
    {'p': 0.55}
    >>> fit = fw.fit_distribution([-2.5, -9.9, -12.1, -8.9, -6.0, -4.8, 2.4], "normal", fixed={"sigma": 5})
    >>> round(fit.parameters["mean"], 4), [round(end, 2) for end in fit.intervals["mean"]]
    (-5.9714, [-9.68, -2.27])
    """
    families, several = _families(family)
    given = {one.name: _given(one, fixed, several) for one in families}
    _check_parameters(method, missing, confidence, criterion, max_iter, time_budget)
    if several and fixed:
        _known_families(fixed, families)
    source = scan_column(x, column=column, weights=sample_weight)
    spool = any(one.passes for one in families)
    source, gaps = (source, ()) if missing == "error" else _without_missing(source, engine, n_threads)
    with open_passes(source, engine=engine, n_threads=n_threads, spool=spool) as passes:
        values = summarise(passes, families)
        warn_of_shares(values.weight, values.rows, "standard errors and criteria are those of so few values")
        problems: dict[str, Problem] = {}
        refused: dict[str, RefusalError] = {}
        for one in families:
            given[one.name] = one.settled(values, given[one.name])
            try:
                problems[one.name] = _prepared(passes, one, values, given[one.name], method)
            except RefusalError as refusal:
                refused[one.name] = refusal
        if not several and refused:
            raise _as_error(families[0], refused[families[0].name], source)
        saved = None
        if checkpoint is not None:
            about = {"method": method, "fixed": given}
            figures = values.weight, values.centre, values.squares, values.low, values.high
            saved = open_checkpoint(checkpoint, "fit_distribution", about, source, *figures)
        limits = Limits(max_iter or _MAX_ITER[method], time_budget, saved)
        fits = []
        for name, found in solve(passes, problems, method, limits).items():
            unusable = problems[name].family.unusable(problems[name].statistics, found.theta)
            if unusable is not None:
                refused[name] = RefusalError(unusable)
            elif all(math.isfinite(value) for value in found.theta.values()):
                fits.append(_result(passes, source, problems[name], found, given[name], confidence, gaps))
            else:
                refused[name] = RefusalError(
                    "the parameters leave the range of float64", advice="Multiply the values by a constant"
                )
        if not several and refused:
            raise _as_error(families[0], refused[families[0].name], source)
        probable = log_probabilities(passes, values, fits)
    for fit in fits:
        fit.outcome.warn(f"fit_distribution ({fit.family})")
    if not several:
        return fits[0]
    reasons = {name: _reason(refusal, source) for name, refusal in refused.items()}
    comparison = Comparison(tuple(fits), reasons, criterion, probable)
    return replace(comparison, fits=tuple(sorted(fits, key=partial(_rank, comparison))))


def _without_missing(source: Source, engine: Any, n_threads: int | None) -> tuple[Source, tuple[str, ...]]:
    """The source with missing values left out, and how many there are, in a sentence."""
    source = allow_missing(source)
    with open_passes(source, engine=engine, n_threads=n_threads, spool=False) as passes:
        found = passes.fold(ObservedColumns.of)
    if found.cells == found.rows:
        raise DataError("all values are missing", where=source.where, column=source.names[0] if source.names else None)
    if not found.cells:
        return source, ()
    return drop_incomplete(source, found.mean), (
        f"{found.cells:,} of {found.rows:,} values are missing and were left out",
    )


def _rank(comparison: Comparison, fit: FittedDistribution) -> tuple[float, float, str]:
    """By the score; where there are too few values for any, by AIC."""
    ranks = [math.inf if math.isnan(value) else value for value in (comparison.score(fit), fit.aic)]
    return ranks[0], ranks[1], fit.family


# What SciPy, R and others call them.
_OTHER_NAMES = {
    "norm": "normal",
    "gaussian": "normal",
    "expon": "exponential",
    "exp": "exponential",
    "lognorm": "lognormal",
    "log-normal": "lognormal",
    "nbinom": "negative-binomial",
    "geom": "geometric",
    "binom": "binomial",
    "invgauss": "inverse-gaussian",
    "weibull-min": "weibull",
    "gumbel-r": "gumbel",
    "unif": "uniform",
    "pois": "poisson",
    "t": "student-t",
    "student": "student-t",
    "students-t": "student-t",
    "shifted-expon": "shifted-exponential",
    "shifted-lognorm": "shifted-lognormal",
    "gamma3": "shifted-gamma",
    "pearson3": "shifted-gamma",
    "weibull3": "shifted-weibull",
    "lognormal3": "shifted-lognormal",
}


def _families(family: str | Sequence[str]) -> tuple[list[Family], bool]:
    several = not isinstance(family, str) or family == "all"
    names = list(FAMILIES) if family == "all" else [family] if isinstance(family, str) else list(family)
    if not names:
        raise ParameterError('family=[] names no family; give one, several, or "all".')
    names = [_OTHER_NAMES.get(name, name) for name in (str(one).lower().replace("_", "-") for one in names)]
    unknown = [name for name in names if name not in FAMILIES]
    if unknown:
        raise ParameterError(f"family={unknown[0]!r} is not known; there are {', '.join(FAMILIES)}.")
    return [FAMILIES[name] for name in dict.fromkeys(names)], several


def _known_families(fixed: Mapping[str, Any], families: Sequence[Family]) -> None:
    for name, value in fixed.items():
        if name not in {one.name for one in families} or not isinstance(value, Mapping):
            raise ParameterError(
                f"fixed={{{name!r}: ...}}: with several families, say whose parameters are meant: "
                'fixed={"normal": {"sigma": 5}}.'
            )


def _given(family: Family, fixed: Mapping[str, Any] | None, several: bool) -> dict[str, float]:
    mine = (fixed or {}).get(family.name, {}) if several else fixed or {}
    if not isinstance(mine, Mapping):
        raise ParameterError(f"fixed must be a dict of parameters, as in {{{family.names[-1]!r}: 1.0}}.")
    found = {}
    for name, value in mine.items():
        if name not in family.names:
            raise ParameterError(f"{family.name} has no parameter {name!r}; it has {', '.join(family.names)}.")
        if not isinstance(value, Real) or isinstance(value, bool):
            raise ParameterError(f"fixed {name}={value!r} is not a number.")
        problem = next(p for p in family.parameters if p.name == name).check(float(value))
        if problem is not None:
            raise ParameterError(f"fixed {name}={value!r} {problem} in a {family.name} distribution.")
        found[name] = float(value)
    return found


def _check_parameters(
    method: str, missing: str, confidence: float, criterion: str, max_iter: int | None, time_budget: float | None
) -> None:
    if method not in _MAX_ITER:
        raise ParameterError(f"method={method!r} is not known; there are {', '.join(_MAX_ITER)}.")
    if missing not in ("error", "drop"):
        raise ParameterError(f"missing={missing!r} is not known; there are error and drop.")
    if criterion not in ("aic", "bic"):
        raise ParameterError(f"criterion={criterion!r} is not known; there are aic and bic.")
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence={confidence!r} must lie between 0 and 1, such as 0.95.")
    if max_iter is not None and max_iter < 1:
        raise ParameterError(f"max_iter={max_iter!r} must be at least 1.")
    if time_budget is not None and time_budget < 0:
        raise ParameterError(f"time_budget={time_budget!r} must be seconds, at least 0.")


def _prepared(passes: Passes, family: Family, values: Any, given: dict[str, float], method: str) -> Problem:
    free = set(family.names) - set(given)
    if method != "auto" and free & family.corners:
        what = " and ".join(sorted(free & family.corners))
        raise RefusalError(
            f"the likelihood has a corner at the {what}, which no ascent can climb",
            advice='Use method="auto", which has a formula',
        )
    fixed = [p for p in family.parameters if p.name in given]
    if not all(math.isfinite(p.scaled(given[p.name], -values.exponent)) for p in fixed):
        raise RefusalError("the values and the fixed parameters are too far apart for float64")
    return prepare(passes, family, values, given)


def _as_error(family: Family, refusal: RefusalError, source: Source) -> DataError:
    what = (
        f"{refusal.what}, as values of a {family.name} distribution must be"
        if refusal.row is not None
        else refusal.what
    )
    column = source.names[0] if source.names else None
    advice = refusal.advice
    if advice is None and refusal.row is not None:
        advice = "Leave such rows out (where=), or choose another family"
    return DataError(what, where=source.where, row=refusal.row, column=column, advice=advice)


def _reason(refusal: RefusalError, source: Source) -> str:
    return refusal.what if refusal.row is None else f"{refusal.what} (row {refusal.row}, counting from 0)"


def _result(
    passes: Passes,
    source: Source,
    problem: Problem,
    found: Estimates,
    given: dict[str, float],
    confidence: float,
    said: tuple[str, ...],
) -> FittedDistribution:
    family, statistics, free = problem.family, problem.statistics, problem.free
    theta = {name: given.get(name, found.theta[name]) for name in family.names}
    errors = {name: float(found.errors[i]) for i, name in enumerate(free)}
    scales = {p.name: p.scale for p in family.parameters if p.name in free}
    intervals = {name: _interval(theta[name], errors[name], scales[name], confidence) for name in free}
    notes = (*said, *found.notes)
    if any("edge of its range" in note for note in notes):
        exact = family.edge_interval(statistics, theta, (1.0 - confidence) / 2.0)
        if exact:
            intervals |= exact
            notes = (*notes, "the interval there is exact (Clopper and Pearson, or its like)")
    notes = (*notes, *family.remarks(theta), *heap_notes(family, theta, free, statistics))
    algorithm = f"{family.name}, {found.method}"
    fit = FittedDistribution(
        family=family.name,
        parameters=theta,
        standard_errors=errors,
        intervals=intervals,
        interval_scales=scales,
        confidence=confidence,
        covariance=found.covariance,
        fixed=tuple(given),
        max_log_likelihood=found.log_likelihood,
        n=statistics.weight,
        method=found.method,
        notes=notes,
        outcome=found.outcome,
        manifest=passes.manifest(algorithm, rows=statistics.rows, resumed_at=found.resumed_at),
        column=source.names[0] if source.names else None,
        statistics=statistics,
    )
    object.__setattr__(fit, "_source", source)
    return fit


def _interval(value: float, error: float, scale: str, confidence: float) -> tuple[float, float]:
    from scipy.special import ndtri

    reach = float(ndtri(0.5 + confidence / 2.0)) * error
    if scale == "log":
        factor = math.exp(min(reach / value, 700.0)) if value > 0 else math.nan
        return value / factor, value * factor
    if scale == "logit":
        if not 0 < value < 1:
            return math.nan, math.nan
        reach, odds = reach / (value * (1.0 - value)), value / (1.0 - value)
        low, high = odds * math.exp(-reach), odds * math.exp(min(reach, 700.0))
        return low / (1.0 + low), high / (1.0 + high)
    return value - reach, value + reach
