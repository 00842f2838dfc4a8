"""The approximate fit: k-means on features of the rows, in memory if they fit the budget, else in a scratch file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from operator import methodcaller
from typing import Any

import numpy as np

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Block, Floats, block_of
from foldwise.data.cache import cached
from foldwise.data.row_pairs import to_arrays
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.data.spool import spooled
from foldwise.models.kernel import start
from foldwise.models.kernel.exact import Fitted, by_size
from foldwise.models.kernel.features import FeatureMap, FeatureSource, Nystroem, RandomFeatures
from foldwise.models.kernel.fit_data import KernelFitData
from foldwise.models.kernel.functions import Kernel
from foldwise.models.kmeans.descent import cluster
from foldwise.models.session import Session

_PER_LANDMARK = 20  # rows of the sample that landmarks are found in


def fit(opened: Session, data: KernelFitData) -> Fitted:
    """Fit the session's model."""
    model, kernel = opened.model, data.kernel(data.rescaling)
    of: FeatureMap
    if model.approximation == "random-features":
        kind, landmarks = "random-features", None
        rng = np.random.default_rng([data.seed, 2])
        basis = kernel.random_directions(data.d, max(model.n_features // 2, 1), rng)
        of = RandomFeatures(kernel, basis)
    else:
        rows = _landmarks(data, min(model.n_features, data.n_with_weight))
        kind, landmarks, basis = "nystroem", to_arrays(rows), Nystroem.basis_of(kernel, rows)
        of = Nystroem(kernel, rows, basis)
    kept = () if landmarks is None else landmarks if isinstance(landmarks, tuple) else (landmarks,)
    made = FeatureSource(data.passes.source, of, (basis, np.array(data.gamma or 0.0), *kept))
    init, starts = _start(opened, data, kernel, of)
    with _held(made, data, model.memory_budget) as source:
        found = cluster(
            opened.passes.over(cached(source)),
            int(model.n_clusters),
            seed=opened.seed,
            starts=starts,
            init=init,
            max_iter=model.max_iter,
            tol=model.tol,
            time_budget=model.time_budget,
            checkpoint=opened.checkpoint(*data.figures, resumable_cap=starts == 1, features=made.fingerprint()),
            interruptible=True,
        )
        inertias = found.cluster_inertias
        spooled_bytes = int(getattr(source, "spooled_bytes", 0))
    attributes = {
        "labels_": found.labels,
        "inertia_": float(inertias.sum()),
        "cluster_weights_": found.cluster_weights,
        "cluster_inertias_": inertias,
        "cluster_centers_": found.centres,
        "n_iter_": found.clusters.iterations,
        "gamma_": data.gamma,
        "landmarks_": landmarks,
        "basis_": basis,
        "pivot_": data.rescaling.pivot,
        "frame_scale_": data.rescaling.scale,
    }
    algorithm = f"kernel k-means ({kind}, {of.n_features} features)"
    done = found.clusters
    return Fitted(attributes, done.outcome, algorithm, done.resumed_at, done.repairs, spooled_bytes)


@contextmanager
def _held(made: FeatureSource, data: KernelFitData, budget: float) -> Iterator[Source]:
    """The features in memory if they fit the budget, else in a scratch file."""
    if data.n * made.n_columns * made.dtype.itemsize <= budget:
        yield ArraySource(data.passes.over(made).rows(methodcaller("dense")), weights=data.weights)
    else:
        with spooled(made) as source:
            yield source


def _landmarks(data: KernelFitData, count: int) -> Block:
    """Points that stand for all rows: the centres of k-means on a sample; of sparse rows, which centres are not, some rows."""
    if data.passes.source.sparse:
        return data.sample(count)[0]
    rows, weights = data.sample(max(_PER_LANDMARK * count, 2000))
    source = scan(rows.rows, weights=weights)
    found = cluster(data.passes.over(cached(source), here=True), count, seed=data.seed, max_iter=10, tol=0.0)
    return block_of(np.unique(found.centres, axis=0))


def _start(opened: Session, data: KernelFitData, kernel: Kernel, of: FeatureMap) -> tuple[Any, int]:
    """Where k-means starts, and how often."""
    model, k = opened.model, int(opened.model.n_clusters)
    rows, weights = data.sample(start.sample_size(data.n_with_weight, k))
    prepared = kernel.prepare(rows)
    matrix = kernel.matrix(prepared, prepared)
    init = model.init
    if init == "auto":
        init = "spectral" if start.is_similarity(matrix) else "k-means++"
    if init != "spectral":
        return init, int(model.n_init if model.n_init != "auto" else 10)
    labels = start.spectral(matrix, weights, k, data.seed, opened.passes)
    counts = np.ones(len(labels)) if weights is None else weights
    return _means(of(rows), labels, counts, k).astype(data.passes.source.dtype), 1


def _means(values: Floats, labels: Any, counts: Floats, k: int) -> Floats:
    """Means of the features of a sample's clusters, the largest first."""
    total = np.bincount(labels, counts, minlength=k)
    sums = np.zeros((k, values.shape[1]))
    np.add.at(sums, labels, values * counts[:, None])
    means = sums / np.where(total > 0, total, 1.0)[:, None]
    means[total <= 0] = values[0]
    return np.asarray(means[by_size(labels, counts, k)])
