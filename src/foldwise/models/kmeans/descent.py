"""K-means as a descent from each of several starts, followed by an optional local search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.cache import cached
from foldwise.data.mapped import standardised
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.iterate import Figures, State
from foldwise.fold.multistart import Value, best_of
from foldwise.fold.outcome import Outcome, Reason
from foldwise.fold.passes import Passes
from foldwise.kernels.targets import Labels
from foldwise.models.kmeans import lloyd
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.brief_starts import STARTS as BRIEF_STARTS
from foldwise.models.kmeans.brief_starts import BriefStart, brief_sample_size
from foldwise.models.kmeans.fit_data import KMeansData
from foldwise.models.kmeans.geometry import EUCLIDEAN, Geometry
from foldwise.models.kmeans.label_order import ordered
from foldwise.models.kmeans.local_search import SEARCHES, descent_state
from foldwise.models.kmeans.seeding import STARTS
from foldwise.models.kmeans.small_table import best_start, effort_for
from foldwise.models.standardise import mean_and_deviation

_FEW = 0.01  # of the rows; more changing clusters in a step is not convergence


class KMeansDescent:
    """Steps of Lloyd's algorithm. Labels and sums follow from the centres, so the state is small."""

    kept = ("centres",)

    def __init__(
        self, assignment: Assignment, k: int, tol: float, make_start: Callable[[int], NDArray[Any]], geometry: Geometry
    ) -> None:
        """`tol` bounds the summed squared movement of the centres, in units of the rescaled data."""
        self.assignment, self.k, self.tol = assignment, k, tol
        self.make_start, self.geometry = make_start, geometry
        data = assignment.data
        self._rounding = k * data.d * (4 * float(np.finfo(data.dtype).eps)) ** 2 if tol > 0 else 0.0

    def start(self, number: int, before: State | None) -> State:
        """The initial centres of this start."""
        return descent_state(self.make_start(number))

    def step(self, state: State) -> tuple[State, Figures]:
        """One Lloyd step."""
        assignment, data = self.assignment, self.assignment.data
        centres, previous = state["centres"], state["previous"]
        if not assignment.labelled and len(previous):  # resumed: count moved rows relative to the previous centres
            assignment.assign(previous)
        done = lloyd.step(assignment, centres, self.geometry)
        new = {
            **state,
            "centres": done.centres,
            "previous": done.before,
            "inertia": np.array(done.after_m),
            "shift": np.array(done.shift),
            "moved": np.array(done.moved / data.n if len(previous) else 1.0),
        }
        return new, {
            "clusters": float(len(centres)),
            "inertia": data.unscaled(done.after_m),
            "inertia_after_e": data.unscaled(done.after_e),
            "scaled_inertia": done.after_m,
            "moved": float(done.moved if len(previous) else data.n),
            "pruned": float(data.n - done.computed),
            "near_ties": float(done.settled),
            "filled": float(done.filled),
            "shift": float(np.sqrt(done.shift)) / data.rescaling.scale,
        }

    def value(self, state: State) -> Value:
        """The inertia; a state with centres still to be removed is not a candidate."""
        return (float(state["inertia"]) if len(state["centres"]) == self.k else np.inf,)

    def ended(self, state: State) -> Reason | None:
        """Converged when the centres move by at most `tol`, and few rows from cluster to cluster.

        A far outlier inflates the variance that `tol` refers to, so that any movement is small; the rows tell the truth.
        """
        shift, moved = float(state["shift"]), float(state["moved"])
        ended = (shift <= self.tol and moved <= _FEW) or shift <= self._rounding
        return Reason.CONVERGED if ended else None


@dataclass(frozen=True)
class Clusters:
    """The result: centres, outcome, and the labels and sums that belong to them."""

    centres: NDArray[Any]
    assignment: Assignment
    outcome: Outcome
    resumed_at: int = 0
    iterations: int = 0
    searched: str = ""  # how a start was looked for before the first step

    @property
    def labels(self) -> Labels:
        """The cluster of every row."""
        return self.assignment.labels

    @property
    def repairs(self) -> tuple[str, ...]:
        """Repairs made during the fit."""
        filled = int(sum(step.get("filled", 0.0) for step in self.outcome.trace))
        return (f"{filled} times an empty cluster was given a row",) if filled else ()


