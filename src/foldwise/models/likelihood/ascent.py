"""Climbing log-likelihoods: by the gradient, as the lecture does, or by Newton's method; several families in the same passes.

Each point that is tried is one step of the loop in `fold/iterate.py`, so a climb can be stopped and taken up anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from foldwise.data.block import Floats
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.iterate import Figures, State, iterate
from foldwise.fold.outcome import Outcome, Reason
from foldwise.fold.passes import Passes
from foldwise.models.likelihood.families.base import Chart, Point
from foldwise.stats.term_sums import TermSums

_CLOSE = 1e-10  # coordinates are logarithms or in units of the spread: further digits are lost to rounding
_RISE = 1e-4  # the share of the rise that the slope promises, below which a step is too long
_NOISE = 1e-13  # of a mean log-likelihood: smaller differences are rounding
_REACH = 2.0  # no coordinate changes by more at once
_MOST_CUTS = 60


@dataclass(frozen=True)
class Climb:
    """Where a climb ended: coordinates, the point there, and how; `stuck` where rounding hid which way is up."""

    eta: Floats
    point: Point
    outcome: Outcome
    resumed_at: int
    stuck: bool


@dataclass(frozen=True)
class Objective:
    """A chart to climb in; `weight` makes means of sums, and `show` the figures of a trace from coordinates."""

    chart: Chart
    weight: float
    show: Callable[[Floats], Figures]


def climb(
    objectives: Mapping[str, Objective],
    method: str,
    evaluate: Callable[[dict[str, Floats]], dict[str, Point]],
    *,
    max_iter: int,
    time_budget: float | None = None,
    checkpoint: Checkpoint | None = None,
) -> dict[str, Climb]:
    """Climb in all charts at once; `evaluate` gives the points at given coordinates, in one pass for all."""

    def start() -> State:
        state: State = {}
        for name, objective in objectives.items():
            for field, value in _begin(objective.chart.dimension).items():
                state[f"{name}.{field}"] = value
        return state

    def step(state: State) -> tuple[State, Figures]:
        waiting = {name: state[f"{name}.trial"] for name in objectives if state[f"{name}.status"] < 2}
        points = evaluate(waiting)
        new, figures = dict(state), Figures()
        for name in waiting:
            mine = {field: state[f"{name}.{field}"] for field in _FIELDS}
            mine, taken = _advance(mine, _per_value(points[name], objectives[name].weight), method)
            new |= {f"{name}.{field}": value for field, value in mine.items()}
            if taken:
                figures |= {f"{name}.{key}": value for key, value in _shown(objectives[name], mine).items()}
        return new, figures

    def done(state: State) -> bool:
        return all(state[f"{name}.status"] >= 2 for name in objectives)

    state, outcome, resumed_at = iterate(
        start, step, done, max_iter=max_iter, time_budget=time_budget, checkpoint=checkpoint
    )
    return {name: _ended(name, objective, state, outcome, resumed_at, method) for name, objective in objectives.items()}


def over_passes(passes: Passes, charts: Mapping[str, Chart]) -> Callable[[dict[str, Floats]], dict[str, Point]]:
    """Points that take a sum over the values: one pass for all that are wanted together."""

    def evaluate(wanted: dict[str, Floats]) -> dict[str, Point]:
        terms = {name: (charts[name].terms(eta), charts[name].n_terms) for name, eta in wanted.items()}
        sums = sum_terms(passes, terms)
        return {name: charts[name].finish(eta, sums[name]) for name, eta in wanted.items()}

    return evaluate


def sum_terms(passes: Passes, wanted: Mapping[str, tuple[Callable[[Floats], list[Floats]], int]]) -> dict[str, Floats]:
    """The sums of several lists of terms over all values, in one pass; the terms are picklable functions of the values."""
    terms, counts = zip(*wanted.values(), strict=True)
    sums = passes.fold(partial(TermSums.of, terms=partial(_all_terms, terms=terms), n=sum(counts))).value
    parts = np.split(sums, np.cumsum(counts)[:-1])
    return dict(zip(wanted, parts, strict=True))


def _all_terms(x: Floats, terms: tuple[Callable[[Floats], list[Floats]], ...]) -> list[Floats]:
    return [term for some in terms for term in some(x)]


def _begin(dimension: int) -> State:
    """What a climb keeps, all of it arrays, for checkpoints. `status`: 0 not begun, 1 under way, 2 arrived, 3 stuck."""
    nothing = np.zeros(dimension)
    return {
        "eta": nothing,
        "value": np.array(-np.inf),
        "gradient": nothing,
        "hessian": np.zeros((dimension, dimension)),
        "trial": nothing,
        "direction": nothing,
        "length": np.array(0.0),
        "cuts": np.array(0),
        "status": np.array(0),
        "before": nothing,
        "slope_before": nothing,
    }


_FIELDS = tuple(_begin(0))


def _per_value(point: Point, weight: float) -> Point:
    return Point(point.value / weight, point.gradient / weight, point.hessian / weight)


def _advance(state: State, point: Point, method: str) -> tuple[State, bool]:
    """Take the point or go back towards where it came from; then choose the next to try."""
    sound = bool(np.isfinite(point.value) and np.isfinite(point.gradient).all() and np.isfinite(point.hessian).all())
    if state["status"] == 0:
        if not sound:
            return {**state, "status": np.array(3)}, False
    elif not (sound and _rises(state, point)):
        if state["cuts"] >= _MOST_CUTS:
            return {**state, "status": np.array(3)}, False
        length = float(state["length"]) * _shorter(state, point, sound)
        return {
            **state,
            "length": np.array(length),
            "trial": state["eta"] + length * state["direction"],
            "cuts": state["cuts"] + 1,
        }, False
    first = state["status"] == 0
    state = {
        **state,
        "before": state["eta"],
        "slope_before": state["gradient"],
        "eta": state["trial"],
        "value": np.array(point.value),
        "gradient": point.gradient,
        "hessian": point.hessian,
        "cuts": np.array(0),
        "status": np.array(1),
    }
    if _left(state) <= _CLOSE:
        return {**state, "status": np.array(2)}, True
    direction = _newton(point) if method == "newton" else point.gradient
    length = 1.0 if method == "newton" else _barzilai_borwein(state, first)
    length = min(length, _REACH / max(float(np.abs(direction).max()), 1e-300))
    return {
        **state,
        "direction": direction,
        "length": np.array(length),
        "trial": state["eta"] + length * direction,
    }, True


def _rises(state: State, point: Point) -> bool:
    """Armijo's rule; where differences are below rounding, the slope at the new point decides instead."""
    slope = float(state["gradient"] @ state["direction"])
    rise = point.value - float(state["value"])
    if rise >= _RISE * float(state["length"]) * slope and rise > 0:
        return True
    noise = _NOISE * (1.0 + abs(point.value))
    return rise >= -noise and abs(float(point.gradient @ state["direction"])) <= (1.0 - 2 * _RISE) * abs(slope)


