"""The approximate fit: k-means on features of the rows, in memory if they fit the budget, else in a scratch file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
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
from foldwise.fold.deadline import Deadline, OutOfTimeError
from foldwise.kernels.targets import Labels
from foldwise.models.kernel.choose import choose, quick
from foldwise.models.kernel.exact import Fitted, sample_of
from foldwise.models.kernel.features import FeatureMap, FeatureSource, Nystroem, RandomFeatures
from foldwise.models.kernel.fit_data import KernelFitData
from foldwise.models.kernel.spectral import Graphs
from foldwise.models.kmeans.descent import cluster
from foldwise.models.kmeans.label_order import ordered
from foldwise.models.session import Session

_PER_LANDMARK = 20  # rows of the sample that landmarks are found in


def fit(opened: Session, data: KernelFitData) -> Fitted:
    """Fit the session's model."""
    model, deadline = opened.model, opened.deadline
    chosen = _Start(opened, data)
    kernel = data.kernel(data.rescaling)
    of: FeatureMap
    if model.approximation == "random-features":
        kind, landmarks = "random-features", None
        rng = np.random.default_rng([data.seed, 2])
        basis = kernel.random_directions(data.d, max(model.n_features // 2, 1), rng)
        of = RandomFeatures(kernel, basis)
    else:
        rows = _landmarks(data, min(model.n_features, data.n_with_weight), deadline)
        kind, landmarks, basis = "nystroem", to_arrays(rows), Nystroem.basis_of(kernel, rows)
        of = Nystroem(kernel, rows, basis)
    kept = () if landmarks is None else landmarks if isinstance(landmarks, tuple) else (landmarks,)
    made = FeatureSource(data.passes.source, of, (basis, np.array(data.gamma or 0.0), *kept))
    init, starts = chosen.init(of), chosen.number
    with _held(made, data, model.memory_budget) as source:
        found = cluster(
            opened.passes.over(cached(source)),
            int(model.n_clusters),
            seed=opened.seed,
            starts=starts,
            init=init,
            max_iter=model.max_iter,
            tol=model.tol,
            time_budget=deadline.left,
            checkpoint=opened.checkpoint(*data.figures, resumable_cap=starts == 1, features=made.fingerprint()),
            interruptible=True,
        )
        if not isinstance(init, str):  # numbers are by size, whatever the start
            assignment = found.clusters.assignment
            centres = ordered(assignment, found.centres)
            weights = assignment.cluster_weights
            found = replace(found, centres=centres, labels=assignment.labels, cluster_weights=weights)
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
    return Fitted(attributes, done.outcome, algorithm, done.resumed_at, done.repairs, spooled_bytes, chosen.notes)


@contextmanager
def _held(made: FeatureSource, data: KernelFitData, budget: float) -> Iterator[Source]:
    """The features in memory if they fit the budget, else in a scratch file."""
    if data.n * made.n_columns * made.dtype.itemsize <= budget:
        yield ArraySource(data.passes.over(made).rows(methodcaller("dense")), weights=data.weights)
    else:
        with spooled(made) as source:
            yield source


def _landmarks(data: KernelFitData, count: int, deadline: Deadline) -> Block:
    """Points that stand for all rows: the centres of k-means on a sample; of sparse rows, or without time, some rows."""
    if data.passes.source.sparse or deadline.left == 0:
        return data.sample(count)[0]
    rows, weights = data.sample(max(_PER_LANDMARK * count, 2000))
    source = scan(rows.rows, weights=weights)
    passes, left = data.passes.over(cached(source), here=True), deadline.left
    found = cluster(passes, count, seed=data.seed, max_iter=10, tol=0.0, time_budget=left)
    return block_of(np.unique(found.centres, axis=0))


class _Start:
    """Where k-means starts, and how often."""

    def __init__(self, opened: Session, data: KernelFitData) -> None:
        model, self._k, self._dtype = opened.model, int(opened.model.n_clusters), data.passes.source.dtype
        weights = np.ones(data.n) if data.weights is None else data.weights
        self._init = model.init
        self.notes: tuple[str, ...] = ()
        if model.init in ("auto", "spectral"):
            self._sample = sample_of(data, weights, self._k, opened.seed)
        if model.init == "auto":
            choice = choose(
                self._sample,
                self._k,
                normalize=False,
                seed=opened.seed,
                passes=opened.passes,
                deadline=opened.deadline,
            )
            self._init = "k-means++" if choice is None else choice.labels
            if choice is not None:
                data.gamma, self.notes = choice.gamma, () if choice.note is None else (choice.note,)
        elif model.init == "spectral":
            self._init = self._spectral(opened)
        self.number = int(model.n_init if model.n_init != "auto" else 10) if isinstance(self._init, str) else 1

    def _spectral(self, opened: Session) -> Labels:
        sample, k = self._sample, self._k
        if len(sample.weights) <= k:
            return np.arange(len(sample.weights), dtype=np.int32)
        try:
            graphs = Graphs(sample.matrix(sample.gammas[0]), sample.weights, k)
            return graphs.spectral(opened.seed, opened.passes, opened.deadline)
        except OutOfTimeError:
            return quick(sample, k, opened.seed)

    def init(self, of: FeatureMap) -> Any:
        """The name of a start, or the means of the features of the sample's clusters."""
        if isinstance(self._init, str):
            return self._init
        assert self._sample.rows is not None
        values, counts = of(self._sample.rows), self._sample.weights
        return _means(values, self._init, counts, self._k).astype(self._dtype)


def _means(values: Floats, labels: Any, counts: Floats, k: int) -> Floats:
    """Means of the features of a sample's clusters."""
    total = np.bincount(labels, counts, minlength=k)
    sums = np.zeros((k, values.shape[1]))
    np.add.at(sums, labels, values * counts[:, None])
    means = sums / np.where(total > 0, total, 1.0)[:, None]
    means[total <= 0] = values[0]
    return means
