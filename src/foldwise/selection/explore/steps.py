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
from foldwise.errors import DataError, NotFinishedWarning, warn
from foldwise.fold import events
from foldwise.fold.outcome import Reason
from foldwise.fold.passes import Passes
from foldwise.models.ensemble import ClusterEnsemble
from foldwise.models.exploration import is_blank
from foldwise.models.kmeans import KMeans
from foldwise.models.kmeans.centre_model import FewerClustersWarning
from foldwise.models.mixture import GaussianMixture
from foldwise.models.pca import PCA
from foldwise.selection.agreement import adjusted_rand
from foldwise.selection.clusters.choose import choose_clusters
from foldwise.selection.clusters.rows import uninterrupted
from foldwise.selection.components import choose_components
from foldwise.selection.describe import describe_clusters
from foldwise.selection.explore import compare
from foldwise.selection.explore.confidence import confidence_of
from foldwise.selection.explore.judged_rows import as_compared, in_order, rows_to_judge, without_far_rows
from foldwise.selection.explore.outliers import distances, find_outliers
from foldwise.selection.explore.overview import overview_of, used_names
from foldwise.selection.explore.points import category_columns, number_columns, points_of
from foldwise.selection.explore.result import Exploration
from foldwise.selection.explore.resume import Finished
from foldwise.selection.explore.rules import measured
from foldwise.selection.explore.sample import Sample, draw_sample
from foldwise.selection.explore.scaling import Scaling, decide_scaling
from foldwise.selection.explore.summaries import rules_of, summaries_of, typical_rows
from foldwise.selection.mixture_profile import mixture_profile
from foldwise.selection.profile import profile
from foldwise.selection.silhouette import silhouette
from foldwise.selection.stability import stability
from foldwise.selection.stability_result import Stability

