"""The exact fit: members of clusters, found by sums over the kernel matrix, which is computed in tiles or was given."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.errors import FoldwiseWarning, ParameterError, warn
from foldwise.fold import blas
from foldwise.fold.deadline import OutOfTimeError
from foldwise.fold.outcome import Outcome, Reason
from foldwise.kernels.targets import Labels
from foldwise.models.kernel import start
from foldwise.models.kernel.choose import Choice, Sample, SampleMatrix, choose, plain, quick
from foldwise.models.kernel.descent import Descended, KernelDescent, descend
from foldwise.models.kernel.fit_data import KernelFitData, sample_rows
from foldwise.models.kernel.functions import kernel_class
from foldwise.models.kernel.geometry import coefficients, effective_weights, means_of
from foldwise.models.kernel.kernel_matrix import KernelMatrix, PrecomputedFitData
from foldwise.models.kernel.numbering import by_size
from foldwise.models.kernel.spectral import Graphs
from foldwise.models.session import Session

_FEW_VALUES = 10**6  # of sparse rows, which are made dense to find equal ones


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
    notes: tuple[str, ...] = ()


def fit(opened: Session, data: KernelFitData | PrecomputedFitData) -> Fitted:
    """Fit the session's model."""
    model, deadline = opened.model, opened.deadline
    weights = np.ones(data.n) if data.weights is None else data.weights
    kept = weights  # of the rows that the means are made of
    with blas.single():  # once, rather than for every pass
        starts = Starts(opened, data, weights)
        matrix = data.matrix(deadline)
        # The width may have been chosen under a time budget; another one is another model.
        checkpoint = opened.checkpoint(
            weights, *data.figures, resumable_cap=starts.number == 1, gamma=getattr(data, "gamma", None)
        )
        k, normalize = int(model.n_clusters), bool(model.normalize)
        try:
            matrix.keep(model.memory_budget)
            make = partial(starts.make, matrix)
            descent = KernelDescent(matrix, weights, k, float(model.tol), normalize, make)
            found = descend(descent, starts.number, model.max_iter, deadline, checkpoint)
            notes = () if starts.note is None else (starts.note,)
        except OutOfTimeError:
            deadline.lift()
            found, kept = _of_sample(matrix, weights, *starts.of_sample(), k, normalize, opened.passes.seconds)
            notes = (
                f"the time was over before the first pass over all pairs of rows: the means are those of "
                f"{np.count_nonzero(kept):,} rows",
            )
    filled = sum(int(figures["filled"]) for figures in found.outcome.trace)
    rows = data.all_rows if isinstance(model.init, str) else None
    attributes = _attributes(model, matrix, weights, kept, found, rows)
    return Fitted(
        {**attributes, **data.attributes, "row_weights_": data.weights if kept is weights else kept},
        found.outcome,
        f"kernel k-means (exact, matrix {matrix.held})",
        found.resumed_at,
        (f"{filled} times an empty cluster was given a row",) if filled else (),
        notes=notes,
    )


def _of_sample(
    matrix: KernelMatrix,
    weights: Floats,
    which: NDArray[np.intp],
    labels: Labels,
    k: int,
    normalize: bool,
    seconds: float,
) -> tuple[Descended, Floats]:
    """Every row with the nearest mean of the clusters of a sample, and the weights that its means are made with."""
    kept = np.zeros(matrix.n)
    kept[which] = weights[which]
    sums = matrix.times(coefficients(labels, weights[which], k), which)
    degrees = sums.sum(axis=1) if normalize else None
    if degrees is not None:
        degrees = np.where(degrees > 0, degrees, 1.0)
    members = np.zeros(matrix.n, dtype=np.int32)
    members[which] = labels
    members = means_of(sums, members, kept, k, degrees).distances(sums, matrix.diagonal, degrees)[1]
    members[which] = labels
    return Descended(members, sums, degrees, Outcome(Reason.OUT_OF_TIME, 0, seconds), 0, 0), kept


def _attributes(
    model: Any, matrix: KernelMatrix, weights: Floats, kept: Floats, found: Descended, rows: Block | None
) -> dict[str, Any]:
    k, members, sums = int(model.n_clusters), found.members, found.sums
    means = means_of(sums, members, kept, k, found.degrees)
    if isinstance(model.init, str):  # the start was ours: equal partitions get equal numbers
        order = by_size(members, weights, k, rows, means.norms)
        place = np.empty(k, dtype=np.int32)
        place[order] = np.arange(k, dtype=np.int32)
        members, sums = place[members], np.ascontiguousarray(sums[:, order])
        means = means_of(sums, members, kept, k, found.degrees)
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