def find_clusters(
    assignment: Assignment,
    k: int,
    make_start: Callable[[int], NDArray[Any]],
    *,
    starts: int = 1,
    max_iter: int = 300,
    tol: float = 1e-4,
    search: str = "none",
    plusplus: bool = False,
    seed: int = 0,
    geometry: Geometry = EUCLIDEAN,
    time_budget: float | None = None,
    checkpoint: Checkpoint | None = None,
    keep_sums: bool = False,
) -> Clusters:
    """The best of several starts, improved by a search if requested; labels and sums then belong to the centres found.

    `tol` is relative to the mean variance of the columns, as in KMeans. `plusplus` says that the starts are greedy k-means++,
    which the search of a small table makes itself. `keep_sums` is for callers who use the sums of the clusters; otherwise the
    last pass finds the inertias instead.
    """
    data = assignment.data
    brief: BriefStart | None = None
    kind = SEARCHES[search] if k > 1 and data.n > k + 1 else None
    effort = effort_for(search, data, k)
    if effort is not None:
        make_start = best_start(data, k, effort, seed, geometry, None if plusplus else make_start)
        kind = None
    elif search == "auto" and plusplus and geometry.project is None and (size := brief_sample_size(data, k)):
        make_start = brief = BriefStart(data, k, size, seed, make_start)
    descent = KMeansDescent(assignment, k, tol * data.mean_variance, make_start, geometry)
    then = None if kind is None else kind(assignment, k, seed)
    best = best_of(descent, starts, max_iter, then=then, time_budget=time_budget, checkpoint=checkpoint)
    centres, outcome = best.state["centres"], best.outcome
    if assignment.centres is None or not np.array_equal(assignment.centres, centres):
        assign = assignment.assign if keep_sums else assignment.assign_last
        try:
            assign(centres)
        except KeyboardInterrupt:  # only this pass remains; a second Ctrl-C aborts it
            outcome = replace(outcome, reason=Reason.INTERRUPTED)
            assign(centres)
    searched = "searched in memory" if effort is not None else ""
    if brief is not None and brief.suits:
        searched = f"best of {BRIEF_STARTS} brief starts"
    return Clusters(centres, assignment, outcome, best.resumed_at, best.iterations, searched)


@dataclass(frozen=True)
class KMeansResult:
    """Clusters for use in other models, numbered by size; the centres are standardised if the rows were."""

    centres: NDArray[Any]
    labels: Labels
    cluster_weights: Floats
    clusters: Clusters
    mean: Floats | None = None
    scale: Floats | None = None

    @property
    def centres_in_data_units(self) -> Floats:
        """The centres in float64, in the units of the data."""
        centres = self.centres.astype(np.float64)
        if self.scale is None or self.mean is None:
            return centres
        return centres * self.scale + self.mean

    @property
    def cluster_inertias(self) -> Floats:
        """The inertia of each cluster, computed in one pass."""
        assignment = self.clusters.assignment
        return np.array([assignment.data.unscaled(float(one)) for one in assignment.residuals(self.centres)])


def cluster(
    passes: Passes,
    k: int,
    *,
    seed: int = 0,
    init: Any = "k-means++",
    scale: bool = False,
    interruptible: bool = False,
    **settings: Any,
) -> KMeansResult:
    """K-means for use inside other models, without an estimator; the other settings are those of `find_clusters`.

    Unless `interruptible`, Ctrl-C also ends the calling model, since a partial result would not be reproducible.
    """
    mean = deviation = None
    if scale:
        mean, deviation = mean_and_deviation(passes)
        passes = passes.over(cached(standardised(passes.source, mean, deviation)))
    data = KMeansData(passes)

    def make_start(number: int) -> NDArray[Any]:
        if isinstance(init, str):
            return STARTS[init](data, k, np.random.default_rng([seed, 0, number]))
        return np.ascontiguousarray(init, dtype=data.dtype)

    plusplus = isinstance(init, str) and init == "k-means++"
    found = find_clusters(Assignment(data), k, make_start, seed=seed, plusplus=plusplus, **settings)
    if found.outcome.reason is Reason.INTERRUPTED and not interruptible:
        raise KeyboardInterrupt
    centres = ordered(found.assignment, found.centres) if isinstance(init, str) else found.centres
    return KMeansResult(centres, found.labels, found.assignment.cluster_weights, found, mean, deviation)
