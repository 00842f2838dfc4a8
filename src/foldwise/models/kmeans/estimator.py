"""The KMeans that users meet: scikit-learn's manners outside, exact passes over blocks inside."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from foldwise.data.block import Block
from foldwise.data.held import held
from foldwise.data.mapped import widened
from foldwise.data.open import scan
from foldwise.data.source import Source
from foldwise.data.spool import spooled
from foldwise.errors import DataError, FoldwiseWarning, ParameterError
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.run import Run
from foldwise.kernels.targets import frame_around, targets_of
from foldwise.models.base import EachRow, open_for_use, remember_columns
from foldwise.models.kmeans import cosine, scaling, seeding, telling
from foldwise.models.kmeans.parameters import BOUNDS, CONSTRAINTS, NOT_ABOUT_THE_RESULT
from foldwise.models.kmeans.rows import Rows
from foldwise.models.kmeans.order import ordered
from foldwise.models.kmeans.search import Plan, search
from foldwise.models.named import Named


class FewerClustersWarning(FoldwiseWarning, ConvergenceWarning):  # type: ignore[misc]
    """There are fewer distinct points than clusters."""


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """K-means: every row belongs to the nearest of k centres, every centre is the mean of its rows.

    Takes arrays, frames, SciPy sparse matrices, `fw.scan(...)` and paths of files, which may be larger than memory. The same
    labels and centres, to the last bit, for any number of threads and wherever the rows are.

    Parameters
    ----------
    n_clusters : how many.
    init : "k-means++" (greedy), "k-means||" (few passes: for files and many clusters), "random" rows, an array of centres, or a
        callable (X, n_clusters, random_state).
    n_init : how many starts, of which the best is kept; "auto" is 1 for k-means++, k-means|| and arrays, else 10.
    max_iter, tol : a start ends after max_iter steps, or when the centres' summed squared movement is at most tol times the mean
        variance of the columns; tol=0 goes on until nothing moves.
    algorithm : "lloyd" compares every row with every centre, "bounded" ("elkan" means this) skips what bounds rule out, "auto"
        changes between the two as it pays. The answer is the same.
    search : "breathing" adds and takes away centres to leave bad optima, "split-merge" splits one cluster and merges two; both
        are never worse than without. "breathing" is recommended where the result matters more than a few seconds.
    metric : "cosine" is spherical k-means: rows are divided by their lengths, centres lie on the sphere.
    scale : columns are standardised first, as (x - mean_) / scale_: for columns in different units. Distances, inertia and
        `cluster_centers_` (also those given as init) are then of standardised rows; `centers_in_data_units()` translates.
        A column that does not vary is divided by 1; the mean stays in sparse rows and with metric="cosine".
    random_state : None is a fixed start, so that equal calls give equal bits.
    time_budget (seconds), checkpoint (a file) : a fit that was stopped or killed goes on from its checkpoint.
    n_threads : threads; None means FOLDWISE_THREADS or all cores. The result does not depend on it.
    copy_x, verbose : accepted for scikit-learn's sake; X is never changed. `fw.progress()` shows progress.

    Clusters are numbered by size, the largest first, equal ones by their centres; with given centres their order is kept.

    >>> import foldwise as fw
    >>> km = fw.KMeans(2).fit([[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [10.0, 2.0], [10.0, 4.0], [10.0, 0.0]])
    >>> km.labels_, km.cluster_centers_
    (array([0, 0, 0, 1, 1, 1], dtype=int32), array([[ 1.,  2.],
           [10.,  2.]]))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = CONSTRAINTS

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        verbose: int = 0,
        random_state: Any = None,
        copy_x: bool = True,
        algorithm: str = "auto",
        search: str = "none",
        metric: str = "euclidean",
        scale: bool = False,
        time_budget: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.copy_x = copy_x
        self.algorithm = algorithm
        self.search = search
        self.metric = metric
        self.scale = scale
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.n_threads = n_threads

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        # scikit-learn inspects the signature at every fit, which costs a third of a small one.
        return list(super()._get_param_names())

    # ---------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters; `sample_weight` counts a row as that many equal rows."""
        self._validate_params()
        source = scan(X, weights=sample_weight)
        with ExitStack() as stack:
            source = stack.enter_context(spooled(source))
            standard = self._standard(source)
            source = held(self._seen(source, *standard))
            run = Run(source, n_threads=self.n_threads)
            run.passes += self.scale  # the one for the deviations
            rows = Rows(run, bounds=BOUNDS[self.algorithm])
            self._check_rows(rows)
            plan = self._plan(rows, X)
            found = search(rows, plan, time_budget=self.time_budget, checkpoint=self._checkpoint(source, plan.seed))
            self._finish(rows, found)
            self.mean_, self.scale_ = standard
            self.manifest_ = run.manifest(
                f"k-means ({self.algorithm})",
                rows=rows.n,
                resumed_at=found.resumed_at,
                repairs=(f"{found.filled} times an empty cluster was given a row",) if found.filled else (),
            )
        remember_columns(self, source)
        found.outcome.warn(f"KMeans (n_clusters={self.n_clusters})")
        return self

    def _standard(self, source: Source) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
        """What rows are centred at and divided by, if they are."""
        if not self.scale:
            return None, None
        mean, scale = scaling.mean_and_deviation(Run(source, n_threads=self.n_threads))
        return None if source.sparse or self.metric == "cosine" else mean, scale

    def _check_rows(self, rows: Rows) -> None:
        if rows.n < self.n_clusters:
            raise DataError(
                f"n_samples={rows.n} should be >= n_clusters={self.n_clusters}",
                where=rows.source.where if rows.source.where != "array" else None,
                advice="Ask for fewer clusters",
            )

    def _plan(self, rows: Rows, X: Any) -> Plan:
        from sklearn.utils import check_random_state

        seed = 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))
        if isinstance(self.random_state, (int, np.integer)):
            seed = int(self.random_state)
        given = not isinstance(self.init, str)
        starts = self.n_init
        if starts == "auto":
            starts = 10 if callable(self.init) or (not given and self.init == "random") else 1
        if given and not callable(self.init) and starts != 1:
            warnings.warn(
                "Explicit initial center position passed: performing only one init in KMeans instead of "
                f"n_init={starts}.",
                RuntimeWarning,
                stacklevel=3,
            )
            starts = 1
        return Plan(
            k=self.n_clusters,
            starts=int(starts),
            max_iter=self.max_iter,
            tol=self.tol * float(rows.squares.mean()) / rows.extent.columns.weight,
            search=self.search,
            seed=seed,
            make_start=self._starts(X, seed),
            project=cosine.project if self.metric == "cosine" else None,
        )

    def _starts(self, X: Any, seed: int) -> Callable[[Rows, int], NDArray[Any]]:
        def make(rows: Rows, number: int) -> NDArray[Any]:
            rng = np.random.default_rng([seed, 0, number])
            if isinstance(self.init, str):
                if self.init == "k-means++":
                    return seeding.plusplus(rows, self.n_clusters, rng)
                if self.init == "random":
                    return seeding.random_rows(rows, self.n_clusters, rng)
                return seeding.parallel(rows, self.n_clusters, rng, seed)
            if callable(self.init):
                given = self.init(X, self.n_clusters, random_state=np.random.RandomState(seed + number))
            else:
                given = self.init
            return self._given_centres(given, rows)

        return make

    def _given_centres(self, given: Any, rows: Rows) -> NDArray[Any]:
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

    def _checkpoint(self, source: Source, seed: int) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        about = {name: value for name, value in self.get_params().items() if name not in NOT_ABOUT_THE_RESULT}
        about["random_state"] = seed
        # What is printed of an array leaves out digits and rows, and of a function it is an address.
        if callable(self.init):
            about["init"] = getattr(self.init, "__qualname__", type(self.init).__qualname__)
        elif not isinstance(self.init, str):
            about["init"] = np.asarray(self.init).tolist()
        return Checkpoint(self.checkpoint, f"{type(self).__name__} {about!r} {source.fingerprint()}")

    def _finish(self, rows: Rows, found: Any) -> None:
        centres = found.centres
        if isinstance(self.init, str):  # the start was ours: equal partitions get equal numbers
            centres = ordered(rows, centres, cosine.project if self.metric == "cosine" else None)
        weights, labels = rows.cluster_weights, rows.labels
        residuals = rows.residuals(centres)
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
        distinct = int(np.count_nonzero(np.bincount(labels, minlength=len(centres))))
        if distinct < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({distinct}) found smaller than n_clusters ({self.n_clusters}). "
                "Possibly due to duplicate points in X.",
                FewerClustersWarning,
                stacklevel=3,
            )

    # ---------------------------------------------------------------- using

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.int32]:
        """Fit, and the labels."""
        return np.asarray(self.fit(X, sample_weight=sample_weight).labels_)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[Any]:
        """Fit, and the distances of every row to every centre."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The nearest centre of every row: exactly, and the lowest number among equals."""
        run, targets = self._comparing(X)

        def of(block: Block) -> NDArray[np.int32]:
            labels = np.full(block.n_rows, -1, dtype=np.int32)
            targets.nearest(block.rows, labels)
            return labels

        return run.rows(of)

    def transform(self, X: Any) -> NDArray[Any]:
        """The distance of every row to every centre."""
        run, targets = self._comparing(X)
        return run.rows(lambda block: targets.distances(block.rows))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the inertia of these rows."""
        run, targets = self._comparing(X, sample_weight)

        def of(block: Block) -> NDArray[np.float64]:
            labels = np.full(block.n_rows, -1, dtype=np.int32)
            targets.nearest(block.rows, labels)
            each = np.empty(block.n_rows)
            targets.residuals(block.rows, None, labels, each)
            return each if block.weights is None else each * block.weights

        return float(-np.sum(run.rows(of)) / targets.frame.scale / targets.frame.scale)

    def _comparing(self, X: Any, sample_weight: Any = None) -> tuple[Run, Any]:
        check_is_fitted(self)
        source = open_for_use(self, X, sample_weight)
        return Run(self._widened(source), n_threads=self.n_threads), self._targets(source)

    def _widened(self, source: Source) -> Source:
        return self.as_compared(widened(source, np.promote_types(source.dtype, self.cluster_centers_.dtype)))

    def _targets(self, source: Source) -> Any:
        wide = np.promote_types(source.dtype, self.cluster_centers_.dtype)
        centres = np.ascontiguousarray(self.cluster_centers_, dtype=wide)
        return targets_of(centres, frame_around(centres, sparse=source.sparse), sparse=source.sparse)

    def as_compared(self, source: Source) -> Source:
        """The rows as distances see them: standardised with scale=True, of length 1 with metric="cosine"."""
        return self._seen(source, self.mean_, self.scale_)

    def _seen(self, source: Source, mean: Any, scale: Any) -> Source:
        if scale is not None:
            source = scaling.standardised(source, mean, scale)
        return cosine.on_the_sphere(source) if self.metric == "cosine" else source

    def centers_in_data_units(self) -> Named:
        """The centres as rows of the data would be (with metric="cosine": as directions), with names.

        >>> import foldwise as fw
        >>> fw.KMeans(2, scale=True).fit([[1.0, 260.0], [3.0, 280.0], [8.0, 340.0], [9.0, 320.0]]).centers_in_data_units()
               x0        x1
        0  2.0000  270.0000
        1  8.5000  330.0000
        """
        check_is_fitted(self)
        centres = self.cluster_centers_.astype(np.float64)
        if self.scale_ is not None:
            centres = centres * self.scale_ + (0.0 if self.mean_ is None else self.mean_)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return Named(centres, tuple(str(i) for i in range(len(centres))), tuple(names))

    def each_row(self, source: Source) -> EachRow:
        """For those who stream: the cluster of each row and the distance to its centre."""
        check_is_fitted(self)
        return telling.each_row(self._widened(source), self._targets(source))

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
