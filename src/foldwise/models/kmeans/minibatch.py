"""K-means on nested batches (Newling and Fleuret 2016): a sample is clustered until more rows are needed, then doubled."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from foldwise.data.cache import CachedSource, cached
from foldwise.data.source import Source
from foldwise.data.subset import TakeRows, collect, gather
from foldwise.errors import warn
from foldwise.fold.iterate import Figures, State
from foldwise.fold.multistart import Best, Value, best_of
from foldwise.fold.outcome import Reason
from foldwise.fold.passes import Passes
from foldwise.models.kmeans import lloyd, partial_fit
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.centre_model import CentreModel
from foldwise.models.kmeans.descent import Clusters
from foldwise.models.kmeans.fit_data import KMeansData
from foldwise.models.kmeans.label_order import by_size
from foldwise.models.kmeans.parameters import PARAMETERS
from foldwise.models.parameters import BOOLEAN, Parameter, constraints, number, whole
from foldwise.models.session import Session, session
from foldwise.stats.extent import Extent

_ROOM = 64 << 20  # bytes of the largest batch that is not all rows
_STILL = 10.0  # the batch doubles when half of the centres move less than their standard error divided by this
_GAIN = 1e-3  # relative gain in inertia, on all rows, below which a step is no improvement


class MiniBatchKMeans(CentreModel):
    """K-means for when a good result soon is better than the best result later.

    A random batch of rows is clustered, and doubled whenever the centres move by less than their standard error: small
    batches bring the centres close, large ones make them precise. Each batch contains the previous one, and a row that
    changes cluster is removed from the old one, so each row counts once, whenever it was first seen. Batches are rows drawn
    from all of the data, whether from memory or from a file, with the same result to the last bit: one pass collects up to 64
    MB of them, and what follows is a fit to all rows. The last pass assigns every row to its nearest centre, exactly.

    Parameters
    ----------
    n_clusters, init, random_state, metric, scale, time_budget, checkpoint, n_threads : as for KMeans.
    batch_size : the number of rows in the first batch.
    max_iter : maximum number of passes over the data; a batch counts as its share of the rows.
    tol : stop when, with all rows in the batch, the centres' summed squared movement is at most tol times the mean variance.
    max_no_improvement : stop after this many consecutive steps, with all rows in the batch, that each lower the inertia by
        less than a thousandth; None continues until tol is reached.
    init_size : the number of rows used for initialisation; None is 3 * batch_size, and at least 3 * n_clusters. If it is less
        than n_clusters, a warning says that 3 * n_clusters rows are used.
    n_init : the number of starts tried on these rows; "auto" is 1, or 3 for random rows and callables. Given centres are
        tried once, with a warning if n_init is larger.
    compute_labels : whether to assign all rows at the end; if not, there is no `labels_`, and `inertia_` is an estimate.
    reassignment_ratio, verbose : accepted for compatibility with scikit-learn; an empty cluster is given a row at once.

    >>> import foldwise as fw
    >>> km = fw.MiniBatchKMeans(2, batch_size=4).fit([[1.0], [2.0], [3.0], [11.0], [12.0], [13.0]])
    >>> km.labels_, km.cluster_centers_.ravel(), km.inertia_
    (array([0, 0, 0, 1, 1, 1], dtype=int32), array([ 2., 12.]), 4.0)
    """

    PARAMETERS: ClassVar[dict[str, Parameter]] = {
        **{name: one for name, one in PARAMETERS.items() if name not in ("algorithm", "search", "copy_x")},
        "batch_size": whole(),
        "compute_labels": BOOLEAN,
        "max_no_improvement": whole(0, None),
        "init_size": whole(1, None),
        "reassignment_ratio": number(),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = constraints(PARAMETERS)

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        max_iter: int = 100,
        batch_size: int = 1024,
        verbose: int = 0,
        compute_labels: bool = True,
        random_state: Any = None,
        tol: float = 0.0,
        max_no_improvement: int | None = 10,
        init_size: int | None = None,
        n_init: int | str = "auto",
        reassignment_ratio: float = 0.01,
        metric: str = "euclidean",
        scale: bool = False,
        time_budget: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.verbose = verbose
        self.compute_labels = compute_labels
        self.random_state = random_state
        self.tol = tol
        self.max_no_improvement = max_no_improvement
        self.init_size = init_size
        self.n_init = n_init
        self.reassignment_ratio = reassignment_ratio
        self.metric = metric
        self.scale = scale
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, engine: Any = None) -> Self:
        """Find the clusters; a row with `sample_weight` w counts as w equal rows; `engine` runs the passes (`fw.engine`)."""
        geometry = self.geometry
        with session(self, X, sample_weight, engine=engine, view=geometry.view, centre=geometry.translates) as fit:
            starts, batches = self._n_starts(3), _Batches(fit.passes, fit.seed, self._rows_at_first())
            self._check_count(fit, batches.n)
            first = self._init_size(batches.n)
            descent = _MiniBatchDescent(self, batches, first, starts, lambda data: self._make_start(data, X, fit.seed))
            if descent.smallest.data.n == batches.n:  # otherwise there are more than enough rows with weight
                self._check_count(fit, batches.n, descent.smallest.data.counted)
            checkpoint = None if self.checkpoint is None else fit.checkpoint(*fit.passes.fold(Extent.of).figures)
            best = best_of(descent, 1, None, time_budget=self.time_budget, checkpoint=checkpoint)
            found = self._last_passes(fit, batches, best)
            self.n_steps_ = best.outcome.steps
            fit.finish(
                found.outcome,
                "k-means (nested batches)",
                batches.n,
                resumed_at=found.resumed_at,
                repairs=found.repairs,
                warning=f"MiniBatchKMeans (n_clusters={self.n_clusters})",
            )
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update the clusters with a batch of any size, which is not kept, as in `KMeans.partial_fit`."""
        self._validate_params()
        partial_fit.take(self, X, sample_weight)
        return self

    def _rows_at_first(self) -> int:
        """The number of rows in the first batch, or for initialisation if that takes more."""
        return max(self.batch_size, self.init_size or 3 * self.batch_size, 3 * self.n_clusters)

    def _init_size(self, n: int) -> int:
        """The number of rows used for initialisation."""
        if self.init_size is None:
            return max(3 * self.batch_size, 3 * self.n_clusters)
        if self.init_size >= self.n_clusters:
            return int(self.init_size)
        rows = min(3 * self.n_clusters, n)
        warn(
            f"init_size={self.init_size} should be at least n_clusters={self.n_clusters}: {rows} rows are used for "
            "initialisation.",
            RuntimeWarning,
        )
        return rows

    def _last_passes(self, fit: Session, batches: _Batches, best: Best) -> Clusters:
        """Number the clusters, label all rows and set the attributes; Ctrl-C on the way makes it begin again."""
        outcome = best.outcome
        while True:
            try:
                last, centres = batches.assignment(int(best.state["size"])), best.state["centres"]
                if not last.labelled:  # taken up again when it was over
                    last.assign(centres)
                if isinstance(
                    self.init, str
                ):  # numbered by the last batch, so that labels worked out later are the same
                    centres = np.ascontiguousarray(centres[by_size(last.cluster_weights, centres)])
                last.assign(centres)
                if self.compute_labels and last.data.n < batches.n:
                    last = batches.assignment(batches.n)
                passes = math.ceil(float(best.state["seen"]) / batches.n)
                found = Clusters(centres, last, outcome, best.resumed_at, passes)
                if not self.compute_labels:
                    return self._without_labels(fit, found, batches.n)
                self._set(fit, found, in_order=True)
                return found
            except KeyboardInterrupt:
                if outcome.reason is Reason.INTERRUPTED:
                    raise
                outcome = replace(outcome, reason=Reason.INTERRUPTED)
                batches.forget()

    def _without_labels(self, fit: Session, found: Clusters, n: int) -> Clusters:
        self.mean_, self.scale_ = fit.mean, fit.scale
        for name in ("labels_", "cluster_inertias_"):
            self.__dict__.pop(name, None)
        self._forget_batches()
        data, centres = found.assignment.data, found.centres
        self.cluster_centers_, self.cluster_weights_ = centres, found.assignment.cluster_weights
        self.inertia_ = data.unscaled(found.assignment.inertia(centres)) * (n / data.n)
        self.n_iter_, self.trace_ = found.iterations, found.outcome.trace
        return found


