"""What a fit knows of the data: one record for all families, and what some of them need besides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import numpy as np

from foldwise.data.source import Source
from foldwise.errors import ParameterError
from foldwise.fold.passes import Passes
from foldwise.models.likelihood.ascent import sum_terms
from foldwise.models.likelihood.families.base import Family, Known, RefusalError, Theta
from foldwise.models.likelihood.quantiles import quantiles
from foldwise.stats.univariate import Univariate

_FAR = 1e100
_AT_ONCE = 32  # points of a likelihood curve in one pass


def gather(run: Passes, families: Sequence[Family]) -> Univariate:
    """The record that serves all of the families, in one pass."""
    parts = frozenset().union(*(family.parts for family in families))
    values = run.fold(lambda block: Univariate.of(block, parts))
    return replace(values, exponent=0) if values.high == values.low == 0 else values


def complete(run: Passes, family: Family, values: Univariate, fixed: Mapping[str, float]) -> Known:
    """The record with the quantiles and sums that this family needs."""
    known = Known(**{one.name: getattr(values, one.name) for one in fields(values)})
    levels = family.levels(fixed)
    if levels:
        found = quantiles(run, levels, values.weight, values.rows, values.low, values.high)
        known = replace(known, quantiles=found)
    terms = family.second(known, fixed)
    if terms is not None:
        count = len(terms(np.zeros(1)))
        known = replace(known, second=sum_terms(run, {"second": (terms, count)})["second"])
    return known


def reaching(family: Family, values: Univariate, fixed: Mapping[str, float]) -> Univariate:
    """The record in units in which squares of what was given stay in float64; refused where there are none such."""
    known = [p for p in family.parameters if p.name in fixed]
    size = max(abs(values.low), abs(values.high))
    reals = [p for p in known if p.kind == "real" and p.unit == "value" and p.name not in family.corners]
    widths = [p for p in known if p.kind == "positive" and not family.discrete]
    far = max((abs(fixed[p.name]) for p in reals), default=0.0)
    scaled = math.ldexp(far, -values.exponent) > _FAR
    apart = scaled and 0 < size < far / _FAR
    apart |= any(abs(fixed[p.name]) > _FAR for p in known if p.unit == "log")
    for p in widths:
        power = {"value": 1, "inverse": -1}.get(p.unit, 0)
        ratio = math.log(fixed[p.name]) - (power * math.log(size) if size > 0 else 0.0)
        apart |= abs(ratio) > math.log(_FAR) or (scaled and power == 1 and fixed[p.name] < far / _FAR)
    if apart:
        raise RefusalError("the values and the parameters given are too far apart for float64")
    return values.in_units(math.frexp(far)[1]) if scaled else values


def in_units(family: Family, theta: Mapping[str, float], exponent: int) -> Theta:
    """Parameters of data that were multiplied by 2 to the exponent."""
    return {p.name: p.scaled(theta[p.name], exponent) for p in family.parameters if p.name in theta}


def of_the_data(family: Family, value: float, values: Univariate) -> float:
    """The log-likelihood of the data from that of data in units of 2 to the exponent."""
    return value if family.discrete else value - values.weight * values.exponent * math.log(2.0)


def log_likelihoods(
    family: Family, known: Known, source: Source | None, points: Sequence[Mapping[str, float]], n_threads: int | None
) -> list[float]:
    """The log-likelihood at several parameters: from the record if it says all, else in passes over the data."""
    inside = [None if _outside(family, theta) else in_units(family, theta, -known.exponent) for theta in points]
    charts = {str(i): family.chart(known, theta, theta) for i, theta in enumerate(inside) if theta is not None}
    nowhere = np.zeros(0)
    found = dict.fromkeys(map(str, range(len(points))), -math.inf)
    passing = {name: chart for name, chart in charts.items() if chart.n_terms}
    if passing and source is None:
        raise ParameterError(f"the likelihood of {family.name} takes the data, which a loaded fit does not have.")
    for name in charts.keys() - passing.keys():
        found[name] = family.log_likelihood(known, inside[int(name)] or {})
    names = sorted(passing, key=int)
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        assert source is not None
        run = Passes(source, n_threads=n_threads)
        sums = sum_terms(run, {name: (passing[name].terms(nowhere), passing[name].n_terms) for name in some})
        for name in some:
            found[name] = passing[name].finish(nowhere, sums[name]).value
    return [of_the_data(family, found[str(i)], known) for i in range(len(points))]


def _outside(family: Family, theta: Mapping[str, float]) -> bool:
    """Whether a parameter has no meaning there; the edges of probabilities and rates do have one."""
    for parameter in family.parameters:
        value = theta[parameter.name]
        edge = (parameter.kind == "share" and value in (0.0, 1.0)) or (family.discrete and value == 0.0)
        if not edge and parameter.check(value) is not None:
            return True
    return False