_COMPONENTS = 50  # that are kept
_REDUCED = 10  # components by which wide tables are compared
_STABILITY_ROWS, _ENSEMBLE_ROWS = 10_000, 20_000
_SILHOUETTE_ROWS, _SILHOUETTE_AGAINST = 5_000, 20_000
_NEXT = {"could be noise": "doubtful", "doubtful": "stable", "stable": "very stable"}  # verdicts, a step up
_REPEATS = 40


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
    used_rows: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    distances: NDArray[np.float32] | None = None

    @property
    def source(self) -> Any:
        """The rows, as they are prepared."""
        return self.passes.source

    @property
    def where(self) -> str | None:
        """How messages refer to the data; None for arrays."""
        return self.source.where if self.source.where != "array" else None

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
            warn(f"explore: interrupted; not done: {', '.join(self.unfinished)}.", NotFinishedWarning)
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
            used_rows=self.used_rows,
            notes=tuple(self.notes),
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
        with np.errstate(all="ignore"):
            self.found["overview"] = overview_of(self.source, self.sample)
        dense = None if self.source.sparse else self.sample.dense()
        encoded = bool(getattr(self.source, "indicators", None))
        with np.errstate(all="ignore"):
            self.scaling: Scaling = decide_scaling(
                dense, used_names(self.source), self.asked["scale"], self.asked["metric"], categories=encoded
            )
        if dense is not None and not (np.fmax.reduce(dense, axis=0) > np.fmin.reduce(dense, axis=0)).any():
            what = "every column is constant, so there is nothing to explore"
            raise DataError(what, where=self.where, advice="Give columns that vary")

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
        """The votes of the criteria, over the sample; not asked if the number is given."""
        if self.asked["n_clusters"] is not None:
            return
        ks = range(1, self.asked["max_clusters"] + 1)
        kept, left_out = without_far_rows(self.sample, self.found.get("outliers"), self.distances)
        rows, settings, note = rows_to_judge(self.sample.without(kept), self.found, self.common, self.scaling.metric)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotFinishedWarning)
            choice = self._resumed("number", lambda place: choose_clusters(rows, ks, checkpoint=place, **settings))
        far = (
            f"{left_out} row{'s' * (left_out != 1)} far from all others did not take part in the vote"
            if left_out
            else ""
        )
        choice = replace(choice, notes=(*choice.notes, *(words for words in (note, far) if words)))
        self.found["number"] = choice
        self.used_rows["votes"] = choice.judged_rows
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

    @property
    def k(self) -> int:
        """The number of clusters; 1 if there are none."""
        return int(self.asked["n_clusters"] or self.found["number"].n_clusters or 1)

    def groups(self) -> None:
        """K-means of all rows."""
        if self.k < 2:
            self.found["labels"] = np.where(self.passes.rows(is_blank), -1, 0).astype(np.int32)
            return
        settings = {**self.common, "search": "breathing", "metric": self.scaling.metric}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewerClustersWarning)  # it is an error here
            kmeans = self._resumed(
                "kmeans", lambda place: KMeans(self.k, checkpoint=place, **settings).fit(self.source)
            )
        if (np.bincount(kmeans.labels_[kmeans.labels_ >= 0], minlength=self.k) == 0).any():
            what = f"there are fewer different rows than the {self.k} groups that were asked for"
            raise DataError(what, where=self.where, advice="Ask for fewer")
        self.found |= {"kmeans": kmeans, **self._clusters(kmeans, kmeans.labels_)}
        uninterrupted(kmeans)

    def _clusters(self, model: Any, labels: NDArray[np.int32]) -> dict[str, Any]:
        """The clusters of a model, all of what belongs together."""
        if isinstance(model, KMeans):
            return {"clusters": model, "labels": labels, "profile": profile(model, self.source)}
        made = mixture_profile(model, self.source)
        if (labels < 0).any():  # a mixture would give rows of which nothing is known to its largest component
            rows = np.bincount(labels[labels >= 0], minlength=self.k)
            made = replace(made, labels=labels, rows=rows)
        return {"clusters": model, "labels": labels, "profile": made}

    def compare(self) -> None:
        """A mixture with as many components, and whether it takes the place of k-means."""
        if self.k < 2:
            return
        if self.scaling.metric == "cosine" or getattr(self.source, "indicators", None):
            why = "rows are compared by direction" if self.scaling.metric == "cosine" else "categories are used"
            self.notes.append(f"no mixture was compared with k-means, since {why}")
            return
        reduced = self.source.n_columns > compare.MOST_COLUMNS
        rows, which = self.sample.only(compare.MOST_ROWS, self.seed)
        kmeans = self.found["kmeans"]
        if reduced:
            cells = np.asarray(self.found["pca"].scores(rows), dtype=np.float64)[:, :_REDUCED]
        else:
            cells = as_compared(self.sample.dense()[which], kmeans)
        order = in_order(cells)
        which, cells = which[order], cells[order]
        weights = None if self.sample.weights is None else self.sample.weights[which]
        settings = {"missing": "model", "random_state": self.seed, "n_threads": self.n_threads}
        mixture = compare.fit_mixture(scan(cells, weights=weights), self.k, settings)
        if mixture is None:
            self.notes.append("no mixture was compared with k-means, since none could be fitted to these rows")
            return
        labels = kmeans.labels_[self.sample.rows[which]]
        found = compare.compare(cells, weights, mixture, kmeans, labels, self.seed, reduced=reduced)
        self.used_rows["comparison"] = len(cells)
        if reduced:
            self.found["comparison"] = found
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = GaussianMixture(self.k, covariance_type=mixture.covariance_type, **self.common)
            uninterrupted(whole.fit(self.sample.source))
        chosen = {}
        if found.chosen == "mixture":
            labels = np.where(self.passes.rows(is_blank), -1, whole.predict(self.source)).astype(np.int32)
            chosen = self._clusters(whole, labels)
        self.found |= {"comparison": found, "mixture": whole, **chosen}

    def describe(self) -> None:
        """What sets each cluster apart, in figures and words."""
        if self.k < 2:
            return
        labels, made = self.found["labels"], self.found["profile"]
        names = used_names(self.source)
        counts = describe_clusters(self.source, labels, self.k)
        numbers = number_columns(self.source, names)
        values = self.sample.values(numbers) if numbers else np.zeros((len(self.sample.rows), 0))
        here = labels[self.sample.rows]
        categories = category_columns(self.source, self.sample, ("used",))
        rules = rules_of(here, self.k, numbers, values, categories, self.sample.weights)
        if not self.sample.complete:
            rules = measured(rules, self.passes, names, labels)
        typical = typical_rows(self.sample, self.found["clusters"], here, made, scale=self.scaling.scale)
        judged, judged_labels = self._silhouette(here)
        self.found |= {
            "categories": tuple(counts),
            "silhouette": judged,
            "silhouette_labels": judged_labels,
            "summaries": summaries_of(made, names, counts, rules, typical, judged, sparse=self.source.sparse),
        }

    def _silhouette(self, labels: NDArray[Any]) -> tuple[Any, Any]:
        """Silhouettes of some rows against more of them, and the clusters of these rows; `labels` are those of the sample."""
        rows, which = self.sample.only(_SILHOUETTE_AGAINST, self.seed)
        own = labels[which]
        if len(np.unique(own[own >= 0])) < 2:
            return None, None
        most = None if len(own) <= _SILHOUETTE_ROWS else _SILHOUETTE_ROWS
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = silhouette(rows, self.found["clusters"], values=True, sample_size=most, random_state=self.seed)
        judged = own if found.rows is None else own[found.rows]
        self.used_rows["silhouette"] = len(judged)
        return found, judged

    def stability(self) -> None:
        """Fits to other rows: which clusters, and which rows in them, stay."""
        if self.k < 2:
            return
        model, labels = self.found["clusters"], self.found["labels"]
        kept, _ = without_far_rows(self.sample, self.found.get("outliers"), self.distances)
        rows, _ = self.sample.without(kept).only(_STABILITY_ROWS, self.seed)
        if len(self.sample.rows) < 4 * self.k:
            self.notes.append("there are too few rows to see whether the groups are found again")
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotFinishedWarning)
            settings: dict[str, Any] = {"n_repeats": _REPEATS, "random_state": self.seed, "n_threads": self.n_threads}
            found = self._resumed("stability", lambda place: stability(model, rows, checkpoint=place, **settings))
        if found.outcome.reason is Reason.INTERRUPTED:  # half a verdict is none
            raise KeyboardInterrupt
        verdicts = self._verdicts(found)
        if len(found.labels) == self.sample.total:
            confidence = np.asarray(found.confidence, dtype=np.float32)
        else:
            confidence = confidence_of(model, rows, self.source, labels, self.seed)
        known = labels >= 0
        means = np.bincount(labels[known], confidence[known], minlength=self.k) / np.maximum(
            np.bincount(labels[known], minlength=self.k), 1
        )
        summaries = tuple(
            replace(one, confidence=float(means[i]), verdict=verdicts[i])
            for i, one in enumerate(self.found["summaries"])
        )
        self.used_rows["stability"] = len(found.labels)
        self.found |= {"stability": found, "confidence": confidence, "summaries": summaries}

    def _verdicts(self, found: Stability) -> tuple[str, ...]:
        """The verdicts on the clusters; gaps between all of them speak for them, and lift each by a step."""
        number = self.found.get("number")
        dip = None if number is None else number.judgements.get("dip")
        if dip is None or (dip.vote.chosen or 1) < self.k:
            return found.verdicts
        return tuple(_NEXT.get(one, one) for one in found.verdicts)

    def consensus(self) -> None:
        """Many clusterings of the sample, and what they agree on."""
        if self.k < 2:
            return
        if self.scaling.metric == "cosine":
            self.notes.append("no consensus of clusterings was made, since rows are compared by direction")
            return
        rows, which = self.sample.only(_ENSEMBLE_ROWS, self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = ClusterEnsemble(self.k, **self.common).fit(rows)
        uninterrupted(model)
        self.found["ensemble"] = model
        here = self.found["labels"][self.sample.rows[which]]
        known = (here >= 0) & (model.labels_ >= 0)
        self.used_rows["consensus"] = len(here)
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
