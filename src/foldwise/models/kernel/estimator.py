"""The KernelKMeans that users meet."""

from __future__ import annotations

import hashlib
import os
import warnings
from contextlib import ExitStack
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from foldwise.data.cache import cached
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.data.spool import spooled
from foldwise.errors import DataError, ParameterError
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.passes import Passes
from foldwise.models.base import EachRow, remember_columns
from foldwise.models.kernel import approximate, centring, exact, predict
from foldwise.models.kernel.fit_data import KernelFitData
from foldwise.models.kernel.kernel_matrix import ComputedMatrix
from foldwise.models.kernel.parameters import CONSTRAINTS, NOT_ABOUT_THE_RESULT, refusal
from foldwise.models.kmeans.centre_model import FewerClustersWarning


class KernelKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """K-means in the feature space of a kernel: clusters that no centre could describe, such as rings around each other.

    Exact by default, from the kernel matrix of all pairs of rows, which is kept in memory only if it fits `memory_budget`.
    The same labels for any number of threads, and whether it is kept or not.

    Parameters
    ----------
    n_clusters : how many.
    kernel : "rbf", exp(-gamma |x - y|^2); "laplacian", exp(-gamma sum |x - y|); "poly", (gamma x.y + coef0)^degree; "linear";
        a function f(rows, other_rows) that returns their matrix; "precomputed": X is the matrix itself.
    gamma, degree, coef0 : see there. gamma="auto" is found from distances between rows of a sample: see `gamma_`.
    approximation : None is exact. "nystroem" takes `n_features` landmarks, "random-features" (rbf) as many waves: then it is
        k-means on these features, for any number of rows and for files larger than memory. "auto" is exact, or nystroem where
        that would take too long.
    n_features : how many of them.
    normalize : divide every row by its summed kernel with all rows, by which it also counts: a normalised cut. Clusters of
        unequal density stay whole where plain kernel k-means splits them. For kernels without negative values; exact only.
    init : "spectral" (clusters of a neighbourhood graph of up to 1000 rows), "k-means++" in feature space, "random" rows, or
        the cluster of every row. "auto" is spectral for similarities (rbf, laplacian), else k-means++.
    n_init : how many starts, of which the best is kept; "auto" is 1 for spectral and arrays, else 10.
    max_iter, tol : a start ends after max_iter steps, or when the inertia falls by at most the share tol; tol=0 goes on until
        nothing moves.
    memory_budget : bytes that the kernel matrix, or else the features, may take in memory.
    random_state : None is a fixed start, so that equal calls give equal bits.
    time_budget (seconds), checkpoint (a file) : a fit that was stopped or killed goes on from its checkpoint.
    n_threads : threads; None means FOLDWISE_THREADS or all cores. The result does not depend on it.

    Clusters are numbered by size, the largest first; with given ones their order is kept.

    >>> import numpy as np, foldwise as fw
    >>> turn = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    >>> ring = np.column_stack([np.cos(turn), np.sin(turn)])
    >>> fw.KernelKMeans(2).fit_predict(np.concatenate([ring, 3 * ring[:40]]))[[0, 30, 60, 90]]
    array([0, 0, 1, 1], dtype=int32)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = CONSTRAINTS

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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters; `sample_weight` counts a row as that many equal rows.

        Above 1000 rows an automatic gamma, a spectral start and landmarks come from a sample, so there it does so roughly.
        """
        self._validate_params()
        self._check_together()
        source = scan(X, weights=sample_weight)
        with ExitStack() as stack:
            source = stack.enter_context(spooled(source))
            run = Passes(cached(source), n_threads=self.n_threads)
            if self.kernel == "precomputed":
                fitted = self._fit_given(run)
            else:
                table = KernelFitData(run, self)
                self._check_count(table.n, table.counted, source)
                problem = refusal(
                    table.n,
                    table.d,
                    self.n_clusters,
                    run.n_threads,
                    self.memory_budget,
                    timed=self.time_budget is not None and self.approximation is None,
                )
                if self.approximation is None and problem is not None:
                    raise problem
                if self.approximation is None or (self.approximation == "auto" and problem is None):
                    fitted = self._fit_exact(run, table)
                else:
                    fitted = approximate.fit(self, run, table)
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        for name, value in fitted.items():
            setattr(self, name, value)
        remember_columns(self, source)
        distinct = len(np.unique(self.labels_))
        if distinct < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({distinct}) found smaller than n_clusters ({self.n_clusters}). "
                "Possibly due to duplicate points in X.",
                FewerClustersWarning,
                stacklevel=2,
            )
        self.outcome_.warn(f"KernelKMeans (n_clusters={self.n_clusters})")
        return self

    def _check_together(self) -> None:
        if self.approximation is not None and self.kernel == "precomputed":
            raise ParameterError("a precomputed kernel matrix leaves nothing to approximate: use approximation=None.")
        if self.approximation == "random-features" and self.kernel != "rbf":
            raise ParameterError("random features are for kernel='rbf': use approximation='nystroem' for others.")
        if self.normalize and self.approximation is not None:
            raise ParameterError("normalize=True needs the exact kernel: use approximation=None.")
        if self.normalize and self.kernel in ("linear", "poly"):
            raise ParameterError(
                f"normalize=True needs a kernel without negative values, and {self.kernel!r} has them."
            )
        if self.approximation is not None and not isinstance(self.init, str):
            raise ParameterError("init as an array is for exact fits: use 'spectral', 'k-means++' or 'random'.")

    def _check_count(self, n: int, counted: int, source: Source) -> None:
        where = source.where if source.where != "array" else None
        if n < self.n_clusters:
            what = f"n_samples={n} should be >= n_clusters={self.n_clusters}"
        elif counted < self.n_clusters:
            what = f"n_clusters={self.n_clusters} is more than the {counted} rows whose weight is not 0"
        else:
            return
        raise DataError(what, where=where, advice="Ask for fewer clusters")

    def _seed(self) -> int:
        from sklearn.utils import check_random_state

        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))

    def _fit_exact(self, run: Passes, table: KernelFitData) -> dict[str, Any]:
        rows = table.all_rows()
        function = table.function(centring.frame_of(rows))
        products = ComputedMatrix(function, rows, run.n_threads, self.memory_budget)
        weights = np.ones(table.n) if table.weights is None else table.weights
        checkpoint = self._checkpoint(run.source, weights, *table.figures)
        order = table.seen.canonical_order
        found = exact.solve(self, products, weights, table.seed, checkpoint, order=order, check=callable(self.kernel))
        run.passes += products.passes
        kept = "kept" if products.kept is not None else "in tiles"
        return {
            **self._results(run, found, table.n, f"kernel k-means (exact, matrix {kept})"),
            "gamma_": table.gamma,
            "rows_": predict.storable(rows),
            "row_weights_": table.weights,
        }

    def _fit_given(self, run: Passes) -> dict[str, Any]:
        products, given = exact.given_matrix(run, run.source.where)
        weights = np.ones(products.n) if given is None else given
        self._check_count(products.n, int(np.count_nonzero(weights)), run.source)
        checkpoint = self._checkpoint(run.source, weights, products.diagonal)
        found = exact.solve(self, products, weights, self._seed(), checkpoint, check=True)
        return {
            **self._results(run, found, products.n, "kernel k-means (exact, matrix given)"),
            "gamma_": None,
            "rows_": None,
            "diagonal_": products.diagonal,
            "row_weights_": given,
        }

    def _results(self, run: Passes, found: exact.Clusters, n: int, algorithm: str) -> dict[str, Any]:
        repairs = (f"{found.filled} times an empty cluster was given a row",) if found.filled else ()
        return {
            "labels_": found.labels,
            "inertia_": float(found.inertias.sum()),
            "cluster_weights_": found.weights,
            "cluster_inertias_": found.inertias,
            "n_iter_": found.iterations,
            "members_": found.members,
            "mean_weights_": found.means.weights,
            "mean_norms_": found.means.norms,
            "outcome_": found.outcome,
            "trace_": found.outcome.trace,
            "manifest_": run.manifest(algorithm, rows=n, resumed_at=found.resumed_at, repairs=repairs),
        }

    def _checkpoint(self, source: Source, *figures: Any) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        about = {name: value for name, value in self.get_params().items() if name not in NOT_ABOUT_THE_RESULT}
        if not isinstance(self.init, str):
            about["init"] = hashlib.sha256(np.ascontiguousarray(self.init).tobytes()).hexdigest()
        if self.n_init in ("auto", 1):
            del about["max_iter"]  # such a fit can be taken up again with a higher cap
        if callable(self.kernel):  # what is printed of a function is an address
            code = getattr(self.kernel, "__code__", None)
            what = (code.co_code, code.co_consts, code.co_names) if code is not None else type(self.kernel).__qualname__
            about["kernel"] = getattr(self.kernel, "__qualname__", ""), what
        about["random_state"] = self._seed()
        checkpoint = Checkpoint(self.checkpoint, f"KernelKMeans {about!r} {source.fingerprint()}")
        checkpoint.bind(*figures)
        return checkpoint

    # ---------------------------------------------------------------- using

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.int32]:
        """Fit, and the labels."""
        return np.asarray(self.fit(X, sample_weight=sample_weight).labels_)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[Any]:
        """Fit, and the distances of every row to every mean."""
        return np.asarray(self.fit(X, sample_weight=sample_weight).transform(X))

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The nearest mean of every row; precomputed: X[i, j] is the kernel of new row i with row j of the fit."""
        check_is_fitted(self, "labels_")
        return predict.judged(self, X, distances=False)[1]

    def transform(self, X: Any) -> NDArray[Any]:
        """The distance in feature space of every row to every mean."""
        check_is_fitted(self, "labels_")
        squares, _, dtype, _ = predict.judged(self, X)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)).astype(dtype))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the inertia of these rows."""
        check_is_fitted(self, "labels_")
        squares, labels, _, weights = predict.judged(self, X, sample_weight)
        own = squares[np.arange(len(labels)), labels]
        return -float(own.sum() if weights is None else own @ weights)

    def each_row(self, source: Source) -> EachRow:
        """For those who stream: the cluster of each row and the distance to its mean."""
        check_is_fitted(self, "labels_")
        return predict.each_row(self, source)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_clusters)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "laplacian" and self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
