"""The PCA that users meet: scikit-learn's manners outside, a fold inside."""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from foldwise.data.block import Floats
from foldwise.data.missing import UnknownIfBlank, refuse_missing
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.errors import DataError, FoldwiseError, FoldwiseWarning, ParameterError, UnavailableError, warn
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.partial_fold import PartialFold
from foldwise.fold.passes import Passes
from foldwise.models.base import KnownParameters, RowOutput, open_for_use, remember_columns
from foldwise.models.fitted_rows import ShownModel
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.models.parameters import Parameter, constraints, seed_of
from foldwise.models.pca.categories import CategoryOutputs
from foldwise.models.pca.choose import solver_for
from foldwise.models.pca.covariance import from_moments
from foldwise.models.pca.density import DensityOutputs
from foldwise.models.pca.normal_model import ObservedResiduals
from foldwise.models.pca.observed import NAME as EM
from foldwise.models.pca.observed import ObservedFit, fit_observed
from foldwise.models.pca.parameters import PARAMETERS
from foldwise.models.pca.projection import Projection
from foldwise.models.pca.rank import by_rule
from foldwise.models.pca.solver import Solver, SolverOptions, dimensions, floor_of_rows
from foldwise.models.pca.spectrum import Spectrum
from foldwise.models.session import Session, session
from foldwise.prepare.encode import IndicatorGroup
from foldwise.stats.moments import Moments

# What a partial fit works out when it is first read: all that `_set_attributes` sets.
# fmt: off
_LAZY = {
    "column_variances_", "components_", "explained_variance_", "explained_variance_ratio_", "mean_", "n_components_", "n_iter_",
    "n_samples_", "noise_variance_", "outcome_", "rank_", "residuals_", "scale_", "singular_values_", "total_weight_", "trace_",
    "variance_errors_", "variance_floor_",
}
# fmt: on


