"""Bisecting k-means: clusters are split in two until there are `n_clusters`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats, join
from foldwise.data.cache import CachedSource, cached
from foldwise.data.source import Source
from foldwise.data.spool import spooled
from foldwise.data.subset import RowSubset, gather
from foldwise.fold.iterate import Figures, State
from foldwise.fold.multistart import Value, best_of
from foldwise.fold.outcome import Reason
from foldwise.kernels.targets import Labels, rescaling_around, targets_of
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.centre_model import CentreModel
from foldwise.models.kmeans.descent import Clusters, find_clusters
from foldwise.models.kmeans.fit_data import KMeansData
from foldwise.models.kmeans.label_order import by_size
from foldwise.models.kmeans.parameters import BOUNDS, PARAMETERS
from foldwise.models.kmeans.seeding import STARTS
from foldwise.models.parameters import Parameter, constraints, one_of, words
from foldwise.models.session import Session, session
from foldwise.stats.extent import Extent


class BisectingKMeans(CentreModel):
    """Bisecting k-means: the cluster with the largest inertia (or most rows) is split in two until there are `n_clusters`.

    The splits form a tree. `predict` descends it, as the fit did, so a row's cluster is not always that of the nearest
    centre. The tree is in `tree_children_` (two nodes, or -1 for a leaf), `tree_centers_` and `tree_labels_` (-1 for others).

    Parameters
    ----------
    bisecting_strategy : "biggest_inertia" or "largest_cluster".
    init, n_init, max_iter, tol, algorithm : apply to each split, as for KMeans. A callable is passed the rows to be split, as
        they are compared (with scale=True, standardised), n_clusters=2 and a random_state.
    time_budget, checkpoint : apply to the whole fit; an interrupted fit resumes growing the tree from its checkpoint.
    n_clusters, random_state, metric, scale, n_threads, copy_x, verbose : as for KMeans.

    >>> import foldwise as fw
    >>> km = fw.BisectingKMeans(3).fit([[1.0], [2.0], [9.0], [10.0], [11.0], [30.0]])
    >>> km.labels_, km.cluster_centers_.ravel()
    (array([1, 1, 0, 0, 0, 2], dtype=int32), array([10. ,  1.5, 30. ]))
    """

    PARAMETERS: ClassVar[dict[str, Parameter]] = {
        **{name: one for name, one in PARAMETERS.items() if name != "search"},
        "init": Parameter((words(*STARTS), callable)),
        "bisecting_strategy": one_of("biggest_inertia", "largest_cluster"),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = constraints(PARAMETERS)

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int | str = 1,
        random_state: Any = None,
        max_iter: int = 300,
        verbose: int = 0,
        tol: float = 1e-4,
        copy_x: bool = True,
        algorithm: str = "auto",
        bisecting_strategy: str = "biggest_inertia",
        metric: str = "euclidean",
        scale: bool = False,
        time_budget: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.random_state = random_state
        self.max_iter = max_iter
        self.verbose = verbose
        self.tol = tol
        self.copy_x = copy_x
        self.algorithm = algorithm
        self.bisecting_strategy = bisecting_strategy
        self.metric = metric
        self.scale = scale
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, engine: Any = None) -> Self:
        """Split until there are `n_clusters`; a row with `sample_weight` w counts as w equal rows."""
        geometry = self.geometry
        with session(self, X, sample_weight, engine=engine, view=geometry.view, centre=geometry.translates) as fit:
            extent = fit.passes.fold(Extent.of)
            self._check_count(fit, extent.count, extent.columns.rows)
            best = best_of(
                _Splitting(self, fit, extent.count),
                1,
                None,
                time_budget=self.time_budget,
                checkpoint=fit.checkpoint(*extent.figures),
            )
            self._set_tree(best.state)
            self.mean_, self.scale_, self.trace_ = fit.mean, fit.scale, best.outcome.trace
            fit.finish(
                best.outcome,
                "k-means (bisecting)",
                extent.count,
                resumed_at=best.resumed_at,
                warning=f"BisectingKMeans (n_clusters={self.n_clusters})",
            )
        return self

    def _set_tree(self, tree: State) -> None:
        self.tree_children_, self.tree_centers_ = tree["children"], tree["centres"]
        leaves = np.flatnonzero(self.tree_children_[:, 0] < 0)
        leaves = leaves[by_size(tree["weights"][leaves], self.tree_centers_[leaves])]
        self.tree_labels_ = np.full(len(self.tree_children_), -1, dtype=np.int32)
        self.tree_labels_[leaves] = np.arange(len(leaves), dtype=np.int32)
        self.labels_ = self.tree_labels_[tree["node_of"]]
        self.cluster_centers_ = np.ascontiguousarray(self.tree_centers_[leaves])
        self.cluster_weights_, self.cluster_inertias_ = tree["weights"][leaves], _inertias(tree)[leaves]
        self.inertia_, self.n_iter_ = float(self.cluster_inertias_.sum()), int(tree["steps"])
        self._warn_of_range(float(tree["inertias"][leaves].sum()))
        self._warn_of_empty(self._distinct())

    def _labeller(self, targets: Any) -> Any:
        """A task that descends the tree, as the fit did."""
        return DownTheTree(self.tree_children_, self.tree_centers_, self.tree_labels_, targets.points.dtype)


def _inertias(tree: State) -> Floats:
    """The inertia of each node in the units of the data."""
    with np.errstate(over="ignore"):
        return np.asarray(tree["inertias"] / tree["scale"] / tree["scale"])


class _Splitting:
    """A growing tree: each step splits one leaf by k-means with k = 2."""

    kept = None

    def __init__(self, model: BisectingKMeans, fit: Session, n: int) -> None:
        self.model, self.fit, self.n = model, fit, n

    def start(self, number: int, before: State | None) -> State:
        """One cluster that contains all rows."""
        found = self._split(self.fit.source, 1, 0)
        data = found.assignment.data
        return {
            "node_of": np.zeros(self.n, dtype=np.int32),
            "children": np.full((1, 2), -1, dtype=np.int32),
            "centres": found.centres,
            "inertias": found.assignment.residuals(found.centres),  # in units of the rescaled data, which stay in range
            "scale": np.array(data.rescaling.scale),
            "weights": found.assignment.cluster_weights,
            "counts": np.array([data.counted]),  # rows of weight 0 are no reason to split
            "steps": np.array(0),
            "capped": np.array(0),
        }

    def step(self, state: State) -> tuple[State, Figures]:
        """Split the leaf chosen by the strategy; Ctrl-C keeps the tree grown so far."""
        children, n_nodes = state["children"].copy(), len(state["children"])
        by = "inertias" if self.model.bisecting_strategy == "biggest_inertia" else "weights"
        wish = np.where((children[:, 0] >= 0) | (state["counts"] < 2), -1.0, state[by])
        parent = int(np.argmax(wish))
        members = np.flatnonzero(state["node_of"] == parent)
        with only_rows(self.fit.source, members, self.n) as part:
            found = self._split(part, 2, (n_nodes + 1) // 2)
            if found.outcome.reason is Reason.INTERRUPTED:
                raise KeyboardInterrupt
            labels, data = found.labels, found.assignment.data
            counted = labels if data.weights is None else labels[data.weights > 0]
            units = float(state["scale"]) / data.rescaling.scale
            inertias = found.assignment.residuals(found.centres) * units * units
        children[parent] = n_nodes, n_nodes + 1
        node_of = state["node_of"].copy()
        node_of[members] = n_nodes + labels
        new = {
            "node_of": node_of,
            "scale": state["scale"],
            "children": np.concatenate([children, np.full((2, 2), -1, dtype=np.int32)]),
            "centres": np.concatenate([state["centres"], found.centres]),
            "inertias": np.append(state["inertias"], inertias),
            "weights": np.append(state["weights"], found.assignment.cluster_weights),
            "counts": np.append(state["counts"], np.bincount(counted, minlength=2)),
            "steps": state["steps"] + found.iterations,
            "capped": np.array(int(state["capped"]) or int(not found.outcome.converged)),
        }
        leaves = new["children"][:, 0] < 0
        return new, {"clusters": float(leaves.sum()), "inertia": float(_inertias(new)[leaves].sum())}

    def value(self, state: State) -> Value:
        """Trees with more clusters are better."""
        return (-float(len(state["children"])),)

    def ended(self, state: State) -> Reason | None:
        """Ended when there are `n_clusters` clusters; capped if a split was."""
        if len(state["children"]) < 2 * self.model.n_clusters - 1:
            return None
        return Reason.CAPPED if state["capped"] else Reason.CONVERGED

    def _split(self, part: Source, k: int, number: int) -> Clusters:
        """K-means with k = 2 (or 1) on some rows."""
        model, seed = self.model, (self.fit.seed + number) % 2**31
        data = KMeansData(self.fit.passes if part is self.fit.source else self.fit.passes.over(part, here=True))

        def make_start(start: int) -> NDArray[Any]:
            if callable(model.init) and k > 1:
                rows = join([piece.load() for piece in part.pieces()], 0).rows
                return model._called_start(rows, k, (seed + start) % 2**32, data)
            init = "k-means++" if callable(model.init) else model.init  # one centre needs no start
            return STARTS[init](data, k, np.random.default_rng([seed, 0, start]))

        return find_clusters(
            Assignment(data, bounds=BOUNDS[model.algorithm]),
            k,
            make_start,
            starts=model._n_starts(),
            max_iter=model.max_iter,
            tol=model.tol,
            seed=seed,
            geometry=model.geometry,
        )


@dataclass(frozen=True)
class DownTheTree:
    """The cluster of each row, found by following the nearer of two centres at each split."""

    children: Labels
    centres: NDArray[Any]
    labels: Labels
    dtype: np.dtype[Any]

    def __call__(self, block: Block) -> Labels:
        """One label per row."""
        node_of = np.zeros(block.n_rows, dtype=np.int32)
        for node, pair in enumerate(self.children):
            members = np.flatnonzero(node_of == node) if pair[0] >= 0 else node_of[:0]
            if len(members):
                points = np.ascontiguousarray(self.centres[pair], dtype=self.dtype)
                labels = np.full(len(members), -1, dtype=np.int32)
                rescaling = rescaling_around(points, sparse=block.sparse)
                targets_of(points, rescaling, sparse=block.sparse).nearest(block.rows[members], labels)
                node_of[members] = pair[labels]
        return np.asarray(self.labels[node_of])


@contextmanager
def only_rows(source: Source, members: NDArray[np.intp], n: int) -> Iterator[Source]:
    """A source of these rows: copied to memory if the data are in memory, otherwise to a scratch file."""
    if len(members) == n:
        yield source
    elif isinstance(source, CachedSource):
        yield cached(gather(source, members))
    else:
        with spooled(RowSubset(source, members)) as part:
            yield part
