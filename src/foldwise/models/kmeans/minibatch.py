"""K-means on nested batches (Newling and Fleuret 2016): a sample is clustered until more rows would tell more, then doubled."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from foldwise.data.block_grid import rows_per_block
from foldwise.data.cache import CachedSource, cached
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.data.spool import spooled
from foldwise.data.subset import BlockSubset, gather
from foldwise.fold.iterate import Figures, State, iterate
from foldwise.fold.outcome import Outcome, Reason
from foldwise.fold.passes import Passes
from foldwise.models.base import remember_columns
from foldwise.models.kmeans import cosine, lloyd, partial_fit
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.common import CentreModel
from foldwise.models.kmeans.label_order import by_size
from foldwise.models.kmeans.parameters import CONSTRAINTS
from foldwise.models.kmeans.search import Found
from foldwise.stats.extent import Extent

_STILL = 10.0  # the batch doubles when half of the centres move less than their standard error divided by this
_GAIN = 1e-3  # a step on all rows that lowers the inertia by less than this share is no improvement


class MiniBatchKMeans(CentreModel):
    """K-means for when a good answer soon is better than the best one later.

    A random batch of rows is clustered, and doubled whenever the centres move by less than the rows of the batch can tell
    (their standard error): small batches bring the centres near, large ones make them sharp. Every batch contains the one
    before, and a row that changes cluster is taken from the old one, so that each row counts once, whenever it was first
    seen. Of a file, whole blocks are drawn, and only these are read. The last pass gives every row its nearest centre, exactly.

    Parameters
    ----------
    n_clusters, init, random_state, metric, n_threads : as for KMeans.
    batch_size : rows of the first batch.
    max_iter : at most so many passes over the data, batches counted by their share of it.
    tol : stop when the centres' summed squared movement, with all rows in the batch, is at most tol times the mean variance.
    max_no_improvement : stop after so many steps in a row, with all rows in the batch, that lower the inertia by less than a
        thousandth each; None goes on until tol is reached.
    init_size : rows among which the start is sought; None is 3 * batch_size, and at least 3 * n_clusters.
    n_init : how many starts are tried on these rows; "auto" is 1, or 3 for random rows and callables.
    compute_labels : whether to assign all rows at the end; if not, there is no `labels_`, and `inertia_` is an estimate.
    reassignment_ratio, verbose : accepted for scikit-learn's sake; a cluster without rows is given one at once.

    >>> import foldwise as fw
    >>> km = fw.MiniBatchKMeans(2, batch_size=4).fit([[1.0], [2.0], [3.0], [11.0], [12.0], [13.0]])
    >>> km.labels_, km.cluster_centers_.ravel(), km.inertia_
    (array([0, 0, 0, 1, 1, 1], dtype=int32), array([ 2., 12.]), 4.0)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: CONSTRAINTS[name] for name in ("n_clusters", "init", "max_iter", "tol", "verbose")},
        **{name: CONSTRAINTS[name] for name in ("random_state", "metric", "n_threads")},
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "compute_labels": ["boolean"],
        "max_no_improvement": [Interval(Integral, 0, None, closed="left"), None],
        "init_size": [Interval(Integral, 1, None, closed="left"), None],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "reassignment_ratio": [Interval(Real, 0, None, closed="left")],
    }

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
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters; `sample_weight` counts a row as that many equal rows."""
        self._validate_params()
        source = scan(X, weights=sample_weight)
        with ExitStack() as stack:
            source = stack.enter_context(spooled(source))
            source = cached(cosine.on_the_sphere(source) if self.metric == "cosine" else source)
            run = Passes(source, n_threads=self.n_threads)
            nest = _Nest(run, self._seed())
            self._check_count(nest.n, source)
            walk = _Walk(self, nest, X)
            state, outcome, _ = iterate(walk.begin, walk.step, walk.done, max_iter=1 << 30)
            if outcome.converged and state["over"] == _CAPPED:
                outcome = Outcome(Reason.CAPPED, outcome.steps, outcome.seconds, outcome.trace)
            passes = math.ceil(float(state["seen"]) / nest.n)
            last, centres = nest.rows(int(state["size"])), state["centres"]
            if isinstance(self.init, str):  # numbered by the last batch, so that labels worked out later are the same
                centres = np.ascontiguousarray(centres[by_size(last.cluster_weights, centres)])
            last.assign(centres)
            found = Found(centres, outcome, 0, passes, int(state["filled"]))
            try:
                self._label_all(nest, last, found)
            except KeyboardInterrupt:  # nearly done: what was found must not be lost
                found = replace(found, outcome=replace(outcome, reason=Reason.INTERRUPTED))
                last.forget()
                last.assign(centres)
                self._label_all(nest, last, found)
            self.n_steps_ = outcome.steps
            self.manifest_ = run.manifest(
                "k-means (nested batches)",
                rows=nest.n,
                repairs=(f"{found.filled} times an empty cluster was given a row",) if found.filled else (),
            )
        remember_columns(self, source)
        found.outcome.warn(f"MiniBatchKMeans (n_clusters={self.n_clusters})")
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take in a batch of rows, of any size, and let it go, as `KMeans.partial_fit` does."""
        self._validate_params()
        partial_fit.take(self, X, sample_weight)
        return self

    def _label_all(self, nest: _Nest, last: Assignment, found: Found) -> None:
        if not self.compute_labels:
            self._finish_without_labels(last, found, nest.n)
            return
        rows = nest.rows(nest.n)
        if rows is not last:
            rows.assign(found.centres)
        self._finish(rows, found, in_order=True)

    def _finish_without_labels(self, rows: Assignment, found: Found, n: int) -> None:
        for name in ("labels_", "cluster_inertias_", "_means", "_waiting"):
            self.__dict__.pop(name, None)
        self.cluster_centers_, self.cluster_weights_ = found.centres, rows.cluster_weights
        self.inertia_ = rows.unscaled(rows.inertias(found.centres)[0]) * (n / rows.n)
        self.n_iter_, self.outcome_, self.trace_ = found.iterations, found.outcome, found.outcome.trace


