"""What all models share: how data are opened, and the conventions of a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block
from foldwise.data.scan import is_table, scan
from foldwise.data.source import Source
from foldwise.errors import DataError, LeftOutWarning


class KnownParameters:
    """For estimators, before BaseEstimator: the names of their parameters are found once for each class.

    scikit-learn inspects the signature at every fit, which costs a third of a small one.
    """

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        return list(super()._get_param_names())  # type: ignore[misc]


@dataclass(frozen=True)
class RowOutput:
    """What a model says of every row, block by block: `of(block)`, a picklable task, for the blocks of `source`.

    Its arrays have one column for each of `names`, or are records with these fields if the columns are of several kinds.
    """

    source: Source
    names: tuple[str, ...]
    dtype: np.dtype[Any]
    of: Callable[[Block], NDArray[Any]]


def row_output(model: Any, source: Source) -> RowOutput:
    """What a fitted model writes of each row: scores, or the cluster and the distance to its centre, ..."""
    output: RowOutput = model.row_output(source)
    return output


def n_clusters_of(model: Any) -> int:
    """How many clusters a fitted model has: `n_clusters_` if the fit decides it, else the parameter `n_clusters`."""
    return int(model.n_clusters_ if hasattr(model, "n_clusters_") else model.n_clusters)


def remember_columns(estimator: Any, source: Source) -> None:
    """Keep what the columns were; to be called when a fit has succeeded, so that a failed one changes nothing."""
    estimator.n_features_in_ = source.n_columns
    if source.names is not None:
        estimator.feature_names_in_ = np.asarray(source.names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def open_for_use(estimator: Any, X: Any, weights: Any = None) -> Source:
    """The rows to apply a fitted model to; further columns of a file are not read."""
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and is_table(X):
        return scan(X, columns=list(known), weights=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)  # the fit has warned
        source = scan(X, weights=weights)
    check_columns(estimator, source)
    return source


def check_columns(estimator: Any, source: Source) -> None:
    """Refuse rows whose columns are not those of the fit."""
    _check_names(estimator, getattr(estimator, "feature_names_in_", None), source)
    if source.n_columns != estimator.n_features_in_:
        raise DataError(
            f"X has {source.n_columns} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input",
            where=source.where if source.where != "array" else None,
        )


def _check_names(estimator: Any, known: Any, source: Source) -> None:
    """Names must be those of the fit, in its order: the first words of these messages are scikit-learn's contract."""
    name = type(estimator).__name__
    if known is None:
        if source.names is not None:
            warnings.warn(
                f"X has feature names, but {name} was fitted without feature names", UserWarning, stacklevel=4
            )
        return
    if source.names is None:
        warnings.warn(
            f"X does not have valid feature names, but {name} was fitted with feature names", UserWarning, stacklevel=4
        )
        return
    given, wanted = list(source.names), list(known)
    if given == wanted:
        return
    lines = ["The feature names should match those that were passed during fit."]
    unseen, missing = sorted(set(given) - set(wanted)), sorted(set(wanted) - set(given))
    if unseen:
        lines += ["Feature names unseen at fit time:", *_some(unseen)]
    if missing:
        lines += ["Feature names seen at fit time, yet now missing:", *_some(missing)]
    if not unseen and not missing:
        lines.append("Feature names must be in the same order as they were in fit.")
    raise DataError("\n".join(lines) + "\n")


def _some(names: list[str]) -> list[str]:
    return [f"- {name}" for name in names[:5]] + (["- ..."] if len(names) > 5 else [])
