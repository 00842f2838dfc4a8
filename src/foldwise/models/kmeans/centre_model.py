"""What all models with cluster centres share: initial centres, fitted attributes, and prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from foldwise.data.mapped import standardised, widened
from foldwise.data.source import Source
from foldwise.errors import DataError, FoldwiseWarning, ParameterError, warn
from foldwise.fold.outcome import Reason
from foldwise.fold.passes import Passes
from foldwise.kernels.targets import Labels, rescaling_around, targets_of
from foldwise.models.base import KnownParameters, RowOutput, open_for_use
from foldwise.models.fitted_rows import ShownModel
from foldwise.models.kmeans.descent import Clusters
from foldwise.models.kmeans.fit_data import KMeansData
from foldwise.models.kmeans.geometry import EUCLIDEAN, GEOMETRIES, Geometry
from foldwise.models.kmeans.label_order import ordered
from foldwise.models.kmeans.row_output import ClusterAndDistance, DistancesToCentres, NearestCentre, SquaredDistance
from foldwise.models.kmeans.seeding import STARTS
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.models.session import Session


class FewerClustersWarning(FoldwiseWarning, ConvergenceWarning):  # type: ignore[misc]
    """There are fewer distinct points than clusters."""


def check_count(n_clusters: int, n: int, with_weight: int, where: str | None) -> None:
    """Refuse fewer rows, or fewer rows with weight, than clusters."""
    if n < n_clusters:
        what = f"n_samples={n} should be >= n_clusters={n_clusters}"
    elif with_weight < n_clusters:
        what = f"n_clusters={n_clusters} is more than the {with_weight} rows whose weight is not 0"
    else:
        return
    raise DataError(what, where=where, advice="Ask for fewer clusters")


class CentreModel(
    ShownModel,
    KnownParameters,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Base class; subclasses have the parameters n_clusters, init, random_state, metric and n_threads, and a `fit`."""

    n_clusters: int
    init: Any
    random_state: Any
    metric: str
    n_threads: int | None
    mean_: Any
    scale_: Any

    @property
    def geometry(self) -> Geometry:
        """The geometry in which rows are compared."""
        return GEOMETRIES.get(self.metric, EUCLIDEAN)  # an invalid name is caught by the parameter check

    # ---------------------------------------------------------------- for fitting

    def _check_count(self, fit: Session, n: int, counted: int | None = None) -> None:
        """Refuse fewer rows, or fewer rows with weight, than clusters."""
        check_count(self.n_clusters, n, n if counted is None else counted, fit.where)

    def _n_starts(self, many: int = 10) -> int:
        """The number of starts for `n_init`; only one if the initial centres are given."""
        given, n_init = not isinstance(self.init, str), self.n_init
        if n_init == "auto":
            return many if callable(self.init) or (not given and self.init == "random") else 1
        if given and not callable(self.init) and n_init != 1:
            warn(
                f"Explicit initial center position passed: performing only one init in {type(self).__name__} instead "
                f"of n_init={n_init}.",
                RuntimeWarning,
            )
            return 1
        return int(n_init)

    def _make_start(self, data: KMeansData, X: Any, seed: int) -> Callable[[int], NDArray[Any]]:
        """A function that returns the initial centres of start `number`."""

        def make(number: int) -> NDArray[Any]:
            if isinstance(self.init, str):
                return STARTS[self.init](data, self.n_clusters, np.random.default_rng([seed, 0, number]))
            if callable(self.init):
                return self._called_start(X, self.n_clusters, (seed + number) % 2**32, data)
            return self._given_centres(self.init, self.n_clusters, data)

        return make

    def _called_start(self, X: Any, k: int, seed: int, data: KMeansData) -> NDArray[Any]:
        """The centres that a callable `init` returns."""
        return self._given_centres(self.init(X, k, random_state=np.random.RandomState(seed)), k, data)

    def _given_centres(self, given: Any, k: int, data: KMeansData) -> NDArray[Any]:
        centres = np.array(given, dtype=data.dtype, order="C")
        for axis, wanted, what in ((0, k, "clusters"), (1, data.d, "features of the data")):
            if centres.ndim != 2 or centres.shape[axis] != wanted:
                raise ParameterError(
                    f"The shape of the initial centers {centres.shape} does not match the number of {what} {wanted}."
                )
        if not np.isfinite(centres).all():
            raise ParameterError("The initial centers contain NaN or infinity.")
        return self.geometry.projected(centres)

    def _finish(self, fit: Session, found: Clusters, *, in_order: bool = False) -> Clusters:
        """Set the attributes of a fit; Ctrl-C at this late moment does not lose what was found."""
        try:
            self._set(fit, found, in_order=in_order)
        except KeyboardInterrupt:
            found = replace(found, outcome=replace(found.outcome, reason=Reason.INTERRUPTED))
            found.assignment.forget()
            self._set(fit, found, in_order=in_order)
        return found

    def _set(self, fit: Session, found: Clusters, *, in_order: bool) -> None:
        centres, assignment = found.centres, found.assignment
        if assignment.centres is None or not np.array_equal(assignment.centres, centres):
            assignment.assign_last(centres)
        if isinstance(self.init, str) and not in_order:  # the start was ours: equal partitions get equal numbers
            centres = ordered(assignment, centres, self.geometry)
        residuals = assignment.residuals(centres)
        labels = assignment.hand_over_labels()
        # All attributes are set together, after the last pass and before any warning: a fit that fails changes nothing.
        unscaled, scaled = assignment.data.unscaled, float(residuals.sum())
        self._forget_batches()
        self.cluster_centers_, self.labels_, self.cluster_weights_ = centres, labels, assignment.cluster_weights
        self.inertia_ = unscaled(scaled)
        self.cluster_inertias_ = np.array([unscaled(float(value)) for value in residuals])
        self.n_iter_, self.trace_ = found.iterations, found.outcome.trace
        self.mean_, self.scale_ = fit.mean, fit.scale
        self._warn_of_range(scaled)
        self._warn_of_empty(self._distinct())

    def _forget_batches(self) -> None:
        for name in ("_means", "_waiting"):
            self.__dict__.pop(name, None)

    def _warn_of_range(self, scaled: float) -> None:
        """Warn if the inertia, which is `scaled` in units of the rescaled data, cannot be expressed in those of the data."""
        if scaled > 0 and not 0 < self.inertia_ < np.inf:
            warn(
                f"the inertia leaves the range of float64 and is reported as {self.inertia_}; labels and centres are "
                "correct. Divide the data by a constant to obtain it.",
                FoldwiseWarning,
            )

    def _distinct(self) -> int:
        """The number of clusters with a row, be it one of weight 0."""
        weighty = int(np.count_nonzero(self.cluster_weights_ > 0))
        if weighty >= self.n_clusters:  # spares a look at all labels
            return weighty
        return int(np.count_nonzero(np.bincount(self.labels_[self.labels_ >= 0])))

    def _warn_of_empty(self, distinct: int) -> None:
        if distinct < self.n_clusters:
            warn(
                f"Number of distinct clusters ({distinct}) found smaller than n_clusters ({self.n_clusters}). "
                "Possibly due to duplicate points in X.",
                FewerClustersWarning,
            )

    # ---------------------------------------------------------------- for rows

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None, *, engine: Any = None) -> Labels:
        """Fit, and return the labels."""
        return np.asarray(self.fit(X, sample_weight=sample_weight, engine=engine).labels_)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[Any]:
        """Fit, and return the distance of every row to every centre."""
        return np.asarray(self.fit(X, sample_weight=sample_weight).transform(X))

    def predict(self, X: Any) -> Labels:
        """The exact nearest centre of every row; ties go to the lowest number.

        With missing="model", nearest over the cells that the row has; -1 for a row with nothing observed.
        """
        passes, targets = self._comparing(X)
        return passes.rows(self._labeller(targets))

    def transform(self, X: Any) -> NDArray[Any]:
        """The distance of every row to every centre.

        With missing="model": the root of the squares over the row's observed cells, times columns / observed cells, so that
        rows with more and with fewer missing cells can be compared; NaN for a row with nothing observed.
        """
        passes, targets = self._comparing(X)
        return passes.rows(DistancesToCentres(targets))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The negative inertia of these rows."""
        passes, targets = self._comparing(X, sample_weight)
        squares = passes.rows(SquaredDistance(targets, self._labeller(targets)))
        squares = squares[squares == squares]
        return float(-np.sum(squares) / targets.rescaling.scale / targets.rescaling.scale)

    def row_output(self, source: Source) -> RowOutput:
        """For streamed output: the cluster of each row and the distance to its centre."""
        check_is_fitted(self, "cluster_centers_")  # partial_fit with fewer rows than clusters does not set it
        seen, targets = self._widened(source), self._targets(source)
        dtype = np.dtype([("cluster", np.int32), ("distance", seen.dtype)])
        task = ClusterAndDistance(targets, self._labeller(targets), dtype)
        return RowOutput(seen, ("cluster", "distance"), dtype, task)

    def _labeller(self, targets: Any) -> Any:
        """A task that returns the clusters of a block's rows."""
        return NearestCentre(targets)

    def _comparing(self, X: Any, sample_weight: Any = None) -> tuple[Passes, Any]:
        check_is_fitted(self, "cluster_centers_")  # partial_fit with fewer rows than clusters does not set it
        source = open_for_use(self, X, sample_weight)
        return Passes(self._widened(source), n_threads=self.n_threads), self._targets(source)

    def _widened(self, source: Source) -> Source:
        return self.as_compared(widened(source, np.promote_types(source.dtype, self.cluster_centers_.dtype)))

    def _targets(self, source: Source) -> Any:
        wide = np.promote_types(source.dtype, self.cluster_centers_.dtype)
        centres = np.ascontiguousarray(self.cluster_centers_, dtype=wide)
        observed = getattr(self, "missing", "error") == "model" and not source.sparse
        rescaling = rescaling_around(centres, sparse=source.sparse)
        return targets_of(centres, rescaling, sparse=source.sparse, observed=observed)

    def as_compared(self, source: Source) -> Source:
        """The rows as used in distances: standardised with scale=True, of unit length with metric="cosine"."""
        seen = standardised(source, getattr(self, "mean_", None), getattr(self, "scale_", None))
        return seen if self.geometry.view is None else self.geometry.view(seen)

    def centers_in_data_units(self) -> LabelledMatrix:
        """The centres in the units of the data (with metric="cosine": as directions), with column names.

        >>> import foldwise as fw
        >>> fw.KMeans(2, scale=True).fit([[1.0, 260.0], [3.0, 280.0], [8.0, 340.0], [9.0, 320.0]]).centers_in_data_units()
               x0        x1
        0  2.0000  270.0000
        1  8.5000  330.0000
        """
        check_is_fitted(self, "cluster_centers_")
        centres = self.cluster_centers_.astype(np.float64)
        if getattr(self, "scale_", None) is not None:
            centres = centres * self.scale_ + (0.0 if self.mean_ is None else self.mean_)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return LabelledMatrix(centres, tuple(str(i) for i in range(len(centres))), tuple(names))

    @property
    def n_clusters_(self) -> int:
        """How many clusters were found."""
        return len(self.cluster_centers_)

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
