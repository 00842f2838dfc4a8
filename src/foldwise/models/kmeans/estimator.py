"""The public KMeans estimator: scikit-learn's interface over exact passes over blocks."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Self

from foldwise.models.kmeans import partial_fit
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.centre_model import CentreModel
from foldwise.models.kmeans.descent import find_clusters
from foldwise.models.kmeans.observed_data import data_of
from foldwise.models.kmeans.parameters import BOUNDS, PARAMETERS
from foldwise.models.parameters import Parameter, constraints, shared
from foldwise.models.session import session


class KMeans(CentreModel):
    """K-means: each row belongs to the nearest of k centres, and each centre is the mean of its rows.

    Accepts arrays, data frames, SciPy sparse matrices, `fw.scan(...)` and file paths; files may be larger than memory. Labels
    and centres are bit-identical for any number of threads and any kind of source.

    Parameters
    ----------
    n_clusters : the number of clusters.
    init : "k-means++" (greedy; with many rows, candidates are compared on a sample), "k-means||" (few passes, for files and
        many clusters), "random" rows, an array of centres, or a callable (X, n_clusters, random_state).
    n_init : the number of starts, of which the best is kept; "auto" is 1 for k-means++, k-means|| and arrays, otherwise 10.
        The one start of "auto" and k-means++ is itself the best of several brief ones, as `search` says; a number makes as many
        plain starts.
    max_iter, tol : a start ends after max_iter steps, or when the summed squared movement of the centres is at most tol times
        the mean variance of the columns while at most 1 % of the rows change clusters; tol=0 continues until nothing moves.
    algorithm : "lloyd" compares every row with every centre, "bounded" (alias "elkan") skips comparisons that bounds rule
        out, "auto" switches between the two as it pays. The result is the same.
    search : how to escape poor optima. "breathing" is recommended when quality matters more than a few seconds: it adds and
        removes centres (Fritzke 2020). Where rows x columns x clusters are at most 524,288 it makes eight starts in memory,
        then moves single centres of the best or recombines them, until a number of attempts in a row (54 to 290, fewer in the
        larger of these tables) have failed. "auto" does the same up to 32,768, with three starts and at least 8 attempts
        (two and up to 6 above 12,000); beyond, for dense and complete rows, six starts of 8 to 20 steps on at most 40,000 rows
        (50 for each cluster, if that is more), of which the best goes on, unless these rows x columns x clusters exceed 1e8;
        and nothing if `init` or `n_init` are other than their defaults. "split-merge" splits one cluster and merges
        two. "none" is plain k-means.
    metric : "cosine" is spherical k-means: rows are divided by their lengths, centres lie on the sphere.
    scale : standardise columns first, as (x - mean_) / scale_, for columns in different units. Distances, inertia and
        `cluster_centers_` (also those given as init) then refer to standardised rows; `centers_in_data_units()` converts.
        Constant columns are divided by 1; the mean is not subtracted from sparse rows or with metric="cosine".
    missing : what to do about missing cells (NaN). "error" refuses them; "drop" leaves their rows out of the fit; "mean" fills
        them with the means of the columns; "model" minimises the sum of squares over observed cells: a row is compared with the
        centres in the cells that it has, and a centre is the mean of the observed cells of its rows. A row with nothing
        observed has the label -1. `inertia_` is the plain sum over observed cells; distances are scaled to all columns (see
        `transform`). Starts are drawn in proportion to what a row adds to the inertia, with column means in missing cells.
    prepare : "auto" takes tables as people have them, with categories, identifiers and dates, as `fw.prepare` does.
    random_state : None is a fixed seed, so that equal calls give bit-identical results.
    time_budget (seconds), checkpoint (a file) : a fit that was stopped or killed resumes from its checkpoint.
    n_threads : the number of threads; None means FOLDWISE_THREADS or all cores. The result does not depend on it.
    copy_x, verbose : accepted for compatibility with scikit-learn; X is never modified. `fw.progress()` shows progress.

    Clusters are numbered by size, largest first, with ties ordered by centre; given centres keep their order.

    `n_iter_` counts the steps over all rows in the descent that was kept; those of a search in memory before it do not count.
    Attributes in addition to scikit-learn's: `outcome_` (why it stopped), `manifest_` (what was run), `cluster_weights_`,
    `cluster_inertias_`, and `trace_`, a dict per step with "inertia_after_e" and "inertia" (after assigning the rows, then
    moving the centres), "moved" (rows with a new label), "pruned" (full comparisons skipped, in rows), "near_ties"
    (resolved by exact arithmetic), "filled" (empty clusters given a row), "shift" (of the centres), "clusters", and "start"
    and "run" (the start and the descent that the step belongs to).

    >>> import foldwise as fw
    >>> km = fw.KMeans(2).fit([[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [10.0, 2.0], [10.0, 4.0], [10.0, 0.0]])
    >>> km.labels_, km.cluster_centers_
    (array([0, 0, 0, 1, 1, 1], dtype=int32), array([[ 1.,  2.],
           [10.,  2.]]))

    With missing cells, each row is compared in the cells that it has:

    >>> nan = float("nan")
    >>> km = fw.KMeans(2, missing="model").fit([[1.0, 2.0], [1.0, nan], [nan, 4.0], [10.0, 12.0], [nan, 14.0], [nan, nan]])
    >>> km.labels_, km.cluster_centers_
    (array([ 0,  0,  0,  1,  1, -1], dtype=int32), array([[ 1.,  3.],
           [10., 13.]]))
    """

    PARAMETERS: ClassVar[dict[str, Parameter]] = PARAMETERS | shared("missing", "prepare")
    _parameter_constraints: ClassVar[dict[str, Any]] = constraints(PARAMETERS)

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
        search: str = "auto",
        metric: str = "euclidean",
        scale: bool = False,
        missing: str = "error",
        prepare: str | None = None,
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
        self.missing = missing
        self.prepare = prepare
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, engine: Any = None) -> Self:
        """Find the clusters; a row with `sample_weight` w counts as w equal rows; `engine` runs the passes (`fw.engine`)."""
        geometry = self.geometry
        with session(self, X, sample_weight, engine=engine, view=geometry.view, centre=geometry.translates) as fit:
            data = data_of(fit, geometry)
            self._check_count(fit, data.n, data.counted)
            starts = self._n_starts()
            plusplus = isinstance(self.init, str) and self.init == "k-means++"
            # Whoever gives the centres or counts the starts gets just those.
            search = "none" if self.search == "auto" and not (plusplus and self.n_init == "auto") else self.search
            found = find_clusters(
                Assignment(data, bounds=BOUNDS[self.algorithm]),
                self.n_clusters,
                self._make_start(data, X, fit.seed),
                starts=starts,
                max_iter=self.max_iter,
                tol=self.tol,
                search=search,
                plusplus=plusplus,
                seed=fit.seed,
                geometry=geometry,
                time_budget=self.time_budget,
                checkpoint=fit.checkpoint(*data.figures, resumable_cap=starts == 1 and search in ("none", "auto")),
            )
            found = self._finish(fit, found)
            fit.finish(
                found.outcome,
                f"k-means ({self.algorithm}{', ' if found.searched else ''}{found.searched})",
                data.counted if self.missing == "drop" else data.n,
                resumed_at=found.resumed_at,
                repairs=found.repairs,
                warning=f"KMeans (n_clusters={self.n_clusters})",
            )
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update the clusters with a batch of any size, which is not kept: each row is assigned once, on arrival.

        Batches are held until there are `n_clusters` rows, which are clustered as by `fit`. After that each row is added to
        the nearest cluster, whose centre is the mean of all rows it has received. Unlike `fit`, this never reassigns a row,
        so the result differs: use `fit` whenever the rows can be read again. `labels_` and `inertia_` refer to the last
        batch; with scale=True, the first rows determine the scale.
        """
        self._validate_params()
        partial_fit.take(self, X, sample_weight)
        return self
