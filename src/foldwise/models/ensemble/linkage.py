"""Average linkage of groups that have weights, by chains of nearest neighbours; time and memory grow with their square."""

from __future__ import annotations

import numpy as np

from foldwise.data.block import Floats
from foldwise.kernels.targets import Labels

_TIE = 1e-12  # similarities are means of shares: closer ones are equal


def average_linkage(similarity: Floats, weights: Floats, k: int) -> tuple[Labels, Floats]:
    """Labels of k groups, and the similarity of the two that were merged at each of the n - 1 merges, falling.

    The similarity of two groups is the mean over pairs of their members, in which an item of weight w counts as w. Among equal
    similarities, the pair that the chain meets first is merged: those with the lowest numbers.

    >>> average_linkage(np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.2], [0.1, 0.2, 1.0]]), np.ones(3), 2)
    (array([0, 0, 1], dtype=int32), array([0.9 , 0.15]))
    """
    n = len(similarity)
    near, size, alive = (
        np.array(similarity, dtype=np.float64),
        weights.astype(np.float64).copy(),
        np.ones(n, dtype=bool),
    )
    np.fill_diagonal(near, -np.inf)
    merges: list[tuple[float, int, int]] = []
    chain: list[int] = []
    while len(merges) < n - 1:
        if not chain:
            chain = [int(np.argmax(alive))]
        here = chain[-1]
        best = near[here].max()
        other = int(np.argmax(near[here] >= best - _TIE))
        if len(chain) > 1 and near[here, chain[-2]] >= best - _TIE:  # each is the other's nearest: merge
            other = chain[-2]
            del chain[-2:]
            low, high = min(here, other), max(here, other)
            merges.append((float(near[low, high]), low, high))
            both = (size[low] * near[low] + size[high] * near[high]) / (size[low] + size[high])
            size[low] += size[high]
            alive[high] = False
            near[low], near[:, low] = both, both
            near[high], near[:, high] = -np.inf, -np.inf
            near[low, low] = -np.inf
        else:
            chain.append(other)
    order = sorted(range(len(merges)), key=lambda i: (-merges[i][0], i))
    return _cut(n, [merges[i] for i in order], k), np.array([merges[i][0] for i in order])


def _cut(n: int, merges: list[tuple[float, int, int]], k: int) -> Labels:
    """Groups after the first n - k merges, numbered in the order of their first members."""
    parent = list(range(n))

    def root(item: int) -> int:
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    for _, low, high in merges[: max(n - k, 0)]:
        first, second = sorted((root(low), root(high)))
        parent[second] = first
    return np.unique([root(item) for item in range(n)], return_inverse=True)[1].astype(np.int32)
