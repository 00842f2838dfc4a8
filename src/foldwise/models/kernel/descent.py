"""Kernel k-means as steps that can be stopped anywhere: several starts, a descent from each.

The state holds the clusters' members and `sums` = K @ (their weights), from which all distances follow. Rows that change
cluster, if they are few, change the sums by their own columns of K alone. What rounding leaves behind that way can not last:
a descent only ends when a pass over the whole matrix finds nothing to move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from foldwise.data.block import Floats
from foldwise.errors import ParameterError
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.cursor import Place
from foldwise.fold.iterate import Figures, State, iterate
from foldwise.fold.outcome import Outcome, Reason
from foldwise.kernels.targets import Labels
from foldwise.models.kernel.geometry import coefficients, mass, means_of
from foldwise.models.kernel.kernel_matrix import KernelMatrix

_FEW = 0.25  # of the rows: if more have moved, a whole pass is hardly dearer
_STALE = 10  # steps without a lower sum: a kernel that is not positive can go round in circles
_ROUNDING = 1e-12
_ZERO = 1e-10  # squared distances below this share of a row's own square may be none


@dataclass(frozen=True)
class Plan:
    """What was asked for."""

    k: int
    starts: int
    max_iter: int
    tol: float
    normalize: bool
    make_start: Callable[[int], Labels]


@dataclass
class Cursor(Place):
    """Where in the plan the state stands."""

    start: int = 0
    iteration: int = 0
    over: int = 0
    fresh: int = 1  # whether the sums are those of a whole pass
    stale: int = 0
    filled: int = 0
    capped: int = 0  # whether the best descent was stopped by max_iter
    best_iterations: int = 0


@dataclass(frozen=True)
class Found:
    """How it ended: the members of each cluster, and K times their weights, from a whole pass."""

    members: Labels
    sums: Floats
    degrees: Floats | None
    outcome: Outcome
    resumed_at: int
    iterations: int
    filled: int


def descend(
    products: KernelMatrix,
    weights: Floats,
    plan: Plan,
    *,
    time_budget: float | None = None,
    checkpoint: Checkpoint | None = None,
) -> Found:
    """Carry out the plan."""
    walk = _Walk(products, weights, plan)
    state, outcome, resumed_at = iterate(
        walk.begin,
        walk.step,
        lambda state: bool(Cursor.of(state).over),
        max_iter=plan.max_iter * plan.starts,
        time_budget=time_budget,
        checkpoint=checkpoint,
    )
    cursor = Cursor.of(state)
    if outcome.converged and cursor.capped:
        outcome = replace(outcome, reason=Reason.CAPPED)
    better = not cursor.over and float(state["inertia"]) < float(state["best_inertia"])
    if better or not len(state["best"]):
        members, iterations, fresh = state["members"], cursor.iteration, bool(cursor.fresh)
    else:
        members, iterations = state["best"], cursor.best_iterations
        fresh = bool(cursor.fresh) and np.array_equal(members, state["members"])
    if fresh:
        sums = state["sums"]
    else:
        try:
            sums = products.times(coefficients(members, weights, plan.k))
        except KeyboardInterrupt:  # this pass is what is left to do; a second Ctrl-C ends it
            outcome = replace(outcome, reason=Reason.INTERRUPTED)
            sums = products.times(coefficients(members, weights, plan.k))
    degrees = state["degrees"] if plan.normalize else None
    return Found(members, sums, degrees, outcome, resumed_at, iterations, cursor.filled)


class _Walk:
    def __init__(self, products: KernelMatrix, weights: Floats, plan: Plan) -> None:
        self.products, self.weights, self.plan = products, weights, plan

    def begin(self) -> State:
        nothing = np.empty(0, dtype=np.int32)
        state = {"best": nothing, "best_inertia": np.array(np.inf), "degrees": np.empty(0)}
        return self._started(state, Cursor())

    def _started(self, state: State, cursor: Cursor) -> State:
        members = self.plan.make_start(cursor.start)
        sums = self._whole(members)
        if self.plan.normalize and not len(state["degrees"]):
            state = {**state, "degrees": self._by_what(sums)}
        state = {**state, "members": members, "sums": sums, "cursor": cursor.array()}
        inertia = np.array(self._inertia(state))
        return {**state, "inertia": inertia, "lowest": inertia}

    def _whole(self, members: Labels) -> Floats:
        return self.products.times(coefficients(members, self.weights, self.plan.k))

    def _by_what(self, sums: Floats) -> Floats:
        """The summed kernel of each row with all rows, by which it is divided."""
        found = sums.sum(axis=1)
        bad = np.flatnonzero(((self.weights > 0) & ~(found > 0)) | (found < 0))
        if len(bad):
            raise ParameterError(
                "normalize=True needs a kernel whose sum over all rows is above 0 for each row, and that of row "
                f"{bad[0]} is {found[bad[0]]:.3g}; use a kernel without negative values."
            )
        return np.where(found > 0, found, 1.0)  # a row of weight 0, like no other

    def _degrees(self, state: State) -> Floats | None:
        return state["degrees"] if self.plan.normalize else None

    def _inertia(self, state: State) -> float:
        """The weighted sum of squared distances of members to their means: what the means leave of the rows' own squares."""
        degrees = self._degrees(state)
        means = means_of(state["sums"], state["members"], self.weights, self.plan.k, degrees)
        own = self.products.diagonal if degrees is None else self.products.diagonal / degrees
        return float(self.weights @ own - means.weights @ means.norms)

    def step(self, state: State) -> tuple[State, Figures]:
        plan, cursor, degrees = self.plan, Cursor.of(state), self._degrees(state)
        members, sums, before = state["members"], state["sums"], float(state["inertia"])
        means = means_of(sums, members, self.weights, plan.k, degrees)
        squares, labels = means.judge(sums, self.products.diagonal, degrees)
        own = squares[np.arange(len(labels)), labels]
        after_e = float(mass(self.weights, degrees) @ own)
        size = self.products.diagonal if degrees is None else self.products.diagonal / degrees**2
        filled = self._fill(labels, own, size)
        moved = np.flatnonzero(labels != members)
        cursor.iteration += 1
        cursor.filled += filled
        finished = not len(moved) and bool(cursor.fresh)
        if len(moved) > _FEW * len(labels) or (not len(moved) and not cursor.fresh):
            sums, cursor.fresh = self._whole(labels), 1
        elif len(moved):
            change = coefficients(labels[moved], self.weights[moved], plan.k)
            change[np.arange(len(moved)), members[moved]] -= self.weights[moved]
            sums, cursor.fresh = sums + self.products.times(change, moved), 0
        new = {**state, "members": labels, "sums": sums}
        inertia = self._inertia(new)
        figures = {
            "run": float(cursor.start),
            "inertia": inertia,
            "inertia_after_e": after_e,
            "moved": float(len(moved)),
            "whole": float(cursor.fresh),
        }
        lowest = float(state["lowest"])
        new |= {"inertia": np.array(inertia), "lowest": np.array(min(inertia, lowest))}
        small = before - inertia <= plan.tol * abs(inertia) if plan.tol else False
        cursor.stale = 0 if inertia < lowest - _ROUNDING * abs(lowest) or not len(moved) else cursor.stale + 1
        circling = cursor.stale >= _STALE
        ended = finished or circling or (small and len(moved) > 0)
        # The cap of an only start ends the walk itself, which can then be taken up again.
        if ended or (cursor.iteration >= plan.max_iter and plan.starts > 1):
            new = self._ended(new, cursor, capped=not (finished or small) or circling)
        new["cursor"] = cursor.array()
        return new, figures

    def _ended(self, state: State, cursor: Cursor, *, capped: bool) -> State:
        if float(state["inertia"]) < float(state["best_inertia"]) or not len(state["best"]):
            cursor.capped, cursor.best_iterations = int(capped), cursor.iteration
            state = {**state, "best": state["members"], "best_inertia": state["inertia"]}
        if cursor.start + 1 == self.plan.starts:
            cursor.over = 1
            return state
        cursor.start += 1
        cursor.iteration = cursor.stale = 0
        cursor.fresh = 1
        return self._started(state, cursor)

    def _fill(self, labels: Labels, squares: Floats, size: Floats) -> int:
        """Give every empty cluster the row that lies farthest from its mean, in `labels`; how many could be filled."""
        weight = np.bincount(labels, self.weights, minlength=self.plan.k)
        empty = np.flatnonzero(weight <= 0)
        if not len(empty):
            return 0
        far = np.where((self.weights > 0) & (squares > _ZERO * np.abs(size)), squares, 0.0)
        diagonal = self.products.diagonal
        for filled, cluster in enumerate(empty):
            alone = weight[labels] <= self.weights
            number = int(np.argmax(np.where(alone, 0.0, far)))
            if alone[number] or not far[number] > 0:
                return filled  # fewer distinct rows than clusters
            weight[labels[number]] -= self.weights[number]
            weight[cluster] = self.weights[number]
            labels[number] = cluster
            apart = diagonal + diagonal[number] - 2 * self.products.columns(np.array([number]))[:, 0]
            far[apart <= _ZERO * np.abs(diagonal)] = 0.0  # equal rows do not fill two clusters
        return len(empty)
