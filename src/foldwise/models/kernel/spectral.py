"""Neighbourhood graphs of a sample: clusters by their leading eigenvectors, and what it costs to cut them."""

from __future__ import annotations

import math

import numpy as np

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Floats
from foldwise.fold import blas
from foldwise.fold.deadline import Deadline
from foldwise.fold.passes import Passes
from foldwise.kernels.targets import Labels
from foldwise.models.kernel.geometry import coefficients
from foldwise.models.kernel.neighbours import NearestRows, repetitions, weighted_median
from foldwise.models.kmeans.descent import cluster

_GRAPHS = (5, 7, 10, 15)  # neighbours
_NEAR = 7
_NEGLIGIBLE = 1e-3  # below a thousandth, one cut is as good as another


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


class Graphs:
    """Graphs of the nearest neighbours among the rows of a sample with this kernel matrix.

    Their normalised cuts (Shi and Malik 2000) tell how good any clustering is, whichever way it was found: near rows should be
    together. They do not reward cutting out the densest part, as the sum of distances in feature space can.
    """

    def __init__(self, matrix: Floats, weights: Floats | None, k: int) -> None:
        self._k, self._count = k, repetitions(weights, len(matrix))
        self._squares = squares = squared_distances(matrix)
        nearest = NearestRows(squares, self._count, max(_GRAPHS))
        self._graphs = [_graph(squares, nearest.distance_to(neighbours)) for neighbours in _GRAPHS]
        self._width = weighted_median(nearest.distance_to(_NEAR), self._count)

    def cut(self, labels: Labels) -> float:
        """The geometric mean of the normalised cuts of the graphs, since they grow with the number of neighbours."""
        cuts = [_normalised_cut(each, self._count, labels, self._k) + _NEGLIGIBLE for each in self._graphs]
        return math.prod(cuts) ** (1 / len(cuts))

    def spectral(self, seed: int, passes: Passes, deadline: Deadline) -> Labels:
        """The clustering with the least cut, of those by the leading eigenvectors (Ng and others 2001) of several graphs.

        These are the graphs of neighbours, and two of all rows.
        """
        best, least = np.zeros(len(self._count), dtype=np.int32), math.inf
        widths = (self._width, 2 * self._width)
        with blas.single():
            for graph in (*self._graphs, *(np.exp(-self._squares / width) for width in widths)):
                deadline.check()
                labels = _spectral_clusters(graph, self._count, self._k, seed, passes)
                cost = self.cut(labels)
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
