"""The cross-validated score of a downstream task for each number of components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.errors import ParameterError
from foldwise.fold.engine import use
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.models.pca import PCA
from foldwise.reportable import Reportable
from foldwise.selection.votes import Vote


@dataclass(frozen=True)
class TaskScores(Reportable):
    """The scores of a downstream task for each number of components.

    `best` has the highest mean score; `simplest` is the smallest number within one standard error of it, and the one to use
    unless the last bit of score matters.
    """

    n_components: tuple[int, ...]
    mean: NDArray[np.float64]
    error: NDArray[np.float64]
    fold_scores: NDArray[np.float64]
    best: int
    simplest: int

    @property
    def table(self) -> LabelledMatrix:
        """One row per number of components."""
        values = np.column_stack([self.mean, self.error])
        return LabelledMatrix(values, tuple(str(k) for k in self.n_components), ("mean score", "standard error"))

    def vote(self) -> Vote:
        """The simplest number, up to the largest within one standard error of the best; a question of its own."""
        top = self.n_components.index(self.best)
        least = self.mean[top] - self.error[top]
        near = [k for k, score in zip(self.n_components, self.mean, strict=True) if score >= least]
        score = self.mean[self.n_components.index(self.simplest)]
        reason = (
            f"the score {score:.4g} is the best"
            if self.simplest == self.best
            else (
                f"the score {score:.4g} is within one standard error of the best ({self.mean[top]:.4g} with {self.best})"
            )
        )
        return Vote("task", self.simplest, self.simplest, max(near), reason, weight=0.0)


def task_scores(
    X: Any,
    y: Any,
    estimator: Any,
    n_components: Sequence[int] | None,
    cv: Any,
    scoring: Any,
    *,
    engine: Any = None,
    **parameters: Any,
) -> TaskScores:
    """Fit a PCA to the training rows of each fold, once, and the estimator to its leading scores; `parameters` are PCA's."""
    from sklearn.base import clone, is_classifier
    from sklearn.metrics import check_scoring
    from sklearn.model_selection import check_cv

    rows = _in_memory(X)
    target = None if y is None else np.asarray(y)
    splitter = check_cv(cv, target, classifier=is_classifier(estimator))
    splits = list(splitter.split(rows, target))
    most = min(min(len(train) for train, _ in splits), rows.shape[1])
    tried = tuple(range(1, most + 1)) if n_components is None else tuple(int(k) for k in n_components)
    if not tried or min(tried) < 1 or max(tried) > most:
        raise ParameterError(
            f"n_components={list(tried)} must lie between 1 and {most}, the number of columns or of training rows in a fold."
        )
    scorer = check_scoring(estimator, scoring=scoring)
    scores = np.empty((len(splits), len(tried)))
    for fold, (train, test) in enumerate(splits):
        with use(engine):
            pca = PCA(max(tried), **parameters).fit(rows[train])
            inside, outside = pca.transform(rows[train]), pca.transform(rows[test])
        for place, k in enumerate(tried):
            model = clone(estimator)
            if target is None:
                scores[fold, place] = scorer(model.fit(inside[:, :k]), outside[:, :k])
            else:
                scores[fold, place] = scorer(model.fit(inside[:, :k], target[train]), outside[:, :k], target[test])
    mean = scores.mean(axis=0)
    # A single split gives no standard error.
    error = scores.std(axis=0, ddof=1) / np.sqrt(len(splits)) if len(splits) > 1 else np.zeros(len(tried))
    top = int(np.argmax(mean))
    near = [k for k, value in zip(tried, mean, strict=True) if value >= mean[top] - error[top]]
    return TaskScores(tried, mean, error, scores, best=tried[top], simplest=min(near))


def _in_memory(X: Any) -> NDArray[Any]:
    """The rows as an array; scores of a task need all of them at once."""
    try:
        rows = np.asarray(X, dtype=None if hasattr(X, "dtype") else float)
    except (TypeError, ValueError):
        rows = np.zeros(0)
    if rows.ndim != 2 or rows.dtype == object:
        raise ParameterError("estimator= requires a two-dimensional table of numbers in memory.")
    return rows
