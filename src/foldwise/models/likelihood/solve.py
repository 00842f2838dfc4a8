"""From the statistics of the values to the parameters of a family, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from foldwise.data.block import Block, Floats
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.outcome import Outcome, Reason
from foldwise.fold.passes import Passes
from foldwise.models.likelihood.ascent import Climb, Objective, climb, over_passes
from foldwise.models.likelihood.families.base import Chart, Family, Point, SufficientStatistics, Theta
from foldwise.models.likelihood.sufficient_statistics import (
    complete,
    extended,
    in_data_units,
    in_safe_units,
    log_likelihoods,
    scaled_parameters,
)
from foldwise.stats.term_sums import TermSums
from foldwise.stats.univariate import Univariate, values_and_weights


@dataclass(frozen=True)
class Limits:
    """When to stop climbing."""

    max_iter: int
    time_budget: float | None = None
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True)
class Estimates:
    """The estimates of one family, in the units of the data, and the curvature of the likelihood there."""

    theta: Theta
    covariance: Floats  # of the free parameters; NaN where it does not exist
    errors: Floats  # its roots, taken before squares can leave float64
    log_likelihood: float
    method: str
    outcome: Outcome
    resumed_at: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Problem:
    """A family, the statistics of the values, and the fixed parameters; all in the units of the record."""

    family: Family
    statistics: SufficientStatistics
    fixed: Theta

    @property
    def free(self) -> tuple[str, ...]:
        """The parameters to find."""
        return tuple(name for name in self.family.names if name not in self.fixed)


def prepare(passes: Passes, family: Family, values: Univariate, fixed: Mapping[str, float]) -> Problem:
    """Check the values against the family, and gather what else it needs."""
    values = in_safe_units(family, values, fixed)
    given = scaled_parameters(family, fixed, -values.exponent)
    family.check(values, given)
    statistics = complete(passes, family, values, given)
    family.check(statistics, given)
    return Problem(family, statistics, given)


def solve(passes: Passes, problems: Mapping[str, Problem], method: str, limits: Limits) -> dict[str, Estimates]:
    """All families at once, so that those that take passes share them."""
    found: dict[str, Estimates] = {}
    climbing: dict[str, _Attempt] = {}
    for name, problem in problems.items():
        theta = problem.family.closed(problem.statistics, problem.fixed) if problem.free else dict(problem.fixed)
        held = {} if theta is None else _held(problem, theta)
        edge = theta is not None and (_at_edge(problem, theta) or bool(held))
        if theta is not None and (method == "auto" or edge or not problem.free):
            how = "closed form" if problem.free else "given"
            found[name] = _finished(passes, problem, theta, how, held, None)
        else:
            climbing[name] = _attempt(problem, _origin(passes, problem, method))
    way = "gradient" if method == "gradient" else "newton"
    for reads_data in (False, True):
        some = {name: one for name, one in climbing.items() if bool(one.chart.n_terms) is reads_data}
        until = limits
        while some:
            again: dict[str, _Attempt] = {}
            for name, done in _climb(passes if reads_data else None, some, way, until).items():
                one = some[name]
                theta = one.chart.theta(done.eta)
                bounded = one.problem.family.bounded(one.problem.statistics, theta) if done.stuck else None
                if bounded is not None and not one.held and until is limits:  # once: it may be stuck there, too
                    again[name] = _attempt(one.problem, bounded)
                else:
                    found[name] = _finished(passes, one.problem, theta, way, one.held, done, one.chart)
            # A checkpoint holds the first ascents; those that ran into a bound go along it from where they ended.
            some, until = again, replace(limits, checkpoint=None)
    return {name: found[name] for name in problems}


@dataclass(frozen=True)
class _Attempt:
    """An ascent: of what, in which coordinates, and which parameters are held at a bound, with what that means."""

    problem: Problem
    chart: Chart
    held: dict[str, str]


def _attempt(problem: Problem, origin: Theta) -> _Attempt:
    held = _held(problem, origin)
    hold = {name: origin[name] for name in held}
    return _Attempt(problem, problem.family.chart(problem.statistics, problem.fixed | hold, origin), held)


def _climb(passes: Passes | None, some: Mapping[str, _Attempt], way: str, limits: Limits) -> dict[str, Climb]:
    """Climb from the statistics alone or, with passes, from sums over the data at every step, which can be stopped."""
    charts = {name: one.chart for name, one in some.items()}
    objectives = {
        name: Objective(one.chart, one.problem.statistics.weight, partial(_shown, one.problem, one.chart))
        for name, one in some.items()
    }
    if passes is None:
        return climb(objectives, way, partial(_evaluate, charts), max_iter=limits.max_iter)
    return climb(
        objectives,
        way,
        over_passes(passes, charts),
        max_iter=limits.max_iter,
        time_budget=limits.time_budget,
        checkpoint=limits.checkpoint,
    )


def _evaluate(charts: Mapping[str, Chart], wanted: dict[str, Floats]) -> dict[str, Point]:
    return {name: charts[name].at(eta) for name, eta in wanted.items()}


def _shown(problem: Problem, chart: Chart, eta: Floats) -> Theta:
    return scaled_parameters(problem.family, chart.theta(eta), problem.statistics.exponent)


def _origin(passes: Passes, problem: Problem, method: str) -> Theta:
    """Where to begin; of several guesses the one with the largest likelihood."""
    if method == "gradient" and not problem.family.levels(problem.fixed):
        return problem.family.rough(problem.statistics, problem.fixed)
    starts = problem.family.starts(problem.statistics, problem.fixed)
    if len(starts) == 1:
        return starts[0]
    family, statistics = problem.family, problem.statistics
    outside = [scaled_parameters(family, theta, statistics.exponent) for theta in starts]
    values = log_likelihoods(family, statistics, outside, passes)
    return family.best_start(starts, values)


def _held(problem: Problem, theta: Theta) -> dict[str, str]:
    """Free parameters that stand at a bound, which an ascent is not to look beyond."""
    found = problem.family.bounds(problem.statistics, theta)
    return {name: note for name, note in found.items() if name in problem.free}


def _at_edge(problem: Problem, theta: Theta) -> bool:
    """Whether an estimate lies where its range ends."""
    for parameter in problem.family.parameters:
        value = theta[parameter.name]
        if parameter.name in problem.free and (
            (parameter.kind == "share" and value in (0.0, 1.0)) or (parameter.kind == "positive" and value == 0.0)
        ):
            return True
    return False


def _finished(
    passes: Passes,
    problem: Problem,
    theta: Theta,
    method: str,
    held: Mapping[str, str],
    done: Climb | None,
    chart: Chart | None = None,
) -> Estimates:
    family, statistics = problem.family, problem.statistics
    notes: list[str] = []
    covariance = np.full((len(problem.free), len(problem.free)), np.nan)
    edge = _at_edge(problem, theta)
    corners = [name for name in problem.free if name in family.corners or name in held]
    if edge:
        notes.append("the estimate lies at the edge of its range: standard errors do not exist there")
    outside = scaled_parameters(family, theta, statistics.exponent)
    value = math.nan
    if done is not None and done.stuck:
        notes.append(
            'rounding hides which way the likelihood rises, so the ascent stopped short of its top: try method="auto"'
        )
    begun = done is None or math.isfinite(done.point.value)
    if not begun:
        notes.append("the ascent was stopped before its first point: these are the values it would have begun with")
    if not edge and begun and len(corners) < len(problem.free):
        hold = {**problem.fixed, **{name: theta[name] for name in corners}}
        chart = chart or family.chart(statistics, hold, theta)
        eta = np.zeros(chart.dimension) if done is None else done.eta
        if done is not None:
            point = done.point
        elif chart.n_terms:
            point = over_passes(passes, {"here": chart})({"here": eta})["here"]
        else:
            point = chart.at(eta)
        value = in_data_units(family, point.value, statistics)
        smooth = [i for i, name in enumerate(problem.free) if name not in corners]
        covariance[np.ix_(smooth, smooth)] = _covariance(chart, eta, point.hessian)
        if np.isnan(covariance[np.ix_(smooth, smooth)]).any():
            notes.append("the likelihood is flat at the estimate: standard errors do not exist")
    for name, error in family.errors(statistics, theta).items():
        if name in problem.free:
            place = problem.free.index(name)
            covariance[place] = covariance[:, place] = 0.0  # of a symmetric density, location and scale are independent
            covariance[place, place] = error**2
            notes.append(
                f"the likelihood has a corner at the {name}: its standard error is by the expected information"
            )
            corners.remove(name)
    notes += held.values()
    corners = [name for name in corners if name not in held]
    if corners:
        what = " and ".join(corners)
        notes.append(f"the likelihood has a corner at the {what}: a standard error does not exist there")
    if math.isnan(value):
        value = log_likelihoods(family, statistics, [outside], passes)[0]
    powers = np.array([_power(family, name, statistics.exponent) for name in problem.free], dtype=np.intc)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        errors = np.ldexp(np.sqrt(np.diag(covariance)), powers)
        covariance = np.ldexp(covariance, np.add.outer(powers, powers))
    outcome, resumed_at = (Outcome(Reason.CONVERGED, 0, 0.0), 0) if done is None else (done.outcome, done.resumed_at)
    return Estimates(outside, covariance, errors, value, method, outcome, resumed_at, tuple(notes))


def _covariance(chart: Chart, eta: Floats, hessian: Floats) -> Floats:
    """The inverse of the observed information, in the coordinates of the climb, carried over to the parameters."""
    jacobian = chart.jacobian(eta)
    try:
        with np.errstate(all="ignore"):
            size = np.sqrt(np.maximum(np.diag(-hessian), 0.0))
            scaled = -hessian / np.outer(size, size)
            if not np.isfinite(scaled).all() or np.linalg.eigvalsh(scaled)[0] <= 1e-14:
                return np.full((len(jacobian), len(jacobian)), np.nan)
            inverse = np.linalg.inv(scaled) / np.outer(size, size)
            return np.asarray(jacobian @ inverse @ jacobian.T)
    except np.linalg.LinAlgError:
        return np.full((len(jacobian), len(jacobian)), np.nan)


def _power(family: Family, name: str, exponent: int) -> int:
    unit = next(p.unit for p in family.parameters if p.name == name)
    return {"value": exponent, "inverse": -exponent}.get(unit, 0)


def estimate(family: Family, block: Block, fixed: Mapping[str, float]) -> Theta:
    """The estimates alone, of the values of one block: for the many fits of a bootstrap."""
    values = in_safe_units(family, Univariate.of(block, family.parts), fixed)
    given = scaled_parameters(family, fixed, -values.exponent)
    family.check(values, given)
    x, w, _ = values_and_weights(block)
    statistics = _completed(family, extended(values), given, x)
    family.check(statistics, given)
    theta = family.closed(statistics, given)
    if theta is None:

        def at(chart: Chart, eta: Floats) -> Point:
            if not chart.n_terms:
                return chart.at(eta)
            return chart.finish(eta, TermSums.of_values(x, w, chart.terms(eta), chart.n_terms).value)

        starts = family.starts(statistics, given)
        start = starts[0]
        if len(starts) > 1:
            charts = [family.chart(statistics, theta, theta) for theta in starts]
            start = family.best_start(starts, [at(one, np.zeros(0)).value for one in charts])
        origin: Theta | None = start
        while origin is not None:
            hold = {name: origin[name] for name in family.bounds(statistics, origin) if name not in given}
            chart = family.chart(statistics, given | hold, origin)
            objective = Objective(chart, statistics.weight, _nothing_shown)
            done = climb({"one": objective}, "newton", partial(_one, partial(at, chart)), max_iter=200)["one"]
            theta = chart.theta(done.eta)
            # Once: it may be stuck there, too.
            origin = family.bounded(statistics, theta) if done.stuck and not hold and origin is start else None
        assert theta is not None
    return scaled_parameters(family, theta, values.exponent)


def _nothing_shown(eta: Floats) -> dict[str, float]:
    return {}


def _one(at: Callable[[Floats], Point], wanted: dict[str, Floats]) -> dict[str, Point]:
    return {"one": at(wanted["one"])}


def _completed(family: Family, statistics: SufficientStatistics, given: Theta, x: Floats) -> SufficientStatistics:
    levels = family.levels(given)
    if levels:
        statistics = replace(statistics, quantiles=np.quantile(x, levels))
    terms = family.second_terms(statistics, given)
    if terms is None:
        return statistics
    return replace(statistics, second_sums=np.array([term.sum() for term in terms(x)]))