class PCA(
    ShownModel,
    KnownParameters,
    CategoryOutputs,
    DensityOutputs,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Principal components: the directions in which the data vary most.

    Takes arrays, frames, SciPy sparse matrices, `fw.scan(...)` and paths of files, which may be larger than memory.

    Parameters
    ----------
    n_components : None (all), a number, a share of variance between 0 and 1, or a rule: "parallel" (parallel analysis),
        "held-out" (how well held-out cells are predicted; dense rows), "mle" (Minka), "gavish-donoho" or "broken-stick"; what
        the rule saw, and how sure it is, is in `rank_`. `fw.choose_components` asks all of them.
    svd_solver : "auto" picks by cost: for a few of very many columns "krylov", until variances are right to 1e-6.
        "covariance_eigh", "full" (SVD, no covariance formed), "krylov" (all digits; "randomized" and "arpack" mean this),
        "power" (the textbook's iteration, to be watched).
    whiten : scores get variance one.
    scale : columns are divided by their standard deviation first, and multiplied back by `inverse_transform`.
    missing : what to do about missing cells (NaN). "error" refuses them; "drop" leaves their rows out of the fit; "mean" fills
        them with the means of the columns; "model" is probabilistic PCA of the observed cells (see below).
    prepare : "auto" takes tables as people have them, with categories, identifiers and dates, as `fw.prepare` does.
    ddof : variances are sums of squares divided by (n - ddof): 1 or 0; None means 1, and 0 for rows with categories.
    random_state : start of the iterative solvers; None is a fixed start, so that equal calls give equal bits.
    tol, max_iter, time_budget (seconds), checkpoint (a file): for the iterative solvers; a fit that was killed goes on from
        its checkpoint and ends with the same bits.
    n_threads : threads; None means FOLDWISE_THREADS or all cores. The result does not depend on it.
    copy, iterated_power, n_oversamples, power_iteration_normalizer : accepted for scikit-learn's sake; X is never changed
        and the Krylov solver needs no such settings.

    Rows with categories, which arrive as indicators (`fw.prepare`), are seen in the geometry of FAMD whatever `scale` says, or
    of MCA if there is nothing else: numbers are divided by their standard deviation, indicators by the root of their share.
    Variances then are FAMD's eigenvalues; `category_coordinates`, `variables` and `mca_eigenvalues` say more.

    With missing="model" and cells missing, a normal distribution is fitted to the observed cells by EM, and the variances are
    those of the covariance that it expects of complete rows; rules for n_components read these as if nothing were
    missing. With a whole number below the number of columns less one, the distribution is that of a probabilistic PCA
    with so many components; otherwise its covariance is full. It is shrunk towards unrelated columns by as many rows
    (`shrinkage_`) as predict held-out cells best; `held_out_error_` is the root mean square of their errors, in standard
    deviations of the columns. Complete rows are projected as ever, others after their missing cells are filled by their
    conditional means, as `fw.impute(model, X)` shows. svd_solver plays no part; `tol` is the largest change of a
    correlation at a step (0 means 1e-4); `residuals_` are about the last step's covariance. A d x d matrix is formed.
    partial_fit takes no missing cells.

    The sign of a direction is free; ours makes its largest loading positive. Citation: Jolliffe, Principal Component
    Analysis, 2002.

    >>> import foldwise as fw
    >>> pca = fw.PCA(n_components=1).fit([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> pca.components_.round(3), pca.explained_variance_.round(3)
    (array([[0.851, 0.526]]), array([4.569]))
    """

    PARAMETERS: ClassVar[dict[str, Parameter]] = PARAMETERS
    standardises: ClassVar[bool] = False  # scale=True scales the covariance, not the rows
    _parameter_constraints: ClassVar[dict[str, Any]] = constraints(PARAMETERS)

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
        missing: str = "error",
        prepare: str | None = None,
        ddof: float | None = None,
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
        self.missing = missing
        self.prepare = prepare
        self.ddof = ddof
        self.max_iter = max_iter
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.n_threads = n_threads

    # ---------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, engine: Any = None) -> Self:
        """Find the directions; `sample_weight` counts a row as that many equal rows."""
        with session(self, X, sample_weight, engine=engine, spool=self._reads_again) as opened:
            spectrum, observed, algorithm = self.solve(opened)
            self.settle(opened, spectrum, observed)
            what = f"PCA (svd_solver={self.svd_solver!r})" if observed is None else "PCA (missing='model')"
            resumed_at, notes = spectrum.resumed_at, spectrum.notes
            opened.finish(spectrum.outcome, algorithm, spectrum.rows, resumed_at=resumed_at, warning=what, notes=notes)
        return self

    def solve(self, opened: Session) -> tuple[Spectrum, ObservedFit | None, str]:
        """The directions of the rows of an open fit, before a rule has chosen among them, and the name of the algorithm."""
        solver = solver_for(self.svd_solver, self.n_components, opened.data)
        by_cells = opened.missing is not None or self.n_components == "held-out"
        k = (Solver() if by_cells else solver).count(self.svd_solver, self.n_components, opened.data)
        indicators = getattr(opened.data, "indicators", None)
        options = self.solver_options(k, opened.seed, opened.checkpoint(resumable_cap=True), indicators)
        if not by_cells:
            found = solver.solve(opened.passes, options)
            return found, None, found.algorithm or solver.name
        observed = fit_observed(opened.passes, opened.missing, options, self.n_components)
        return observed.spectrum, observed, EM

    def settle(self, opened: Session, spectrum: Spectrum, observed: ObservedFit | None = None) -> None:
        """Take what `solve` found, here or in a fit of a model that contains this one, as the result of a fit."""
        self._set_attributes(spectrum, opened.data.dtype, observed)
        self.__dict__.pop("_stream", None)
        self.__dict__.pop("n_samples_seen_", None)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take in a batch of any size; after the last one the model is, to the last bit, that of one fit.

        That is, of a fit by `covariance_eigh` to all the rows, of which there should be more than columns. The directions are
        worked out when they are first read, so many small batches cost little.
        """
        stream: PartialFold[Moments] | None = self.__dict__.get("_stream")
        if stream is None:
            self._validate_params()
            if "components_" in vars(self):
                warn(
                    "partial_fit starts anew: fit() keeps no state to go on from, so its rows are not part of this model.",
                    FoldwiseWarning,
                )
            source = scan(X, weights=sample_weight)
            stream = PartialFold(Moments.of_wide if self._wide else Moments.of, source)
        else:
            source = refuse_missing(open_for_use(self, X, sample_weight))
        if stream.sparse != source.sparse:
            raise DataError(
                "one batch is sparse and another dense", advice="Give all batches to partial_fit in the same form"
            )
        if np.promote_types(stream.dtype, source.dtype) != stream.dtype:
            raise DataError(
                f"this batch is {source.dtype} and the ones before were {stream.dtype}: digits would be lost",
                advice="Give all batches in one dtype; fw.scan(batch, dtype=...) converts",
            )
        stream = stream.pushed(source)  # a new one: copies of the model share the old one
        if "_stream" not in vars(self):
            remember_columns(self, source)
        self._stream = stream
        for name in _LAZY | {"manifest_"}:
            self.__dict__.pop(name, None)
        self.n_samples_seen_ = stream.rows
        return self

    def __getattr__(self, name: str) -> Any:
        """Work out the directions of a partial fit when they are first read."""
        stream: PartialFold[Moments] | None = self.__dict__.get("_stream")
        derived = isinstance(getattr(type(self), name, None), property)  # it failed for lack of what it is derived from
        if stream is None or not (name in _LAZY or derived) or "components_" in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        seed = seed_of(self.random_state)
        k = int(self.n_components) if isinstance(self.n_components, Integral) else None
        dtype = np.float64 if self._wide else stream.dtype
        options = self.solver_options(k, seed, indicators=self.__dict__.get("indicators_"))
        try:
            self._set_attributes(from_moments(stream.value(), options, dtype), stream.dtype)
        except DataError as problem:
            names = getattr(self, "feature_names_in_", None)
            column = problem.column if names is None or problem.column is None else str(names[int(problem.column)])
            raise UnavailableError(problem.what, column=column, advice=problem.advice) from None
        except FoldwiseError as problem:
            raise UnavailableError(str(problem)) from None
        return getattr(self, name)

    def _reads_again(self, source: Source) -> bool:
        if self.missing == "model" or self.n_components == "held-out":
            return True
        solver = solver_for(self.svd_solver, self.n_components, source)
        return solver.reads_again(checkpoint=self.checkpoint is not None)

    def solver_options(
        self,
        n_components: int | None,
        seed: int,
        checkpoint: Checkpoint | None = None,
        indicators: tuple[IndicatorGroup, ...] | None = None,
    ) -> SolverOptions:
        """What the parameters say to a solver."""
        usual = 1.0 if indicators is None else 0.0  # as is the custom of FAMD and MCA
        return SolverOptions(
            n_components=n_components,
            solver=self.svd_solver,
            scale=self.scale,
            ddof=usual if self.ddof is None else float(self.ddof),
            tol=float(self.tol),
            max_iter=self.max_iter,
            seed=seed,
            time_budget=self.time_budget,
            checkpoint=checkpoint,
            indicators=indicators,
            wide=self._wide,
        )

    @property
    def _wide(self) -> bool:
        """Rules read variances that may be far below the largest, where float32 sums of products have no digits left."""
        return isinstance(self.n_components, str)

    def _set_attributes(
        self, spectrum: Spectrum, dtype: np.dtype[np.floating], observed: ObservedFit | None = None
    ) -> None:
        """Turn a spectrum into the attributes that users know."""
        spectrum = spectrum.settled()
        auto = None if observed is None else observed.rank
        self.rank_ = auto if auto is not None else by_rule(self.n_components, spectrum)
        k = self.rank_.chosen if self.rank_ is not None else len(spectrum.variances)
        d, total, kept = (
            dimensions(len(spectrum.mean), spectrum.indicators),
            spectrum.total_variance,
            spectrum.variances[:k],
        )
        self.n_components_ = k
        self.n_samples_ = spectrum.rows
        self.mean_ = spectrum.mean
        self.scale_ = spectrum.scale
        self.components_ = spectrum.directions[:k].astype(dtype)
        self.explained_variance_ = kept
        self.explained_variance_ratio_ = kept / total if total > 0 else np.zeros(k)
        self.singular_values_ = np.sqrt(kept * (spectrum.weight - spectrum.ddof))
        self.column_variances_ = spectrum.column_variances
        self.total_weight_ = spectrum.weight
        rest = min(spectrum.weight, d) - k  # weights mean repetition, here too
        beyond = spectrum.dropped if spectrum.dropped is not None else max(0.0, float(total - spectrum.variances.sum()))
        self.noise_variance_ = (beyond + float(spectrum.variances[k:].sum())) / rest if rest > 0 else 0.0
        self.residuals_ = spectrum.residuals[:k]
        self.variance_errors_ = spectrum.errors[:k]
        self.variance_floor_ = spectrum.floor
        self.outcome_ = spectrum.outcome
        self.n_iter_ = max(1, spectrum.outcome.steps)
        self.trace_ = spectrum.outcome.trace
        self._remember_normal(observed)

    # ---------------------------------------------------------------- rows

    def transform(self, X: Any) -> NDArray[Any]:
        """The rows' scores on the components (whitened if the model is)."""
        return self._rows(X, self._projection(whiten=self.whiten).scores)

    def row_output(self, source: Source) -> RowOutput:
        """What `transform` gives, block by block."""
        names = tuple(map(str, self.get_feature_names_out()))
        return RowOutput(source, names, source.dtype, self._completing(self._projection(whiten=self.whiten).scores))

    def _projection(self, *, whiten: bool = False) -> Projection:
        check_is_fitted(self)
        if not whiten:
            return Projection(self.components_, self.mean_, self.scale_)
        # What varies by rounding alone must not be blown up; without any variance it is divided by one.
        variances = self.explained_variance_  # scores are worked out in the dtype of the rows
        floor = floor_of_rows(self.components_.dtype, len(self.mean_), float(variances.max(initial=0.0)))
        roots = np.sqrt(np.maximum(variances, floor))
        return Projection(self.components_, self.mean_, self.scale_, np.where(roots > 0, roots, 1.0))

    def _rows(self, X: Any, task: Any) -> NDArray[Any]:
        return self._rows_as_they_are(X, self._completing(task))

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Rows of the original space that have these scores."""
        projection = self._projection(whiten=self.whiten)
        if self.n_components_ == 0 and np.shape(X)[1:] == (0,):  # no source is without columns, yet this has rows
            return np.tile(self.mean_.astype(np.asarray(X).dtype), (len(X), 1))
        source = scan(X)
        if source.n_columns != self.n_components_:
            message = f"X has {source.n_columns} columns, but this PCA has {self.n_components_} components"
            raise DataError(message, advice="Give what transform returned")
        return Passes(source, n_threads=self.n_threads).rows(projection.rows)

    def scores(self, X: Any) -> NDArray[Any]:
        """The coordinates X V of the centred rows, not whitened even if the model is."""
        return self._rows(X, self._projection().scores)

    def reconstruction_error(self, X: Any) -> Floats:
        """The squared distance of each row from its reconstruction, in the (scaled) space of the fit: a novelty score.

        Over the rows of the fit, the sum divided by (n - ddof) equals the sum of the dropped variances, if nothing is missing.
        Where cells are missing, only the observed ones count; a row without any has no distance (NaN).
        """
        projection = self._projection()
        if self.missing != "model":
            return self._rows(X, projection.residual_norms)
        return self._rows_as_they_are(X, UnknownIfBlank(ObservedResiduals(self._normal(), projection)))

    @property
    def loadings_(self) -> LabelledMatrix:
        """Directions times standard deviations, column by component: with scale=True, the correlations of the two."""
        check_is_fitted(self)
        return self._by_column(self.components_.T * np.sqrt(self.explained_variance_))

    def contributions(self, X: Any = None, *, by: str = "column") -> LabelledMatrix | NDArray[Any]:
        """The share of each column (or, given rows, of each row) in each component; shares add up to one.

        With by="variable" the columns of a category, one for each level, are added up.
        """
        check_is_fitted(self)
        if by not in ("column", "variable") or (by == "variable" and X is not None):
            raise ParameterError(f"contributions(by={by!r}): by is 'column' or, without rows, 'variable'")
        if X is None:
            shares = self._by_column(np.asarray(self.components_, dtype=np.float64).T ** 2)
            if by == "column":
                return shares
            return self._by_variable(dict(zip(shares.rows, shares.values, strict=True)), shares.values)
        squares = np.asarray(self.scores(X), dtype=np.float64) ** 2
        totals = squares.sum(axis=0)
        return squares / np.where(totals > 0, totals, 1.0)

    def cos2(self, X: Any = None) -> LabelledMatrix | NDArray[Any]:
        """How much of each column's variance (or, given rows, of each row's squared length) each component shows."""
        check_is_fitted(self)
        if X is None:
            squares, variances = self.loadings_.values**2, self.column_variances_
            return self._by_column(squares / np.where(variances > 0, variances, 1.0)[:, None])
        return self._rows(X, self._projection().cos2)

    def _by_column(self, values: NDArray[Any]) -> LabelledMatrix:
        return LabelledMatrix(np.asarray(values), self._names, self._components)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = self.svd_solver != "full"
        return tags
