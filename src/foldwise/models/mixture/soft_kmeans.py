"""Soft k-means: every row belongs to every centre by a degree."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from foldwise.data.block import Block, Floats
from foldwise.data.cache import cached
from foldwise.errors import warn
from foldwise.fold.multistart import Best, best_of
from foldwise.fold.passes import Passes
from foldwise.kernels.mixture import Components
from foldwise.models.base import open_for_use
from foldwise.models.kmeans import lloyd
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.centre_model import CentreModel, FewerClustersWarning
from foldwise.models.kmeans.descent import Clusters
from foldwise.models.kmeans.fit_data import KMeansData
from foldwise.models.mixture.annealing import Annealing, FixedStiffness, components, filled
from foldwise.models.mixture.parameters import SOFT
from foldwise.models.parameters import constraints
from foldwise.models.session import check_dense, session
from foldwise.models.units import Units, in_range

_POWERS = {"beta": -2, "free_energy": 2, "shift": 1}  # of the unit


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
    PARAMETERS = SOFT
    _parameter_constraints: ClassVar[dict[str, Any]] = constraints(SOFT)

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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, engine: Any = None) -> Self:
        """Find the centres; `sample_weight` counts a row as that many equal rows."""
        with session(self, X, sample_weight, engine=engine, dense="shares") as opened:
            with np.errstate(over="ignore", invalid="ignore"):
                data = plain = KMeansData(opened.passes)
            self._check_count(opened, data.n, data.counted)
            units = Units.of(data.extent, data.dtype)
            if not units.plain:  # squares of these values are not safe: steps are taken in other units
                data = KMeansData(opened.passes.over(cached(units.view(opened.source))))
            assignment = Assignment(data)
            tol = self.tol * data.mean_variance / data.rescaling.scale**2
            descent: Annealing | FixedStiffness
            if self.beta == "anneal":
                descent = Annealing(assignment, tol, self.n_clusters, self.max_iter, opened.seed)
            else:
                make_start = self._start_in(units, data, X, opened.seed)
                descent = FixedStiffness(assignment, tol, _seen(float(self.beta), units), make_start)
            anneals = isinstance(descent, Annealing)
            starts = self.n_init if isinstance(self.init, str) or callable(self.init) else 1
            best = best_of(
                descent,
                starts,
                None if anneals else self.max_iter,
                time_budget=self.time_budget,
                checkpoint=opened.checkpoint(*data.figures, resumable_cap=starts == 1 and not anneals),
            )
            found, beta = _found(assignment, plain, best, self.n_clusters, units)
            found = self._finish(opened, found)
            self.beta_ = beta
            opened.finish(
                found.outcome,
                "soft k-means" + (" (annealed)" if anneals else ""),
                data.n,
                resumed_at=best.resumed_at,
                warning=f"SoftKMeans (n_clusters={self.n_clusters})",
            )
        return self

    def predict_proba(self, X: Any) -> Floats:
        """The share by which each row belongs to each centre, at `beta_`."""
        check_is_fitted(self, "cluster_centers_")
        source = open_for_use(self, X)
        check_dense(source, "shares")
        centres = self.cluster_centers_.astype(np.float64)
        pivot = centres.mean(axis=0).astype(source.dtype).astype(np.float64)
        units = Units.of_reach(np.ptp(centres / 2, axis=0), centres.dtype)
        beta = _seen(self.beta_, units) if self.beta_ > 0 else 0.0
        compared = components(units.seen(centres), beta, units.seen(pivot), source.dtype)
        return Passes(units.view(self.as_compared(source)), n_threads=self.n_threads).rows(partial(_shares, compared))

    def _start_in(self, units: Units, data: KMeansData, X: Any, seed: int) -> Callable[[int], NDArray[Any]]:
        make = self._make_start(data, X, seed)
        return make if isinstance(self.init, str) else lambda number: units.seen(make(number))

    def _warn_of_empty(self, distinct: int) -> None:
        if distinct < self.n_clusters:
            warn(
                f"Number of distinct clusters ({distinct}) found smaller than n_clusters ({self.n_clusters}): centres that "
                "coincide share their rows. Raise beta; or there are too few distinct rows.",
                FewerClustersWarning,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def _found(assignment: Assignment, plain: KMeansData, best: Best, k: int, units: Units) -> tuple[Clusters, float]:
    """The clusters in the units of the data, and beta."""
    centres, beta = best.state["centres"].astype(plain.dtype), float(best.state["beta"])
    if len(centres) < k:  # annealing was cut short: one step of k-means fills what is not there yet
        centres = filled(assignment, centres, k, lambda rows, points: lloyd.step(rows, points).centres)
    outcome = replace(best.outcome, trace=units.trace(best.outcome.trace, _POWERS))
    beta = _in_range(units.back(beta, -2)) if beta > 0 else 0.0
    centres = np.ascontiguousarray(units.back(centres))
    return Clusters(centres, Assignment(plain), outcome, best.resumed_at, best.iterations), beta


def _seen(beta: float, units: Units) -> float:
    return _in_range(units.seen(beta, -2))


def _in_range(beta: float) -> float:
    advice = "Multiply or divide the data by a constant, or choose beta near one over their variance"
    return float(in_range(beta, "beta", "leaves", least=float(np.finfo(np.float64).tiny), advice=advice))


def _shares(compared: Components, block: Block) -> Floats:
    each = np.empty((block.n_rows, len(compared.means)))
    compared.logs(block.rows, np.empty(block.n_rows), each)
    return np.asarray(np.exp(each))
