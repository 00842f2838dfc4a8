"""The whole of a fit as steps that can be stopped anywhere: several starts, a descent from each, then moves out of the optimum.

The state is a dict of small arrays; labels and sums follow from the centres in it, so a checkpoint needs no more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.cursor import Place
from foldwise.fold.iterate import Figures, State, iterate
from foldwise.fold.outcome import Outcome, Reason
from foldwise.models.kmeans import lloyd, local_search
from foldwise.models.kmeans.assignment import Assignment

_BREATH = 5  # centres added and taken away at first
_PATIENCE = 12  # attempts of split and merge without success
_GAIN = 1e-4  # of the inertia: less is no reason to go on


class Phase(IntEnum):
    """What the steps under way belong to."""

    START = 0
    IN = 1
    OUT = 2
    DONE = 3


@dataclass(frozen=True)
class Plan:
    """What was asked for."""

    k: int
    starts: int
    max_iter: int
    tol: float  # of summed squared movement, in units of the scaled data
    search: str
    seed: int
    make_start: Callable[[Assignment, int], NDArray[Any]]
    project: Callable[[NDArray[Any]], NDArray[Any]] | None = None


@dataclass
class Cursor(Place):
    """Where in the plan the state stands."""

    start: int = 0
    iteration: int = 0
    phase: int = Phase.START
    breath: int = _BREATH
    attempts: int = 0
    run: int = 0
    filled: int = 0
    capped: int = 0  # whether the best run was stopped by max_iter
    best_iterations: int = 0


@dataclass(frozen=True)
class Found:
    """How it ended."""

    centres: NDArray[Any]
    outcome: Outcome
    resumed_at: int
    iterations: int
    filled: int


def search(
    rows: Assignment, plan: Plan, *, time_budget: float | None = None, checkpoint: Checkpoint | None = None
) -> Found:
    """Carry out the plan; afterwards labels and sums in `rows` belong to the centres found."""
    if checkpoint is not None:
        columns = rows.extent.columns
        checkpoint.bind(columns.weight, columns.centre, columns.squares, rows.extent.low, rows.extent.high)
    walk = _Walk(rows, plan)
    limit = plan.max_iter * plan.starts if plan.search == "none" else 1 << 30
    state, outcome, resumed_at = iterate(
        walk.begin, walk.step, walk.done, max_iter=limit, time_budget=time_budget, checkpoint=checkpoint
    )
    cursor = Cursor.of(state)
    if outcome.reason is Reason.CAPPED or (outcome.converged and cursor.capped):
        outcome = replace(outcome, reason=Reason.CAPPED)
    best = state["best"] if len(state["best"]) else state["centres"]
    if (
        cursor.phase != Phase.DONE
        and len(state["centres"]) == plan.k
        and not float(state["best_inertia"]) < _last(outcome)
    ):
        best = state["centres"]
    iterations = cursor.best_iterations if best is state["best"] else cursor.iteration
    if rows.centres is None or not np.array_equal(rows.centres, best):
        try:
            rows.assign(best)
        except KeyboardInterrupt:  # this pass is what is left to do; a second Ctrl-C ends it
            outcome = replace(outcome, reason=Reason.INTERRUPTED)
            rows.assign(best)
    return Found(best, outcome, resumed_at, iterations, cursor.filled)


def _last(outcome: Outcome) -> float:
    return float(outcome.trace[-1]["scaled_inertia"]) if outcome.trace else float("inf")


class _Walk:
    def __init__(self, rows: Assignment, plan: Plan) -> None:
        self.rows, self.plan = rows, plan

    def begin(self) -> State:
        nothing = np.empty((0, self.rows.d), dtype=self.rows.dtype)
        return {
            "centres": self.plan.make_start(self.rows, 0),
            "previous": nothing,
            "best": nothing,
            "best_inertia": np.array(np.inf),
            "cursor": Cursor().array(),
        }

    def done(self, state: State) -> bool:
        return Cursor.of(state).phase == Phase.DONE

    def step(self, state: State) -> tuple[State, Figures]:
        rows, plan, cursor = self.rows, self.plan, Cursor.of(state)
        centres, previous = state["centres"], state["previous"]
        if not rows.labelled and len(previous):  # taken up again: what moves is counted from where it was
            rows.assign(previous)
        done = lloyd.step(rows, centres, plan.project)
        cursor.iteration += 1
        cursor.filled += done.filled
        first = not len(previous)
        figures = {
            "run": float(cursor.run),
            "clusters": float(len(centres)),
            "inertia": rows.unscaled(done.after_m),
            "inertia_after_e": rows.unscaled(done.after_e),
            "scaled_inertia": done.after_m,
            "moved": float(rows.n if first else done.moved),
            "pruned": float(rows.n - done.computed),
            "near_ties": float(done.settled),
            "shift": float(np.sqrt(done.shift)) / rows.frame.scale,
        }
        new = {**state, "centres": done.centres, "previous": centres}
        converged = done.shift <= plan.tol
        only = (
            plan.starts == 1 and plan.search == "none"
        )  # then the cap stops the walk itself, which can be taken up again
        if converged or (cursor.iteration >= plan.max_iter and not only):
            new = self._ended(new, cursor, done.after_m, capped=not converged)
        new["cursor"] = cursor.array()
        return new, figures

    # ------------------------------------------------------------ what comes after a run

    def _ended(self, state: State, cursor: Cursor, inertia: float, *, capped: bool) -> State:
        plan = self.plan
        best = float(state["best_inertia"])
        if cursor.phase == Phase.START:
            if inertia < best or not len(state["best"]):
                state = self._keep(state, cursor, inertia, capped)
            cursor.start += 1
            if cursor.start < plan.starts:
                return self._next(state, cursor, plan.make_start(self.rows, cursor.start))
            if plan.search == "none" or plan.k < 2 or self.rows.n <= plan.k + 1:
                cursor.phase = Phase.DONE
                return state
            return self._move(state, cursor)
        if cursor.phase == Phase.IN:
            found = local_search.errors(self.rows, state["centres"])
            stays = local_search.breathe_out(self.rows, state["centres"], found, len(state["centres"]) - plan.k)
            mapping = np.where(stays, np.cumsum(stays) - 1, -1)
            self.rows.relabel(mapping, plan.k)
            cursor.phase = Phase.OUT
            return self._next(state, cursor, np.ascontiguousarray(state["centres"][stays]))
        if inertia < best * (1 - _GAIN) or (inertia < best and best == 0.0):
            state = self._keep(state, cursor, inertia, capped)
            cursor.attempts = 0
        else:
            if inertia < best:
                state = self._keep(state, cursor, inertia, capped)
            cursor.breath -= 1
            cursor.attempts += 1
        return self._move(state, cursor)

    def _move(self, state: State, cursor: Cursor) -> State:
        """The next attempt to leave the best optimum so far."""
        plan, rows, best = self.plan, self.rows, state["best"]
        over = cursor.breath == 0 if plan.search == "breathing" else cursor.attempts == _PATIENCE
        if over or float(state["best_inertia"]) == 0.0:
            cursor.phase = Phase.DONE
            return {**state, "centres": best}
        if rows.centres is None or not np.array_equal(rows.centres, best):
            rows.assign(best)
        found = local_search.errors(rows, best)
        rng = np.random.default_rng([plan.seed, 1, cursor.run])
        if plan.search == "breathing":
            cursor.phase = Phase.IN
            m = min(cursor.breath, plan.k, rows.n - plan.k)
            return self._next(state, cursor, local_search.breathe_in(rows, best, found, m, rng))
        cursor.phase = Phase.OUT
        return self._next(state, cursor, local_search.split_and_merge(rows, best, found, cursor.attempts, rng))

    def _keep(self, state: State, cursor: Cursor, inertia: float, capped: bool) -> State:
        cursor.capped, cursor.best_iterations = int(capped), cursor.iteration
        return {**state, "best": state["centres"], "best_inertia": np.array(inertia)}

    def _next(self, state: State, cursor: Cursor, centres: NDArray[Any]) -> State:
        cursor.run += 1
        cursor.iteration = 0
        return {**state, "centres": centres, "previous": centres[:0]}
