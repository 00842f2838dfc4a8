"""The automatic choice of a start, and of the kernel's width: several are tried on a sample, and the least cut is kept.

The sum of distances in feature space can not tell them apart: for narrow kernels it falls when the densest part of the data is
cut out (Marin and others 2019), and sums of different kernels can not be compared. Normalised cuts of neighbourhood graphs can
tell: they are small for rings and spirals, whose rows are tied to their neighbours, and large for blobs cut in their middle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.cache import cached
from foldwise.data.scan import scan
from foldwise.fold import blas
from foldwise.fold.deadline import Deadline, OutOfTimeError
from foldwise.fold.passes import Passes
from foldwise.kernels.targets import Labels
from foldwise.models.kernel import start
from foldwise.models.kernel.descent import KernelDescent
from foldwise.models.kernel.spectral import Graphs, is_similarity
from foldwise.models.kmeans.descent import cluster

_STEPS = 100
_STARTS = 3  # of k-means++, where there are no rows to run k-means on
_MOST_CLUSTERS = 100  # for more, graphs would be large and their eigenvectors slow, and k-means is as good
_BETTER = 0.2  # by this share a cut must be less to be taken instead of one tried before
_CLOSE, _DIFFERENT = (
    1.25,
    0.9,
)  # cuts within this factor are as good; adjusted Rand indices below are another clustering


class SampleMatrix:
    """The kernel matrix of a sample, in memory."""

    def __init__(self, values: Floats) -> None:
        self.n, self.diagonal, self._values = len(values), np.diagonal(values).copy(), values

    def times(self, coefficients: Floats, which: NDArray[np.intp] | None = None) -> Floats:
        """K[:, which] @ coefficients."""
        return np.asarray((self._values if which is None else self._values[:, which]) @ coefficients)

    def columns(self, which: NDArray[np.intp]) -> Floats:
        """K[:, which]."""
        return self._values[:, which]

    def submatrix(self, which: NDArray[np.intp]) -> Floats:
        """K[which][:, which]."""
        return self._values[np.ix_(which, which)]


@dataclass(frozen=True)
class Sample:
    """Some rows of a fit, equal ones merged and sorted, so that a choice depends on neither their order nor their repetition.

    The numbers of all of them, and which of the distinct rows each is; of these the weights, the rows themselves if there are
    any, and their matrix by gamma.
    """

    which: NDArray[np.intp]
    inverse: NDArray[np.intp]
    weights: Floats
    rows: Block | None
    gammas: Sequence[float | None]  # to choose from, the usual one first
    matrix: Callable[[float | None], Floats]


@dataclass(frozen=True)
class Choice:
    """A gamma and the clusters of the sample to start from, how they were found, and a note if others are as good."""

    gamma: float | None
    start: str
    labels: Labels
    note: str | None = None


def choose(sample: Sample, k: int, *, normalize: bool, seed: int, passes: Passes, deadline: Deadline) -> Choice | None:
    """The start and the gamma with the least cut; when the time is over, the best so far.

    None if the kernel is no similarity, so that there are no neighbours and the sum of distances alone counts.
    """
    usual = sample.matrix(sample.gammas[0])
    if not is_similarity(usual):
        return None
    if len(usual) <= k:
        return Choice(sample.gammas[0], "spectral", np.arange(len(usual), dtype=np.int32))
    tried: list[tuple[float, Choice]] = []
    best, least = None, math.inf
    with blas.single():
        try:
            deadline.check()
            graphs = Graphs(usual, sample.weights, k)
            deadline.check()
            for gamma, name, matrix, labels in _starts(sample, usual, graphs, k, seed, passes, deadline):
                deadline.check()
                found = Choice(gamma, name, _descended(matrix, sample.weights, labels, k, normalize))
                cut = graphs.cut(found.labels)
                tried.append((cut, found))
                if cut < least * (1 - _BETTER):
                    best, least = found, cut
        except OutOfTimeError:
            pass
    if best is None:
        return Choice(sample.gammas[0], "k-means++", quick(sample, k, seed))
    return Choice(best.gamma, best.start, best.labels, _doubt(best, least, tried))


def _starts(
    sample: Sample, usual: Floats, graphs: Graphs, k: int, seed: int, passes: Passes, deadline: Deadline
) -> Iterator[tuple[float | None, str, SampleMatrix, Labels]]:
    """What is tried: k-means with the widest kernel, which keeps its clusters, and spectral clusters with every gamma.

    From the widest kernel to the narrowest: the wider one is, the less does a clustering depend on single rows.
    """
    matrices = {gamma: SampleMatrix(sample.matrix(gamma)) for gamma in sample.gammas[1:]}
    matrices[sample.gammas[0]] = SampleMatrix(usual)
    gammas = sorted(matrices, key=lambda gamma: gamma or 0.0)
    yield gammas[0], "k-means", matrices[gammas[0]], plain(sample, matrices[gammas[0]], k, seed, passes, deadline)
    if k <= _MOST_CLUSTERS:
        labels = graphs.spectral(seed, passes, deadline)
        for gamma in gammas:
            yield gamma, "spectral", matrices[gamma], labels


def plain(
    sample: Sample, matrix: SampleMatrix, k: int, seed: int, passes: Passes, deadline: Deadline | None = None
) -> Labels:
    """The clusters of k-means on the rows of the sample or, if there are none, of k-means++ in feature space."""
    if sample.rows is not None:
        source = cached(scan(sample.rows.rows, weights=sample.weights))
        left = None if deadline is None else deadline.left
        return cluster(passes.over(source, here=True), k, seed=seed, search="breathing", time_budget=left).labels
    best, least = np.zeros(matrix.n, dtype=np.int32), math.inf
    for number in range(_STARTS):
        rng = np.random.default_rng([seed, 0, number])
        labels = start.plusplus(matrix, sample.weights, k, rng, None)
        state = _descent(matrix, sample.weights, labels, k, normalize=False)
        if state[1] < least:
            best, least = state
    return best


def quick(sample: Sample, k: int, seed: int) -> Labels:
    """Clusters of the sample in next to no time."""
    with blas.single():
        matrix, rng = SampleMatrix(sample.matrix(sample.gammas[0])), np.random.default_rng([seed, 0, 0])
        return start.plusplus(matrix, sample.weights, k, rng, None)


def _descended(matrix: SampleMatrix, weights: Floats, labels: Labels, k: int, normalize: bool) -> Labels:
    return _descent(matrix, weights, labels, k, normalize)[0]


def _descent(matrix: SampleMatrix, weights: Floats, labels: Labels, k: int, normalize: bool) -> tuple[Labels, float]:
    """Where kernel k-means ends on the sample, and its sum of distances."""
    descent = KernelDescent(matrix, weights, k, 0.0, normalize, lambda number: labels)
    state = descent.start(0, None)
    for _ in range(_STEPS):
        if descent.ended(state) is not None:
            break
        state, _ = descent.step(state)
    return state["members"], float(state["inertia"])


def _doubt(best: Choice, least: float, tried: list[tuple[float, Choice]]) -> str | None:
    """What to say if a different clustering has about as small a cut."""
    from sklearn.metrics import adjusted_rand_score

    rivals = [(cut, each) for cut, each in tried if each is not best and cut <= _CLOSE * least]
    others = [(cut, each, float(adjusted_rand_score(best.labels, each.labels))) for cut, each in rivals]
    others = [other for other in others if other[2] < _DIFFERENT]
    if not others:
        return None
    cut, other, index = min(others, key=lambda other: other[0])
    width = "" if other.gamma is None else f" with gamma={other.gamma:.3g}"
    return (
        f"the choice of the start is unclear: another clustering (from {other.start}{width}; adjusted Rand index {index:.2f} "
        f"with this one) cuts neighbours apart about as little ({cut:.3g}, this one {least:.3g}); set init and gamma to decide"
    )
