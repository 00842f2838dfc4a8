"""The exact fit: members of clusters, found by sums over the kernel matrix, which is computed in tiles or was given."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.errors import FoldwiseWarning, ParameterError
from foldwise.fold import blas
from foldwise.fold.outcome import Outcome
from foldwise.fold.passes import Passes
from foldwise.kernels.targets import Labels
from foldwise.models.kernel import start
from foldwise.models.kernel.descent import Descended, KernelDescent, descend
from foldwise.models.kernel.fit_data import KernelFitData, sample_rows
from foldwise.models.kernel.functions import kernel_class
from foldwise.models.kernel.geometry import effective_weights, means_of
from foldwise.models.kernel.kernel_matrix import KernelMatrix, PrecomputedFitData
from foldwise.models.session import Session


class NotPositiveWarning(FoldwiseWarning):
    """A kernel matrix has negative eigenvalues: it holds products in no space, and steps may raise the sum of distances."""


@dataclass(frozen=True)
class Fitted:
    """What a fit leaves behind: the model's attributes, and what `Session.finish` is told."""

    attributes: dict[str, Any]
    outcome: Outcome
    algorithm: str
    resumed_at: int
    repairs: tuple[str, ...]
    spooled_bytes: int | None = None


def fit(opened: Session, data: KernelFitData | PrecomputedFitData) -> Fitted:
    """Fit the session's model."""
    model = opened.model
    weights = np.ones(data.n) if data.weights is None else data.weights
    with blas.single():  # once, rather than for every pass
        matrix, held = data.matrix(model.memory_budget)
        starts = Starts(model, matrix, weights, opened.seed, data.canonical_order, opened.passes)
        checkpoint = opened.checkpoint(weights, *data.figures, resumable_cap=starts.number == 1)
        descent = KernelDescent(
            matrix, weights, int(model.n_clusters), float(model.tol), bool(model.normalize), starts.make
        )
        found = descend(descent, starts.number, model.max_iter, model.time_budget, checkpoint)
    filled = sum(int(figures["filled"]) for figures in found.outcome.trace)
    return Fitted(
        {**_attributes(model, matrix, weights, found), **data.attributes, "row_weights_": data.weights},
        found.outcome,
        f"kernel k-means (exact, matrix {held})",
        found.resumed_at,
        (f"{filled} times an empty cluster was given a row",) if filled else (),
    )


def _attributes(model: Any, matrix: KernelMatrix, weights: Floats, found: Descended) -> dict[str, Any]:
    k, members, sums = int(model.n_clusters), found.members, found.sums
    if isinstance(model.init, str):  # the start was ours: equal partitions get equal numbers
        order = by_size(members, weights, k)
        place = np.empty(k, dtype=np.int32)
        place[order] = np.arange(k, dtype=np.int32)
        members, sums = place[members], np.ascontiguousarray(sums[:, order])
    means = means_of(sums, members, weights, k, found.degrees)
    squares, labels = means.distances(sums, matrix.diagonal, found.degrees)
    own = squares[np.arange(len(labels)), labels] * effective_weights(weights, found.degrees)
    inertias = np.asarray(np.bincount(labels, own, minlength=k), dtype=np.float64)
    return {
        "labels_": labels,
        "inertia_": float(inertias.sum()),
        "cluster_weights_": np.asarray(np.bincount(labels, weights, minlength=k), dtype=np.float64),
        "cluster_inertias_": inertias,
        "n_iter_": found.iterations,
        "members_": members,
        "mean_weights_": means.weights,
        "mean_norms_": means.norms,
    }


def by_size(members: Labels, weights: Floats, k: int) -> NDArray[np.intp]:
    """Clusters from the largest to the smallest; equal ones by their first row."""
    first = np.full(k, len(members))
    np.minimum.at(first, members, np.arange(len(members)))
    return np.lexsort((first, -np.bincount(members, weights, minlength=k)))


class Starts:
    """The starts of an exact fit: their number, and the clusters of each."""

    def __init__(
        self,
        model: Any,
        matrix: KernelMatrix,
        weights: Floats,
        seed: int,
        order: NDArray[np.intp] | None,
        passes: Passes,
    ) -> None:
        self._matrix, self._weights, self._seed, self._order, self._passes = matrix, weights, seed, order, passes
        self._k, self._init = int(model.n_clusters), model.init
        given, unsure = not isinstance(model.init, str), kernel_class(model.kernel).user_defined
        self._sample = sample_rows(weights, start.sample_size(int(np.count_nonzero(weights)), self._k), seed)
        if unsure or (not given and model.init in ("auto", "spectral")):
            self._submatrix = matrix.submatrix(self._sample)
        if unsure:
            _check_kernel(self._submatrix, normalize=bool(model.normalize))
        if given:
            self._init = _given_labels(model.init, matrix.n, self._k)
        elif model.init == "auto":
            self._init = "spectral" if start.is_similarity(self._submatrix) else "k-means++"
        self.number = 1 if given else model.n_init
        if self.number == "auto":
            self.number = 1 if self._init == "spectral" else 10

    def make(self, number: int) -> Labels:
        """The clusters of one start."""
        matrix, weights, k = self._matrix, self._weights, self._k
        if not isinstance(self._init, str):
            return np.asarray(self._init)
        if self._init == "spectral":
            which = self._sample
            labels = start.spectral(self._submatrix, weights[which], k, self._seed + number, self._passes)
            return labels if len(which) == matrix.n else start.assign_all(matrix, which, labels, weights, k)
        rng = np.random.default_rng([self._seed, 0, number])
        choose = start.plusplus if self._init == "k-means++" else start.random_rows
        return choose(matrix, weights, k, rng, self._order)


def _given_labels(init: Any, n: int, k: int) -> Labels:
    given = np.asarray(init)
    if given.shape != (n,) or given.dtype.kind not in "iu":
        raise ParameterError(
            f"init as an array is the cluster of each row: {n} whole numbers, not {given.dtype} of shape {given.shape}."
        )
    if len(given) and not (given.min() >= 0 and given.max() < k):
        raise ParameterError(f"init has clusters from {given.min()} to {given.max()}; they must be from 0 to {k - 1}.")
    return given.astype(np.int32)


def _check_kernel(matrix: Floats, *, normalize: bool) -> None:
    """Refuse what is not symmetric on a sample, or negative where that has no meaning, and warn of negative eigenvalues."""
    largest = float(np.abs(matrix).max(initial=0.0))
    if np.abs(matrix - matrix.T).max(initial=0.0) > 1e-6 * largest:
        raise ParameterError("the kernel is not symmetric: k(x, y) and k(y, x) must be equal.")
    least = float(matrix.min(initial=0.0))
    if normalize and least < -1e-9 * largest:
        raise ParameterError(f"normalize=True needs a kernel without negative values, and this one has {least:.3g}.")
    from scipy.linalg import eigvalsh

    few = matrix[:: max(len(matrix) // 500, 1), :: max(len(matrix) // 500, 1)]
    values = eigvalsh((few + few.T) / 2)
    if len(values) and values[0] < -1e-8 * max(abs(values[-1]), 1e-300) * len(values):
        warnings.warn(
            f"the kernel matrix is not positive semi-definite (an eigenvalue of a sample is {values[0]:.3g}, the largest "
            f"{values[-1]:.3g}): squared distances and their sum may be negative (transform gives 0 for them), steps may "
            "raise the sum, and the fit may end without converging.",
            NotPositiveWarning,
            stacklevel=2,
        )
