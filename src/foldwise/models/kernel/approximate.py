"""The approximate fit: k-means on features of the rows, in memory if they fit the budget, else in a scratch file."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Floats
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.errors import FoldwiseWarning, NotFinishedWarning
from foldwise.fold.passes import Passes
from foldwise.models.kernel import features, functions, predict, start
from foldwise.models.kernel.exact import by_size
from foldwise.models.kernel.fit_data import KernelFitData
from foldwise.models.kmeans import KMeans
from foldwise.models.kmeans.centre_model import FewerClustersWarning

_PER_LANDMARK = 20  # rows of the sample that landmarks are found in


def fit(model: Any, run: Passes, table: KernelFitData) -> dict[str, Any]:
    """What a model keeps."""
    kind = "random-features" if model.approximation == "random-features" else "nystroem"
    function = table.function(table.frame)
    if kind == "nystroem":
        landmarks = _landmarks(table, min(model.n_features, table.counted))
        basis = features.nystroem_basis(function, landmarks)
        of, width = features.nystroem(function, landmarks, basis), basis.shape[1]
        kept = predict.storable(landmarks)
    else:
        assert table.gamma is not None
        kept = None
        basis = features.frequencies(table.d, model.n_features, np.random.default_rng([table.seed, 2]))
        of, width = features.random_features(basis, table.gamma, table.frame), 2 * basis.shape[1]
    about = (
        basis,
        np.array(table.gamma or 0.0),
        *(kept if isinstance(kept, tuple) else () if kept is None else (kept,)),
    )
    made: Source = features.FeatureSource(table.seen.source, of, width, about)
    if table.n * width * made.dtype.itemsize <= model.memory_budget:
        values = Passes(made, n_threads=model.n_threads).rows(lambda block: block.dense())
        made = ArraySource(values, weights=table.weights)
    inner = _inner(model, table, function, of, made.dtype)
    with warnings.catch_warnings():  # the model will say it in its own name
        warnings.simplefilter("ignore", FewerClustersWarning)
        warnings.simplefilter("ignore", NotFinishedWarning)
        inner.fit(made)
    run.passes += inner.manifest_.passes
    labels, centres = inner.labels_, inner.cluster_centers_
    return {
        "labels_": labels,
        "inertia_": inner.inertia_,
        "cluster_weights_": inner.cluster_weights_,
        "cluster_inertias_": inner.cluster_inertias_,
        "cluster_centers_": centres,
        "n_iter_": inner.n_iter_,
        "gamma_": table.gamma,
        "landmarks_": kept,
        "basis_": basis,
        "pivot_": table.frame.pivot,
        "frame_scale_": table.frame.scale,
        "outcome_": inner.outcome_,
        "trace_": inner.trace_,
        "manifest_": replace(
            run.manifest(f"kernel k-means ({kind}, {width} features)", rows=table.n),
            spooled_bytes=inner.manifest_.spooled_bytes,
            resumed_at=inner.manifest_.resumed_at,
            repairs=inner.manifest_.repairs,
        ),
    }


def _landmarks(table: KernelFitData, count: int) -> Any:
    """Points that stand for all rows: the centres of k-means on a sample; of sparse rows, some of them."""
    rows, weights = table.sample(max(_PER_LANDMARK * count, 2000))
    if not isinstance(rows, np.ndarray):
        return table.sample(count)[0]
    found = KMeans(count, max_iter=10, tol=0.0, random_state=table.seed, n_threads=table.seen.run.n_threads)
    return _quiet(found, scan(rows, weights=weights))


def _quiet(found: KMeans, source: Source) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FoldwiseWarning)  # ten steps are all that is wanted, and nobody asked for these
        return np.unique(found.fit(source).cluster_centers_, axis=0)


def _inner(model: Any, table: KernelFitData, function: functions.Function, of: Any, dtype: np.dtype[Any]) -> KMeans:
    init = model.init
    rows, weights = table.sample(start.sample_size(table.counted, model.n_clusters))
    seen = function.seen(rows)
    matrix = function.between(seen, seen)
    if init == "auto":
        init = "spectral" if start.is_similarity(matrix) else "k-means++"
    starts: Any = model.n_init if model.n_init != "auto" else 10
    if init == "spectral":
        init, starts = _centres(model, matrix, weights, of(rows), table.seed).astype(dtype), 1
    return KMeans(
        model.n_clusters,
        init=init,
        n_init=starts,
        max_iter=model.max_iter,
        tol=model.tol,
        random_state=table.seed,
        time_budget=model.time_budget,
        checkpoint=model.checkpoint,
        n_threads=model.n_threads,
    )


def _centres(model: Any, matrix: Floats, weights: Floats | None, values: Floats, seed: int) -> Floats:
    """Means of the features of a sample's clusters, the largest first."""
    k = int(model.n_clusters)
    labels = start.spectral(matrix, weights, k, seed)
    count = np.ones(len(values)) if weights is None else weights
    order = by_size(labels, count, k)
    total = np.bincount(labels, count, minlength=k)
    sums = np.zeros((k, values.shape[1]))
    np.add.at(sums, labels, values * count[:, None])
    means = sums / np.where(total > 0, total, 1.0)[:, None]
    means[total <= 0] = values[0]
    return np.asarray(means[order])
