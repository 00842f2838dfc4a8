"""The GaussianMixture that users meet: scikit-learn's manners outside, folds inside."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from foldwise.data.block import Floats
from foldwise.data.mapped import standardised
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.data.spool import spooled
from foldwise.errors import DataError, FoldwiseWarning, NotFinishedWarning, ParameterError
from foldwise.fold import blas
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.passes import Passes
from foldwise.models.base import remember_columns
from foldwise.models.mixture import merging, starts, warm_start
from foldwise.models.mixture.covariance_types import LAYOUT
from foldwise.models.mixture.em import Found, Plan, search
from foldwise.models.mixture.fit_data import FitData, in_range
from foldwise.models.mixture.parameters import MIXTURE, NOT_ABOUT_THE_RESULT
from foldwise.models.mixture.predict import FittedMixture
from foldwise.models.mixture.starts import Start
from foldwise.models.standardise import mean_and_deviation

_ROUGH = 1e-4  # of many starts, all but the best are left at this tolerance


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
    covariance_type : "full", "tied" (one for all), "diag", "spherical", or "ppca": `n_latent` directions (2) with variances of
        their own and equal noise in all others, for many columns.
    tol, max_iter : a start ends when the lower bound for each row changes by less than tol, or after max_iter steps.
    reg_covar : the variance added to every column of every covariance. "auto" is 1e-10 (1e-7 for float32) of the column's
        variance within components, the median of them, so that neither units nor gaps matter (`ridge_`); a number is taken
        as it is, as scikit-learn does.
    n_init : how many starts, of which the best is kept.
    init_params : "kmeans" (of standardised columns, except for spherical and ppca), "k-means++", "random_from_data", "random".
    weights_init, means_init, precisions_init : a start in the units of the model; the order of components is then kept.
    scale : columns are standardised first; parameters and densities are then of standardised rows.
    random_state : None is a fixed start, so that equal calls give equal bits.
    warm_start : go on from the last fit. verbose, verbose_interval : accepted; `fw.progress()` shows progress.
    time_budget (seconds), checkpoint (a file) : a fit that was stopped or killed goes on from its checkpoint.
    n_threads : threads; None means FOLDWISE_THREADS or all cores. The result does not depend on it.

    Parameters are float64 whatever the data are. `lower_bounds_`, of the last run (a repair begins
    a new one; `trace_` keeps all), never fall (docs/how-it-works.md says why, with a ridge too).
    Components are numbered by weight, the largest first. Citation: Dempster, Laird and Rubin 1977.

    >>> import foldwise as fw
    >>> rows = [[1.0, 2.0], [1.5, 4.0], [0.5, 0.0], [1.0, 3.0], [10.0, 2.0], [11.0, 4.0], [9.0, 0.0], [10.0, 1.0], [10.0, 3.0]]
    >>> gm = fw.GaussianMixture(2).fit(rows)
    >>> gm.means_, gm.predict([[0.0, 0.0], [12.0, 3.0]])
    (array([[10.  ,  2.  ],
           [ 1.  ,  2.25]]), array([1, 0]))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = MIXTURE

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
        scale: bool = False,
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
        self.scale = scale
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.n_threads = n_threads

    # ---------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components; `sample_weight` counts a row as that many equal rows."""
        found = self._fit(scan(X, weights=sample_weight))
        self._tell_of_collapse(found)
        self._tell_of_constants()
        if self.max_iter > 0:
            found.outcome.warn(
                "Best performing initialization did not converge. Try different init parameters, or increase max_iter, "
                f"tol, or check for degenerate data. GaussianMixture (n_components={self.n_components})",
                MixtureNotFinishedWarning,
            )
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.int64]:
        """Fit, and the most probable component of each row."""
        with spooled(scan(X, weights=sample_weight)) as source:  # what can be read only once is read twice
            return self.fit(source).predict(source)

    def _fit(self, source: Source, own: list[Callable[[FitData], Start]] | None = None) -> Found:
        """Fit, from starts of the caller's own if there are any."""
        self._validate_params()
        self._dense(source)
        with ExitStack() as stack:
            source = stack.enter_context(spooled(source))
            mean = scale = None
            if self.scale:
                mean, scale = mean_and_deviation(Passes(source, n_threads=self.n_threads))
                seen = standardised(source, mean, scale)
            else:
                seen = source
            ground = FitData(seen, self.covariance_type, self.n_latent, self.reg_covar, self.n_threads)
            ground.run.passes += self.scale  # the one for the deviations
            self._check_count(ground, source)
            plan, kept = self._plan(ground, own, mean, scale)
            checkpoint = self._checkpoint(source, plan)
            found = search(ground, plan, time_budget=self.time_budget, checkpoint=checkpoint)
            self.mean_, self.scale_ = mean, scale
            self.constant_columns_ = np.flatnonzero(ground.extent.high == ground.extent.low)
            self._finish(ground, found, kept)
            self._fitted = self.covariance_type, warm_start.about(self, ground)
            self.manifest_ = ground.run.manifest(
                f"EM ({self.covariance_type})",
                rows=ground.n,
                resumed_at=found.resumed_at,
                repairs=_repairs(found),
            )
        remember_columns(self, source)
        return found

    def _check_count(self, ground: FitData, source: Source) -> None:
        where = source.where if source.where != "array" else None
        counted = ground.extent.columns.rows
        if ground.n < self.n_components:
            raise TooFewRowsError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components}, n_samples = {ground.n}",
                where=where,
                advice="Ask for fewer components",
            )
        if counted < self.n_components:
            raise TooFewRowsError(
                f"n_components={self.n_components} is more than the {counted} rows whose weight is not 0",
                where=where,
                advice="Ask for fewer components",
            )
        if ground.n < 2:
            raise DataError("Found array with 1 sample(s) while a minimum of 2 is required", where=where)
        if self.covariance_type == "ppca" and (ground.d < 2 or (self.n_latent or 1) >= ground.d):
            raise ParameterError(
                f"covariance_type='ppca' with n_latent={self.n_latent} needs more than that many columns; "
                f"there are {ground.d}. Use covariance_type='full'."
            )

    def _plan(
        self, ground: FitData, own: list[Callable[[FitData], Start]] | None, mean: Floats | None, scale: Floats | None
    ) -> tuple[Plan, bool]:
        """What to do, and whether the order of the components is the caller's."""
        from sklearn.utils import check_random_state

        k, state = self.n_components, self.random_state
        if isinstance(state, (int, np.integer)):
            seed = int(state)
        else:
            seed = 0 if state is None else int(check_random_state(state).randint(2**31 - 1))
        given = starts.checked(
            self.weights_init, self.means_init, self.precisions_init, k, ground.d, LAYOUT[self.covariance_type]
        )
        if own is not None:
            made = own
            return Plan(
                k, len(own), self.max_iter, self.tol, seed, lambda ground, i: made[i](ground), rough=_ROUGH
            ), False
        if self.warm_start and hasattr(self, "converged_"):
            begin, before = warm_start.start(self, ground, mean, scale)
            return Plan(k, 1, self.max_iter, self.tol, seed, lambda ground, i: begin, before), True

        def make(ground: FitData, number: int) -> Start:
            return starts.make(ground, k, self.init_params, given, seed, number)

        n_init = 1 if given.whole else self.n_init  # from one place EM goes one way
        return Plan(k, n_init, self.max_iter, self.tol, seed, make), given.means is not None

    def _checkpoint(self, source: Source, plan: Plan) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        about = {name: value for name, value in self.get_params().items() if name not in NOT_ABOUT_THE_RESULT}
        if plan.starts == 1:
            del about["max_iter"]  # such a fit can be taken up again with a higher cap
        about["random_state"] = plan.seed
        for name in ("weights_init", "means_init", "precisions_init"):  # what is printed of an array leaves out digits
            if about[name] is not None:
                array = np.ascontiguousarray(about[name], dtype=np.float64)
                about[name] = array.shape, hashlib.sha256(array.tobytes()).hexdigest()
        if self.warm_start and hasattr(self, "converged_"):
            about["from"] = hashlib.sha256(self.means_.tobytes() + self.covariances_.tobytes()).hexdigest()
        return Checkpoint(self.checkpoint, f"{type(self).__name__} {about!r} {source.fingerprint()}")

    def _finish(self, ground: FitData, found: Found, kept: bool) -> None:
        family, start = ground.family, found.start
        order = np.arange(len(start.weights))
        if not kept:  # the start was ours: equal models get equal numbers
            order = np.lexsort((*start.means.T[::-1], -start.weights))
        covariances = start.covariances if family.layout == "tied" else start.covariances[order]
        with blas.single():
            whiten = family.whiten(covariances)
        factor, back = ground.factor, 1.0 / ground.factor
        if family.layout == "spherical":
            whiten = whiten * factor[0]
        else:
            whiten = whiten * (factor if family.layout == "diag" else factor[:, None])
        with np.errstate(over="ignore", under="ignore"):
            covariances = in_range(family.scaled(covariances, back), "covariances")
            precisions = in_range(family.precisions(whiten), "precisions")
            means = start.means[order] * back
        self.weights_ = np.ascontiguousarray(start.weights[order])
        self.means_ = np.ascontiguousarray(means)
        self.covariances_ = np.ascontiguousarray(covariances)
        self.precisions_cholesky_ = np.ascontiguousarray(whiten)
        self.precisions_ = np.ascontiguousarray(precisions)
        self.ridge_ = np.asarray(ground.ridge * back * back)
        if family.name == "ppca":
            self.n_latent_ = family.n_latent
        logs = float(np.log(factor).sum())  # densities of rows times `factor` are smaller by that much
        self.trace_ = tuple({**step, "lower_bound": step["lower_bound"] + logs} for step in found.outcome.trace)
        ours = [
            step for step in self.trace_ if step["start"] == found.number
        ]  # up to the last repair they had other aims
        self.lower_bounds_ = [step["lower_bound"] for step in ours if step["run"] == ours[-1]["run"]]
        self.lower_bound_ = found.lower_bound + logs if self.lower_bounds_ else -np.inf
        self.n_iter_ = found.iterations
        self.outcome_ = found.outcome
        self.converged_ = found.outcome.converged
        for name in ("clusters_", "merging_"):  # of the fit before
            self.__dict__.pop(name, None)

    def _tell_of_collapse(self, found: Found) -> None:
        if found.collapsed:
            warnings.warn(
                f"{'; '.join(_repairs(found))}. Ask for fewer components, a simpler covariance_type or a larger reg_covar.",
                CollapsedWarning,
                stacklevel=3,
            )

    def _tell_of_constants(self) -> None:
        """Told once for a fit, or for a whole selection."""
        if not len(self.constant_columns_):
            return
        names = getattr(self, "feature_names_in_", None)
        shown = ", ".join(str(names[j]) if names is not None else f"number {j}" for j in self.constant_columns_[:5])
        warnings.warn(
            f"{len(self.constant_columns_)} column(s) have one value in all rows ({shown}): they say nothing about groups, and "
            "raise every density by what reg_covar makes of them. Leave them out.",
            ConstantColumnsWarning,
            stacklevel=3,
        )

    # ---------------------------------------------------------------- clusters of several components

    def merge(self, X: Any, n_clusters: int | None = None, sample_weight: Any = None) -> GaussianMixture:
        """A copy whose components are merged into clusters by entropy: one cluster that is not Gaussian may have several.

        `X` are rows to judge by, usually those of the fit. Without `n_clusters` the number is where the entropy bends, which
        is a rule of thumb. The copy's `predict` and `predict_proba` speak of clusters, its densities stay those of the
        components; `clusters_` says where each component went, and `merging_` keeps the tree and the entropies.

        >>> import foldwise as fw
        >>> gm = fw.GaussianMixture(3).fit([[0.0], [1.0], [2.0], [2.5], [3.5], [4.0], [50.0], [51.0], [53.0]])
        >>> merged = gm.merge([[0.0], [1.0], [2.0], [2.5], [3.5], [4.0], [50.0], [51.0], [53.0]], n_clusters=2)
        >>> merged.predict([[0.0], [3.0], [52.0]])
        array([0, 0, 1])
        """
        copied: GaussianMixture = merging.merged(self, X, n_clusters, sample_weight)
        return copied


def _repairs(found: Found) -> tuple[str, ...]:
    told = []
    if found.restarted:
        told.append(f"{found.restarted} times a collapsed component was started anew where densities were lowest")
    if found.ill:
        told.append(
            "some components still have too few rows, or no width in some direction in which the data vary: "
            "restarting them did not help"
        )
    if found.atoms:
        told.append(
            "some components sit on many rows that are alike in some direction: they were left, and their densities are "
            "as high as reg_covar allows"
        )
    return tuple(told)
