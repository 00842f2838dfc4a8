"""Kernel k-means as a descent, which `best_of` runs from several starts.

The state holds the clusters' members and `sums` = K @ (their weights), from which all distances follow. Rows that change
cluster, if they are few, change the sums by their own columns of K alone. The rounding errors that this leaves do not last: a
descent only ends when a pass over the whole matrix finds nothing to move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from foldwise.data.block import Floats
from foldwise.errors import ParameterError
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.deadline import Deadline
from foldwise.fold.iterate import Figures, State
from foldwise.fold.multistart import best_of
from foldwise.fold.outcome import Outcome, Reason
from foldwise.kernels.targets import Labels
from foldwise.models.kernel.geometry import coefficients, effective_weights, means_of
from foldwise.models.kernel.kernel_matrix import KernelMatrix

_FEW = 0.25  # of the rows: if more have moved, a whole pass is hardly dearer
_STALE = 10  # steps without a lower sum: a kernel that is not positive can go round in circles
_ROUNDING = 1e-12
_ZERO = 1e-10  # squared distances below this share of a row's own square may be none

_CONVERGED, _GIVEN_UP = 1, 2


@dataclass
class KernelDescent:
    """From the members of clusters to the rows nearest to their means, until nothing moves."""

    matrix: KernelMatrix
    weights: Floats
    k: int
    tol: float
    normalize: bool
    make_start: Callable[[int], Labels]
    kept: Iterable[str] | None = ("members",)  # sums follow from them by a pass, and are large: kept if time is short

    def start(self, number: int, before: State | None) -> State:
        """The clusters of start `number`."""
        members = self.make_start(number)
        sums = self.sums_of(members)
        degrees = before["degrees"] if before is not None else self._degrees(sums)
        inertia = np.array(self._inertia(sums, members, degrees))
        return {
            "members": members,
            "sums": sums,
            "degrees": degrees,
            "inertia": inertia,
            "lowest": inertia,
            "whole": np.array(1),  # whether the sums are those of a whole pass
            "stale": np.array(0),
            "ended": np.array(0),
        }

    def value(self, state: State) -> tuple[float, ...]:
        """The inertia."""
        return (float(state["inertia"]),)

    def ended(self, state: State) -> Reason | None:
        """Converged, or given up when it goes round in circles."""
        return {_CONVERGED: Reason.CONVERGED, _GIVEN_UP: Reason.CAPPED}.get(int(state["ended"]))

    def sums_of(self, members: Labels) -> Floats:
        """K times the weights of the members of each cluster, by a pass over the whole matrix."""
        return self.matrix.times(coefficients(members, self.weights, self.k))

    def _degrees(self, sums: Floats) -> Floats:
        """The summed kernel of each row with all rows, by which it is divided if so wanted."""
        if not self.normalize:
            return np.empty(0)
        found = sums.sum(axis=1)
        bad = np.flatnonzero(((self.weights > 0) & ~(found > 0)) | (found < 0))
        if len(bad):
            raise ParameterError(
                "normalize=True needs a kernel whose sum over all rows is above 0 for each row, and that of row "
                f"{bad[0]} is {found[bad[0]]:.3g}; use a kernel without negative values."
            )
        return np.where(found > 0, found, 1.0)  # a row of weight 0 that is like no other

    def _inertia(self, sums: Floats, members: Labels, degrees: Floats) -> float:
        """The weighted squared distances of members to their means: what the means leave of the rows' own squares."""
        divisors = degrees if self.normalize else None
        means = means_of(sums, members, self.weights, self.k, divisors)
        own = self.matrix.diagonal if divisors is None else self.matrix.diagonal / divisors
        return float(self.weights @ own - means.weights @ means.norms)

    def step(self, state: State) -> tuple[State, Figures]:
        """Every row to the nearest mean, and the sums of the clusters that it forms."""
        members, sums, before = state["members"], state["sums"], float(state["inertia"])
        degrees = state["degrees"] if self.normalize else None
        diagonal, was_whole = self.matrix.diagonal, bool(state["whole"])
        means = means_of(sums, members, self.weights, self.k, degrees)
        squares, labels = means.distances(sums, diagonal, degrees)
        own = squares[np.arange(len(labels)), labels]
        after_e = float(effective_weights(self.weights, degrees) @ own)
        filled = self._fill_empty(labels, own, diagonal if degrees is None else diagonal / degrees**2)
        moved = np.flatnonzero(labels != members)
        whole = was_whole
        if len(moved) > _FEW * len(labels) or (not len(moved) and not was_whole):
            sums, whole = self.sums_of(labels), True
        elif len(moved):
            change = coefficients(labels[moved], self.weights[moved], self.k)
            change[np.arange(len(moved)), members[moved]] -= self.weights[moved]
            sums, whole = sums + self.matrix.times(change, moved), False
        inertia, lowest = self._inertia(sums, labels, state["degrees"]), float(state["lowest"])
        falls = inertia < lowest - _ROUNDING * abs(lowest)
        stale = 0 if falls or not len(moved) else int(state["stale"]) + 1
        small = self.tol > 0 and len(moved) > 0 and before - inertia <= self.tol * abs(inertia)
        finished = small or (not len(moved) and was_whole)
        new = {
            **state,
            "members": labels,
            "sums": sums,
            "inertia": np.array(inertia),
            "lowest": np.array(min(inertia, lowest)),
            "whole": np.array(int(whole)),
            "stale": np.array(stale),
            "ended": np.array(_GIVEN_UP if stale >= _STALE else _CONVERGED if finished else 0),
        }
        figures = {
            "inertia": inertia,
            "inertia_after_e": after_e,
            "moved": float(len(moved)),
            "whole": float(whole),
            "filled": float(filled),
        }
        return new, figures

    def _fill_empty(self, labels: Labels, squares: Floats, size: Floats) -> int:
        """Give every empty cluster the row that lies farthest from its mean, in `labels`; how many could be filled."""
        weight = np.bincount(labels, self.weights, minlength=self.k)
        empty = np.flatnonzero(weight <= 0)
        if not len(empty):
            return 0
        far = np.where((self.weights > 0) & (squares > _ZERO * np.abs(size)), squares, 0.0)
        diagonal = self.matrix.diagonal
        for filled, cluster in enumerate(empty):
            alone = weight[labels] <= self.weights
            number = int(np.argmax(np.where(alone, 0.0, far)))
            if alone[number] or not far[number] > 0:
                return filled  # fewer distinct rows than clusters
            weight[labels[number]] -= self.weights[number]
            weight[cluster] = self.weights[number]
            labels[number] = cluster
            apart = diagonal + diagonal[number] - 2 * self.matrix.columns(np.array([number]))[:, 0]
            far[apart <= _ZERO * np.abs(diagonal)] = 0.0  # equal rows do not fill two clusters
        return len(empty)