class _Nest:
    """Batches of one source, each in the next: rows of data in memory, blocks of files, in a fixed random order."""

    def __init__(self, run: Passes, seed: int) -> None:
        self.run, self.source = run, run.source
        rng = np.random.default_rng([seed, 2])
        n = self.source.n_rows
        if n is None or self.source.slow:  # a pass that counts, and fills the scratch file
            n = run.fold(Extent.of).count
        self.n = n
        self._all: Assignment | None = None
        self._some: tuple[int, Assignment] | None = None
        self._in_memory = isinstance(self.source, CachedSource)
        blocks = rows_per_block(self.source.n_columns, self.source.dtype, sparse=self.source.sparse)
        self._step = 1 if self._in_memory else blocks
        self._order = rng.permutation(math.ceil(n / self._step))

    def size(self, wanted: int) -> int:
        """The size of a batch with about that many rows; all of them if it would be more than half."""
        rows = math.ceil(wanted / self._step) * self._step
        return self.n if 2 * rows > self.n else rows

    def rows(self, size: int) -> Assignment:
        """The batch of that size; the last one is kept."""
        if size >= self.n:
            if self._all is None:
                self._some = None
                self._all = Assignment(self.run)
            return self._all
        if self._some is None or self._some[0] != size:
            self._some = None  # not both at once
            which = np.sort(self._order[: size // self._step])
            part: Source = (
                cached(gather(self.source, which)) if self._in_memory else BlockSubset(self.source, which, self.n)
            )
            self._some = size, Assignment(Passes(part, n_threads=self.run.n_threads))
        return self._some[1]


_DONE, _CAPPED = 1, 2


class _Walk:
    def __init__(self, model: MiniBatchKMeans, nest: _Nest, X: Any) -> None:
        self.model, self.nest = model, nest
        self.project = cosine.project if model.metric == "cosine" else None
        self.make_start = model._starts(X, model._seed())

    def begin(self) -> State:
        model, nest = self.model, self.nest
        wanted = max(model.init_size or 3 * model.batch_size, model.n_clusters)
        rows = self._weighty(max(wanted, 3 * model.n_clusters) if model.init_size is None else wanted)
        starts = model.n_init
        if starts == "auto":
            starts = 3 if callable(model.init) or (isinstance(model.init, str) and model.init == "random") else 1
        best, least = self.make_start(rows, 0), np.inf
        for number in range(1 if not isinstance(model.init, str) and not callable(model.init) else int(starts)):
            if starts == 1:
                break
            centres = best if number == 0 else self.make_start(rows, number)
            rows.assign(centres)
            inertia = rows.inertias(centres)[0]
            if inertia < least:
                best, least = centres, inertia
        size = self._weighty(max(model.batch_size, model.n_clusters)).n
        return {
            "centres": best,
            "size": np.array(nest.size(size)),
            "seen": np.array(0),
            "filled": np.array(0),
            "stale": np.array(0),
            "inertia": np.array(np.inf),
            "over": np.array(0),
        }

    def _weighty(self, wanted: int) -> Assignment:
        """The smallest batch with at least so many rows that has a row of some weight for every cluster."""
        while True:
            size = self.nest.size(wanted)
            rows = self.nest.rows(size)
            counted = rows.n if rows.weights is None else int(np.count_nonzero(rows.weights))
            if counted >= self.model.n_clusters or size == self.nest.n:
                return rows
            wanted = 2 * size

    def done(self, state: State) -> bool:
        return bool(state["over"])

    def step(self, state: State) -> tuple[State, Figures]:
        model, nest, size = self.model, self.nest, int(state["size"])
        rows, centres = nest.rows(size), state["centres"]
        done = lloyd.step(rows, centres, self.project)
        seen = int(state["seen"]) + rows.n
        figures = {
            "rows": float(rows.n),
            "inertia": rows.unscaled(done.after_m),
            "inertia_after_e": rows.unscaled(done.after_e),
            "moved": float(done.moved),
            "shift": float(np.sqrt(done.shift)) / rows.frame.scale,
        }
        new = {**state, "centres": done.centres, "seen": np.array(seen), "filled": state["filled"] + done.filled}
        if size < nest.n:
            if self._still(rows, centres, done):
                new["size"] = np.array(nest.size(2 * size))
        else:
            tol = model.tol * float(rows.squares.mean()) / rows.extent.columns.weight
            gained = float(state["inertia"]) - done.after_m > _GAIN * done.after_m
            stale = 0 if gained else int(state["stale"]) + 1
            tired = model.max_no_improvement is not None and stale >= max(model.max_no_improvement, 1)
            new |= {"inertia": np.array(done.after_m), "stale": np.array(stale)}
            if done.shift <= tol or tired:
                new["over"] = np.array(_DONE)
        if not new["over"] and seen >= model.max_iter * nest.n:
            new["over"] = np.array(_CAPPED)
        return new, figures

    def _still(self, rows: Assignment, centres: NDArray[Any], done: lloyd.LloydStep) -> bool:
        """Whether the centres move by less than a batch of this size can tell."""
        gap = (done.centres.astype(np.float64) - centres.astype(np.float64)) * rows.frame.scale
        moved = np.sqrt(np.einsum("ij,ij->i", gap, gap))
        weights = rows.cluster_weights
        some = weights > 0
        error = np.sqrt(done.after_m / weights.sum() / weights[some])  # from the spread within all clusters
        rounding = 8 * float(np.finfo(rows.dtype).eps)
        return bool(np.mean(moved[some] <= np.maximum(error / _STILL, rounding)) >= 0.5)
