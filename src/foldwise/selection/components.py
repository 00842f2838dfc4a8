"""Choosing the number of components by the cross-validated score of a downstream task."""

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


@dataclass(frozen=True)
class ComponentChoice:
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


def choose_components(
    X: Any,
    y: Any = None,
    *,
    estimator: Any,
    n_components: Sequence[int] | None = None,
    cv: Any = 5,
    scoring: Any = None,
    scale: bool = False,
    random_state: Any = None,
    engine: Any = None,
) -> ComponentChoice:
    """Evaluate a classifier, regressor or clustering on the leading 1, 2, ... principal component scores.

    `n_components` lists the numbers to try (None: all). PCA is fitted once per fold, on the training rows, with the largest
    number; smaller numbers use its leading columns. `scoring` is as in scikit-learn: a name, a callable (estimator, X, y),
    or None for the estimator's own `score`.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> choose_components(X, y, estimator=LogisticRegression()).best
    3
    """
    from sklearn.base import clone, is_classifier
    from sklearn.metrics import check_scoring
    from sklearn.model_selection import check_cv

    rows = np.asarray(X, dtype=None if hasattr(X, "dtype") else float)
    if rows.ndim != 2:
        raise ParameterError("choose_components requires a two-dimensional table in memory.")
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
            pca = PCA(max(tried), scale=scale, random_state=random_state).fit(rows[train])
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
    return ComponentChoice(tried, mean, error, scores, best=tried[top], simplest=min(near))
