"""Where to start: k-means++ in feature space, random rows, or the nearest mean of the clusters of a sample."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.kernels.targets import Labels
from foldwise.models.kernel.geometry import coefficients, means_of
from foldwise.models.kernel.kernel_matrix import KernelMatrix

_SAMPLE, _SAMPLE_PER_CLUSTER = 1000, 20  # rows that a graph is made of, at least


def sample_size(n: int, k: int) -> int:
    """How many rows a start is made from."""
    return min(n, max(_SAMPLE, _SAMPLE_PER_CLUSTER * k))


def assign_all(matrix: KernelMatrix, which: NDArray[np.intp], labels: Labels, weights: Floats, k: int) -> Labels:
    """Every row to the nearest mean of the clusters that some rows form."""
    sums = matrix.times(coefficients(labels, weights[which], k), which)
    means = means_of(sums[which], labels, weights[which], k)
    return means.distances(sums, matrix.diagonal)[1]


def plusplus(
    matrix: KernelMatrix, weights: Floats, k: int, rng: np.random.Generator, order: NDArray[np.intp] | None
) -> Labels:
    """Greedy k-means++ in feature space: of a few rows drawn by squared distance, the one that lowers the sum most.

    With an `order` by the rows' values, the draw depends neither on where rows stand nor on whether equal rows are merged.
    """
    own, trials = matrix.diagonal, 2 + int(math.log(k))

    def squares(which: NDArray[np.intp]) -> Floats:
        return np.maximum(own[:, None] + own[which] - 2 * matrix.columns(which), 0.0)

    closest = squares(_draw(weights, 1, rng, order))[:, 0]
    labels = np.zeros(matrix.n, dtype=np.int32)
    for number in range(1, k):
        chances = weights * closest
        if not chances.sum() > 1e-12 * float(weights @ np.abs(own)):
            break  # fewer distinct rows than clusters
        tried = np.minimum(squares(_draw(chances, trials, rng, order)), closest[:, None])
        best = tried[:, int(np.argmin(weights @ tried))]
        labels[best < closest] = number
        closest = best
    return labels


def random_rows(
    matrix: KernelMatrix, weights: Floats, k: int, rng: np.random.Generator, order: NDArray[np.intp] | None
) -> Labels:
    """Every row to the nearest of k distinct rows, drawn by weight."""
    own, chances = matrix.diagonal, weights.copy()
    squares = np.full((matrix.n, k), np.inf)
    for number in range(k):
        if not chances.any():
            break
        seed = _draw(chances, 1, rng, order)
        squares[:, number] = own + own[seed] - 2 * matrix.columns(seed)[:, 0]
        chances[squares[:, number] <= 1e-12 * (np.abs(own) + np.abs(own[seed]))] = 0.0
    return np.asarray(np.argmin(squares, axis=1).astype(np.int32))


def _draw(chances: Floats, size: int, rng: np.random.Generator, order: NDArray[np.intp] | None) -> NDArray[np.intp]:
    ends = np.cumsum(chances if order is None else chances[order])
    found = np.searchsorted(ends, rng.random(size) * ends[-1], side="right")
    found = np.minimum(found, int(np.searchsorted(ends, ends[-1])))
    return np.asarray(found if order is None else order[found], dtype=np.intp)
