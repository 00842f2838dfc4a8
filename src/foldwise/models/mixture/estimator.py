"""The GaussianMixture that users meet: scikit-learn's manners outside, folds inside."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from foldwise.data.scan import scan
from foldwise.data.spool import spooled
from foldwise.errors import DataError, FoldwiseWarning, NotFinishedWarning, warn
from foldwise.fold import blas
from foldwise.fold.multistart import Best, best_of
from foldwise.models.mixture import gaps, merging, warm_start
from foldwise.models.mixture.collinear import MANY_COLUMNS
from foldwise.models.mixture.covariance import COVARIANCE_TYPES, CovarianceType
from foldwise.models.mixture.covariance.matrices import MatrixType
from foldwise.models.mixture.em import EM, Polish
from foldwise.models.mixture.fit_data import FitData
from foldwise.models.mixture.parameters import MIXTURE
from foldwise.models.mixture.predict import FittedMixture
from foldwise.models.mixture.starts import MixtureStart, Starts, checked
from foldwise.models.parameters import constraints
from foldwise.models.session import Session, session
from foldwise.models.units import in_range
from foldwise.stats.extent import Extent

_COMPLETED = "the start was looked for on rows whose missing cells were drawn; EM then integrates missing cells out"
_ROUGH = 1e-4  # of starts that the caller adds, all but the best are left at this tolerance


class CollapsedWarning(FoldwiseWarning):
    """A component had too little weight, or no width in some direction, and restarting it did not help."""


class TooFewRowsError(DataError):
    """Fewer rows than components."""


class ConstantColumnsWarning(FoldwiseWarning):
    """Some columns do not vary."""


class MixtureNotFinishedWarning(NotFinishedWarning, ConvergenceWarning):  # type: ignore[misc]
    """A mixture stopped before it converged."""


class GaussianMixture(FittedMixture):
    """A mixture of Gaussians by EM: clusters of different sizes and shapes, and rows that belong to several in part.

    Takes arrays, frames, `fw.scan(...)` and paths of files, which may be larger than memory: one step of EM is one pass. The
    same model, to the last bit, for any number of threads and wherever the rows are.

    Parameters
    ----------
    n_components : how many.
    covariance_type : "full", "tied" (one for all), "diag", "spherical", "ppca": `n_latent` directions (2) with variances of
        their own and equal noise in all others, for many columns; or another of `mixture.covariance.COVARIANCE_TYPES`.
    tol, max_iter : a start ends when the lower bound for each row is projected to gain less than tol in all further steps
        together, or after 20 steps in a row that gained less, or after max_iter steps.
    reg_covar : the variance added to every column of every covariance. "auto" is 1e-10 (1e-7 for float32) of the column's
        variance within components, the median of them, so that neither units nor gaps matter (`ridge_`); "total" the
        same share of its variance over all rows, whatever the components; a number is taken as it is, as scikit-learn does.
    n_init : how many starts, of which the best is kept.
    init_params : "kmeans" (of standardised columns, except for spherical and ppca), "k-means++", "random_from_data", "random".
    search : with "kmeans", how far a start is looked for. "split-merge": short runs in memory from several k-means, on at most
        20,000 rows, then splits and merges of components (`models/mixture/search.py` states the effort). "none": one k-means.
    weights_init, means_init, precisions_init : a start in the units of the model; the order of components is then kept.
    missing : what to do about missing cells (NaN). "error" refuses them; "drop" leaves their rows out of the fit; "mean" fills
        with the means of the columns; "model" integrates them out: EM maximises the likelihood of the observed cells, densities
        are those of what a row has, and `fw.impute(model, X)` completes rows. A row without any has probabilities `weights_`.
    prepare : "auto" takes tables as people have them, with categories, identifiers and dates, as `fw.prepare` does.
    scale : columns are standardised first; parameters and densities are then of standardised rows.
    random_state : None is a fixed start, so that equal calls give equal bits.
    warm_start : go on from the last fit. verbose, verbose_interval : accepted; `fw.progress()` shows progress.
    time_budget (seconds), checkpoint (a file) : a fit that was stopped or killed goes on from its checkpoint.
    n_threads : threads; None means FOLDWISE_THREADS or all cores. The result does not depend on it.

    Parameters are float64 whatever the data are. `n_iter_` counts the steps over all rows in the start that was kept, often two
    after a search, whose own steps do not count. `lower_bounds_`, of the last run (a repair begins
    a new one; `trace_` keeps all), never fall (docs/how-it-works.md says why, with a ridge too).
    Components are numbered by weight, the largest first. Citation: Dempster, Laird and Rubin 1977.

    >>> import foldwise as fw
    >>> rows = [[1.0, 2.0], [1.5, 4.0], [0.5, 0.0], [1.0, 3.0], [10.0, 2.0], [11.0, 4.0], [9.0, 0.0], [10.0, 1.0], [10.0, 3.0]]
    >>> gm = fw.GaussianMixture(2).fit(rows)
    >>> gm.means_, gm.predict([[0.0, 0.0], [12.0, 3.0]])
    (array([[10.  ,  2.  ],
           [ 1.  ,  2.25]]), array([1, 0], dtype=int32))

    Missing cells (NaN) are integrated out:

    >>> nan = float("nan")
    >>> gm = fw.GaussianMixture(2, missing="model", covariance_type="diag").fit([*rows, [nan, 3.0], [10.5, nan]])
    >>> gm.predict([[nan, 2.0], [1.2, nan]]), gm.predict_proba([[nan, nan]]).round(2)
    (array([0, 1], dtype=int32), array([[0.6, 0.4]]))
    """

    PARAMETERS = MIXTURE
    _parameter_constraints: ClassVar[dict[str, Any]] = constraints(MIXTURE)

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float | str = "auto",
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        n_latent: int | None = None,
        search: str = "split-merge",
        scale: bool = False,
        missing: str = "error",
        prepare: str | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        time_budget: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.n_latent = n_latent
        self.search = search
        self.scale = scale
        self.missing = missing
        self.prepare = prepare
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.n_threads = n_threads

    # ---------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, engine: Any = None) -> Self:
        """Find the components; `sample_weight` counts a row as that many equal rows."""
        return self._fit(X, sample_weight, engine, None, warn=True)

    def fit_from_starts(
        self,
        X: Any,
        starts: Sequence[MixtureStart],
        sample_weight: Any = None,
        *,
        engine: Any = None,
        warn: bool = True,
    ) -> Self:
        """Fit from the `n_init` starts of `fit` and from these; the best, found at a coarse tolerance, goes on to `tol`."""
        return self._fit(X, sample_weight, engine, tuple(starts), warn=warn)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None, *, engine: Any = None) -> NDArray[np.int32]:
        """Fit, and the most probable component of each row."""
        with spooled(scan(X, weights=sample_weight)) as source:  # which may be slow to decode, or readable only once
            return self.fit(source, engine=engine).predict(source)

    def _fit(
        self, X: Any, sample_weight: Any, engine: Any, further: tuple[MixtureStart, ...] | None, *, warn: bool
    ) -> Self:
        with session(self, X, sample_weight, engine=engine, dense="densities") as opened, blas.single():
            covariance = COVARIANCE_TYPES[self.covariance_type].of_columns(opened.source.n_columns, self.n_latent)
            data = self._data(opened, covariance)
            extent = data.extent
            given = checked(self.weights_init, self.means_init, self.precisions_init, self.n_components, covariance)
            n_init = 1 if given.whole else self.n_init  # from one place EM goes one way
            starts = Starts(self.n_components, self.init_params, given, opened.seed, n_init, further or (), self.search)
            n_starts, rough = len(starts), _ROUGH if further is not None and len(starts) > 1 else 0.0
            descent = EM(data, starts, self.tol, opened.seed, rough=rough)
            beside: dict[str, Any] = {} if further is None else {"starts": [vars(one) for one in starts.further]}
            warm = self.warm_start and hasattr(self, "converged_") and further is None
            if warm:
                begin, before = warm_start.start(self, data, opened.mean, opened.scale)
                n_starts, descent = 1, EM(data, begin, self.tol, opened.seed, before=before)
                beside = {name: getattr(self, name) for name in ("weights_", "means_", "covariances_", "lower_bound_")}
            best = best_of(
                descent,
                n_starts,
                self.max_iter,
                then=Polish() if rough > self.tol else None,
                time_budget=self.time_budget,
                checkpoint=opened.checkpoint(*warm_start.figures(data), resumable_cap=n_starts == 1, **beside),
            )
            self._keep(data, best, opened, in_order=warm or given.means is not None)
            repairs = _repairs(best)
            self._fitted = self.covariance_type, warm_start.about(self, data)
            self.collapsed_ = bool(best.state["ill"] or best.state["atoms"])
            opened.finish(
                best.outcome,
                f"EM ({self.covariance_type})",
                extent.count,
                resumed_at=best.resumed_at,
                repairs=repairs,
                notes=(_COMPLETED,) if data.gaps and self.n_components > 1 and not (given.whole or warm) else (),
                warning="Best performing initialization did not converge. Try different init parameters, or increase "
                "max_iter, tol, or check for degenerate data. "
                f"GaussianMixture (n_components={self.n_components})",
                category=MixtureNotFinishedWarning,
                quiet=not warn or self.max_iter == 0,
            )
        if warn:
            self._warn_of_collapse(repairs)
            self.warn_of_constant_columns()
        return self

    def _data(self, opened: Session, covariance: CovarianceType) -> FitData:
        observed = opened.missing
        if observed is not None and opened.mean is not None and opened.scale is not None:
            observed = gaps.scaled(observed, opened.mean, opened.scale)
        with np.errstate(over="ignore", invalid="ignore"):
            passes = opened.passes if observed is None else gaps.filled(opened.passes, observed)
            extent = passes.fold(Extent.of)
        self._check_count(extent, opened)
        self._check_columns(extent, covariance, opened)
        if observed is None:
            return FitData.of(opened.passes, covariance, self.reg_covar, extent)
        return gaps.data_with_gaps(opened.passes, covariance, self.reg_covar, extent, observed)

    def _check_count(self, extent: Extent, opened: Session) -> None:
        if extent.count < self.n_components:
            raise TooFewRowsError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components}, "
                f"n_samples = {extent.count}",
                where=opened.where,
                advice="Ask for fewer components",
            )
        if extent.columns.rows < self.n_components:
            raise TooFewRowsError(
                f"n_components={self.n_components} is more than the {extent.columns.rows} rows whose weight is not 0",
                where=opened.where,
                advice="Ask for fewer components",
            )
        if extent.count < 2:
            raise DataError("Found array with 1 sample(s) while a minimum of 2 is required", where=opened.where)

    def _check_columns(self, extent: Extent, covariance: CovarianceType, opened: Session) -> None:
        """Refuse what would take hours and end in covariances that are nothing but `reg_covar`, unless that was given."""
        if isinstance(covariance, MatrixType) and covariance.d > MANY_COLUMNS and isinstance(self.reg_covar, str):
            needed = covariance.d + 1 if covariance.shared else self.n_components * covariance.least_rows()
            if extent.count < needed:
                raise TooFewRowsError(
                    f"{extent.count:,} rows cannot determine covariances of {covariance.d:,} columns "
                    f"(covariance_type='{self.covariance_type}', n_components={self.n_components}: at least {needed:,} rows)",
                    where=opened.where,
                    advice="covariance_type='diag' needs fewer; or fit the first scores of a PCA instead",
                )

    def _keep(self, data: FitData, best: Best, opened: Session, *, in_order: bool) -> None:
        """What was found, in the units of the model."""
        state, covariance, units = best.state, data.covariance, data.units
        order = np.arange(len(state["weights"]))
        if not in_order:  # the start was ours: equal models get equal numbers
            order = np.lexsort((*state["means"].T[::-1], -state["weights"]))
        covariances = covariance.take(state["covariances"], order)
        whiten = covariance.scaled_whiten(covariance.whiten(covariances), units.factor)
        with np.errstate(over="ignore", under="ignore"):
            covariances = in_range(covariance.scaled(covariances, units.inverse), "the covariances")
            precisions = in_range(covariance.precisions(whiten), "the precisions")
        self.mean_, self.scale_ = opened.mean, opened.scale
        self.constant_columns_ = np.flatnonzero(data.extent.high == data.extent.low)
        self.weights_ = np.ascontiguousarray(state["weights"][order])
        self.means_ = np.ascontiguousarray(units.back(state["means"][order]))
        self.covariances_ = np.ascontiguousarray(covariances)
        self.precisions_cholesky_ = np.ascontiguousarray(whiten)
        self.precisions_ = np.ascontiguousarray(precisions)
        self.ridge_ = np.asarray(units.back(state["ridge"], 2))
        if hasattr(covariance, "n_latent"):
            self.n_latent_ = covariance.n_latent
        self.trace_ = units.trace(best.outcome.trace, {}, log_densities=("lower_bound",))
        ours = [step for step in self.trace_ if step["start"] == best.start]
        # Up to the last repair, bounds were of something else.
        self.lower_bounds_ = [step["lower_bound"] for step in ours if step["run"] == ours[-1]["run"]]
        self.lower_bound_ = -best.value[-1] + units.log_volume if self.lower_bounds_ else -np.inf
        self.n_iter_ = best.iterations
        self.converged_ = best.outcome.converged
        for name in ("clusters_", "merging_"):  # of the fit before
            self.__dict__.pop(name, None)

    def _warn_of_collapse(self, repairs: tuple[str, ...]) -> None:
        if self.collapsed_:
            warn(
                f"{'; '.join(repairs)}. Ask for fewer components, a simpler covariance_type or a larger reg_covar.",
                CollapsedWarning,
            )

    def warn_of_constant_columns(self) -> None:
        """Warn of columns that did not vary, if there were any; `fit` does, and so does a choice among fits, once."""
        if not len(self.constant_columns_):
            return
        names = getattr(self, "feature_names_in_", None)
        shown = ", ".join(str(names[j]) if names is not None else f"number {j}" for j in self.constant_columns_[:5])
        warn(
            f"{len(self.constant_columns_)} column(s) have one value in all rows ({shown}): they say nothing about groups, and "
            "raise every density by what reg_covar makes of them. Leave them out.",
            ConstantColumnsWarning,
        )

    # ---------------------------------------------------------------- clusters of several components

    def merge(
        self, X: Any, n_clusters: int | None = None, sample_weight: Any = None, *, engine: Any = None
    ) -> GaussianMixture:
        """A copy whose components are merged into clusters by entropy: one cluster that is not Gaussian may have several.

        `X` are rows to judge by, usually those of the fit. Without `n_clusters` the number is where the entropy bends, which
        is a rule of thumb. The copy's `predict` and `predict_proba` speak of clusters, its densities stay those of the
        components; `clusters_` says where each component went, and `merging_` keeps the tree and the entropies.

        >>> import foldwise as fw
        >>> gm = fw.GaussianMixture(3).fit([[0.0], [1.0], [2.0], [2.5], [3.5], [4.0], [50.0], [51.0], [53.0]])
        >>> merged = gm.merge([[0.0], [1.0], [2.0], [2.5], [3.5], [4.0], [50.0], [51.0], [53.0]], n_clusters=2)
        >>> merged.predict([[0.0], [3.0], [52.0]])
        array([0, 0, 1], dtype=int32)
        """
        copied: GaussianMixture = merging.merged(self, X, n_clusters, sample_weight, engine)
        return copied


def _repairs(best: Best) -> tuple[str, ...]:
    lines = []
    restarted = int(sum(step["restarted"] for step in best.outcome.trace))
    if restarted:
        lines.append(f"{restarted} times a collapsed component was started anew where densities were lowest")
    if best.state["ill"]:
        lines.append(
            "some components still have too few rows, or no width in some direction in which the data vary: "
            "restarting them did not help"
        )
    if best.state["atoms"]:
        lines.append(
            "some components sit on many rows that are alike in some direction: they were left, and their densities are "
            "as high as reg_covar allows"
        )
    return tuple(lines)
