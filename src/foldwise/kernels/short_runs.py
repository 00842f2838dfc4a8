"""Many steps of EM and of k-means over rows in memory, in one call each: what the search for a mixture's start is made of."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foldwise.kernels import _core
from foldwise.kernels.mixture import _KINDS, _SCATTERS, Kind, Scatter

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]

SETTLED, COLLAPSED = 1, 2  # why a run ended; 0 if its steps were used up


def em_run(
    kind: Kind,
    scatter: Scatter,
    rows: Floats,
    row_weights: Floats | None,
    ridge: Floats,
    model: tuple[Floats, Floats, Floats],
    *,
    steps: int,
    tol: float,
    least: float,
    limit: float,
    many: float = math.inf,
    power: float = 1.0,
) -> tuple[float, tuple[Floats, Floats, Floats], int, int]:
    """The bound that the last step found, the model after it, the steps taken, and why it ended.

    `model` is weights, means and covariances of the kind, in scikit-learn's shapes; rows and means are near zero. Steps are
    those of EM with `ridge` added to the variances, and their bound is that of `models/mixture/em.py`. A run settles after
    two steps that each gain less than `tol`. It has collapsed if a component has a weight below `least`, or one below `many`
    and a trace of ridge times precision that reaches `limit`; the model is then that before the step. With `power` other than
    1, densities and weights are taken to that power before rows are shared out: the bound is then not one of the likelihood,
    and a run ends only after all its steps.
    """
    weights, means, covariances = (np.array(part, dtype=np.float64) for part in model)
    bound, done, status = _core.em_run(
        _KINDS.index(kind),
        _SCATTERS.index(scatter),
        rows,
        row_weights,
        ridge,
        weights,
        means,
        covariances,
        steps,
        tol,
        least,
        limit,
        many,
        power,
    )
    return bound, (weights, means, covariances), done, status


def em_improve(
    kind: Kind,
    scatter: Scatter,
    rows: Floats,
    row_weights: Floats | None,
    ridge: Floats,
    model: tuple[Floats, Floats, Floats],
    bound: float,
    *,
    budget: float,
    each: float,
    patience: int,
    powers: Sequence[tuple[float, int]],
    judged: Sequence[int],
    ahead: float,
    gain: float,
    tol: float,
    least: float,
    limit: float,
    many: float = math.inf,
) -> tuple[float, tuple[Floats, Floats, Floats], float]:
    """The best of the models found by moves away from `model`, its bound, and the steps taken.

    A move merges two components and splits a third (Ueda and others 2000) or takes some steps with densities to a power below
    one; the two kinds take turns, each of `powers` with its steps. Five steps of EM judge it, then those of `judged` while the
    bound, going on for `ahead` steps as it did in the last ones, would reach that of the best. What gains more than `gain` is
    the new best. It ends when `patience` splits and all powers have failed in a row, or when `budget` steps have been taken;
    a move counts as `each` besides its own.
    """
    weights, means, covariances = (np.array(part, dtype=np.float64) for part in model)
    bound, done = _core.em_improve(
        _KINDS.index(kind),
        _SCATTERS.index(scatter),
        rows,
        row_weights,
        ridge,
        weights,
        means,
        covariances,
        bound,
        budget,
        each,
        patience,
        np.array(powers, dtype=np.float64).reshape(-1, 2),
        np.array(judged, dtype=np.int64),
        ahead,
        gain,
        tol,
        least,
        limit,
        many,
    )
    return bound, (weights, means, covariances), done


def kmeans_labels(
    columns: Floats,
    row_weights: Floats | None,
    k: int,
    rng: np.random.Generator,
    *,
    trials: int,
    steps: int,
    swaps: int,
    every: int = 1,
) -> Labels:
    """Labels by greedy k-means++, `steps` of Lloyd's, and swaps of centres until `swaps` in a row have failed.

    `columns` are the rows transposed: (columns, rows). A swap removes the centre that is least needed and cuts a cluster of
    large inertia in two; four steps judge it. With `every` above 1 all this looks at every so manieth row, and a last step
    at all.
    """
    chosen = np.empty(k, dtype=np.int32)
    some = columns if every == 1 else np.ascontiguousarray(columns[:, ::every])
    weights = row_weights if row_weights is None or every == 1 else np.ascontiguousarray(row_weights[::every])
    labels = np.empty(some.shape[1], dtype=np.int32)
    _core.kmeans_seed(some, weights, rng.random((k, trials)), chosen)
    centres = np.ascontiguousarray(some[:, chosen].T)
    _core.kmeans_run(some, weights, centres, labels, steps, swaps)
    if every > 1:
        labels = np.empty(columns.shape[1], dtype=np.int32)
        _core.kmeans_run(columns, row_weights, centres, labels, 1, 0)
    return labels


def label_moments(rows: Floats, row_weights: Floats | None, labels: Labels, k: int) -> tuple[Floats, Floats, Floats]:
    """Weight, mean and scatter matrix about the mean of the rows of each label."""
    d = rows.shape[1]
    counts, means, scatter = np.empty(k), np.empty((k, d)), np.empty((k, d, d))
    _core.label_moments(rows, row_weights, labels, counts, means, scatter)
    return counts, means, scatter
