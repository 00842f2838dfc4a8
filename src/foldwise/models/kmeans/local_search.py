"""Escaping poor optima: which centres to add and which to remove. A move is only a new start, judged by Lloyd steps."""

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

_OFFSET = 0.01  # of a new centre from its parent, in root mean square distances of the parent's rows
_BREATH = 5  # centres added and removed at first
_MIDDLING = 1 << 24  # rows times columns times clusters
_PATIENCE = 12  # unsuccessful split-and-merge attempts before stopping
_GAIN = 1e-4  # relative gain in inertia below which an attempt does not count
_NEAR = 1.1  # centres within this many mean neighbour distances of a removed one are kept


@dataclass(frozen=True)
class Errors:
    """For each centre: the inertia of its rows, and the increase in inertia if it were removed."""

    inertia: Floats
    utility: Floats


def errors(data: KMeansData, centres: NDArray[Any]) -> Errors:
    """Computed in one pass that also finds the second nearest centre."""
    found = data.passes.each(SecondNearest(data.targets(centres)))
    return Errors(*(np.sum([part[i] for part in found], axis=0) for i in (0, 1)))


# ---------------------------------------------------------------- moves


def breathe_in(
    assignment: Assignment, centres: NDArray[Any], found: Errors, m: int, rng: np.random.Generator
) -> NDArray[Any]:
    """`m` new centres beside those with the largest inertia (Fritzke 2020)."""
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
    """Which centres remain when the `m` least useful are removed.

    Neighbours of a removed centre are kept: they take over its rows, so their utility is underestimated.
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
            # Enough removable centres must remain.
            if apart[number, other] > near or spared.sum() + m >= k - 1:
                break
            spared[other] |= bool(stays[other])
    for number in np.argsort(found.utility, kind="stable"):  # too many were kept
        if k - int(stays.sum()) == m:
            break
        stays[number] = False
    return stays


def split_and_merge(
    assignment: Assignment, centres: NDArray[Any], found: Errors, attempt: int, rng: np.random.Generator
) -> NDArray[Any]:
    """Split a cluster of large inertia and merge two neighbours; each further attempt tries the next best pair."""
    data, k = assignment.data, len(centres)
    weights, points = assignment.cluster_weights, data.rescaling.apply(centres)
    square = np.einsum("ij,ij->i", points, points)
    apart = np.maximum(square[:, None] + square - 2 * points @ points.T, 0.0)
    cost = apart * weights[:, None] * weights / np.maximum(weights[:, None] + weights, 1e-300)
    cost[np.tril_indices(k)] = np.inf
    # Attempts follow the diagonals of (rank of split, rank of merge), the most promising pairs first.
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


# ---------------------------------------------------------------- searches


class LocalSearch:
    """Attempts to improve on the best optimum so far, each judged by a descent from a modified copy of its centres."""

    counts_on = False

    def __init__(self, assignment: Assignment, k: int, seed: int) -> None:
        self.assignment, self.k, self.seed = assignment, k, seed

    def begin(self, best: State, best_value: Value, last: State, run: int, *, capped: bool) -> State | None:
        """The first attempt."""
        return self._attempt(best["centres"], best_value[0], _Progress(), run)

    def after(self, ended: State, best: State, best_value: Value, run: int) -> tuple[State | None, bool]:
        """Evaluate an attempt, and start the next one."""
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
        """Whether to stop searching."""
        raise NotImplementedError

    def change(self, best: NDArray[Any], found: Errors, progress: _Progress, rng: np.random.Generator) -> NDArray[Any]:
        """The centres of the next descent."""
        raise NotImplementedError


class Breathing(LocalSearch):
    """Add centres where the inertia is largest, let them settle, and remove the least useful (Fritzke 2020)."""

    def __init__(self, assignment: Assignment, k: int, seed: int) -> None:
        super().__init__(assignment, k, seed)
        # In middling tables every number of centres is tried twice: there are seconds to spend, and single starts are poor.
        self.tries = 2 if assignment.data.n * assignment.data.d * k <= _MIDDLING else 1

    def is_over(self, progress: _Progress) -> bool:
        """Each unsuccessful attempt, or two, reduces the number of centres added by one; stop at zero."""
        return progress.breath <= _BREATH * (1 - self.tries)

    def change(self, best: NDArray[Any], found: Errors, progress: _Progress, rng: np.random.Generator) -> NDArray[Any]:
        """The centres and some extra ones."""
        progress.adding = 1
        breath = -(-(progress.breath + _BREATH * (self.tries - 1)) // self.tries)
        m = min(breath, self.k, self.assignment.data.n - self.k)
        return breathe_in(self.assignment, best, found, m, rng)


class SplitMerge(LocalSearch):
    """Split one cluster and merge two others."""

    def is_over(self, progress: _Progress) -> bool:
        """Stop after a number of consecutive unsuccessful attempts."""
        return progress.attempts == _PATIENCE

    def change(self, best: NDArray[Any], found: Errors, progress: _Progress, rng: np.random.Generator) -> NDArray[Any]:
        """The same number of centres, with one cluster split and two merged."""
        return split_and_merge(self.assignment, best, found, progress.attempts, rng)


SEARCHES = {"auto": None, "none": None, "breathing": Breathing, "split-merge": SplitMerge}


@dataclass
class _Progress:
    """Progress of a search: whether extra centres remain to be removed, how many to add next, failed attempts."""

    adding: int = 0
    breath: int = _BREATH
    attempts: int = 0

    def array(self) -> NDArray[np.int64]:
        return np.array([self.adding, self.breath, self.attempts])


def descent_state(centres: NDArray[Any], progress: _Progress | None = None) -> State:
    """The initial state of a descent from these centres."""
    return {
        "centres": centres,
        "previous": centres[:0],
        "inertia": np.array(np.inf),
        "shift": np.array(np.inf),
        "moved": np.array(1.0),
        "search": (progress or _Progress()).array(),
    }
