"""The whole of a fit as steps that can be stopped anywhere: several starts, EM from each, collapsed components restarted.

What EM climbs. With a ridge, covariances are S + ridge after each M-step, as everywhere. That is the exact M-step of the lower
bound sum_n w_n log sum_j pi_j N(x_n | m_j, C_j) exp(-tr(ridge C_j^-1) / 2), the likelihood with each density lowered by what the
ridge costs it; the E-step here belongs to the same bound. So it never falls, with any ridge, and without one it is the likelihood.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.errors import DataError
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.iterate import Figures, State, iterate
from foldwise.fold.outcome import Outcome, Reason
from foldwise.models.mixture import repair
from foldwise.models.mixture.ground import Ground
from foldwise.models.mixture.starts import Start

_REPAIRS = 5  # in one start: then the components are left as they are, and it is told

ILL_DEFINED = (
    "Fitting the mixture model failed because some components have ill-defined empirical covariance (for instance caused by "
    "singleton or collapsed samples). Try to decrease the number of components, increase reg_covar, or scale the input data."
)


@dataclass(frozen=True)
class Plan:
    """What was asked for."""

    k: int
    starts: int
    max_iter: int
    tol: float  # of the lower bound for each row
    seed: int
    make_start: Callable[[Ground, int], Start]
    before: float = float("nan")  # the lower bound that a warm start had reached


@dataclass
class Cursor:
    """Where in the plan the state stands; kept as integers."""

    start: int = 0
    iteration: int = 0
    run: int = 0
    done: int = 0
    repairs: int = 0  # in this start
    light: int = 0  # in all: components restarted
    ill: int = 0  # whether components are collapsed now, for good
    best_start: int = 0
    best_iterations: int = 0
    best_ill: int = 0
    capped: int = 0  # whether the best start was stopped by max_iter

    def array(self) -> Any:
        """As a state keeps it."""
        return np.array(list(vars(self).values()), dtype=np.int64)

    @classmethod
    def of(cls, state: State) -> Cursor:
        """From a state."""
        return cls(*(int(value) for value in state["cursor"]))


@dataclass(frozen=True)
class Found:
    """How it ended, in the units of the ground."""

    start: Start
    outcome: Outcome
    resumed_at: int
    number: int  # of the start that was best
    iterations: int
    lower_bound: float
    restarted: int
    ill: bool


def search(
    ground: Ground, plan: Plan, *, time_budget: float | None = None, checkpoint: Checkpoint | None = None
) -> Found:
    """Carry out the plan."""
    if checkpoint is not None:
        extent = ground.extent
        checkpoint.bind(extent.columns.weight, extent.columns.centre, extent.columns.squares, extent.low, extent.high)
    walk = _Walk(ground, plan)
    state, outcome, resumed_at = iterate(
        walk.begin,
        walk.step,
        walk.done,
        max_iter=plan.max_iter * plan.starts,
        time_budget=time_budget,
        checkpoint=checkpoint,
    )
    cursor = Cursor.of(state)
    if outcome.converged and cursor.capped:
        outcome = replace(outcome, reason=Reason.CAPPED)
    best = len(state["best_weights"]) > 0
    if best and not cursor.done and (cursor.best_ill, -float(state["best_bound"])) > (
        cursor.ill,
        -float(state["bound"]),
    ):
        best = False  # stopped on the way: the start under way is ahead of those before
    name = "best_" if best else ""
    return Found(
        Start(state[f"{name}weights"], state[f"{name}means"], state[f"{name}covariances"]),
        outcome,
        resumed_at,
        cursor.best_start if best else cursor.start,
        cursor.best_iterations if best else cursor.iteration,
        float(state[f"{name}bound"]),
        cursor.light,
        bool(cursor.best_ill if best else cursor.ill),
    )


class _Walk:
    def __init__(self, ground: Ground, plan: Plan) -> None:
        self.ground, self.plan = ground, plan

    def begin(self) -> State:
        nothing = np.empty(0)
        state = self._put({}, self.plan.make_start(self.ground, 0), self.plan.before)
        return {
            **state,
            "best_weights": nothing,
            "best_means": nothing,
            "best_covariances": nothing,
            "best_bound": np.array(-np.inf),
            "cursor": Cursor().array(),
        }

    @staticmethod
    def _put(state: State, start: Start, bound: float) -> State:
        return {
            **state,
            "weights": start.weights,
            "means": start.means,
            "covariances": start.covariances,
            "bound": np.array(bound),
        }

    def done(self, state: State) -> bool:
        return bool(Cursor.of(state).done)

    def step(self, state: State) -> tuple[State, Figures]:
        ground, plan, cursor = self.ground, self.plan, Cursor.of(state)
        family, before = ground.family, float(state["bound"])
        weights, means = state["weights"], state["means"]
        found = ground.expected(weights, means, self._whiten(state["covariances"]))
        bound = found.log_likelihood / ground.weight
        if not np.isfinite(bound):
            raise DataError(ILL_DEFINED)
        moves, raw = family.raw(found)
        new = Start(found.counts / found.counts.sum(), means + moves, family.with_ridge(raw, ground.ridge))
        bad = repair.ill(ground, found.counts, raw)
        cursor.iteration += 1
        figures = {
            "start": float(cursor.start),
            "run": float(cursor.run),
            "lower_bound": bound,
            "change": bound - before,
            "least_weight": float(found.counts.min()),
            "collapsed": float(bad.sum()),
        }
        cursor.ill = int(bad.any())
        mended = bool(bad.any()) and not bad.all() and cursor.repairs < _REPAIRS
        if mended:
            rng = np.random.default_rng([plan.seed, 2, cursor.start, cursor.repairs])
            try:
                new = repair.restarted(ground, new, bad, rng)
            except np.linalg.LinAlgError:  # the others have no density either
                raise DataError(ILL_DEFINED) from None
            cursor.repairs += 1
            cursor.light += int(bad.sum())
            cursor.run += 1
            cursor.ill = 0
        self._whiten(new.covariances)  # a model that has no density is not handed out
        after = self._put(state, new, float("nan") if mended else bound)
        # A bound that does not rise any more has reached what rounding allows.
        settled = not mended and (abs(bound - before) < plan.tol or bound <= before)
        if settled or (cursor.iteration >= plan.max_iter and plan.starts > 1):
            after = self._ended(after, cursor, bound, capped=not settled)
        after["cursor"] = cursor.array()
        return after, figures

    def _whiten(self, covariances: Floats) -> Floats:
        try:
            return self.ground.family.whiten(covariances)
        except np.linalg.LinAlgError:
            raise DataError(ILL_DEFINED) from None

    def _ended(self, state: State, cursor: Cursor, bound: float, *, capped: bool) -> State:
        if not len(state["best_weights"]) or (cursor.ill, -bound) < (cursor.best_ill, -float(state["best_bound"])):
            cursor.best_start, cursor.best_iterations, cursor.best_ill = cursor.start, cursor.iteration, cursor.ill
            cursor.capped = int(capped)
            state = {
                **state,
                "best_weights": state["weights"],
                "best_means": state["means"],
                "best_covariances": state["covariances"],
                "best_bound": np.array(bound),
            }
        cursor.start += 1
        if cursor.start == self.plan.starts:
            cursor.done = 1
            return state
        cursor.iteration = cursor.repairs = cursor.ill = 0
        cursor.run += 1
        return self._put(state, self.plan.make_start(self.ground, cursor.start), float("nan"))
