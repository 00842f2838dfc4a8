"""The exact fit: members of clusters, found by sums over the kernel matrix, which is computed in tiles or was given."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.errors import DataError, FoldwiseWarning, ParameterError
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.outcome import Outcome
from foldwise.fold.passes import Passes
from foldwise.kernels.targets import Labels
from foldwise.models.kernel import start
from foldwise.models.kernel.descent import Plan, descend
from foldwise.models.kernel.geometry import Means, mass, means_of
from foldwise.models.kernel.kernel_matrix import KernelMatrix, PrecomputedMatrix

_SYMMETRIC = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-8}


class NotPositiveWarning(FoldwiseWarning):
    """A kernel matrix has negative eigenvalues: it holds products in no space, and steps may raise the sum of distances."""


@dataclass(frozen=True)
class Clusters:
    """What an exact fit leaves behind."""

    members: Labels
    labels: Labels
    means: Means
    inertias: Floats
    weights: Floats
    outcome: Outcome
    resumed_at: int
    iterations: int
    filled: int


def solve(
    model: Any,
    products: KernelMatrix,
    weights: Floats,
    seed: int,
    checkpoint: Checkpoint | None,
    *,
    order: NDArray[np.intp] | None = None,
    check: bool,
) -> Clusters:
    """Fit with the parameters of a model; `check` looks whether the matrix is a kernel's at all."""
    k = int(model.n_clusters)
    make, starts = _starts(model, products, weights, seed, order, check=check)
    plan = Plan(k, starts, model.max_iter, model.tol, model.normalize, make)
    found = descend(products, weights, plan, time_budget=model.time_budget, checkpoint=checkpoint)
    members, sums = found.members, found.sums
    if isinstance(model.init, str):  # the start was ours: equal partitions get equal numbers
        order = by_size(members, weights, k)
        place = np.empty(k, dtype=np.int32)
        place[order] = np.arange(k, dtype=np.int32)
        members, sums = place[members], np.ascontiguousarray(sums[:, order])
    means = means_of(sums, members, weights, k, found.degrees)
    squares, labels = means.judge(sums, products.diagonal, found.degrees)
    own = squares[np.arange(len(labels)), labels] * mass(weights, found.degrees)
    return Clusters(
        members=members,
        labels=labels,
        means=means,
        inertias=np.asarray(np.bincount(labels, own, minlength=k), dtype=np.float64),
        weights=np.asarray(np.bincount(labels, weights, minlength=k), dtype=np.float64),
        outcome=found.outcome,
        resumed_at=found.resumed_at,
        iterations=found.iterations,
        filled=found.filled,
    )


def by_size(members: Labels, weights: Floats, k: int) -> NDArray[np.intp]:
    """Clusters from the largest to the smallest; equal ones by their first row."""
    first = np.full(k, len(members))
    np.minimum.at(first, members, np.arange(len(members)))
    return np.lexsort((first, -np.bincount(members, weights, minlength=k)))


def _starts(
    model: Any, products: KernelMatrix, weights: Floats, seed: int, order: NDArray[np.intp] | None, *, check: bool
) -> tuple[Callable[[int], Labels], int]:
    k, init = int(model.n_clusters), model.init
    which = sampled(weights, start.sample_size(int(np.count_nonzero(weights)), k), seed)
    matrix = None
    if check or (isinstance(init, str) and init in ("auto", "spectral")):
        matrix = products.among(which)
    if check and matrix is not None:
        _check_kernel(matrix, normalize=bool(model.normalize))
    if not isinstance(init, str):
        given = _given_labels(init, products.n, k)
        return lambda number: given, 1
    if init == "auto":
        assert matrix is not None
        init = "spectral" if start.is_similarity(matrix) else "k-means++"
    starts = model.n_init if model.n_init != "auto" else 1 if init == "spectral" else 10

    def make(number: int) -> Labels:
        if init == "spectral":
            assert matrix is not None
            labels = start.spectral(matrix, weights[which], k, seed + number)
            if len(which) == products.n:
                return labels
            return start.extended(products, which, labels, weights, k)
        rng = np.random.default_rng([seed, 0, number])
        make_rows = start.plusplus if init == "k-means++" else start.random_rows
        return make_rows(products, weights, k, rng, order)

    return make, int(starts)


def sampled(weights: Floats, size: int, seed: int) -> NDArray[np.intp]:
    """Numbers of rows that count: all, or that many drawn without repetition."""
    some = np.flatnonzero(weights)
    if len(some) <= size:
        return some
    return np.sort(np.random.default_rng([seed, 1]).choice(some, size, replace=False))


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
            "raise the sum, and the fit may end without settling.",
            NotPositiveWarning,
            stacklevel=2,
        )


def given_matrix(run: Passes, where: str) -> tuple[PrecomputedMatrix, Floats | None]:
    """A precomputed matrix, checked: square, finite, symmetric; and its rows' weights."""
    source = run.source
    n = source.n_columns
    if source.n_rows is not None and source.n_rows != n:
        raise _not_square(source.n_rows, n, where)
    diagonal, weights = np.full(n, np.nan), np.ones(n)
    probe = np.sort(np.random.default_rng(0).choice(n, min(n, 200), replace=False))
    rows_at, columns_at = np.empty((len(probe), n)), np.empty((n, len(probe)))
    weighted = False

    def of(block: Block) -> int:
        nonlocal weighted
        rows, stop = block.rows, block.start + block.n_rows
        if stop > n:
            raise _not_square(stop, n, where)
        if not isinstance(rows, np.ndarray):
            raise DataError("a precomputed kernel matrix must be dense", where=where, advice="Pass matrix.toarray()")
        diagonal[block.start : stop] = rows[np.arange(block.n_rows), np.arange(block.start, stop)]
        here = (probe >= block.start) & (probe < stop)
        rows_at[here] = rows[probe[here] - block.start]
        columns_at[block.start : stop] = rows[:, probe]
        if block.weights is not None:
            weights[block.start : stop], weighted = block.weights, True
        return block.n_rows

    seen: dict[int, int] = {}
    run.visit(of, seen.__setitem__)
    if sum(seen.values()) != n:
        raise _not_square(sum(seen.values()), n, where)
    gap = np.abs(rows_at - columns_at.T)
    if gap.max(initial=0.0) > _SYMMETRIC[np.dtype(source.dtype)] * np.abs(rows_at).max(initial=0.0):
        i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
        raise DataError(
            f"the precomputed kernel matrix is not symmetric: {rows_at[i, j]:.6g} here, {columns_at[j, i]:.6g} across",
            where=where,
            row=int(probe[i]),
            column=int(j),
            advice="Pass (K + K.T) / 2 if that is what is meant",
        )
    return PrecomputedMatrix(run, n, diagonal), weights if weighted else None


def _not_square(rows: int, columns: int, where: str) -> DataError:
    return DataError(
        f"a precomputed kernel matrix has as many columns as rows, not {rows} x {columns}",
        where=where,
        advice="Row i, column j is the kernel of rows i and j of the data",
    )
