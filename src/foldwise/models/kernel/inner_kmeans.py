"""K-means inside kernel k-means: of spectral places, for landmarks, and of features."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.errors import FoldwiseWarning
from foldwise.fold.outcome import Outcome
from foldwise.fold.passes import Passes
from foldwise.kernels.targets import Labels


@dataclass(frozen=True)
class Clustering:
    """What k-means found."""

    labels: Labels
    centres: NDArray[Any]
    cluster_weights: Floats
    cluster_inertias: Floats
    inertia: float
    iterations: int
    outcome: Outcome
    resumed_at: int
    repairs: tuple[str, ...]


def cluster(passes: Passes, k: int, *, seed: int, starts: int = 1, **options: Any) -> Clustering:
    """K-means of the rows, without warnings: it is one step of another method, which says in its own name how it ended."""
    from foldwise.models.kmeans import KMeans  # replaced when kmeans lands

    model = KMeans(k, random_state=seed, n_init=starts, n_threads=passes.n_threads, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FoldwiseWarning)
        model.fit(passes.source)
    passes.counter.passes += model.manifest_.passes
    return Clustering(
        np.asarray(model.labels_),
        model.cluster_centers_,
        model.cluster_weights_,
        model.cluster_inertias_,
        model.inertia_,
        model.n_iter_,
        model.outcome_,
        model.manifest_.resumed_at,
        model.manifest_.repairs,
    )