def _shorter(state: State, point: Point, sound: bool) -> float:
    """The factor at which a parabola through both points has its top, within bounds."""
    if not sound:
        return 0.25
    expected = float(state["length"]) * float(state["gradient"] @ state["direction"])
    miss = expected - (point.value - float(state["value"]))
    return float(np.clip(0.5 * expected / miss, 0.1, 0.5)) if miss > 0 else 0.5


def _newton(point: Point) -> Floats:
    """The step to the top of the parabola that touches the likelihood here; uphill even where it is not one."""
    values, vectors = np.linalg.eigh(-point.hessian)
    values = np.maximum(np.abs(values), 1e-12 * max(float(np.abs(values).max()), 1e-300))
    return np.asarray(vectors @ ((vectors.T @ point.gradient) / values))


def _left(state: State) -> float:
    """How far the top seems to be, by the curvature here; infinite where the likelihood is not curved downwards."""
    if not len(state["eta"]):
        return 0.0
    values = np.linalg.eigvalsh(-state["hessian"])
    if values[0] <= 0:
        return float("inf")
    return float(np.abs(np.linalg.solve(-state["hessian"], state["gradient"])).max())


def _barzilai_borwein(state: State, first: bool) -> float:
    """A length for the gradient from the last two slopes: it is what makes plain gradient ascent fast enough."""
    gradient = state["gradient"]
    moved, turned = state["eta"] - state["before"], state["slope_before"] - gradient
    curvature = float(moved @ turned)
    if first or curvature <= 0:
        return 1.0 / max(1.0, float(np.linalg.norm(gradient)))
    return float(moved @ moved) / curvature


def _shown(objective: Objective, state: State) -> Figures:
    return {
        "log_likelihood": float(state["value"]) * objective.weight,
        "gradient_norm": float(np.linalg.norm(state["gradient"])) * objective.weight,
        **objective.show(state["eta"]),
    }


def _ended(name: str, objective: Objective, state: State, outcome: Outcome, resumed_at: int, method: str) -> Climb:
    mine = {field: state[f"{name}.{field}"] for field in _FIELDS}
    n = objective.weight
    point = Point(float(mine["value"]) * n, mine["gradient"] * n, mine["hessian"] * n)
    own = ({key: value for key, value in step.items() if key.startswith(f"{name}.")} for step in outcome.trace)
    taken = [{key.removeprefix(f"{name}."): value for key, value in figures.items()} for figures in own if figures]
    trace = tuple({"step": float(number), **figures} for number, figures in enumerate(taken))
    stuck = mine["status"] == 3 and not _left(mine) < 1e-6  # rounding may end a climb before its last digits
    reason = outcome.reason
    if mine["status"] >= 2:
        reason = Reason.CAPPED if stuck else Reason.CONVERGED
    eta = mine["eta"]
    if mine["status"] == 2 and method == "newton" and len(eta):
        eta = eta + np.linalg.solve(-mine["hessian"], mine["gradient"])  # the last digit, for nothing
    return Climb(eta, point, replace(outcome, reason=reason, steps=len(trace), trace=trace), resumed_at, bool(stuck))
