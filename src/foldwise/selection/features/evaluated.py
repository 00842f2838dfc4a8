"""Criteria that fit a model to each subset: clusters, a final task, or a function of the user.

A search asks for scores by subset. Scores that are known are looked up; for others the search is left, a batch of them is
worked out in several threads, and the search starts again from the beginning, which costs next to nothing. So all that a
checkpoint has to hold are scores, and a search that was killed in the middle of a step loses one batch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import comb
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from foldwise.data.block import Floats, join
from foldwise.data.mapped import only_columns
from foldwise.data.source import Source
from foldwise.errors import DataError, ParameterError
from foldwise.fold import blas, events
from foldwise.fold.deadline import now
from foldwise.fold.engine import use
from foldwise.fold.iterate import Figures, State
from foldwise.fold.passes import Passes
from foldwise.fold.threads import run
from foldwise.models.kmeans import KMeans
from foldwise.models.seeded import seeded
from foldwise.models.session import Session
from foldwise.selection.cluster_moments import grouped, row_weights
from foldwise.selection.features.search import Search, Subset, Walk, backward, exhaustive, exhaustive_of_one_size
from foldwise.selection.label_numbers import numbered
from foldwise.selection.silhouette import silhouette

_QUICK = 0.3  # seconds: rounds that take less are made larger


class Judge(Protocol):
    """Scores one subset: the score and its standard error (NaN if it has none).

    `quiet`: warnings of single fits say nothing of the search.
    """

    quiet: bool

    @property
    def depends_on(self) -> dict[str, Any]:
        """What scores depend on besides rows and parameters, for the key of a checkpoint."""

    def __call__(self, columns: Subset) -> tuple[float, float]:
        """Of the columns in these positions, rising."""


@contextmanager
def warnings_of(judge: Judge) -> Iterator[None]:
    """Around calls of a judge in other threads, which share one list of filters: shown, or not if it is quiet."""
    with warnings.catch_warnings():
        if judge.quiet:
            warnings.simplefilter("ignore")
        yield


class _Unknown(Exception):  # noqa: N818  (it leaves a search, and is no error)
    def __init__(self, subsets: list[Subset]) -> None:
        self.subsets = subsets


class KnownScores:
    """A criterion that looks scores up, and leaves the search where one is not known yet."""

    def __init__(self, d: int, known: dict[Subset, tuple[float, float]]) -> None:
        self.d, self.known = d, known

    def scores(self, subsets: Sequence[Subset]) -> Floats:
        """The score of each subset."""
        keys = [tuple(sorted(each)) for each in subsets]
        unknown = [key for key in keys if key not in self.known]
        if unknown:
            raise _Unknown(unknown)
        return np.array([self.known[key][0] for key in keys])

    def adding(self, columns: Subset) -> Floats:
        """The score after adding each column; -inf for those that are in."""
        new = [column for column in range(self.d) if column not in columns]
        return self._placed(new, [(*columns, column) for column in new])

    def removing(self, columns: Subset) -> Floats:
        """The score after removing each column; -inf for those that are not in."""
        old = sorted(columns)
        return self._placed(old, [tuple(one for one in columns if one != column) for column in old])

    def exchanges(self, columns: Subset) -> Floats:
        """The score after each exchange: a row for each of the columns, which leaves, and a column for each that comes."""
        new = [column for column in range(self.d) if column not in columns]
        rest = [tuple(one for one in columns if one != gone) for gone in columns]
        found = self.scores([(*kept, column) for kept in rest for column in new])
        out = np.full((len(columns), self.d), -np.inf)
        out[:, new] = found.reshape(len(columns), len(new))
        return out

    def _placed(self, columns: list[int], subsets: list[Subset]) -> Floats:
        out = np.full(self.d, -np.inf)
        out[columns] = self.scores(subsets)
        return out


class Evaluation:
    """A search as a loop of rounds, each of which works out some scores; the state holds all scores so far."""

    def __init__(self, judge: Judge, search: Search, size: int, d: int, n_threads: int) -> None:
        self.judge, self.search, self.size, self.d, self.n_threads = judge, search, size, d, n_threads
        # What could be found out again from the state: scores by subset, those to be worked out, and how many at a time.
        self._known: dict[Subset, tuple[float, float]] = {}
        self._wanted: list[Subset] = []
        self._batch = 2 * n_threads
        self.expected = expected_subsets(search, size, d)

    def start(self) -> State:
        """No score is known."""
        return {"subsets": np.zeros((0, self.d), np.uint8), "scores": np.zeros((0, 2)), "over": np.array(0)}

    def step(self, state: State) -> tuple[State, Figures]:
        """Some more scores that the search needs; the last round finds that it needs none."""
        known = self._scores(state)
        if not self._wanted:
            self._wanted = list(dict.fromkeys(self._replay(known)[1]))
        if not self._wanted:
            return {**state, "over": np.array(1)}, self._figures(known)
        batch, began = self._wanted[: self._batch], now()
        found: dict[int, tuple[float, float]] = {}
        with events.muted(), warnings_of(self.judge):
            run(batch, lambda _, columns: self._judged(columns), found.__setitem__, self.n_threads)
        if now() - began < _QUICK:  # a round of many is interrupted no less quickly
            self._batch *= 2
        new = np.zeros((len(batch), self.d), np.uint8)
        for number, columns in enumerate(batch):
            new[number, list(columns)] = 1
            known[columns] = found[number]
        del self._wanted[: len(batch)]
        scores = np.array([found[number] for number in range(len(batch))])
        grown: State = {
            **state,
            "subsets": np.concatenate([state["subsets"], new]),
            "scores": np.concatenate([state["scores"], scores]),
        }
        return grown, self._figures(known)

    def done(self, state: State) -> bool:
        """Whether the search is at its end."""
        return bool(state["over"])

    def walk(self, state: State) -> tuple[Walk, dict[Subset, tuple[float, float]]]:
        """The path of a state, as far as its scores reach, and all scores."""
        known = _scores_of(state)
        return self._replay(known)[0], known

    def _replay(self, known: dict[Subset, tuple[float, float]]) -> tuple[Walk, list[Subset]]:
        """The path as far as the scores are known, and the subsets whose scores it needs next (none: it is over)."""
        walk = Walk()
        try:
            self.search(KnownScores(self.d, known), self.size, walk)
        except _Unknown as unknown:
            return walk, unknown.subsets
        return walk, []

    def _scores(self, state: State) -> dict[Subset, tuple[float, float]]:
        """The scores of a state: those in hand, unless it was loaded from a checkpoint, or a round was given up."""
        if len(self._known) != len(state["scores"]):
            self._known, self._wanted = _scores_of(state), []
        return self._known

    def _judged(self, columns: Subset) -> tuple[float, float]:
        score, error = self.judge(columns)
        if not np.isfinite(score):
            raise DataError(
                f"the score of the columns {list(columns)} (by position) is {score}",
                advice="Scores must be finite numbers: look at how the estimator or the criterion deals with these columns",
            )
        return float(score), float(error)

    def _figures(self, known: dict[Subset, tuple[float, float]]) -> Figures:
        best = max((score for score, _ in known.values()), default=float("nan"))
        return {"subsets": float(len(known)), "best": best, "of_subsets": float(max(self.expected, len(known)))}


def expected_subsets(search: Search, size: int, d: int) -> int:
    """How many scores a search needs at least, for the time left.

    >>> from foldwise.selection.features.search import swap
    >>> expected_subsets(swap, 2, 5), expected_subsets(backward, 2, 5), expected_subsets(exhaustive_of_one_size, 2, 5)
    (9, 13, 10)
    """
    if search is exhaustive_of_one_size:
        return comb(d, size)
    if search is exhaustive:
        return sum(comb(d, many) for many in range(1, size + 1))
    if search is backward:
        return 1 + sum(range(size + 1, d + 1))
    return sum(range(d - size + 1, d + 1))


def _scores_of(state: State) -> dict[Subset, tuple[float, float]]:
    keys = [tuple(np.flatnonzero(row).tolist()) for row in state["subsets"]]
    return {key: (float(score), float(error)) for key, (score, error) in zip(keys, state["scores"], strict=True)}


# ---------------------------------------------------------------- judges


class Plain:
    """A judge whose scores depend on nothing else."""

    depends_on: ClassVar[dict[str, Any]] = {}
    quiet = False


class ClusterQuality(Plain):
    """How good the clusters are that k-means, or another clustering, finds in these columns alone.

    "between-variance": the share of the variance of all columns that lies between the clusters, that is, how much of the
    whole table they stand for. "silhouette": the mean silhouette, in the chosen columns.
    """

    quiet = True  # fewer different rows than clusters, an early end

    def __init__(self, fit: Session, n_clusters: int, estimator: Any, scoring: str, missing: str) -> None:
        if estimator is not None and not type(estimator).__module__.startswith("foldwise."):
            _check_weights(estimator, row_weights(fit.passes))
        self.fit, self.n_clusters, self.estimator, self.scoring = fit, n_clusters, estimator, scoring
        self.allowed = "model" if missing == "model" else "error"

    def __call__(self, columns: Subset) -> tuple[float, float]:
        """The score, and its error if rows were sampled for it."""
        rows = only_columns(self.fit.source, np.array(columns, dtype=np.intp))
        with use("threads"), blas.single():
            labels = self._labels(rows)
            return self._silhouette(rows, labels) if self.scoring == "silhouette" else self._between(labels)

    def _labels(self, rows: Source) -> NDArray[Any]:
        if self.estimator is None:
            seed = self.fit.seed
            found = KMeans(self.n_clusters, random_state=seed, missing=self.allowed, n_threads=1).fit(rows).labels_
            return np.asarray(found)
        model = seeded(self.estimator, self.fit.seed)
        if type(model).__module__.startswith("foldwise."):
            return _labels_of(model.fit(rows), rows)
        given, weights = rows_in_memory(rows)
        if weights is None:
            return _labels_of(model.fit(given), given)
        some = weights > 0
        own = {} if (weights[some] == 1.0).all() else {"sample_weight": weights[some]}
        labels = np.full(len(weights), -1)
        labels[some] = _labels_of(model.fit(given[some], **own), given[some])
        return labels

    def _between(self, labels: NDArray[Any]) -> tuple[float, float]:
        numbers, names = numbered(labels)  # rows without a cluster (-1) are a group of their own
        observed = self.allowed == "model" and not self.fit.source.sparse
        groups, _ = grouped(Passes(self.fit.source, n_threads=1), numbers, len(names), observed=observed)
        total = float(groups.whole().squares.sum())
        return 1.0 - float(groups.squares.sum()) / total if total > 0 else 0.0, float("nan")

    def _silhouette(self, rows: Source, labels: NDArray[Any]) -> tuple[float, float]:
        if len(np.unique(labels[labels >= 0])) < 2:
            return -1.0, float("nan")
        ignore = -1 if (labels < 0).any() else None
        seed = self.fit.seed
        found = silhouette(rows, labels, ignore=ignore, missing=self.allowed, random_state=seed, n_threads=1)
        return found.mean, found.standard_error if found.rows is not None else float("nan")


class TaskScore:
    """The cross-validated score of an estimator on a final task that sees only these columns."""

    quiet = False

    def __init__(
        self, y: Any, estimator: Any, cv: Any, scoring: Any, rows: NDArray[Any], weights: Floats | None, seed: int
    ) -> None:
        self.estimator, self.rows, self.weights = seeded(estimator, seed), rows, weights
        self.target = None if y is None else np.asarray(y)
        if y is None and get_tags(estimator).target_tags.required:
            raise ParameterError(f"criterion='wrapper': {type(estimator).__name__} needs a target. Give it as y.")
        try:
            splitter = check_cv(cv, self.target, classifier=is_classifier(estimator))
            self.splits = list(splitter.split(rows, self.target))
        except ValueError as problem:
            raise ParameterError(f"cv={cv!r}: {problem}") from None
        self.scorer = check_scoring(estimator, scoring=scoring)
        _check_weights(estimator, weights)

    @property
    def depends_on(self) -> dict[str, Any]:
        """The target, and the folds, which may be drawn anew each time."""
        return {"target": self.target, "splits": self.splits}

    def __call__(self, columns: Subset) -> tuple[float, float]:
        """The mean of the folds' scores, and its standard error."""
        rows = self.rows[:, list(columns)]
        scores = np.empty(len(self.splits))
        for fold, (train, test) in enumerate(self.splits):
            model, weighted = clone(self.estimator), {}
            if self.weights is not None:
                weighted = {"sample_weight": self.weights[train]}
            known = () if self.target is None else (self.target[train],)
            asked = () if self.target is None else (self.target[test],)
            model.fit(rows[train], *known, **weighted)
            if self.weights is not None:
                weighted = {"sample_weight": self.weights[test]}
            scores[fold] = self.scorer(model, rows[test], *asked, **weighted)
        many = len(scores)
        return float(scores.mean()), float(scores.std(ddof=1) / np.sqrt(many)) if many > 1 else float("nan")


