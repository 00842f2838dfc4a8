"""Where to start: clusters of a neighbourhood graph of a sample, k-means++ in feature space, or random rows.

For kernels that measure similarity, the lowest sum of distances need not be the best clustering: it can be lowered by cutting
out the densest part of the data (Marin and others 2019). There the start decides, so it is made with care.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Floats
from foldwise.fold import blas
from foldwise.fold.passes import Passes
from foldwise.kernels.targets import Labels
from foldwise.models.kernel.geometry import coefficients, means_of
from foldwise.models.kernel.kernel_matrix import KernelMatrix
from foldwise.models.kernel.neighbours import NearestRows, repetitions, weighted_median
from foldwise.models.kmeans.descent import cluster

_SAMPLE, _SAMPLE_PER_CLUSTER = 1000, 20  # rows that a graph is made of, at least
_GRAPHS = (5, 7, 10, 15)  # neighbours
_NEAR = 7
_NEGLIGIBLE = 1e-3


def sample_size(n: int, k: int) -> int:
    """How many rows a start is made from."""
    return min(n, max(_SAMPLE, _SAMPLE_PER_CLUSTER * k))


def is_similarity(matrix: Floats) -> bool:
    """Whether a kernel says how alike rows are: never below 0, and the same for every row with itself."""
    own = np.diagonal(matrix)
    return bool(matrix.min() >= 0 and own.min() > 0 and np.ptp(own) <= 1e-6 * own.max())


def squared_distances(matrix: Floats) -> Floats:
    """The squared distances that a kernel matrix stands for.

    -log of a similarity, which for "rbf" gives the distances of the rows themselves, and does not level off as distances in
    feature space do; for other kernels the latter.
    """
    own = np.diagonal(matrix)
    if is_similarity(matrix):
        with np.errstate(divide="ignore"):
            squares = -np.log(matrix / own.max())
        squares[np.isinf(squares)] = 1000.0  # e^-708 is the last above 0
    else:
        squares = own[:, None] + own - 2 * matrix
        squares[squares < 1e-12 * (np.abs(own)[:, None] + np.abs(own))] = 0.0
    squares = np.maximum(squares, 0.0)
    np.fill_diagonal(squares, 0.0)
    return np.asarray((squares + squares.T) / 2)


def spectral(matrix: Floats, weights: Floats | None, k: int, seed: int, passes: Passes) -> Labels:
    """Clusters of a sample with this kernel matrix.

    Several graphs of neighbours, and two of all rows, are cut into k parts by their leading eigenvectors (Shi and Malik 2000;
    Ng and others 2001). The clustering is chosen whose normalised cuts of the graphs of neighbours have the least product,
    since they grow with the number of neighbours; below a thousandth one cut is as good as another.
    """
    n = len(matrix)
    if n <= k:
        return np.arange(n, dtype=np.int32)
    squares, count = squared_distances(matrix), repetitions(weights, n)
    nearest = NearestRows(squares, count, max(_GRAPHS))
    neighbour_graphs = [_graph(squares, nearest.distance_to(neighbours)) for neighbours in _GRAPHS]
    width = weighted_median(nearest.distance_to(_NEAR), count)
    best, least = np.zeros(n, dtype=np.int32), math.inf
    with blas.single():
        for graph in (*neighbour_graphs, np.exp(-squares / width), np.exp(-squares / (2 * width))):
            labels = _spectral_clusters(graph, count, k, seed, passes)
            cost = math.prod(_normalised_cut(each, count, labels, k) + _NEGLIGIBLE for each in neighbour_graphs)
            if cost < least * (1 - 1e-9):
                best, least = labels, cost
    return best


def _graph(squares: Floats, radius: Floats) -> Floats:
    """Rows tied to their neighbours, by how near they are compared with what is usual there."""
    row, column = np.nonzero(squares <= radius[:, None])
    graph = np.zeros_like(squares)
    strength = np.exp(-squares[row, column] / np.sqrt(radius[row] * radius[column]))
    graph[row, column] = graph[column, row] = strength
    return graph


def _spectral_clusters(graph: Floats, count: Floats, k: int, seed: int, passes: Passes) -> Labels:
    from scipy.linalg import eigh

    degrees = graph @ count
    root = np.sqrt(count / degrees)
    n = len(graph)
    _, vectors = eigh(graph * root[:, None] * root, subset_by_index=[n - k, n - 1])
    # A row's own place does not depend on how often it counts; and only its direction tells its cluster.
    places = vectors / np.sqrt(np.where(count > 0, count, 1.0) * degrees)[:, None]
    lengths = np.linalg.norm(places, axis=1, keepdims=True)
    places /= np.where(lengths > 0, lengths, 1.0)
    source = ArraySource(np.ascontiguousarray(places), weights=count)
    return cluster(passes.over(source, here=True), k, seed=seed, search="breathing").labels


def _normalised_cut(graph: Floats, count: Floats, labels: Labels, k: int) -> float:
    sums = graph @ coefficients(labels, count, k)
    within = np.bincount(labels, count * sums[np.arange(len(labels)), labels], minlength=k)
    whole = np.bincount(labels, count * sums.sum(axis=1), minlength=k)
    return float(k - np.divide(within, whole, out=np.zeros(k), where=whole > 0).sum())


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
