"""Out of bad optima: which centres to add, and which to take away. A move is only a new start; Lloyd's steps judge it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.models.kmeans.assignment import Assignment

_OFFSET = 0.01  # of a new centre from the one it springs from, in root mean square distances of that one's rows
_NEAR = 1.1  # centres nearer than this many mean neighbour distances are spared when one is taken away


@dataclass(frozen=True)
class Errors:
    """For each centre: the inertia of its rows, and by how much inertia would rise without it."""

    inertia: Floats
    utility: Floats


def errors(rows: Assignment, centres: NDArray[Any]) -> Errors:
    """One pass that looks at the second nearest centre as well."""
    targets = rows.targets(centres)
    parts: dict[int, tuple[Floats, Floats]] = {}

    def of(block: Block) -> tuple[Floats, Floats]:
        near, next_ = np.empty(block.n_rows, rows.dtype), np.empty(block.n_rows, rows.dtype)
        labels = np.full(block.n_rows, -1, dtype=np.int32)
        targets.nearest(block.unchecked, labels, near, next_)
        factor = np.ones(block.n_rows) if block.weights is None else block.weights
        k = len(centres)
        return (
            np.asarray(np.bincount(labels, factor * near, minlength=k), dtype=np.float64),
            np.asarray(np.bincount(labels, factor * (next_.astype(np.float64) - near), minlength=k), dtype=np.float64),
        )

    rows.run.visit(of, parts.__setitem__)
    inertia, utility = (np.sum([parts[number][i] for number in sorted(parts)], axis=0) for i in (0, 1))
    return Errors(inertia, utility)


def breathe_in(
    rows: Assignment, centres: NDArray[Any], found: Errors, m: int, rng: np.random.Generator
) -> NDArray[Any]:
    """`m` new centres next to those whose rows have the largest inertia (Fritzke 2020)."""
    worst = np.argsort(-found.inertia, kind="stable")[:m]
    return np.concatenate([centres, _beside(rows, centres, found, worst, rng)])


def _beside(
    rows: Assignment, centres: NDArray[Any], found: Errors, which: NDArray[Any], rng: np.random.Generator
) -> NDArray[Any]:
    weights = np.maximum(rows.cluster_weights[which], 1e-300)
    reach = np.sqrt(found.inertia[which] / weights)
    steps = rng.standard_normal((len(which), rows.d))
    steps *= (_OFFSET * reach / np.maximum(np.linalg.norm(steps, axis=1), 1e-300))[:, None]
    return rows.frame.back(rows.frame.seen(centres[which]) + steps, rows.dtype)


def breathe_out(rows: Assignment, centres: NDArray[Any], found: Errors, m: int) -> NDArray[np.bool_]:
    """Which centres stay when `m` of least use go.

    The neighbours of one that goes are spared: its rows fall to them, so they are needed more than they seem.
    """
    k = len(centres)
    points = rows.frame.seen(centres)
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
    rows: Assignment, centres: NDArray[Any], found: Errors, attempt: int, rng: np.random.Generator
) -> NDArray[Any]:
    """One cluster of large inertia in two, two neighbours in one; each further attempt tries the next best pair."""
    k = len(centres)
    weights, points = rows.cluster_weights, rows.frame.seen(centres)
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
    new[a] = rows.frame.back(mean[None], rows.dtype)[0]
    new[b] = _beside(rows, centres, found, np.array([worst]), rng)[0]
    return new
