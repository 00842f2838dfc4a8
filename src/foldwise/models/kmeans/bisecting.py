"""K-means from the top: one cluster is split in two until there are enough."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from foldwise.data.cache import CachedSource, cached
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.data.spool import spooled
from foldwise.data.subset import RowSubset, gather
from foldwise.fold.outcome import Outcome, Reason
from foldwise.fold.passes import Passes
from foldwise.kernels.targets import rescaling_around, targets_of
from foldwise.models.base import remember_columns
from foldwise.models.kmeans import cosine
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.common import CentreModel
from foldwise.models.kmeans.label_order import by_size
from foldwise.models.kmeans.parameters import BOUNDS, CONSTRAINTS
from foldwise.models.kmeans.search import Found, Plan, search
from foldwise.stats.extent import Extent


class BisectingKMeans(CentreModel):
    """K-means from the top: the cluster with the largest inertia (or the most rows) is split in two, until there are enough.

    The splits form a tree: `predict` goes down it, as the fit did, so that a row's cluster is not always that of the nearest
    centre. The tree is in `tree_children_` (two nodes, or -1 for a leaf), `tree_centers_` and `tree_labels_` (-1 inside).

    Parameters
    ----------
    bisecting_strategy : "biggest_inertia" or "largest_cluster".
    init, n_init, max_iter, tol, algorithm : of every split, as for KMeans.
    n_clusters, random_state, metric, n_threads, copy_x, verbose : as for KMeans.

    >>> import foldwise as fw
    >>> km = fw.BisectingKMeans(3).fit([[1.0], [2.0], [9.0], [10.0], [11.0], [30.0]])
    >>> km.labels_, km.cluster_centers_.ravel()
    (array([1, 1, 0, 0, 0, 2], dtype=int32), array([10. ,  1.5, 30. ]))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: CONSTRAINTS[name] for name in ("n_clusters", "max_iter", "tol", "verbose", "random_state", "copy_x")},
        **{name: CONSTRAINTS[name] for name in ("n_init", "algorithm", "metric", "n_threads")},
        "init": [StrOptions({"k-means++", "random", "k-means||"})],
        "bisecting_strategy": [StrOptions({"biggest_inertia", "largest_cluster"})],
    }

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
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Split until there are `n_clusters`; `sample_weight` counts a row as that many equal rows."""
        self._validate_params()
        source = scan(X, weights=sample_weight)
        with ExitStack() as stack:
            source = stack.enter_context(spooled(source))
            source = cached(cosine.on_the_sphere(source) if self.metric == "cosine" else source)
            run = Passes(source, n_threads=self.n_threads)
            extent = run.fold(Extent.of)
            self._check_count(extent.count, source)
            self._grow(source, extent)
            self.manifest_ = run.manifest("k-means (bisecting)", rows=extent.count)
        remember_columns(self, source)
        self.outcome_.warn(f"BisectingKMeans (n_clusters={self.n_clusters})")
        return self

    def _grow(self, source: Source, extent: Extent) -> None:
        began = time.perf_counter()
        whole = self._split(source, 1, 0)
        node_of = np.zeros(extent.count, dtype=np.int32)
        children, centres = [[-1, -1]], [whole[0].centres[0]]
        inertias, weights, counts = [whole[2][0]], [whole[3][0]], [extent.count]
        steps, reason = 0, Reason.CONVERGED
        for number in range(1, self.n_clusters):
            wish = np.array(inertias if self.bisecting_strategy == "biggest_inertia" else weights)
            wish[[pair[0] >= 0 or count < 2 for pair, count in zip(children, counts, strict=True)]] = -1.0
            parent = int(np.argmax(wish))
            members = np.flatnonzero(node_of == parent)
            with _only(source, members, extent.count) as part:
                found, labels, some, mass = self._split(part, 2, number)
            children[parent] = [len(children), len(children) + 1]
            node_of[members] = len(children) + labels
            children += [[-1, -1], [-1, -1]]
            centres += list(found.centres)
            inertias += list(some)
            weights += list(mass)
            counts += np.bincount(labels, minlength=2).tolist()
            steps += found.iterations
            reason = reason if found.outcome.converged else found.outcome.reason
            if reason is Reason.INTERRUPTED:
                break  # with the tree as far as it has grown
        self.tree_children_, self.tree_centers_ = np.array(children, dtype=np.int32), np.array(centres)
        leaves = np.flatnonzero(self.tree_children_[:, 0] < 0)
        leaves = leaves[by_size(np.array(weights)[leaves], self.tree_centers_[leaves])]
        self.tree_labels_ = np.full(len(children), -1, dtype=np.int32)
        self.tree_labels_[leaves] = np.arange(len(leaves), dtype=np.int32)
        self.labels_ = self.tree_labels_[node_of]
        self.cluster_centers_ = np.ascontiguousarray(self.tree_centers_[leaves])
        self.cluster_weights_, self.cluster_inertias_ = np.array(weights)[leaves], np.array(inertias)[leaves]
        self.inertia_, self.n_iter_ = float(self.cluster_inertias_.sum()), steps
        self.outcome_ = Outcome(reason, steps, time.perf_counter() - began)
        self._tell_of_empty(np.bincount(self.labels_, minlength=self.n_clusters))

    def _split(self, part: Source, k: int, number: int) -> tuple[Found, Any, list[float], Any]:
        """Centres, labels, inertias and weights of k-means with k = 2 (or 1) on some rows."""
        rows = Assignment(Passes(part, n_threads=self.n_threads), bounds=BOUNDS[self.algorithm])
        seed = (self._seed() + number) % 2**31
        plan = Plan(
            k=k,
            starts=(10 if self.init == "random" else 1) if isinstance(self.n_init, str) else self.n_init,
            max_iter=self.max_iter,
            tol=self.tol * float(rows.squares.mean()) / rows.extent.columns.weight,
            search="none",
            seed=seed,
            make_start=self._starts(None, seed, k),
            project=cosine.project if self.metric == "cosine" else None,
        )
        found = search(rows, plan)
        inertias = [rows.unscaled(float(value)) for value in rows.residuals(found.centres)]
        return found, rows.labels, inertias, rows.cluster_weights

    def _label(self, rows: Any, targets: Any) -> NDArray[np.int32]:
        """Down the tree: at every split to the nearer of two centres."""
        node_of = np.zeros(rows.shape[0], dtype=np.int32)
        for node, pair in enumerate(self.tree_children_):
            members = np.flatnonzero(node_of == node) if pair[0] >= 0 else node_of[:0]
            if len(members):
                points = np.ascontiguousarray(self.tree_centers_[pair], dtype=targets.points.dtype)
                sparse = not isinstance(rows, np.ndarray)
                labels = np.full(len(members), -1, dtype=np.int32)
                targets_of(points, rescaling_around(points, sparse=sparse), sparse=sparse).nearest(
                    rows[members], labels
                )
                node_of[members] = pair[labels]
        return np.asarray(self.tree_labels_[node_of])


@contextmanager
def _only(source: Source, members: NDArray[np.intp], n: int) -> Iterator[Source]:
    """Those rows alone: copied to memory if all are there anyway, else to a scratch file."""
    if len(members) == n:
        yield source
    elif isinstance(source, CachedSource):
        yield cached(gather(source, members))
    else:
        with spooled(RowSubset(source, members)) as part:
            yield part
