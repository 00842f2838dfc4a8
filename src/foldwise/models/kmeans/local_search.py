"""Out of bad optima: which centres to add, and which to take away. A move is only a new start; Lloyd's steps judge it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.fold.iterate import State
from foldwise.fold.multistart import Value
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.fit_data import KMeansData
from foldwise.models.kmeans.tasks import SecondNearest

_OFFSET = 0.01  # of a new centre from the one it springs from, in root mean square distances of that one's rows
_BREATH = 5  # centres added and taken away at first
_PATIENCE = 12  # attempts of split and merge without success
_GAIN = 1e-4  # of the inertia: less is no reason to go on
_NEAR = 1.1  # centres nearer than this many mean neighbour distances are spared when one is taken away


@dataclass(frozen=True)
class Errors:
    """For each centre: the inertia of its rows, and by how much inertia would rise without it."""

    inertia: Floats
    utility: Floats


def errors(data: KMeansData, centres: NDArray[Any]) -> Errors:
    """One pass that looks at the second nearest centre as well."""
    found = data.passes.each(SecondNearest(data.targets(centres)))
    return Errors(*(np.sum([part[i] for part in found], axis=0) for i in (0, 1)))


# ---------------------------------------------------------------- moves


def breathe_in(
    assignment: Assignment, centres: NDArray[Any], found: Errors, m: int, rng: np.random.Generator
) -> NDArray[Any]:
    """`m` new centres next to those whose rows have the largest inertia (Fritzke 2020)."""
    worst = np.argsort(-found.inertia, kind="stable")[:m]
    return np.concatenate([centres, _beside(assignment, centres, found, worst, rng)])


def _beside(
    assignment: Assignment, centres: NDArray[Any], found: Errors, which: NDArray[Any], rng: np.random.Generator
) -> NDArray[Any]:
    data = assignment.data
    weights = np.maximum(assignment.cluster_weights[which], 1e-300)
    reach = np.sqrt(found.inertia[which] / weights)
    steps = rng.standard_normal((len(which), data.d))
    steps *= (_OFFSET * reach / np.maximum(np.linalg.norm(steps, axis=1), 1e-300))[:, None]
    return data.rescaling.undo(data.rescaling.apply(centres[which]) + steps, data.dtype)


def breathe_out(data: KMeansData, centres: NDArray[Any], found: Errors, m: int) -> NDArray[np.bool_]:
    """Which centres stay when `m` of least use go.

    The neighbours of one that goes are spared: its rows fall to them, so they are needed more than they seem.
    """
    k = len(centres)
    points = data.rescaling.apply(centres)
    square = np.einsum("ij,ij->i", points, points)
    apart = np.sqrt(np.maximum(square[:, None] + square - 2 * points @ points.T, 0.0))
    np.fill_diagonal(apart, np.inf)
    near = _NEAR * float(apart.min(axis=1).mean())
    stays, spared = np.ones(k, dtype=bool), np.zeros(k, dtype=bool)
    for number in np.argsort(found.utility, kind="stable"):
        if k - int(stays.sum()) == m:
            break
        if spared[number]:
            continue
        stays[number] = False
        for other in np.argsort(apart[number], kind="stable"):
            # Enough must remain that can still go.
            if apart[number, other] > near or spared.sum() + m >= k - 1:
                break
            spared[other] |= bool(stays[other])
    for number in np.argsort(found.utility, kind="stable"):  # too many were spared
        if k - int(stays.sum()) == m:
            break
        stays[number] = False
    return stays


def split_and_merge(
    assignment: Assignment, centres: NDArray[Any], found: Errors, attempt: int, rng: np.random.Generator
) -> NDArray[Any]:
    """One cluster of large inertia in two, two neighbours in one; each further attempt tries the next best pair."""
    data, k = assignment.data, len(centres)
    weights, points = assignment.cluster_weights, data.rescaling.apply(centres)
    square = np.einsum("ij,ij->i", points, points)
    apart = np.maximum(square[:, None] + square - 2 * points @ points.T, 0.0)
    cost = apart * weights[:, None] * weights / np.maximum(weights[:, None] + weights, 1e-300)
    cost[np.tril_indices(k)] = np.inf
    # Attempts walk along the diagonals of (rank of split, rank of merge): both cheap first.
    ranks = sorted(((s, m) for s in range(min(k, 12)) for m in range(12)), key=lambda pair: (sum(pair), pair))
    split_rank, merge_rank = ranks[attempt % len(ranks)]
    worst = int(np.argsort(-found.inertia, kind="stable")[split_rank])
    cost[worst, :] = cost[:, worst] = np.inf
    pairs = np.argsort(cost, axis=None, kind="stable")
    if not np.isfinite(cost.ravel()[pairs[0]]):
        return centres
    merge_rank = min(merge_rank, int(np.isfinite(cost).sum()) - 1)
    a, b = divmod(int(pairs[merge_rank]), k)
    new = centres.copy()
    both = weights[a] + weights[b]
    mean = (points[a] * weights[a] + points[b] * weights[b]) / both if both else points[a]
    new[a] = data.rescaling.undo(mean[None], data.dtype)[0]
    new[b] = _beside(assignment, centres, found, np.array([worst]), rng)[0]
    return new


# ---------------------------------------------------------------- searches made of them


class LocalSearch:
    """Attempts to leave the best optimum so far, each judged by a descent from a changed copy of its centres."""

    counts_on = False

    def __init__(self, assignment: Assignment, k: int, seed: int) -> None:
        self.assignment, self.k, self.seed = assignment, k, seed

    def begin(self, best: State, best_value: Value, last: State, run: int, *, capped: bool) -> State | None:
        """The first attempt."""
        return self._attempt(best["centres"], best_value[0], _Progress(), run)

    def after(self, ended: State, best: State, best_value: Value, run: int) -> tuple[State | None, bool]:
        """What an attempt has come to, and the next one."""
        progress = _Progress(*ended["search"].tolist())
        if progress.adding:
            return self._without_extra(ended, progress), False
        value, before = float(ended["inertia"]), best_value[0]
        gained = value < before * (1 - _GAIN) or (value < before and before == 0.0)
        progress.attempts = 0 if gained else progress.attempts + 1
        progress.breath -= not gained
        keep = value < before
        centres = ended["centres"] if keep else best["centres"]
        return self._attempt(centres, value if keep else before, progress, run), keep

    def _attempt(self, best: NDArray[Any], inertia: float, progress: _Progress, run: int) -> State | None:
        if self.is_over(progress) or inertia == 0.0:
            return None
        assignment = self.assignment
        if assignment.centres is None or not np.array_equal(assignment.centres, best):
            assignment.assign(best)
        rng = np.random.default_rng([self.seed, 1, run])
        return descent_state(self.change(best, errors(assignment.data, best), progress, rng), progress)

    def _without_extra(self, ended: State, progress: _Progress) -> State:
        data, centres = self.assignment.data, ended["centres"]
        stays = breathe_out(data, centres, errors(data, centres), len(centres) - self.k)
        self.assignment.relabel(np.where(stays, np.cumsum(stays) - 1, -1), self.k)
        progress.adding = 0
        return descent_state(np.ascontiguousarray(centres[stays]), progress)

    def is_over(self, progress: _Progress) -> bool:
        """Whether enough was tried."""
        raise NotImplementedError

    def change(self, best: NDArray[Any], found: Errors, progress: _Progress, rng: np.random.Generator) -> NDArray[Any]:
        """Centres to descend from next."""
        raise NotImplementedError


class Breathing(LocalSearch):
    """Add centres where the inertia is largest, let them settle, take away those missed least (Fritzke 2020)."""

    def is_over(self, progress: _Progress) -> bool:
        """With each attempt that does not help, one centre fewer is added."""
        return progress.breath == 0

    def change(self, best: NDArray[Any], found: Errors, progress: _Progress, rng: np.random.Generator) -> NDArray[Any]:
        """The centres and some more."""
        progress.adding = 1
        m = min(progress.breath, self.k, self.assignment.data.n - self.k)
        return breathe_in(self.assignment, best, found, m, rng)


class SplitMerge(LocalSearch):
    """Split one cluster and merge two others."""

    def is_over(self, progress: _Progress) -> bool:
        """After some attempts in a row that did not help."""
        return progress.attempts == _PATIENCE

    def change(self, best: NDArray[Any], found: Errors, progress: _Progress, rng: np.random.Generator) -> NDArray[Any]:
        """As many centres, two of them elsewhere."""
        return split_and_merge(self.assignment, best, found, progress.attempts, rng)


SEARCHES = {"none": None, "breathing": Breathing, "split-merge": SplitMerge}


@dataclass
class _Progress:
    """Where a search stands: whether centres were added and have yet to be taken away, how many next, attempts in vain."""

    adding: int = 0
    breath: int = _BREATH
    attempts: int = 0

    def array(self) -> NDArray[np.int64]:
        return np.array([self.adding, self.breath, self.attempts])


def descent_state(centres: NDArray[Any], progress: _Progress | None = None) -> State:
    """The state from which centres begin their descent."""
    return {
        "centres": centres,
        "previous": centres[:0],
        "inertia": np.array(np.inf),
        "shift": np.array(np.inf),
        "search": (progress or _Progress()).array(),
    }
