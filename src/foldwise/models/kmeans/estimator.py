"""The KMeans that users meet: scikit-learn's manners outside, exact passes over blocks inside."""

from __future__ import annotations

import hashlib
import os
import warnings
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from foldwise.data.cache import cached
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.data.spool import spooled
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.outcome import Reason
from foldwise.fold.passes import Passes
from foldwise.models.base import remember_columns
from foldwise.models.kmeans import cosine, partial_fit
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.common import CentreModel
from foldwise.models.kmeans.parameters import BOUNDS, CONSTRAINTS, NOT_ABOUT_THE_RESULT
from foldwise.models.kmeans.search import Plan, search
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.models.standardise import mean_and_deviation


class KMeans(CentreModel):
    """K-means: every row belongs to the nearest of k centres, every centre is the mean of its rows.

    Takes arrays, frames, SciPy sparse matrices, `fw.scan(...)` and paths of files, which may be larger than memory. The same
    labels and centres, to the last bit, for any number of threads and wherever the rows are.

    Parameters
    ----------
    n_clusters : how many.
    init : "k-means++" (greedy; of many rows, candidates are compared on a sample), "k-means||" (few passes: for files and many
        clusters), "random" rows, an array of centres, or a callable (X, n_clusters, random_state).
    n_init : how many starts, of which the best is kept; "auto" is 1 for k-means++, k-means|| and arrays, else 10.
    max_iter, tol : a start ends after max_iter steps, or when the centres' summed squared movement is at most tol times the
        mean variance of the columns; tol=0 goes on until nothing moves.
    algorithm : "lloyd" compares every row with every centre, "bounded" ("elkan" means this) skips what bounds rule out, "auto"
        changes between the two as it pays. The answer is the same.
    search : "breathing" adds and takes away centres to leave bad optima, "split-merge" splits one cluster and merges two; both
        are never worse than without. "breathing" is recommended where the result matters more than a few seconds.
    metric : "cosine" is spherical k-means: rows are divided by their lengths, centres lie on the sphere.
    scale : columns are standardised first, as (x - mean_) / scale_: for columns in different units. Distances, inertia and
        `cluster_centers_` (also those given as init) are then of standardised rows; `centers_in_data_units()` translates.
        A column that does not vary is divided by 1; the mean stays in sparse rows and with metric="cosine".
    random_state : None is a fixed start, so that equal calls give equal bits.
    time_budget (seconds), checkpoint (a file) : a fit that was stopped or killed goes on from its checkpoint.
    n_threads : threads; None means FOLDWISE_THREADS or all cores. The result does not depend on it.
    copy_x, verbose : accepted for scikit-learn's sake; X is never changed. `fw.progress()` shows progress.

    Clusters are numbered by size, the largest first, equal ones by their centres; with given centres their order is kept.

    Beside scikit-learn's attributes: `outcome_` (why it stopped), `manifest_` (what really ran), `cluster_weights_`,
    `cluster_inertias_`, and `trace_`, a dict for every step with "inertia_after_e" and "inertia" (after the rows, and then the
    centres, have moved), "moved" (rows with a new label), "pruned" (comparisons with all centres saved, in rows), "near_ties"
    (settled by exact arithmetic), "shift" (of the centres), "clusters" and "run" (which start or attempt it belongs to).

    >>> import foldwise as fw
    >>> km = fw.KMeans(2).fit([[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [10.0, 2.0], [10.0, 4.0], [10.0, 0.0]])
    >>> km.labels_, km.cluster_centers_
    (array([0, 0, 0, 1, 1, 1], dtype=int32), array([[ 1.,  2.],
           [10.,  2.]]))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = CONSTRAINTS

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        verbose: int = 0,
        random_state: Any = None,
        copy_x: bool = True,
        algorithm: str = "auto",
        search: str = "none",
        metric: str = "euclidean",
        scale: bool = False,
        time_budget: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.copy_x = copy_x
        self.algorithm = algorithm
        self.search = search
        self.metric = metric
        self.scale = scale
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.n_threads = n_threads

    # ---------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters; `sample_weight` counts a row as that many equal rows."""
        self._validate_params()
        source = scan(X, weights=sample_weight)
        with ExitStack() as stack:
            source = stack.enter_context(spooled(source))
            standard = self._standard(source)
            source = cached(self._seen(source, *standard))
            run = Passes(source, n_threads=self.n_threads)
            run.passes += self.scale  # the one for the deviations
            rows = Assignment(run, bounds=BOUNDS[self.algorithm])
            self._check_count(rows.n, source, rows.extent.columns.rows)
            plan = self._plan(rows, X)
            checkpoint = self._checkpoint(source, plan.seed, plan.starts)
            found = search(rows, plan, time_budget=self.time_budget, checkpoint=checkpoint)
            try:
                self._finish(rows, found)
            except KeyboardInterrupt:  # nearly done: what was found must not be lost
                found = replace(found, outcome=replace(found.outcome, reason=Reason.INTERRUPTED))
                rows.forget()
                rows.assign(found.centres)
                self._finish(rows, found)
            self.mean_, self.scale_ = standard
            self.manifest_ = run.manifest(
                f"k-means ({self.algorithm})",
                rows=rows.n,
                resumed_at=found.resumed_at,
                repairs=(f"{found.filled} times an empty cluster was given a row",) if found.filled else (),
            )
        remember_columns(self, source)
        found.outcome.warn(f"KMeans (n_clusters={self.n_clusters})")
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take in a batch of rows, of any size, and let it go: each row is assigned once, when it comes.

        Batches are held back until there are `n_clusters` rows; these are clustered as by `fit`. After that every row is added
        to the nearest cluster, whose centre is the mean of all rows that it was ever given. That is not what a fit to all
        the rows would find, which can change its mind: use `fit` wherever the rows can be read again. `labels_` and
        `inertia_` are those of the last batch; with scale=True the first rows set the scale.
        """
        self._validate_params()
        partial_fit.take(self, X, sample_weight)
        return self

    def _standard(self, source: Source) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
        """What rows are centred at and divided by, if they are."""
        if not self.scale:
            return None, None
        mean, scale = mean_and_deviation(Passes(source, n_threads=self.n_threads))
        return None if source.sparse or self.metric == "cosine" else mean, scale

    def _plan(self, rows: Assignment, X: Any) -> Plan:
        seed = self._seed()
        given = not isinstance(self.init, str)
        starts = self.n_init
        if starts == "auto":
            starts = 10 if callable(self.init) or (not given and self.init == "random") else 1
        if given and not callable(self.init) and starts != 1:
            warnings.warn(
                "Explicit initial center position passed: performing only one init in KMeans instead of "
                f"n_init={starts}.",
                RuntimeWarning,
                stacklevel=3,
            )
            starts = 1
        return Plan(
            k=self.n_clusters,
            starts=int(starts),
            max_iter=self.max_iter,
            tol=self.tol * float(rows.squares.mean()) / rows.extent.columns.weight,
            search=self.search,
            seed=seed,
            make_start=self._starts(X, seed),
            project=cosine.project if self.metric == "cosine" else None,
        )

    def _checkpoint(self, source: Source, seed: int, starts: int) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        about = {name: value for name, value in self.get_params().items() if name not in NOT_ABOUT_THE_RESULT}
        if starts == 1 and self.search == "none":
            del about["max_iter"]  # such a fit can be taken up again with a higher cap
        about["random_state"] = seed
        # What is printed of an array leaves out digits and rows, and of a function it is an address.
        if callable(self.init):
            code = getattr(self.init, "__code__", None)
            what = (code.co_code, code.co_consts, code.co_names) if code is not None else type(self.init).__qualname__
            about["init"] = getattr(self.init, "__qualname__", ""), what
        elif not isinstance(self.init, str):
            given = np.ascontiguousarray(self.init)
            about["init"] = given.shape, hashlib.sha256(given.tobytes()).hexdigest()
        return Checkpoint(self.checkpoint, f"{type(self).__name__} {about!r} {source.fingerprint()}")

    def centers_in_data_units(self) -> LabelledMatrix:
        """The centres as rows of the data would be (with metric="cosine": as directions), with names.

        >>> import foldwise as fw
        >>> fw.KMeans(2, scale=True).fit([[1.0, 260.0], [3.0, 280.0], [8.0, 340.0], [9.0, 320.0]]).centers_in_data_units()
               x0        x1
        0  2.0000  270.0000
        1  8.5000  330.0000
        """
        check_is_fitted(self, "cluster_centers_")
        centres = self.cluster_centers_.astype(np.float64)
        if self.scale_ is not None:
            centres = centres * self.scale_ + (0.0 if self.mean_ is None else self.mean_)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return LabelledMatrix(centres, tuple(str(i) for i in range(len(centres))), tuple(names))
