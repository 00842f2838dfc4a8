"""The steps of an exploration, one after the other; Ctrl-C ends them, and what is done is kept."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.scan import scan
from foldwise.errors import DataError, NotFinishedWarning
from foldwise.fold import events
from foldwise.fold.outcome import Reason
from foldwise.fold.passes import Passes
from foldwise.models.ensemble import ClusterEnsemble
from foldwise.models.kmeans import KMeans
from foldwise.models.mixture import GaussianMixture
from foldwise.models.pca import PCA
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
from foldwise.selection.explore.resume import Finished
from foldwise.selection.explore.sample import Sample, draw_sample
from foldwise.selection.explore.scaling import Scaling, decide_scaling
from foldwise.selection.explore.summaries import exemplars, rules_of, summaries_of
from foldwise.selection.mixture_profile import mixture_profile
from foldwise.selection.profile import profile
from foldwise.selection.silhouette import silhouette
from foldwise.selection.stability import stability
from foldwise.selection.stability_result import Stability

_COMPONENTS = 50  # that are kept
_REDUCED = 10  # components by which wide tables are compared
_STABILITY_ROWS, _ENSEMBLE_ROWS, _SILHOUETTE_ROWS = 10_000, 20_000, 5_000
_REPEATS = 40
_MANY_COLUMNS = 200


@dataclass
class Steps:
    """An exploration in progress: what was found so far, by the names of the fields of `Exploration`."""

    passes: Passes
    asked: dict[str, Any]
    seed: int
    n_threads: int | None
    finished: Finished | None = None
    found: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    unfinished: list[str] = field(default_factory=list)
    distances: NDArray[np.float32] | None = None

    @property
    def source(self) -> Any:
        """The rows, as they are prepared."""
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
            choice = self._resumed("number", lambda place: choose_clusters(rows, ks, checkpoint=place, **settings))
        self.found["number"] = choice
        if choice.outcome.reason is Reason.INTERRUPTED:
            raise KeyboardInterrupt

    def _resumed(self, name: str, make: Callable[[Any], Any]) -> Any:
        """The result of a long step, which is kept if there is a checkpoint; `make` is given a file for what it has so far."""
        if self.finished is None:
            return make(None)
        known = self.finished.load(name)
        if known is None:
            known = make(self.finished.checkpoint(name))
            outcome = getattr(known, "outcome", None) or known.outcome_
            if outcome.reason is not Reason.INTERRUPTED:
                if hasattr(known, "checkpoint"):
                    known.checkpoint = None
                self.finished.save(name, known)
        return known

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
        settings = {**self.common, "search": "breathing", "metric": self.scaling.metric}
        kmeans = self._resumed("kmeans", lambda place: KMeans(self.k, checkpoint=place, **settings).fit(self.source))
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
            settings: dict[str, Any] = {"n_repeats": _REPEATS, "random_state": self.seed, "n_threads": self.n_threads}
            found = self._resumed("stability", lambda place: stability(model, rows, checkpoint=place, **settings))
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