@dataclass(frozen=True)
class Descended:
    """How it ended: the members of each cluster, and K times their weights, from a whole pass."""

    members: Labels
    sums: Floats
    degrees: Floats | None
    outcome: Outcome
    resumed_at: int
    iterations: int


def descend(
    descent: KernelDescent, starts: int, max_iter: int, deadline: Deadline, checkpoint: Checkpoint | None
) -> Descended:
    """The best of several starts. OutOfTimeError is raised only if not even the first start was ready in time."""
    time_budget = deadline.left
    if time_budget is not None and starts > 1:
        descent = replace(descent, kept=("members", "sums", "whole"))
    best = best_of(descent, starts, max_iter, time_budget=time_budget, checkpoint=checkpoint)
    members, last, outcome = best.state["members"], best.last, best.outcome
    late = outcome.reason is Reason.OUT_OF_TIME
    if (last["whole"] or late) and np.array_equal(members, last["members"]):
        sums = last["sums"]
    elif "sums" in best.state and (best.state["whole"] or late):
        sums = best.state["sums"]
    else:
        deadline.lift()
        try:
            sums = descent.sums_of(members)
        except KeyboardInterrupt:  # this pass is all that is left to do; a second Ctrl-C ends it
            outcome = replace(outcome, reason=Reason.INTERRUPTED)
            sums = descent.sums_of(members)
    degrees = last["degrees"] if descent.normalize else None
    return Descended(members, sums, degrees, outcome, best.resumed_at, best.iterations)
