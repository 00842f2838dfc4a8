"""`fw.explore`: the steps, one after the other; Ctrl-C ends them, and what is done is kept."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.missing import allow_missing
from foldwise.data.scan import is_table_or_frame, scan
from foldwise.data.source import count_rows
from foldwise.errors import DataError, NotFinishedWarning, ParameterError
from foldwise.fold import events
from foldwise.fold.outcome import Reason
from foldwise.fold.passes import Passes
from foldwise.models.ensemble import ClusterEnsemble
from foldwise.models.kmeans import KMeans
from foldwise.models.mixture import GaussianMixture
from foldwise.models.parameters import is_whole, seed_of
from foldwise.models.pca import PCA
from foldwise.models.session import open_passes
from foldwise.selection.agreement import adjusted_rand
from foldwise.selection.clusters.choose import choose_clusters
from foldwise.selection.clusters.rows import uninterrupted
from foldwise.selection.components import choose_components
from foldwise.selection.describe import describe_clusters
from foldwise.selection.explore import compare
from foldwise.selection.explore.confidence import confidence_of
from foldwise.selection.explore.outliers import distances, find_outliers
from foldwise.selection.explore.overview import overview_of, used_names
from foldwise.selection.explore.points import category_columns, number_columns, points_of
from foldwise.selection.explore.result import Exploration
from foldwise.selection.explore.sample import Sample, draw_sample
from foldwise.selection.explore.scaling import Scaling, decide_scaling
from foldwise.selection.explore.summaries import exemplars, rules_of, summaries_of
from foldwise.selection.mixture_profile import mixture_profile
from foldwise.selection.profile import profile
from foldwise.selection.silhouette import silhouette
from foldwise.selection.stability import stability
from foldwise.selection.stability_result import Stability

_LEAST_ROWS = 5
_COMPONENTS = 50  # that are kept
_REDUCED = 10  # components by which wide tables are compared
_STABILITY_ROWS, _ENSEMBLE_ROWS, _SILHOUETTE_ROWS = 10_000, 20_000, 5_000
_REPEATS = 40
_MANY_COLUMNS = 200


def explore(
    X: Any,
    *,
    n_clusters: int | None = None,
    max_clusters: int = 20,
    scale: bool | str = "auto",
    metric: str = "auto",
    missing: str = "model",
    categories: str = "auto",
    max_rows: int = 100_000,
    weights: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    engine: Any = None,
    **preparing: Any,
) -> Exploration:
    """Which directions matter in a table, which groups there are, how many, and how sure that is.

    Runs PCA and the votes for the number of components; the votes for the number of clusters, which may find none; k-means, a
    Gaussian mixture, and which of them describes rows better that were held out; a consensus of many clusterings; the stability
    of clusters and rows; what sets each cluster apart, in words; and rows far from all others. The result has all of it as
    objects, shows itself in a notebook, and writes its page with `.report("report.html")`.

    Parameters
    ----------
    X : whatever `fw.scan` reads. Files and frames are prepared as by `fw.prepare`, whose options can be given too (`columns`,
        `exclude`, `ids`, `labels`, `as_`, `where`, `whole`, and how a file is read).
    n_clusters : the number of clusters, if it is known; None lets the criteria vote, up to `max_clusters`.
    scale : whether columns are standardised; "auto" does so if their spreads differ more than 5-fold, unless most have the same
        range, as pixels do. metric : "euclidean", "cosine" or "auto": cosine for sparse rows.
    missing : what to do about missing cells, as for `fw.KMeans`.
    categories : "describe" the result, or "encode": used together with numbers. "auto" encodes them only where there are fewer
        than two columns of numbers.
    max_rows : of larger tables, steps that take long use a random sample of so many rows; components and k-means clusters are
        those of all rows, and every row is assigned exactly.
    weights : numbers of repetitions, or the name of a column with them.
    random_state : the seed; None is a fixed seed.

    Ctrl-C gives what was found so far; `unfinished` names the steps that were not done.

    >>> import numpy as np
    >>> import foldwise as fw
    >>> rng = np.random.default_rng(0)
    >>> found = fw.explore(np.concatenate([rng.normal(size=(60, 3)) + 6 * i for i in range(3)]))
    >>> found.n_clusters, [one.rows for one in found.summaries]
    (3, [60, 60, 60])
    """
    if scale != "auto" and not isinstance(scale, bool | np.bool_):
        raise ParameterError(f'scale={scale!r}: give True, False or "auto".')
    if metric not in ("auto", "euclidean", "cosine"):
        raise ParameterError(f"metric={metric!r}: give 'auto', 'euclidean' or 'cosine'.")
    if n_clusters is not None and not (is_whole(n_clusters) and n_clusters >= 1):
        raise ParameterError(f"n_clusters={n_clusters!r}: give a whole number of at least 1, or None to find it out.")
    if not (is_whole(max_clusters) and max_clusters >= 2):
        raise ParameterError(f"max_clusters={max_clusters!r}: give a whole number of at least 2.")
    if not (is_whole(max_rows) and max_rows >= 1000):
        raise ParameterError(f"max_rows={max_rows!r}: give a whole number of at least 1000.")
    source = open_rows(X, categories=categories, weights=weights, **preparing)
    if missing != "error" and not source.sparse:
        source = allow_missing(source)
    asked = {
        "n_clusters": n_clusters,
        "max_clusters": max_clusters,
        "scale": scale,
        "metric": metric,
        "missing": missing,
        "categories": categories,
        "max_rows": max_rows,
        "random_state": random_state,
    }
    with open_passes(source, engine=engine, n_threads=n_threads) as passes:
        _check(passes)
        found = _Run(passes, asked, seed_of(random_state), n_threads).all_steps()
    return replace(found, source=source, command=_command(X, asked, preparing))


def _command(X: Any, asked: dict[str, Any], preparing: dict[str, Any]) -> str:
    """The call that repeats an exploration; arrays and frames are X there."""
    usual = {name: one.default for name, one in inspect.signature(explore).parameters.items()}
    given = {name: value for name, value in asked.items() if value != usual[name]}
    what = repr(X) if isinstance(X, str) else "X"
    return f"fw.explore({', '.join([what, *(f'{name}={value!r}' for name, value in {**given, **preparing}.items())])})"


def open_rows(X: Any, *, categories: str = "auto", weights: Any = None, **preparing: Any) -> Any:
    """The rows: of a table prepared, with its categories encoded if there are hardly any numbers; else as `scan` gives them."""
    if categories not in ("auto", "describe", "encode"):
        raise ParameterError(f"categories={categories!r}: must be 'auto', 'describe' or 'encode'.")
    if not is_table_or_frame(X):
        if preparing:
            raise ParameterError(
                f"{next(iter(preparing))}: only for files and data frames, which have columns to prepare."
            )
        return scan(X, weights=weights)
    from foldwise.prepare.build import prepare

    if categories != "auto":
        return prepare(X, categories=categories, weights=weights, **preparing)
    try:
        made = prepare(X, categories="describe", weights=weights, **preparing)
    except DataError:
        return prepare(X, categories="encode", weights=weights, **preparing)
    few = len(made.recipe.having("used")) < 2 and made.recipe.having("describing")
    return prepare(X, categories="encode", weights=weights, **preparing) if few else made


def _check(passes: Passes) -> None:
    source = passes.source
    where = source.where if source.where != "array" else None
    if source.n_columns < 2:
        raise DataError(
            "there is only one column of numbers, so no directions or groups of rows to explore",
            where=where,
            advice="foldwise fit-distribution describes one column, foldwise cluster -k auto finds groups in it",
        )
    rows = count_rows(source)
    if rows < _LEAST_ROWS:
        raise DataError(
            f"{rows} row{'s are' if rows != 1 else ' is'} too few to explore",
            where=where,
            advice=f"Give at least {_LEAST_ROWS}",
        )


@dataclass
class _Run:
    """An exploration in progress: what was found so far, by the names of the fields of `Exploration`."""

    passes: Passes
    asked: dict[str, Any]
    seed: int
    n_threads: int | None
    found: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    unfinished: list[str] = field(default_factory=list)
    distances: NDArray[np.float32] | None = None

    @property
    def source(self) -> Any:
        return self.passes.source

    @property
    def common(self) -> dict[str, Any]:
        """Parameters of all models."""
        return {
            "scale": self.scaling.scale,
            "missing": self.asked["missing"],
            "random_state": self.seed,
            "n_threads": self.n_threads,
        }

    def all_steps(self) -> Exploration:
        """Every step; after Ctrl-C only those that make a report of what is there."""
        steps: list[tuple[str, Callable[[], None]]] = [
            ("reading the table", self.read),
            ("directions", self.directions),
            ("number of directions", self.number_of_directions),
            ("rows far from the others", self.outliers),
            ("number of groups", self.number_of_groups),
            ("groups", self.groups),
            ("which model describes the rows better", self.compare),
            ("what sets groups apart", self.describe),
            ("stability", self.stability),
            ("consensus of many clusterings", self.consensus),
        ]
        for number, (name, step) in enumerate(steps):
            try:
                with self._step(name, number + 1, len(steps) + 1):
                    step()
            except KeyboardInterrupt:
                if number < 2:
                    raise  # nothing to report yet
                self.unfinished = [name for name, _ in steps[number:]]
                break
        with self._step("rows to show", len(steps) + 1, len(steps) + 1):
            self.rows_to_show()
        if self.unfinished:
            message = f"explore: interrupted; not done: {', '.join(self.unfinished)}."
            warnings.warn(message, NotFinishedWarning, stacklevel=3)
        return Exploration(
            **self.found,
            names=used_names(self.source),
            scale=self.scaling.scale,
            metric=self.scaling.metric,
            scale_reason=self.scaling.reason,
            sampled_rows=None if self.sample.complete else len(self.sample.rows),
            unfinished=tuple(self.unfinished),
            seconds=self.seconds,
            settings=self.asked,
            distances=self.distances,
        )

    @contextmanager
    def _step(self, name: str, number: int, of: int) -> Any:
        events.emit(events.Stage(name, number, of))
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = time.perf_counter() - started

    # ---------------------------------------------------------------- steps

    def read(self) -> None:
        """The sample, the overview of the columns, and how rows are to be compared."""
        self.sample: Sample = draw_sample(self.passes, self.asked["max_rows"], self.seed)
        self.found["overview"] = overview_of(self.source, self.sample)
        dense = None if self.source.sparse else self.sample.dense()
        encoded = bool(getattr(self.source, "indicators", None))
        self.scaling: Scaling = decide_scaling(
            dense, used_names(self.source), self.asked["scale"], self.asked["metric"], categories=encoded
        )
        if dense is not None and not (np.nanmax(dense, axis=0) > np.nanmin(dense, axis=0)).any():
            raise DataError(
                "every column is constant, so there is nothing to explore",
                where=self.source.where if self.source.where != "array" else None,
                advice="Give columns that vary",
            )

    def directions(self) -> None:
        """PCA of all rows."""
        lost = len(getattr(self.source, "indicators", None) or ())  # the columns of a category add up to a constant
        most = min(_COMPONENTS, self.source.n_columns - lost, self.sample.total)
        pca = PCA(most, **self.common).fit(self.source)
        uninterrupted(pca)
        self.found |= {"pca": pca, "components": None}

    def number_of_directions(self) -> None:
        """The votes of the rules, over the sample."""
        choice = choose_components(self.sample.source, **self.common)
        self.found["components"] = choice
        if choice.interrupted:
            raise KeyboardInterrupt

    def outliers(self) -> None:
        """T2 and residual of every row."""
        pca, choice = self.found["pca"], self.found["components"]
        agreed = None if choice is None else choice.agreed
        m = min(agreed or 2, pca.n_components_, self.source.n_columns)
        self.distances = distances(pca, self.source, m)
        self.found["outliers"] = find_outliers(pca, self.source, self.distances, m)

    def number_of_groups(self) -> None:
        """The votes of the criteria, over the sample."""
        ks = range(1, self.asked["max_clusters"] + 1)
        wanted = self.asked["n_clusters"]
        if wanted is not None and wanted > ks[-1]:
            ks = range(1, wanted + 1)
        rows, settings = self._rows_to_judge()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotFinishedWarning)
            choice = choose_clusters(rows, ks, **settings)
        self.found["number"] = choice
        if choice.outcome.reason is Reason.INTERRUPTED:
            raise KeyboardInterrupt

    def _rows_to_judge(self) -> tuple[Any, dict[str, Any]]:
        """The sample; of very many columns its scores on the components that stand out, as noise in all others hides gaps."""
        if self.source.n_columns <= _MANY_COLUMNS or self.source.sparse:
            return self.sample.source, {**self.common, "metric": self.scaling.metric}
        agreed = 0 if self.found["components"] is None else self.found["components"].agreed or 0
        scores = np.asarray(self.found["pca"].scores(self.sample.source), dtype=np.float64)
        weights = self.sample.weights
        rows = scan(np.ascontiguousarray(scores[:, : max(2, agreed)]), weights=weights)
        return rows, {"random_state": self.seed, "n_threads": self.n_threads}

    @property
    def k(self) -> int:
        """The number of clusters; 1 if there are none."""
        return int(self.asked["n_clusters"] or self.found["number"].n_clusters or 1)

    def groups(self) -> None:
        """K-means of all rows."""
        if self.k < 2:
            self.found["labels"] = np.zeros(self.sample.total, dtype=np.int32)
            return
        kmeans = KMeans(self.k, search="breathing", metric=self.scaling.metric, **self.common).fit(self.source)
        self.found |= {"kmeans": kmeans, "clusters": kmeans, "labels": kmeans.labels_}
        self._profile()
        uninterrupted(kmeans)

    def _profile(self) -> None:
        model = self.found["clusters"]
        made = profile(model, self.source) if isinstance(model, KMeans) else mixture_profile(model, self.source)
        self.found["profile"] = made

    def compare(self) -> None:
        """A mixture with as many components, and whether it takes the place of k-means."""
        if self.k < 2 or self.scaling.metric == "cosine" or getattr(self.source, "indicators", None):
            return
        reduced = self.source.n_columns > compare.MOST_COLUMNS
        rows, which = self.sample.only(compare.MOST_ROWS, self.seed)
        kmeans = self.found["kmeans"]
        if reduced:
            pca = self.found["pca"]
            cells = np.asarray(pca.scores(rows), dtype=np.float64)[:, :_REDUCED]
        else:
            cells = _standardised(self.sample.dense()[which], kmeans)
        settings = {"missing": "model", "random_state": self.seed, "n_threads": self.n_threads}
        mixture = compare.fit_mixture(scan(cells), self.k, settings)
        if mixture is None:
            return
        labels = kmeans.labels_[self.sample.rows[which]]
        found = compare.compare(cells, mixture, kmeans, labels, self.seed, reduced=reduced)
        self.found["comparison"] = found
        if reduced:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = GaussianMixture(self.k, covariance_type=mixture.covariance_type, **self.common).fit(
                self.sample.source
            )
        uninterrupted(whole)
        self.found["mixture"] = whole
        if found.chosen == "mixture":
            self.found |= {"clusters": whole, "labels": whole.predict(self.source)}
            self._profile()

    def describe(self) -> None:
        """What sets each cluster apart, in figures and words."""
        if self.k < 2:
            return
        labels, made = self.found["labels"], self.found["profile"]
        names = used_names(self.source)
        counts = describe_clusters(self.source, labels, self.k)
        numbers = number_columns(self.source, self.sample, names)
        values = self.sample.values(numbers) if numbers else np.zeros((len(self.sample.rows), 0))
        here = labels[self.sample.rows]
        categories = category_columns(self.source, self.sample, ("used",))
        rules = rules_of(here, self.k, numbers, values, categories, self.sample.weights)
        typical = [tuple(int(self.sample.rows[place]) for place in own) for own in self._exemplars(here, made)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows, which = self.sample.only(_SILHOUETTE_ROWS, self.seed)
            several = len(np.unique(here[which][here[which] >= 0])) > 1
            judged = silhouette(rows, self.found["clusters"], values=True) if several else None
        self.found |= {
            "categories": tuple(counts),
            "silhouette": judged,
            "silhouette_labels": here[which],
            "summaries": summaries_of(
                made, names, counts, rules, typical, self._silhouettes(judged), sparse=self.source.sparse
            ),
        }

    def _silhouettes(self, judged: Any) -> Any:
        if judged is None:
            return None
        out = np.full(self.k, np.nan)
        out[[int(one) for one in judged.clusters]] = judged.cluster_means
        return out

    def _exemplars(self, labels: NDArray[Any], made: Any) -> list[tuple[int, ...]]:
        if self.source.sparse:
            away = np.asarray(self.found["clusters"].transform(self.sample.source))
            return [
                tuple(int(i) for i in here[np.argsort(away[here, cluster], kind="stable")[:3]])
                for cluster in range(self.k)
                for here in [np.flatnonzero(labels == cluster)]
            ]
        deviation = np.where(made.deviation > 0, made.deviation, 1.0)
        if not self.scaling.scale:
            deviation = np.full_like(deviation, float(deviation.max()))
        rows = (self.sample.dense() - made.mean) / deviation
        return exemplars(rows, (made.means - made.mean) / deviation, labels, self.k)

    def stability(self) -> None:
        """Fits to other rows: which clusters, and which rows in them, stay."""
        if self.k < 2:
            return
        model, labels = self.found["clusters"], self.found["labels"]
        rows, _ = self.sample.only(_STABILITY_ROWS, self.seed)
        few = len(self.sample.rows) < 4 * self.k
        if few:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotFinishedWarning)
            found = stability(model, rows, n_repeats=_REPEATS, random_state=self.seed, n_threads=self.n_threads)
        self.found["stability"] = found
        verdicts = self._verdicts(found)
        if found.outcome.reason is Reason.INTERRUPTED:
            raise KeyboardInterrupt
        if len(found.labels) == self.sample.total:
            confidence = np.asarray(found.confidence, dtype=np.float32)
        else:
            confidence = confidence_of(model, rows, self.source, labels, self.seed)
        self.found["confidence"] = confidence
        known = labels >= 0
        means = np.bincount(labels[known], confidence[known], minlength=self.k) / np.maximum(
            np.bincount(labels[known], minlength=self.k), 1
        )
        self.found["summaries"] = tuple(
            replace(one, confidence=float(means[i]), verdict=verdicts[i])
            for i, one in enumerate(self.found["summaries"])
        )

    def _verdicts(self, found: Stability) -> tuple[str, ...]:
        """The verdicts on the clusters; with gaps between all of them, they need not be compared with parts of one group."""
        dip = self.found["number"].judgements.get("dip")
        gaps = dip is not None and (dip.vote.chosen or 1) >= self.k
        return replace(found, one_group=float("nan")).verdicts if gaps else found.verdicts

    def consensus(self) -> None:
        """Many clusterings of the sample, and what they agree on."""
        if self.k < 2 or self.scaling.metric == "cosine":
            return
        rows, which = self.sample.only(_ENSEMBLE_ROWS, self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = ClusterEnsemble(self.k, **self.common).fit(rows)
        uninterrupted(model)
        self.found["ensemble"] = model
        here = self.found["labels"][self.sample.rows[which]]
        known = (here >= 0) & (model.labels_ >= 0)
        self.found["ensemble_agreement"] = float(adjusted_rand(here[known], model.labels_[known]))

    def rows_to_show(self) -> None:
        """The sample with all that is known of its rows, and the rows that are listed."""
        outliers, made = self.found.get("outliers"), self.found.get("profile")
        listed = [] if outliers is None else [int(row) for row in outliers.rows]
        listed += [row for one in self.found.get("summaries", ()) for row in one.exemplars]
        self.found["points"] = points_of(
            self.source,
            self.sample,
            self.found["pca"],
            used_names(self.source),
            self.found.get("labels"),
            self.found.get("confidence"),
            self.distances,
            listed,
            None if made is None else made.separation,
        )


def _standardised(rows: Any, model: KMeans) -> Any:
    """Rows as k-means compares them."""
    if model.scale_ is None:
        return rows
    scale = np.asarray(model.scale_, dtype=np.float64)
    mean = 0.0 if model.mean_ is None else np.asarray(model.mean_, dtype=np.float64)
    return (rows - mean) / np.where(scale > 0, scale, 1.0)