class _Batches:
    """Nested batches of one source: its rows in a fixed random order, collected in one pass as far as they have room."""

    def __init__(self, passes: Passes, seed: int, first: int) -> None:
        """`first` is the number of rows that there is room for in any case."""
        self.passes, self.source = passes, passes.source
        rng = np.random.default_rng([seed, 2])
        n = self.source.n_rows
        if n is None or self.source.slow:  # one pass counts the rows and fills the scratch file
            n = passes.fold(Extent.of).count
        self.n = n
        self._last: tuple[int, Assignment] | None = None
        self._collected: Source | None = None
        # Whether rows are in memory must not matter for this, or the batches would differ. Sparse rows always are.
        room = _ROOM // (self.source.n_columns * self.source.dtype.itemsize)
        self._most = n if self.source.sparse else min(n, max(room, 2 * first))
        self._order = rng.permutation(n) if self._most == n else rng.choice(n, self._most, replace=False)

    def size(self, wanted: int) -> int:
        """The size of a batch of about that many rows; all rows if it would exceed half of them, or has no room."""
        return self.n if 2 * wanted > self.n or wanted > self._most else wanted

    def assignment(self, size: int) -> Assignment:
        """The batch of that size; only the latest is kept."""
        if self._last is None or self._last[0] != size:
            self._last = None  # free it first, so that there are never two
            self._last = size, Assignment(KMeansData(self._passes(size), whole=self.passes))
        return self._last[1]

    def forget(self) -> None:
        """Drop the labels of the batch in hand."""
        self._last = None

    def _passes(self, size: int) -> Passes:
        if size >= self.n:
            return self.passes
        which = np.sort(self._order[:size])
        if isinstance(self.source, CachedSource):
            return self.passes.over(cached(gather(self.source, which)), here=True)
        rows = np.sort(self._order[: self.n // 2])  # no batch is larger
        if self._collected is None:
            self._collected = collect(self.passes.each(TakeRows(rows)), self.source)
        return self.passes.over(cached(gather(self._collected, np.searchsorted(rows, which))), here=True)


_DONE, _CAPPED = 1, 2


class _MiniBatchDescent:
    """Lloyd steps on a growing batch."""

    kept = None

    def __init__(
        self,
        model: MiniBatchKMeans,
        batches: _Batches,
        first: int,
        starts: int,
        make_start: Callable[[KMeansData], Callable[[int], NDArray[Any]]],
    ) -> None:
        self.model, self.batches, self.starts, self.make_start = model, batches, starts, make_start
        self.smallest = self._weighty(first)

    def start(self, number: int, before: State | None) -> State:
        """The best of several starts on the first rows."""
        model, first, starts = self.model, self.smallest, self.starts
        make = self.make_start(first.data)
        best, least = make(0), np.inf
        for attempt in range(starts if starts > 1 else 0):
            centres = best if attempt == 0 else make(attempt)
            first.assign(centres)
            inertia = first.inertia(centres)
            if inertia < least:
                best, least = centres, inertia
        size = self._weighty(max(model.batch_size, model.n_clusters)).data.n
        return {
            "centres": best,
            "size": np.array(self.batches.size(size)),
            "seen": np.array(0),
            "stale": np.array(0),
            "inertia": np.array(np.inf),
            "over": np.array(0),
        }

    def _weighty(self, wanted: int) -> Assignment:
        """The smallest batch of at least that many rows with as many rows of non-zero weight as clusters."""
        while True:
            size = self.batches.size(wanted)
            batch = self.batches.assignment(size)
            if batch.data.counted >= self.model.n_clusters or size == self.batches.n:
                return batch
            wanted = 2 * size

    def value(self, state: State) -> Value:
        """The inertia, once all rows are in the batch."""
        return (float(state["inertia"]),)

    def ended(self, state: State) -> Reason | None:
        """Converged when the centres no longer move; capped when the passes are used up."""
        return {0: None, _DONE: Reason.CONVERGED, _CAPPED: Reason.CAPPED}[int(state["over"])]

    def step(self, state: State) -> tuple[State, Figures]:
        """One step on the batch, which is doubled when the centres move by less than their standard error."""
        model, n, size = self.model, self.batches.n, int(state["size"])
        batch, centres = self.batches.assignment(size), state["centres"]
        data = batch.data
        done = lloyd.step(batch, centres, model.geometry)
        seen = int(state["seen"]) + data.n
        new = {**state, "centres": done.centres, "seen": np.array(seen)}
        if size < n:
            if self._still(batch, centres, done):
                new["size"] = np.array(self.batches.size(2 * size))
        else:
            gained = float(state["inertia"]) - done.after_m > _GAIN * done.after_m
            stale = 0 if gained else int(state["stale"]) + 1
            tired = model.max_no_improvement is not None and stale >= max(model.max_no_improvement, 1)
            new |= {"inertia": np.array(done.after_m), "stale": np.array(stale)}
            if done.shift <= model.tol * data.mean_variance or tired:
                new["over"] = np.array(_DONE)
        if not new["over"] and seen >= model.max_iter * n:
            new["over"] = np.array(_CAPPED)
        return new, {
            "rows": float(data.n),
            "inertia": data.unscaled(done.after_m),
            "inertia_after_e": data.unscaled(done.after_e),
            "moved": float(done.moved),
            "filled": float(done.filled),
            "shift": float(np.sqrt(done.shift)) / data.rescaling.scale,
        }

    def _still(self, batch: Assignment, centres: NDArray[Any], done: lloyd.LloydStep) -> bool:
        """Whether the centres move by less than their standard error in a batch of this size."""
        gap = (done.centres.astype(np.float64) - centres.astype(np.float64)) * batch.data.rescaling.scale
        moved = np.sqrt(np.einsum("ij,ij->i", gap, gap))
        weights = batch.cluster_weights
        some = weights > 0
        error = np.sqrt(done.after_m / weights.sum() / weights[some])  # from the pooled within-cluster variance
        rounding = 8 * float(np.finfo(batch.data.dtype).eps)
        return bool(np.mean(moved[some] <= np.maximum(error / _STILL, rounding)) >= 0.5)
