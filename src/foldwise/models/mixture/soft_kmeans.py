"""Soft k-means: every row belongs to every centre by a degree."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from foldwise.data.block import Block, Floats
from foldwise.data.cache import cached
from foldwise.data.mapped import multiplied
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.data.spool import spooled
from foldwise.errors import DataError
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.passes import Passes
from foldwise.models.base import open_for_use, remember_columns
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.centre_model import CentreModel, FewerClustersWarning
from foldwise.models.mixture.annealing import Found, Plan, components, search
from foldwise.models.mixture.fit_data import factors
from foldwise.models.mixture.parameters import NOT_ABOUT_THE_RESULT, SOFT
from foldwise.models.standardise import mean_and_deviation


class SoftKMeans(CentreModel):
    """Soft k-means: row x belongs to centre m by the share exp(-beta |x - m|^2) / sum; a centre is the mean weighed by shares.

    The convergence guarantee at one beta: a step is a step of EM for equally weighted spherical Gaussians of variance
    1 / (2 beta), so the free energy -1/beta sum_n log sum_k exp(-beta |x_n - m_k|^2) never rises. It is at most the inertia,
    and at least the inertia - n log(k) / beta: as beta grows, soft k-means becomes k-means. Below 1 / (2 l), l the largest
    variance of the data, all centres coincide in the mean.

    Parameters
    ----------
    n_clusters : how many.
    beta : the stiffness, per squared unit of the data; or "anneal": from half of 1 / (2 l) on, 1.3 times larger each time the
        centres have settled, until the free energy is within 5 % of the inertia; then k-means until nothing moves. It starts
        with one centre in the mean; centres get twins where their rows spread wide, and part by themselves when beta allows
        it, weighed by the rows they have. At each beta the free energy never rises; from one to the next nothing is promised,
        except that the end is an optimum of k-means. `benchmarks/accuracy/soft_kmeans.py` shows which.
    init : "k-means++", "k-means||", "random", an array or a callable, as in KMeans; annealing needs none.
    n_init : how many starts, of which the best is kept.
    max_iter, tol : the most steps (annealing: at each beta, and 30 are enough); steps end when the centres' summed squared
        movement is at most tol times the mean variance of the columns, or nothing improves.
    scale, random_state, time_budget, checkpoint, n_threads : as in KMeans.

    `predict` gives the nearest centre, `predict_proba` the shares at `beta_`, `inertia_` is that of k-means.
    Citation: Rose, Gurewitz and Fox, A deterministic annealing approach to clustering, 1990.

    >>> import foldwise as fw
    >>> soft = fw.SoftKMeans(2, beta=0.1).fit([[0.0], [1.0], [2.0], [9.0], [10.0], [11.0]])
    >>> soft.cluster_centers_.round(3).ravel(), soft.predict_proba([[5.5]]).round(3)
    (array([1.005, 9.995]), array([[0.5, 0.5]]))
    """

    metric = "euclidean"
    _parameter_constraints: ClassVar[dict[str, Any]] = SOFT

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        beta: float | str = "anneal",
        init: Any = "k-means++",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-6,
        scale: bool = False,
        random_state: Any = None,
        time_budget: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.beta = beta
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.scale = scale
        self.random_state = random_state
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centres; `sample_weight` counts a row as that many equal rows."""
        self._validate_params()
        source = self._dense(scan(X, weights=sample_weight))
        with ExitStack() as stack:
            source = stack.enter_context(spooled(source))
            mean = scale = None
            if self.scale:
                mean, scale = mean_and_deviation(Passes(source, n_threads=self.n_threads))
            run = Passes(cached(self._seen(source, mean, scale)), n_threads=self.n_threads)
            run.passes += self.scale
            with np.errstate(over="ignore", invalid="ignore"):
                rows = plain = Assignment(run)
            self._check_count(rows.n, source, rows.extent.columns.rows)
            factor = factors(rows.extent.high / 2 - rows.extent.low / 2, rows.dtype, alone=False)
            if (factor != 1.0).any():  # squares of these values are not safe: steps are taken in other units
                passes = run.passes
                run = Passes(cached(multiplied(run.source, factor)), n_threads=self.n_threads)
                run.passes = passes
                rows = Assignment(run)
            seed = self._seed()
            starts = self.n_init if isinstance(self.init, str) or callable(self.init) else 1
            plan = Plan(
                k=self.n_clusters,
                beta=None if self.beta == "anneal" else _in_units(float(self.beta), 1.0 / factor[0]),
                starts=starts,
                max_iter=self.max_iter,
                tol=self.tol * float(rows.squares.mean()) / rows.extent.columns.weight / rows.frame.scale**2,
                seed=seed,
                make_start=self._starts_in_units(X, seed, factor),
            )
            found = search(rows, plan, time_budget=self.time_budget, checkpoint=self._checkpoint(source, seed, starts))
            if rows is not plain:
                found = _in_data_units(found, float(factor[0]))
                rows = plain
                rows.assign(np.ascontiguousarray(found.centres))
            self.mean_, self.scale_, self.beta_ = mean, scale, found.beta
            self._finish(rows, found)
            self.manifest_ = run.manifest(
                "soft k-means" + (" (annealed)" if plan.beta is None else ""), rows=rows.n, resumed_at=found.resumed_at
            )
        remember_columns(self, source)
        found.outcome.warn(f"SoftKMeans (n_clusters={self.n_clusters})")
        return self

    def predict_proba(self, X: Any) -> Floats:
        """The share by which each row belongs to each centre, at `beta_`."""
        check_is_fitted(self, "cluster_centers_")
        source = self._seen(self._dense(open_for_use(self, X)), self.mean_, self.scale_)
        centres = self.cluster_centers_.astype(np.float64)
        pivot = centres.mean(axis=0).astype(source.dtype).astype(np.float64)
        factor = factors(np.ptp(centres / 2, axis=0), centres.dtype, alone=False)
        beta = _in_units(self.beta_, 1.0 / factor[0]) if self.beta_ > 0 else 0.0
        source, centres, pivot = multiplied(source, factor), centres * factor, pivot * factor
        compared = components(centres, beta, pivot, source.dtype)

        def of(block: Block) -> NDArray[Any]:
            each = np.empty((block.n_rows, len(centres)))
            compared.logs(block.rows, np.empty(block.n_rows), each)
            return np.asarray(np.exp(each))

        return Passes(source, n_threads=self.n_threads).rows(of)

    def _starts_in_units(self, X: Any, seed: int, factor: Floats) -> Callable[[Assignment, int], NDArray[Any]]:
        make = self._starts(X, seed)
        if isinstance(self.init, str) or (factor == 1.0).all():
            return make
        return lambda rows, number: make(rows, number) * factor.astype(rows.dtype)

    @staticmethod
    def _dense(source: Source) -> Source:
        if source.sparse:
            raise DataError(
                "sparse data was passed, but shares need rows with all their values",
                advice="Use X.toarray(), or KMeans, which takes sparse rows",
            )
        return source

    def _checkpoint(self, source: Source, seed: int, starts: int) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        about = {name: value for name, value in self.get_params().items() if name not in NOT_ABOUT_THE_RESULT}
        about["random_state"] = seed
        if starts == 1 and self.beta != "anneal":
            del about["max_iter"]  # such a fit can be taken up again with a higher cap
        if callable(self.init):
            about["init"] = getattr(self.init, "__qualname__", type(self.init).__qualname__)
        elif not isinstance(self.init, str):
            given = np.ascontiguousarray(self.init)
            about["init"] = given.shape, hashlib.sha256(given.tobytes()).hexdigest()
        return Checkpoint(self.checkpoint, f"SoftKMeans {about!r} {source.fingerprint()}")

    def _tell_of_empty(self, counts: NDArray[np.intp]) -> None:
        distinct = int(np.count_nonzero(counts))
        if distinct < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({distinct}) found smaller than n_clusters ({self.n_clusters}): centres that "
                "coincide share their rows. Raise beta; or there are too few distinct rows.",
                FewerClustersWarning,
                stacklevel=4,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def _in_units(beta: float, factor: float) -> float:
    """The stiffness for rows that are divided by `factor`."""
    with np.errstate(over="ignore", under="ignore"):
        found = float(np.float64(beta) * factor * factor)
    if not np.finfo(np.float64).tiny <= found < np.inf:
        raise DataError(
            "beta leaves the range of float64 beside the squares of such data",
            advice="Multiply or divide the data by a constant, or choose beta near one over their variance",
        )
    return found


def _in_data_units(found: Found, factor: float) -> Found:
    """What was found for rows times `factor`, for the rows themselves."""
    beta = _in_units(found.beta, factor) if found.beta > 0 else 0.0
    with np.errstate(over="ignore", under="ignore"):
        trace = tuple(
            {
                name: value * factor * factor
                if name == "beta"
                else value / factor / factor
                if name == "free_energy"
                else value / factor
                if name == "shift"
                else value
                for name, value in step.items()
            }
            for step in found.outcome.trace
        )
        centres = found.centres / found.centres.dtype.type(factor)
    return replace(found, centres=centres, beta=beta, outcome=replace(found.outcome, trace=trace))
