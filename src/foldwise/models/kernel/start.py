"""Where to start: clusters of a neighbourhood graph of a sample, k-means++ in feature space, or random rows.

For kernels that say how alike rows are, the lowest sum of distances need not be the best clustering: it can be lowered by
cutting out the densest part of the data (Marin and others 2019). So there the start decides, and is made with care.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.fold import blas
from foldwise.kernels.targets import Labels
from foldwise.models.kernel.geometry import coefficients, means_of
from foldwise.models.kernel.kernel_matrix import KernelMatrix
from foldwise.models.kernel.neighbours import Near, counts, middle

SAMPLE = 1000  # rows that a graph is made of, at least; and
_SAMPLE_PER_CLUSTER = 20
_GRAPHS = (5, 7, 10, 15)  # neighbours
_NEAR = 7
_NOTHING = 1e-3


def sample_size(n: int, k: int) -> int:
    """How many rows a start is made from."""
    return min(n, max(SAMPLE, _SAMPLE_PER_CLUSTER * k))


def is_similarity(matrix: Floats) -> bool:
    """Whether a kernel says how alike rows are: nothing below 0, and every row equally like itself."""
    own = np.diagonal(matrix)
    return bool(matrix.min() >= 0 and own.min() > 0 and np.ptp(own) <= 1e-6 * own.max())


def apart(matrix: Floats) -> Floats:
    """Squared distances that a kernel matrix stands for.

    -log of a similarity, which for "rbf" are the distances of the rows themselves, and do not level off as those in feature
    space do; else these.
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


def spectral(matrix: Floats, weights: Floats | None, k: int, seed: int) -> Labels:
    """Clusters of a sample with this kernel matrix.

    Several graphs of neighbours, and two of all rows, are cut into k parts by their leading eigenvectors (Shi and Malik 2000;
    Ng and others 2001). Of these clusterings, that is taken whose normalised cuts of the graphs of neighbours are least: their
    product, since they grow with the neighbours; below a thousandth one cut is as good as another.
    """
    n = len(matrix)
    if n <= k:
        return np.arange(n, dtype=np.int32)
    squares, count = apart(matrix), counts(weights, n)
    near = Near(squares, count, max(_GRAPHS))
    best: Labels | None = None
    least, tied = math.inf, [_graph(squares, near.reach(neighbours)) for neighbours in _GRAPHS]
    width = middle(near.reach(_NEAR), count)
    with blas.single():
        for graph in (*tied, np.exp(-squares / width), np.exp(-squares / (2 * width))):
            labels = _cut(graph, count, k, seed)
            cost = math.prod(_normalised_cut(judge, count, labels, k) + _NOTHING for judge in tied)
            if best is None or cost < least * (1 - 1e-9):
                best, least = labels, cost
    assert best is not None
    return best


def _graph(squares: Floats, reach: Floats) -> Floats:
    """Rows tied to their neighbours, as strongly as they are near beside what is usual there."""
    row, column = np.nonzero(squares <= reach[:, None])
    graph = np.zeros_like(squares)
    strength = np.exp(-squares[row, column] / np.sqrt(reach[row] * reach[column]))
    graph[row, column] = graph[column, row] = strength
    return graph


def _cut(graph: Floats, count: Floats, k: int, seed: int) -> Labels:
    from scipy.linalg import eigh

    from foldwise.data.arrays import ArraySource
    from foldwise.models.kmeans import KMeans
    from foldwise.models.kmeans.centre_model import FewerClustersWarning

    degrees = graph @ count
    root = np.sqrt(count / degrees)
    n = len(graph)
    _, vectors = eigh(graph * root[:, None] * root, subset_by_index=[n - k, n - 1])
    some = count > 0
    # A row's own place does not depend on how often it counts; and only its direction tells its cluster.
    places = vectors / np.sqrt(np.where(some, count, 1.0) * degrees)[:, None]
    lengths = np.linalg.norm(places, axis=1, keepdims=True)
    places /= np.where(lengths > 0, lengths, 1.0)
    found = KMeans(k, search="breathing", random_state=seed, n_threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewerClustersWarning)  # equal rows: the descent will see
        return np.asarray(found.fit(ArraySource(np.ascontiguousarray(places), weights=count)).labels_)


def _normalised_cut(graph: Floats, count: Floats, labels: Labels, k: int) -> float:
    sums = graph @ coefficients(labels, count, k)
    within = np.bincount(labels, count * sums[np.arange(len(labels)), labels], minlength=k)
    whole = np.bincount(labels, count * sums.sum(axis=1), minlength=k)
    return float(k - np.divide(within, whole, out=np.zeros(k), where=whole > 0).sum())


def extended(products: KernelMatrix, which: NDArray[np.intp], labels: Labels, weights: Floats, k: int) -> Labels:
    """Every row to the nearest mean of the clusters that some rows form."""
    some = coefficients(labels, weights[which], k)
    sums = products.times(some, which)
    means = means_of(sums[which], labels, weights[which], k)
    return means.judge(sums, products.diagonal)[1]


def plusplus(
    products: KernelMatrix, weights: Floats, k: int, rng: np.random.Generator, order: NDArray[np.intp] | None
) -> Labels:
    """Greedy k-means++ in feature space: of a few rows drawn by squared distance, the one that lowers the sum most.

    With an `order` that goes by the rows' values the draw does not depend on where rows stand, nor on equal rows being one.
    """
    own, trials = products.diagonal, 2 + int(math.log(k))

    def squares(which: NDArray[np.intp]) -> Floats:
        return np.maximum(own[:, None] + own[which] - 2 * products.columns(which), 0.0)

    first = _drawn(weights, 1, rng, order)
    near = squares(first)
    closest, labels = near[:, 0], np.zeros(products.n, dtype=np.int32)
    for number in range(1, k):
        chances = weights * closest
        if not chances.sum() > 1e-12 * float(weights @ np.abs(own)):
            break  # fewer distinct rows than clusters
        tried = np.minimum(squares(_drawn(chances, trials, rng, order)), closest[:, None])
        best = tried[:, int(np.argmin(weights @ tried))]
        labels[best < closest] = number
        closest = best
    return labels


def random_rows(
    products: KernelMatrix, weights: Floats, k: int, rng: np.random.Generator, order: NDArray[np.intp] | None
) -> Labels:
    """Every row to the nearest of k distinct rows, drawn by weight."""
    own, chances = products.diagonal, weights.copy()
    near = np.full((products.n, k), np.inf)
    for number in range(k):
        if not chances.any():
            break
        seed = _drawn(chances, 1, rng, order)
        near[:, number] = own + own[seed] - 2 * products.columns(seed)[:, 0]
        chances[near[:, number] <= 1e-12 * (np.abs(own) + np.abs(own[seed]))] = 0.0
    return np.asarray(np.argmin(near, axis=1).astype(np.int32))


def _drawn(chances: Floats, size: int, rng: np.random.Generator, order: NDArray[np.intp] | None) -> NDArray[np.intp]:
    ends = np.cumsum(chances if order is None else chances[order])
    found = np.searchsorted(ends, rng.random(size) * ends[-1], side="right")
    found = np.minimum(found, int(np.searchsorted(ends, ends[-1])))
    return np.asarray(found if order is None else order[found], dtype=np.intp)
