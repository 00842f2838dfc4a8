"""The PCA that users meet: scikit-learn's manners outside, a fold inside."""

from __future__ import annotations

import os
import warnings
from contextlib import ExitStack
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from foldwise.data.block import Block, Floats
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.data.spool import spooled
from foldwise.errors import DataError, FoldwiseWarning, ParameterError
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.partial_fold import PartialFold
from foldwise.fold.passes import Passes
from foldwise.models.base import KnownParameters, open_for_use, remember_columns
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.models.pca import covariance, gram, krylov, power, ppca, rank, svd
from foldwise.models.pca.choose import choose
from foldwise.models.pca.parameters import CONSTRAINTS, NOT_ABOUT_THE_RESULT, WORKED_OUT
from foldwise.models.pca.spectrum import Plan, Spectrum
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.moments import Moments

_SOLVERS = {
    "full": svd.solve,
    "covariance_eigh": covariance.solve,
    "gram": gram.solve,
    "krylov": krylov.solve,
    "power": power.solve,
}
_MULTI_PASS = ("krylov", "gram")
_FITTED_BY_STREAM = "_stream"
_WIDE = 1000


class PCA(KnownParameters, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Principal components: the directions in which the data vary most.

    Takes arrays, frames, SciPy sparse matrices, `fw.scan(...)` and paths of files, which may be larger than memory.

    Parameters
    ----------
    n_components : None (all), a number, a share of variance between 0 and 1, "mle" (Minka), "parallel" (Horn's parallel
        analysis) or "gavish-donoho"; what the rules saw, and how sure they are, is in `rank_`.
    svd_solver : "auto" picks by cost. "covariance_eigh", "full" (SVD, no covariance formed), "krylov" (a few directions of
        very many columns; "randomized" and "arpack" mean this), "power" (the textbook's iteration, to be watched).
    whiten : scores get variance one.
    scale : columns are divided by their standard deviation first, and multiplied back by `inverse_transform`.
    ddof : variances are sums of squares divided by (n - ddof): 1 or 0.
    random_state : start of the iterative solvers; None is a fixed start, so that equal calls give equal bits.
    tol, max_iter, time_budget (seconds), checkpoint (a file): for the iterative solvers; a fit that was killed goes on from
        its checkpoint and ends with the same bits.
    n_threads : threads; None means FOLDWISE_THREADS or all cores. The result does not depend on it.
    copy, iterated_power, n_oversamples, power_iteration_normalizer : accepted for scikit-learn's sake; X is never changed
        and the Krylov solver needs no such settings.

    The sign of a direction is free; ours makes its largest loading positive. Citation: Jolliffe, Principal Component
    Analysis, 2002.

    >>> import foldwise as fw
    >>> pca = fw.PCA(n_components=1).fit([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> pca.components_.round(3), pca.explained_variance_.round(3)
    (array([[0.851, 0.526]]), array([4.569]))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = CONSTRAINTS

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        copy: bool = True,
        whiten: bool = False,
        svd_solver: str = "auto",
        tol: float = 0.0,
        iterated_power: int | str = "auto",
        n_oversamples: int = 10,
        power_iteration_normalizer: str = "auto",
        random_state: Any = None,
        scale: bool = False,
        ddof: float = 1.0,
        max_iter: int | None = None,
        time_budget: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.copy = copy
        self.whiten = whiten
        self.svd_solver = svd_solver
        self.tol = tol
        self.iterated_power = iterated_power
        self.n_oversamples = n_oversamples
        self.power_iteration_normalizer = power_iteration_normalizer
        self.random_state = random_state
        self.scale = scale
        self.ddof = ddof
        self.max_iter = max_iter
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.n_threads = n_threads

    # ---------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the directions; `sample_weight` counts a row as that many equal rows."""
        self._validate_params()
        source = scan(X, weights=sample_weight)
        with ExitStack() as stack:
            solver = self._solver(source)
            # power reads its rows once, and once more only to make sure that a checkpoint belongs to them
            if solver in _MULTI_PASS or (solver == "power" and self.checkpoint is not None):
                source = stack.enter_context(spooled(source))
            run = Passes(source, n_threads=self.n_threads)
            plan = self._plan(source)
            spectrum = _SOLVERS[solver](run, plan)
            manifest = run.manifest(solver, rows=spectrum.rows, resumed_at=spectrum.resumed_at)
        self.__dict__.pop(_FITTED_BY_STREAM, None)
        self.__dict__.pop("n_samples_seen_", None)
        remember_columns(self, source)
        self._finish(spectrum, source.dtype)
        self.manifest_ = manifest
        spectrum.outcome.warn(f"PCA (svd_solver={self.svd_solver!r})")
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take in a batch of any size; after the last one the model is, to the last bit, that of one fit.

        That is, of a fit by `covariance_eigh` to all the rows, of which there should be more than columns.

        The directions are worked out when they are first asked for, so many small batches cost little.
        """
        stream: PartialFold[Moments] | None = self.__dict__.get(_FITTED_BY_STREAM)
        if stream is None:
            self._validate_params()
            if "components_" in vars(self):
                warnings.warn(
                    "partial_fit starts anew: fit() keeps no state to go on from, so its rows are not part of this model.",
                    FoldwiseWarning,
                    stacklevel=2,
                )
            source = scan(X, weights=sample_weight)
            stream = PartialFold(Moments.of, source)
        else:
            source = open_for_use(self, X, sample_weight)
        if stream.sparse != source.sparse:
            raise DataError("a batch is sparse and another dense", advice="Give all batches to partial_fit in one form")
        if np.promote_types(stream.dtype, source.dtype) != stream.dtype:
            raise DataError(
                f"this batch is {source.dtype} and the ones before were {stream.dtype}: digits would be lost",
                advice="Give all batches in one dtype; fw.scan(batch, dtype=...) converts",
            )
        stream.push(source)
        for name in WORKED_OUT | {"manifest_"}:
            self.__dict__.pop(name, None)
        remember_columns(self, source)
        setattr(self, _FITTED_BY_STREAM, stream)
        self.n_samples_seen_ = stream.rows
        return self

    def __getattr__(self, name: str) -> Any:
        """Work out the directions of a partial fit when they are first asked for."""
        stream: PartialFold[Moments] | None = self.__dict__.get(_FITTED_BY_STREAM)
        if stream is None or name not in WORKED_OUT or "components_" in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._finish(covariance.from_moments(stream.value(), self._plan(None)), stream.dtype)
        return getattr(self, name)

    def _solver(self, source: Source) -> str:
        asked = self.svd_solver
        n, d = source.n_rows, source.n_columns
        if asked in ("randomized", "arpack", "krylov"):
            if isinstance(self.n_components, str):
                raise ParameterError(f"n_components={self.n_components!r} cannot be a string with svd_solver={asked!r}")
            if isinstance(self.n_components, float) or (self.n_components == 0 and asked != "krylov"):
                raise ParameterError(
                    f"n_components={self.n_components} must be between 1 and min(n_samples, n_features) with "
                    f"svd_solver={asked!r}: a share of variance needs all of the variances"
                )
        if asked in ("randomized", "arpack"):
            return "krylov"
        if asked == "covariance_eigh" and n is not None and n < d and not source.sparse:
            return "gram"  # the same decomposition seen from the smaller side
        if asked == "full" and source.sparse:
            raise ParameterError(
                "svd_solver='full' would make sparse data dense; use 'auto', 'covariance_eigh' or 'krylov'"
            )
        if asked != "auto":
            return asked
        k = int(self.n_components) if isinstance(self.n_components, Integral) else None
        if n is None and d > _WIDE:  # how many rows decides between ways that differ by gigabytes
            n = Passes(source, n_threads=self.n_threads).fold(ColumnMoments.of).rows
        return choose(n, d, k, sparse=source.sparse, fill=getattr(source, "fill", 1.0))

    def _plan(self, source: Source | None) -> Plan:
        k = int(self.n_components) if isinstance(self.n_components, Integral) else None
        if source is not None and source.n_rows is not None:
            most = min(source.n_rows, source.n_columns)
            if self.svd_solver == "arpack":
                if k is None:
                    k = most - 1
                elif k == most:
                    raise ParameterError(
                        f"n_components={k} must be strictly less than min(n_samples, n_features)={most} with "
                        "svd_solver='arpack'"
                    )
        seed, checkpoint = self._seed(), None
        if self.checkpoint is not None and source is not None:
            about = {name: value for name, value in self.get_params().items() if name not in NOT_ABOUT_THE_RESULT}
            checkpoint = Checkpoint(self.checkpoint, f"PCA {sorted(about.items())} {seed} {source.fingerprint()}")
        return Plan(
            n_components=k,
            solver=self.svd_solver,
            scale=self.scale,
            ddof=float(self.ddof),
            tol=float(self.tol),
            max_iter=self.max_iter,
            seed=seed,
            time_budget=self.time_budget,
            checkpoint=checkpoint,
        )

    def _seed(self) -> int:
        if self.random_state is None or isinstance(self.random_state, Integral):
            return int(self.random_state or 0)
        return int(self.random_state.randint(2**31))

    def _finish(self, spectrum: Spectrum, dtype: np.dtype[np.floating]) -> None:
        """Turn a spectrum into the attributes that users know."""
        spectrum = spectrum.settled()
        self.rank_ = self._rank(spectrum)
        k = self.rank_.chosen if self.rank_ is not None else len(spectrum.variances)
        d, total, kept = len(spectrum.mean), spectrum.total_variance, spectrum.variances[:k]
        self.n_components_ = k
        self.n_samples_ = spectrum.rows
        self.mean_ = spectrum.mean
        self.scale_ = spectrum.scale
        self.components_ = spectrum.directions[:k].astype(dtype)
        self.explained_variance_ = kept
        self.explained_variance_ratio_ = kept / total if total > 0 else np.zeros(k)
        self.singular_values_ = np.sqrt(kept * (spectrum.weight - self.ddof))
        self.column_variances_ = spectrum.column_variances
        self.total_weight_ = spectrum.weight
        rest = min(spectrum.weight, d) - k  # weights mean repetition, here too
        beyond = spectrum.dropped if spectrum.dropped is not None else max(0.0, float(total - spectrum.variances.sum()))
        self.noise_variance_ = (beyond + float(spectrum.variances[k:].sum())) / rest if rest > 0 else 0.0
        self.residuals_ = spectrum.residuals[:k]
        self.outcome_ = spectrum.outcome
        self.n_iter_ = max(1, spectrum.outcome.steps)
        self.trace_ = spectrum.outcome.trace

    def _rank(self, spectrum: Spectrum) -> rank.RankChoice | None:
        rule, variances = self.n_components, spectrum.variances
        if rule is None or isinstance(rule, Integral):
            return None
        if rule == "mle":
            return rank.by_minka(variances, spectrum.weight, len(spectrum.mean))
        if rule == "parallel":
            return rank.by_parallel_analysis(variances, spectrum.column_variances, spectrum.weight, self._seed())
        if rule == "gavish-donoho":
            return rank.by_gavish_donoho(variances, spectrum.weight, len(spectrum.mean))
        return rank.by_share(variances, spectrum.total_variance, float(rule), spectrum.weight)

    # ---------------------------------------------------------------- using

    def transform(self, X: Any) -> NDArray[Any]:
        """The rows' scores on the components (whitened if the model is)."""
        return self._rows(X, self.codes_of)

    def codes_of(self, block: Block) -> NDArray[Any]:
        """What `transform` gives for one block: for those who stream."""
        codes = self._scores_of(block)
        if self.whiten:
            # Divided in float64: a tiny deviation must not become zero.
            codes = (codes / self._deviations()).astype(codes.dtype)
        return codes

    def _scores_of(self, block: Block) -> NDArray[Any]:
        return block.codes(self.components_, self.mean_, self.scale_)

    def _deviations(self) -> Floats:
        # As in scikit-learn: a component without variance is divided by almost nothing (in the data's units), not by zero.
        deviations: Floats = np.sqrt(self.explained_variance_)
        return np.asarray(np.maximum(deviations, np.finfo(np.float64).eps * (deviations.max(initial=0.0) or 1.0)))

    def _rows(self, X: Any, of: Any) -> NDArray[Any]:
        check_is_fitted(self)
        return Passes(open_for_use(self, X), n_threads=self.n_threads).rows(of)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Rows of the original space that have these scores."""
        check_is_fitted(self)
        if self.n_components_ == 0 and np.shape(X)[1:] == (0,):  # no source is without columns, yet this has rows
            return np.tile(self.mean_.astype(np.asarray(X).dtype), (len(X), 1))
        source = scan(X)
        if source.n_columns != self.n_components_:
            message = f"X has {source.n_columns} columns, but this PCA has {self.n_components_} components"
            raise DataError(message, advice="Give what transform returned")

        def back(block: Block) -> NDArray[Any]:
            codes = block.dense()
            rows = (codes * self._deviations() if self.whiten else codes) @ self.components_.astype(np.float64)
            if self.scale_ is not None:
                rows = rows * self.scale_
            return np.asarray(rows + self.mean_).astype(source.dtype, copy=False)

        return Passes(source, n_threads=self.n_threads).rows(back)

    def scores(self, X: Any) -> NDArray[Any]:
        """The coordinates X V of the centred rows, not whitened even if the model is."""
        return self._rows(X, self._scores_of)

    def reconstruction_error(self, X: Any) -> Floats:
        """The squared distance of each row from its reconstruction, in the (scaled) space of the fit: a novelty score.

        Over the rows of the fit, the sum divided by (n - ddof) equals the sum of the dropped variances.
        """
        directions = self._orthonormal()
        return self._rows(X, lambda block: block.residual_norms(directions, self.mean_, self.scale_))

    def _orthonormal(self) -> Floats:
        check_is_fitted(self)
        return np.asarray(self.components_, dtype=np.float64)

    @property
    def loadings_(self) -> LabelledMatrix:
        """Directions times standard deviations, column by component: with scale=True, the correlations of the two."""
        check_is_fitted(self)
        return self._by_column(self.components_.T * np.sqrt(self.explained_variance_))

    def contributions(self, X: Any = None) -> LabelledMatrix | NDArray[Any]:
        """The share of each column (or, given rows, of each row) in each component; shares add up to one."""
        check_is_fitted(self)
        if X is None:
            return self._by_column(self._orthonormal().T ** 2)
        squares = np.asarray(self.scores(X), dtype=np.float64) ** 2
        totals = squares.sum(axis=0)
        return squares / np.where(totals > 0, totals, 1.0)

    def cos2(self, X: Any = None) -> LabelledMatrix | NDArray[Any]:
        """How much of each column's variance (or, given rows, of each row's squared length) each component shows."""
        check_is_fitted(self)
        if X is None:
            squares, variances = self.loadings_.values**2, self.column_variances_
            return self._by_column(squares / np.where(variances > 0, variances, 1.0)[:, None])

        def of(block: Block) -> Floats:
            squares = block.times(self._orthonormal().T, self.mean_, self.scale_) ** 2
            lengths = block.squared_norms(self.mean_, self.scale_)
            return np.asarray(squares / np.where(lengths > 0, lengths, 1.0)[:, None])

        return self._rows(X, of)

    def _by_column(self, values: NDArray[Any]) -> LabelledMatrix:
        names = getattr(self, "feature_names_in_", None)
        rows = tuple(names) if names is not None else tuple(f"x{j}" for j in range(self.n_features_in_))
        return LabelledMatrix(np.asarray(values), rows, tuple(self.get_feature_names_out()))

    # ---------------------------------------------------------------- as a probability model

    def get_covariance(self) -> Floats:
        """The covariance of the probabilistic model (Tipping and Bishop 1999), in the units of the data."""
        return ppca.covariance(self._orthonormal(), self.explained_variance_, self.noise_variance_, self.scale_)

    def get_precision(self) -> Floats:
        """The inverse of `get_covariance()`."""
        return ppca.precision(self._orthonormal(), self.explained_variance_, self.noise_variance_, self.scale_)

    def score_samples(self, X: Any) -> Floats:
        """The log-likelihood of each row under the probabilistic model."""
        precision = self.get_precision()
        constant = ppca.log_constant(precision)
        return self._rows(X, lambda block: ppca.log_density(block, self.mean_, precision, constant))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-likelihood of the rows."""
        return float(np.mean(self.score_samples(X)))

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = self.svd_solver != "full"
        return tags
