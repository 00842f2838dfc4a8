"""Probabilities of what was really seen: values that were rounded, each of which stands for an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.fold.passes import Passes
from foldwise.models.likelihood.ascent import sum_terms
from foldwise.models.likelihood.families import FAMILIES
from foldwise.stats.logs import total
from foldwise.stats.univariate import Univariate

_SMALL = 1e-290  # probabilities below this are taken from the density


def log_probabilities(passes: Passes, values: Univariate, fits: Sequence[Any]) -> dict[str, float]:
    """The log-likelihood of each fit as a probability of whole numbers; empty where the values are none or no fit is of counts.

    A density gives a whole number the probability of the interval that is rounded to it, half a unit to either side: only
    then are counts and densities comparable, and a density cannot win by being narrower than the unit. The parameters are
    those of the density, with estimated limits of the support half a unit further out.
    """
    smooth = [fit for fit in fits if not fit.discrete]
    if not smooth or len(smooth) == len(fits) or values.first("fraction") is not None:
        return {}
    terms = {}
    for fit in smooth:
        ends = (values.low_weight / values.weight, values.high_weight / values.weight)
        theta = FAMILIES[fit.family].widened(fit.parameters, fit.free, 0.5, ends)
        terms[fit.family] = (partial(_log_mass, family=fit.family, theta=theta), 1)
    if values.counts is not None:
        x = np.flatnonzero(values.counts).astype(np.float64)
        weights = values.counts[values.counts > 0]
        sums = {name: np.array([total(term(x)[0], weights)]) for name, (term, _) in terms.items()}
    else:
        sums = sum_terms(passes, terms)
    return {fit.family: fit.max_log_likelihood if fit.discrete else float(sums[fit.family][0]) for fit in fits}


def _log_mass(x: Floats, family: str, theta: Mapping[str, float]) -> list[Floats]:
    frozen = FAMILIES[family].scipy(theta)
    below, above = interval(frozen, x, 0.5)
    with np.errstate(all="ignore"):
        mass = np.asarray(above[0] - below[0])
        upper = np.asarray(below[1] - above[1])
        mass = np.where(below[0] > 0.5, upper, mass)
        found = np.where(mass > _SMALL, np.log(np.maximum(mass, _SMALL)), frozen.logpdf(x))
    return [np.nan_to_num(found, nan=-np.inf, posinf=np.inf, neginf=-np.inf)]


def interval(frozen: Any, x: Any, half: float) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """The probabilities below and above both ends of the intervals of `half` to either side of the values."""
    with np.errstate(all="ignore"):
        return (frozen.cdf(x - half), frozen.sf(x - half)), (frozen.cdf(x + half), frozen.sf(x + half))
