"""The whole of a fit as steps that can be stopped anywhere: several starts, EM from each, collapsed components restarted.

What EM climbs. With a ridge, covariances are S + ridge after each M-step, as everywhere. That is the exact M-step of the lower
bound sum_n w_n log sum_j pi_j N(x_n | m_j, C_j) exp(-tr(ridge C_j^-1) / 2), the likelihood with each density lowered by what
the ridge costs it; the E-step here belongs to the same bound. So it never falls, with any ridge, and without one it is the
likelihood. An automatic ridge is taken from the widths of components in the first start. Where these turn out much narrower
than they started, EM goes on with a lower ridge once it has settled: the same model then has a higher bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from foldwise.data.block import Floats
from foldwise.errors import DataError
from foldwise.fold import blas
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.cursor import Place
from foldwise.fold.iterate import Figures, State, iterate
from foldwise.fold.outcome import Outcome, Reason
from foldwise.models.mixture import collapse
from foldwise.models.mixture.fit_data import FitData
from foldwise.models.mixture.starts import Start

_REPAIRS = 5  # in one start: then the components are left as they are, and it is told
_NARROWER = 1 / 16  # of the variances that the ridge was taken from: below, it is taken anew

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
    make_start: Callable[[FitData, int], Start]
    before: float = float("nan")  # the lower bound that a warm start had reached for the same rows
    rough: float = 0.0  # starts end at this tolerance, if it is larger, and only the best of them goes on to `tol`


@dataclass
class Cursor(Place):
    """Where in the plan the state stands."""

    start: int = 0
    iteration: int = 0
    run: int = 0
    done: int = 0
    repairs: int = 0  # in this start
    restarted: int = 0  # components, in all
    ill: int = 0  # whether components are collapsed now
    atoms: int = 0  # whether components sit on many rows that are alike
    best_start: int = 0
    best_iterations: int = 0
    best_ill: int = 0
    best_atoms: int = 0
    capped: int = 0  # whether the best start was stopped by max_iter
    final: int = 0  # whether the best of several rough starts is under way


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
    atoms: bool

    @property
    def collapsed(self) -> bool:
        """Whether components are flat or hardly there."""
        return self.ill or self.atoms


def search(
    ground: FitData, plan: Plan, *, time_budget: float | None = None, checkpoint: Checkpoint | None = None
) -> Found:
    """Carry out the plan."""
    if checkpoint is not None:
        extent = ground.extent
        checkpoint.bind(extent.columns.weight, extent.columns.centre, extent.columns.squares, extent.low, extent.high)
    walk = _Walk(ground, plan)
    with blas.single():
        state, outcome, resumed_at = iterate(
            walk.begin,
            walk.step,
            walk.done,
            max_iter=plan.max_iter * (plan.starts + (plan.rough > 0)),
            time_budget=time_budget,
            checkpoint=checkpoint,
        )
    walk.settle(state)
    cursor = Cursor.of(state)
    if outcome.converged and cursor.capped:
        outcome = replace(outcome, reason=Reason.CAPPED)
    best = len(state["best_weights"]) > 0
    if (
        best
        and not cursor.done
        and (cursor.best_ill, -float(state["best_bound"]))
        > (
            cursor.ill,
            -float(state["bound"]),
        )
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
        cursor.restarted,
        bool(cursor.best_ill if best else cursor.ill),
        bool(cursor.best_atoms if best else cursor.atoms),
    )


class _Walk:
    def __init__(self, ground: FitData, plan: Plan) -> None:
        self.ground, self.plan = ground, plan
        self._known: tuple[Floats | None, Floats | None] = (None, None)

    def begin(self) -> State:
        nothing = np.empty(0)
        ground, start = self.ground, self.plan.make_start(self.ground, 0)
        if not ground.settled:  # a start of the caller's
            ground.settle(ground.widths(start.covariances, start.weights * ground.weight))
        state = self._put({}, start, self.plan.before)
        return {
            **state,
            "within": ground.within,
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
        self.settle(state)
        weights, means = state["weights"], state["means"]
        whiten = self._whiten(state["covariances"])
        if whiten is None:
            raise DataError(ILL_DEFINED)
        found = ground.expected(weights, means, whiten)
        bound = found.log_likelihood / ground.weight
        if not np.isfinite(bound):
            raise DataError(ILL_DEFINED)
        moves, raw = family.raw(found)
        new = Start(
            found.counts / found.counts.sum(), means + moves, ground.sound(family.with_ridge(raw, ground.ridge))
        )
        bad, left = collapse.ill(ground, found.counts, raw, self._whiten(new.covariances))
        mend = bad & ~left
        cursor.iteration += 1
        figures = {
            "start": float(cursor.start),
            "run": float(cursor.run),
            "lower_bound": bound,
            "change": np.inf if np.isnan(before) else bound - before,
            "least_weight": float(found.counts.min()),
            "collapsed": float(bad.sum()),
        }
        cursor.ill, cursor.atoms = int(mend.any()), int(left.any())
        # What seems flat beside a ridge taken from too wide a start may be no more than narrow.
        again = bool(bad.any()) and self._narrower(raw, found.counts)
        mended = not again and bool(mend.any()) and not mend.all() and cursor.repairs < _REPAIRS
        if mended:
            rng = np.random.default_rng([plan.seed, 2, cursor.start, cursor.repairs])
            try:
                new = collapse.restarted(ground, new, mend, rng)
            except np.linalg.LinAlgError:  # the others have no density either
                raise DataError(ILL_DEFINED) from None
            cursor.repairs += 1
            cursor.restarted += int(mend.sum())
            cursor.run += 1
            cursor.ill = 0
        if self._whiten(new.covariances) is None:  # a model that has no density is not handed out
            raise DataError(ILL_DEFINED)
        after = self._put(state, new, float("nan") if mended or again else bound)
        # A bound that does not rise any more has reached what rounding allows.
        tol = plan.tol if cursor.final or plan.starts == 1 else max(plan.tol, plan.rough)
        settled = not (mended or again) and (abs(bound - before) < tol or bound <= before)
        capped = cursor.iteration >= plan.max_iter
        if settled and self._narrower(raw, found.counts):
            again, after = True, self._put(state, new, float("nan"))
        if again:
            after["within"] = ground.within
            cursor.run, cursor.ill = cursor.run + 1, 0
        if (settled and not again) or (capped and plan.starts > 1):
            after = self._ended(after, cursor, bound, capped=not settled or again)
        after["cursor"] = cursor.array()
        return after, figures

    def settle(self, state: State) -> None:
        """The ridge that belongs to a state."""
        if not np.array_equal(self.ground.within, state["within"]):  # resumed
            self.ground.settle(state["within"])

    def _narrower(self, raw: Floats, counts: Floats) -> bool:
        """Whether the ridge was lowered, since components are much narrower than where it was taken from."""
        ground = self.ground
        now = ground.widths(raw, counts)
        lower = (now > 0) & (now < _NARROWER * ground.within)
        before = ground.ridge
        if lower.any():
            ground.settle(np.where(lower, now, ground.within))
        return bool((ground.ridge < _NARROWER * before).any())

    def _whiten(self, covariances: Floats) -> Floats | None:
        """What densities need of these covariances, or None if some are singular; the last is remembered."""
        if self._known[0] is not covariances:
            try:
                self._known = covariances, self.ground.family.whiten(covariances)
            except np.linalg.LinAlgError:
                self._known = covariances, None
        return self._known[1]

    def _ended(self, state: State, cursor: Cursor, bound: float, *, capped: bool) -> State:
        better = (cursor.ill, -bound) < (cursor.best_ill, -float(state["best_bound"]))
        if better or cursor.final or not len(state["best_weights"]):
            cursor.best_start = cursor.best_start if cursor.final else cursor.start
            cursor.best_iterations, cursor.best_ill, cursor.capped = cursor.iteration, cursor.ill, int(capped)
            cursor.best_atoms = cursor.atoms
            state = {
                **state,
                "best_weights": state["weights"],
                "best_means": state["means"],
                "best_covariances": state["covariances"],
                "best_bound": np.array(bound),
            }
        if cursor.final:
            cursor.done = 1
            return state
        cursor.start += 1
        if cursor.start == self.plan.starts:
            if not self.plan.rough > self.plan.tol or self.plan.starts == 1 or cursor.capped:
                cursor.done = 1
                return state
            cursor.final, cursor.start = 1, cursor.best_start
            cursor.iteration, cursor.ill, cursor.run = cursor.best_iterations, cursor.best_ill, cursor.run + 1
            best = Start(state["best_weights"], state["best_means"], state["best_covariances"])
            return self._put(state, best, float(state["best_bound"]))
        cursor.iteration = cursor.repairs = cursor.ill = 0
        cursor.run += 1
        return self._put(state, self.plan.make_start(self.ground, cursor.start), float("nan"))
