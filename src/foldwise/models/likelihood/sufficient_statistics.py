"""What a fit keeps of the data: one record for all families, and what some of them need in addition."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial

import numpy as np

from foldwise.errors import ParameterError
from foldwise.fold.passes import Passes
from foldwise.models.likelihood.ascent import sum_terms
from foldwise.models.likelihood.families.base import Chart, Family, RefusalError, SufficientStatistics, Theta
from foldwise.models.likelihood.quantiles import quantiles
from foldwise.stats.univariate import Univariate

_FAR = 1e100
_POINTS_PER_PASS = 32  # of a likelihood curve


def summarise(passes: Passes, families: Sequence[Family]) -> Univariate:
    """The record that serves all of the families, in one pass."""
    parts = frozenset().union(*(family.parts for family in families))
    values = passes.fold(partial(Univariate.of, parts=parts))
    return replace(values, exponent=0) if values.high == values.low == 0 else values


def complete(passes: Passes, family: Family, values: Univariate, fixed: Mapping[str, float]) -> SufficientStatistics:
    """The record with the quantiles and sums that this family needs."""
    statistics = extended(values)
    levels = family.levels(fixed)
    if levels:
        found = quantiles(passes, levels, values.weight, values.rows, values.low, values.high)
        statistics = replace(statistics, quantiles=found)
    terms = family.second_terms(statistics, fixed)
    if terms is not None:
        sums = sum_terms(passes, {"second": (terms, len(terms(np.zeros(1))))})["second"]
        statistics = replace(statistics, second_sums=sums)
    return statistics


def extended(values: Univariate) -> SufficientStatistics:
    """The record, with room for quantiles and further sums."""
    return SufficientStatistics(**{one.name: getattr(values, one.name) for one in fields(values)})


def in_safe_units(family: Family, values: Univariate, fixed: Mapping[str, float]) -> Univariate:
    """The record in units in which squares of the fixed parameters stay in float64; refused where there are none such."""
    given = [p for p in family.parameters if p.name in fixed]
    size = max(abs(values.low), abs(values.high))
    reals = [p for p in given if p.kind == "real" and p.unit == "value" and p.name not in family.corners]
    widths = [p for p in given if p.kind == "positive" and not family.discrete]
    far = max((abs(fixed[p.name]) for p in reals), default=0.0)
    scaled = math.ldexp(far, -values.exponent) > _FAR
    apart = scaled and 0 < size < far / _FAR
    apart |= any(abs(fixed[p.name]) > _FAR for p in given if p.unit == "log")
    for p in widths:
        power = {"value": 1, "inverse": -1}.get(p.unit, 0)
        ratio = math.log(fixed[p.name]) - (power * math.log(size) if size > 0 else 0.0)
        apart |= abs(ratio) > math.log(_FAR) or (scaled and power == 1 and fixed[p.name] < far / _FAR)
    if apart:
        raise RefusalError("the values and the fixed parameters are too far apart for float64")
    return values.in_units(math.frexp(far)[1]) if scaled else values


def scaled_parameters(family: Family, theta: Mapping[str, float], exponent: int) -> Theta:
    """Parameters of data that were multiplied by 2 to the exponent."""
    return {p.name: p.scaled(theta[p.name], exponent) for p in family.parameters if p.name in theta}


def in_data_units(family: Family, value: float, values: Univariate) -> float:
    """The log-likelihood of the data from that of data in units of 2 to the exponent."""
    return value if family.discrete else value - values.weight * values.exponent * math.log(2.0)


def log_likelihoods(
    family: Family, statistics: SufficientStatistics, points: Sequence[Mapping[str, float]], passes: Passes | None
) -> list[float]:
    """The log-likelihood at several parameters: from the record if it says all, else in passes over the data."""
    found = [-math.inf] * len(points)
    charts: dict[str, Chart] = {}
    for i, theta in enumerate(points):
        if _outside(family, theta):
            continue
        inside = scaled_parameters(family, theta, -statistics.exponent)
        chart = family.chart(statistics, inside, inside)
        if chart.n_terms:
            charts[str(i)] = chart
        else:
            found[i] = family.log_likelihood(statistics, inside)
    if charts and passes is None:
        raise ParameterError(f"the likelihood of {family.name} needs the data, which a loaded fit does not have.")
    names, nowhere = list(charts), np.zeros(0)
    for start in range(0, len(names), _POINTS_PER_PASS):
        some = {name: charts[name] for name in names[start : start + _POINTS_PER_PASS]}
        assert passes is not None
        sums = sum_terms(passes, {name: (chart.terms(nowhere), chart.n_terms) for name, chart in some.items()})
        for name, chart in some.items():
            found[int(name)] = chart.finish(nowhere, sums[name]).value
    return [in_data_units(family, value, statistics) for value in found]


def _outside(family: Family, theta: Mapping[str, float]) -> bool:
    """Whether a parameter has no meaning there; the edges of probabilities and rates do have one."""
    for parameter in family.parameters:
        value = theta[parameter.name]
        edge = (parameter.kind == "share" and value in (0.0, 1.0)) or (family.discrete and value == 0.0)
        if not edge and parameter.check(value) is not None:
            return True
    return False