class Starts:
    """The starts of an exact fit: their number, and the clusters of each."""

    def __init__(self, opened: Session, data: KernelFitData | PrecomputedFitData, weights: Floats) -> None:
        model = opened.model
        self._weights, self._seed, self._order = weights, opened.seed, data.canonical_order
        self._passes, self._deadline = opened.passes, opened.deadline
        self._k, self._init = int(model.n_clusters), model.init
        self._choice: Choice | None = None
        given, unsure = not isinstance(model.init, str), kernel_class(model.kernel).user_defined
        self._sample = sample_of(data, weights, self._k, opened.seed)
        if unsure:
            _check_kernel(self._sample.matrix(None), normalize=bool(model.normalize))
        if given:
            self._init = _given_labels(model.init, data.n, self._k)
        elif model.init == "auto":
            self._choice = choose(
                self._sample,
                self._k,
                normalize=bool(model.normalize),
                seed=opened.seed,
                passes=opened.passes,
                deadline=opened.deadline,
            )
            self._init = "chosen" if self._choice else "k-means++"
            if self._choice is not None and isinstance(data, KernelFitData):
                data.gamma = self._choice.gamma
        self.number = 1 if given else model.n_init
        if self.number == "auto":
            self.number = 1 if self._init in ("spectral", "chosen") else 10

    @property
    def note(self) -> str | None:
        """What there is to say of the choice."""
        return None if self._choice is None else self._choice.note

    def make(self, matrix: KernelMatrix, number: int) -> Labels:
        """The clusters of one start."""
        weights, k = self._weights, self._k
        if not isinstance(self._init, str):
            return np.asarray(self._init)
        if self._init in ("spectral", "chosen"):
            which, labels = self._sample.which, self._of_sample(number)[self._sample.inverse]
            return labels if len(which) == matrix.n else start.assign_all(matrix, which, labels, weights, k)
        rng = np.random.default_rng([self._seed, 0, number])
        find = start.plusplus if self._init == "k-means++" else start.random_rows
        return find(matrix, weights, k, rng, self._order)

    def _of_sample(self, number: int) -> Labels:
        sample, k, seed = self._sample, self._k, self._seed + number
        if number == 0 and self._choice is not None:
            return self._choice.labels
        if len(sample.weights) <= k:
            return np.arange(len(sample.weights), dtype=np.int32)
        gamma = sample.gammas[0] if self._choice is None else self._choice.gamma
        if self._choice is not None and self._choice.start != "spectral":
            return plain(sample, SampleMatrix(sample.matrix(gamma)), k, seed, self._passes)
        return Graphs(sample.matrix(gamma), sample.weights, k).spectral(seed, self._passes, self._deadline)

    def of_sample(self) -> tuple[NDArray[np.intp], Labels]:
        """Some rows and their clusters, found in next to no time."""
        which, inverse = self._sample.which, self._sample.inverse
        if self._choice is not None:
            return which, self._choice.labels[inverse]
        if not isinstance(self._init, str):
            return which, np.asarray(self._init)[which]
        return which, quick(self._sample, self._k, self._seed)[inverse]


def sample_of(data: KernelFitData | PrecomputedFitData, weights: Floats, k: int, seed: int) -> Sample:
    """The rows that a start is made from."""
    which = sample_rows(weights, start.sample_size(int(np.count_nonzero(weights)), k), seed)
    rows, counts = data.rows(which), weights[which]
    if rows is None or (rows.sparse and rows.n_rows * rows.n_columns > _FEW_VALUES):
        matrix = partial(data.sample_matrix, rows, which)
        return Sample(which, np.arange(len(which)), counts, rows, data.gammas, matrix)
    _, first, inverse = np.unique(rows.dense(), axis=0, return_index=True, return_inverse=True)
    inverse, distinct = inverse.ravel(), rows.take(first)
    counts = np.asarray(np.bincount(inverse, counts, minlength=len(first)), dtype=np.float64)
    return Sample(which, inverse, counts, distinct, data.gammas, partial(data.sample_matrix, distinct, which))


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
        warn(
            f"the kernel matrix is not positive semi-definite (an eigenvalue of a sample is {values[0]:.3g}, the largest "
            f"{values[-1]:.3g}): squared distances and their sum may be negative (transform gives 0 for them), steps may "
            "raise the sum, and the fit may end without converging.",
            NotPositiveWarning,
        )
