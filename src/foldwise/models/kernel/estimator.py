"""The KernelKMeans that users meet."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from foldwise.data.source import Source
from foldwise.errors import DataError, warn
from foldwise.models.base import KnownParameters, RowOutput
from foldwise.models.fitted_rows import ShownModel
from foldwise.models.kernel import approximate, exact, predict
from foldwise.models.kernel.fit_data import KernelFitData
from foldwise.models.kernel.functions import kernel_class
from foldwise.models.kernel.kernel_matrix import PrecomputedFitData
from foldwise.models.kernel.parameters import PARAMETERS, check_combination, refusal
from foldwise.models.kmeans.centre_model import FewerClustersWarning, check_count
from foldwise.models.parameters import Parameter, constraints
from foldwise.models.session import Session, session


class KernelKMeans(
    ShownModel,
    KnownParameters,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """K-means in the feature space of a kernel: clusters that no centre could describe, such as rings around each other.

    Exact by default, from the kernel matrix of all pairs of rows, which is kept in memory only if it fits `memory_budget`. The
    labels do not depend on that, nor on the number of threads.

    Parameters
    ----------
    n_clusters : how many.
    kernel : "rbf", exp(-gamma |x - y|^2); "laplacian", exp(-gamma sum |x - y|); "poly", (gamma x.y + coef0)^degree; "linear",
        x.y; a function f(rows, other_rows) that returns their matrix; "precomputed": X is the matrix itself.
    gamma, degree, coef0 : parameters of the kernel. gamma="auto" comes from distances between rows of a sample: see `gamma_`;
        with init="auto", too, several are tried.
    approximation : None is exact. "nystroem" takes `n_features` landmarks, "random-features" (rbf) as many waves; k-means then
        runs on these features, for any number of rows and for files larger than memory. "auto" is exact, or nystroem where that
        would take too long.
    n_features : the number of features of an approximation.
    normalize : divide every row by its summed kernel with all rows, and weight it by the same: a normalised cut. Clusters of
        unequal density stay whole where plain kernel k-means splits them. For kernels without negative values; exact only.
    init : "spectral" (clusters of a neighbourhood graph of up to 1000 rows), "k-means++" in feature space, "random" rows, or
        the cluster of every row. "auto" is k-means++, but for similarities (rbf, laplacian) it tries plain k-means and spectral
        clusters, with several gammas if that is "auto", and takes what cuts neighbours apart least; if a different clustering
        is as good, `manifest_.notes` says so.
    n_init : how many starts, of which the best is kept; "auto" is 1 for similarities, spectral and arrays, else 10.
    max_iter, tol : a start ends after max_iter steps, or when the inertia falls by at most the share tol; tol=0 goes on until
        nothing moves.
    memory_budget : bytes that the kernel matrix, or the features of an approximation, may take in memory.
    random_state : None is a fixed start, so that equal calls give equal bits.
    time_budget (seconds), checkpoint (a file) : a fit that was stopped or killed continues from its checkpoint. If time is over
        before a first pass over all pairs of rows, the means are those of a sample's clusters, and `manifest_.notes` says so.
    n_threads : threads; None means FOLDWISE_THREADS or all cores. The result does not depend on it.

    Clusters are numbered by size, the largest first, and equal ones by their least row, so that the order of the rows does not
    matter; if `init` gives them, they keep their numbers.

    >>> import numpy as np, foldwise as fw
    >>> turn = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    >>> ring = np.column_stack([np.cos(turn), np.sin(turn)])
    >>> fw.KernelKMeans(2).fit_predict(np.concatenate([ring, 3 * ring[:40]]))[[0, 30, 60, 90]]
    array([0, 0, 1, 1], dtype=int32)
    """

    PARAMETERS: ClassVar[dict[str, Parameter]] = PARAMETERS
    _parameter_constraints: ClassVar[dict[str, Any]] = constraints(PARAMETERS)

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        gamma: float | str = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        approximation: str | None = None,
        n_features: int = 300,
        normalize: bool = False,
        init: Any = "auto",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 0.0,
        memory_budget: float = 2**29,
        random_state: Any = None,
        time_budget: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.approximation = approximation
        self.n_features = n_features
        self.normalize = normalize
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.n_threads = n_threads

    # ---------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, engine: Any = None) -> Self:
        """Find the clusters; `sample_weight` counts a row as that many equal rows.

        Above 1000 rows an automatic gamma, a spectral start and landmarks come from a sample, where that holds only roughly.
        """
        with session(self, X, sample_weight, engine=engine) as opened:
            self._check_dense(opened)
            given = kernel_class(self.kernel).precomputed
            data = PrecomputedFitData(opened.passes) if given else KernelFitData(opened)
            check_count(self.n_clusters, data.n, data.n_with_weight, opened.where)
            if isinstance(data, KernelFitData) and self._must_approximate(data):
                fitted = approximate.fit(opened, data)
            else:
                fitted = exact.fit(opened, data)
            for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
                delattr(self, name)
            for name, value in {**fitted.attributes, "trace_": fitted.outcome.trace}.items():
                setattr(self, name, value)
            self._warn_of_fewer_clusters()
            opened.finish(
                fitted.outcome,
                fitted.algorithm,
                data.n,
                resumed_at=fitted.resumed_at,
                repairs=fitted.repairs,
                spooled_bytes=fitted.spooled_bytes,
                notes=fitted.notes,
                warning=f"KernelKMeans (n_clusters={self.n_clusters})",
            )
        return self

    def _validate_params(self) -> None:
        super()._validate_params()
        check_combination(self)

    def _check_dense(self, opened: Session) -> None:
        if opened.source.sparse and not kernel_class(self.kernel).takes_sparse:
            raise DataError(
                f"rows for kernel={self.kernel!r} must be dense, and a sparse matrix was passed",
                where=opened.where,
                advice="Pass X.toarray() if that fits in memory, or use kernel='rbf'",
            )

    def _must_approximate(self, data: KernelFitData) -> bool:
        """Whether features take the place of the kernel; an exact fit that would take too long is refused."""
        exact_wanted = self.approximation is None
        timed = self.time_budget is not None and exact_wanted
        n_threads = data.passes.n_threads
        problem = refusal(data.n, data.d, self.n_clusters, n_threads, self.memory_budget, timed=timed)
        if exact_wanted and problem is not None:
            raise problem
        return not exact_wanted and (self.approximation != "auto" or problem is not None)

    def _warn_of_fewer_clusters(self) -> None:
        distinct = len(np.unique(self.labels_))
        if distinct < self.n_clusters:
            warn(
                f"Number of distinct clusters ({distinct}) found smaller than n_clusters ({self.n_clusters}). "
                "Possibly due to duplicate points in X.",
                FewerClustersWarning,
            )

    # ---------------------------------------------------------------- new rows

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.int32]:
        """Fit, and the labels."""
        return np.asarray(self.fit(X, sample_weight=sample_weight).labels_)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[Any]:
        """Fit, and the distances of every row to every mean."""
        return np.asarray(self.fit(X, sample_weight=sample_weight).transform(X))

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The nearest mean of every row; precomputed: X[i, j] is the kernel of new row i with row j of the fit."""
        check_is_fitted(self, "labels_")
        return predict.labels(self, X)

    def transform(self, X: Any) -> NDArray[Any]:
        """The distance in feature space of every row to every mean."""
        check_is_fitted(self, "labels_")
        return predict.distances(self, X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the inertia of these rows."""
        check_is_fitted(self, "labels_")
        return -predict.inertia(self, X, sample_weight)

    def row_output(self, source: Source) -> RowOutput:
        """The cluster of each row and the distance to its mean, block by block."""
        check_is_fitted(self, "labels_")
        return predict.row_output(self, source)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_clusters)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kind = kernel_class(self.kernel)
        tags.input_tags.sparse = kind.takes_sparse
        tags.input_tags.pairwise = kind.precomputed
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