class FunctionOfRows(Plain):
    """A function of the user: from the rows of the chosen columns to a number."""

    def __init__(self, function: Callable[[Any], Any], rows: NDArray[Any], weights: Floats | None) -> None:
        if weights is not None:
            raise ParameterError("sample_weight: a function of rows sees no weights. Repeat the rows instead.")
        self.function, self.rows = function, rows

    def __call__(self, columns: Subset) -> tuple[float, float]:
        """What it says of these columns."""
        found = self.function(self.rows[:, list(columns)])
        try:
            return float(found), float("nan")
        except (TypeError, ValueError):
            raise ParameterError(
                f"criterion: the function gave {found!r}; it must give one number, the higher the better."
            ) from None


def _labels_of(model: Any, rows: Any) -> NDArray[Any]:
    return np.asarray(model.labels_ if hasattr(model, "labels_") else model.predict(rows))


def _check_weights(estimator: Any, weights: Floats | None) -> None:
    """Refuse weights, other than 0 and 1, that the estimator would not heed."""
    if weights is None or np.isin(weights, (0.0, 1.0)).all() or has_fit_parameter(estimator, "sample_weight"):
        return
    raise ParameterError(
        f"sample_weight: {type(estimator).__name__} takes no weights. Leave them out, or use another estimator."
    )


def rows_in_memory(source: Source) -> tuple[Any, Floats | None]:
    """All rows, dense or sparse, with missing cells as they are, and their weights."""
    block = join([piece.load() for piece in source.pieces()], 0)
    return block.unchecked, block.weights
