"""What all models with cluster centres share: where to start, what a fit leaves behind, and how it is used."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from foldwise.data.block import Block
from foldwise.data.mapped import standardised, widened
from foldwise.data.source import Source
from foldwise.errors import DataError, FoldwiseWarning, ParameterError
from foldwise.fold.passes import Passes
from foldwise.kernels.targets import rescaling_around, targets_of
from foldwise.models.base import EachRow, KnownParameters, open_for_use
from foldwise.models.kmeans import cosine, row_output, seeding
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.label_order import ordered


class FewerClustersWarning(FoldwiseWarning, ConvergenceWarning):  # type: ignore[misc]
    """There are fewer distinct points than clusters."""


class CentreModel(
    KnownParameters,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Its classes have the parameters n_clusters, init, random_state, metric and n_threads, and a `fit`."""

    n_clusters: int
    init: Any
    random_state: Any
    metric: str
    n_threads: int | None

    # ---------------------------------------------------------------- for fitting

    def _seed(self) -> int:
        from sklearn.utils import check_random_state

        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))

    def _check_count(self, n: int, source: Source, counted: int | None = None) -> None:
        """Refuse fewer rows, or fewer rows that count, than clusters."""
        if n >= self.n_clusters and counted is not None and counted < self.n_clusters:
            raise DataError(
                f"n_clusters={self.n_clusters} is more than the {counted} rows whose weight is not 0",
                where=source.where if source.where != "array" else None,
                advice="Ask for fewer clusters",
            )
        if n < self.n_clusters:
            raise DataError(
                f"n_samples={n} should be >= n_clusters={self.n_clusters}",
                where=source.where if source.where != "array" else None,
                advice="Ask for fewer clusters",
            )

    def _starts(self, X: Any, seed: int, k: int | None = None) -> Callable[[Assignment, int], NDArray[Any]]:
        n_clusters = self.n_clusters if k is None else k

        def make(rows: Assignment, number: int) -> NDArray[Any]:
            rng = np.random.default_rng([seed, 0, number])
            if isinstance(self.init, str):
                if self.init == "k-means++":
                    return seeding.plusplus(rows, n_clusters, rng)
                if self.init == "random":
                    return seeding.random_rows(rows, n_clusters, rng)
                return seeding.parallel(rows, n_clusters, rng)
            if callable(self.init):
                given = self.init(X, n_clusters, random_state=np.random.RandomState((seed + number) % 2**32))
            else:
                given = self.init
            return self._given_centres(given, rows)

        return make

    def _given_centres(self, given: Any, rows: Assignment) -> NDArray[Any]:
        centres = np.array(given, dtype=rows.dtype, order="C")
        if centres.ndim != 2 or centres.shape[0] != self.n_clusters:
            raise ParameterError(
                f"The shape of the initial centers {centres.shape} does not match the number of clusters {self.n_clusters}."
            )
        if centres.shape[1] != rows.d:
            raise ParameterError(
                f"The shape of the initial centers {centres.shape} does not match the number of features of the data {rows.d}."
            )
        if not np.isfinite(centres).all():
            raise ParameterError("The initial centers contain NaN or infinity.")
        return cosine.project(centres) if self.metric == "cosine" else centres

    def _finish(self, rows: Assignment, found: Any, *, in_order: bool = False) -> None:
        centres = found.centres
        if isinstance(self.init, str) and not in_order:  # the start was ours: equal partitions get equal numbers
            centres = ordered(rows, centres, cosine.project if self.metric == "cosine" else None)
        weights, labels = rows.cluster_weights, rows.labels
        residuals = rows.residuals(centres)
        for name in ("_means", "_waiting"):  # of batches before
            self.__dict__.pop(name, None)
        self.cluster_centers_ = centres
        self.labels_ = labels
        self.cluster_weights_ = weights
        scaled = float(residuals.sum())
        self.inertia_ = rows.unscaled(scaled)
        self.cluster_inertias_ = np.array([rows.unscaled(float(value)) for value in residuals])
        if scaled > 0 and not 0 < self.inertia_ < np.inf:
            warnings.warn(
                f"the inertia leaves the range of float64 and is given as {self.inertia_}; labels and centres are right. "
                "Divide the data by a constant to see it.",
                FoldwiseWarning,
                stacklevel=3,
            )
        self.n_iter_ = found.iterations
        self.outcome_ = found.outcome
        self.trace_ = found.outcome.trace
        self._tell_of_empty(np.bincount(labels, minlength=len(centres)))

    def _tell_of_empty(self, counts: NDArray[np.intp]) -> None:
        distinct = int(np.count_nonzero(counts))
        if distinct < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({distinct}) found smaller than n_clusters ({self.n_clusters}). "
                "Possibly due to duplicate points in X.",
                FewerClustersWarning,
                stacklevel=4,
            )

    # ---------------------------------------------------------------- using

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.int32]:
        """Fit, and the labels."""
        return np.asarray(self.fit(X, sample_weight=sample_weight).labels_)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[Any]:
        """Fit, and the distances of every row to every centre."""
        return np.asarray(self.fit(X, sample_weight=sample_weight).transform(X))

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The nearest centre of every row: exactly, and the lowest number among equals."""
        run, targets = self._comparing(X)

        return run.rows(lambda block: self._label(block.rows, targets))

    def _label(self, rows: Any, targets: Any) -> NDArray[np.int32]:
        labels = np.full(rows.shape[0], -1, dtype=np.int32)
        targets.nearest(rows, labels)
        return labels

    def transform(self, X: Any) -> NDArray[Any]:
        """The distance of every row to every centre."""
        run, targets = self._comparing(X)
        return run.rows(lambda block: targets.distances(block.rows))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the inertia of these rows."""
        run, targets = self._comparing(X, sample_weight)

        def of(block: Block) -> NDArray[np.float64]:
            labels = self._label(block.rows, targets)
            each = np.empty(block.n_rows)
            targets.residuals(block.rows, None, labels, each)
            return each if block.weights is None else each * block.weights

        return float(-np.sum(run.rows(of)) / targets.frame.scale / targets.frame.scale)

    def _comparing(self, X: Any, sample_weight: Any = None) -> tuple[Passes, Any]:
        check_is_fitted(self, "cluster_centers_")  # batches of fewer rows than clusters leave nothing yet
        source = open_for_use(self, X, sample_weight)
        return Passes(self._widened(source), n_threads=self.n_threads), self._targets(source)

    def _widened(self, source: Source) -> Source:
        return self.as_compared(widened(source, np.promote_types(source.dtype, self.cluster_centers_.dtype)))

    def _targets(self, source: Source) -> Any:
        wide = np.promote_types(source.dtype, self.cluster_centers_.dtype)
        centres = np.ascontiguousarray(self.cluster_centers_, dtype=wide)
        return targets_of(centres, rescaling_around(centres, sparse=source.sparse), sparse=source.sparse)

    def as_compared(self, source: Source) -> Source:
        """The rows as distances see them: standardised with scale=True, of length 1 with metric="cosine"."""
        return self._seen(source, getattr(self, "mean_", None), getattr(self, "scale_", None))

    def _seen(self, source: Source, mean: Any, scale: Any) -> Source:
        if scale is not None:
            source = standardised(source, mean, scale)
        return cosine.on_the_sphere(source) if self.metric == "cosine" else source

    def each_row(self, source: Source) -> EachRow:
        """For those who stream: the cluster of each row and the distance to its centre."""
        check_is_fitted(self, "cluster_centers_")  # batches of fewer rows than clusters leave nothing yet
        return row_output.each_row(self._widened(source), self._targets(source), self._label)

    @property
    def n_clusters_(self) -> int:
        """How many clusters `predict` gives rows to: every clustering model says so under this name."""
        return len(self.cluster_centers_)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
