"""What all models share: opening data, and the conventions of scikit-learn estimators."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import InvalidParameterError as _InvalidParameterError

from foldwise import forks
from foldwise.data.block import Block
from foldwise.data.missing import allow_missing, fill_missing
from foldwise.data.scan import is_table, is_table_or_frame, scan
from foldwise.data.source import Source
from foldwise.errors import DataError, FoldwiseWarning, LeftOutWarning, ParameterError, warn
from foldwise.models.fitted_rows import forget_rows
from foldwise.prepare.encode import at_centre


class InvalidParameterError(ParameterError, _InvalidParameterError):  # type: ignore[misc]
    """A parameter of an estimator has an invalid value; also scikit-learn's error of this name."""


_PLAIN = (bool, int, float, str, type(None))
_MOST_KNOWN = 1000  # sets of values


class KnownParameters:
    """Mixin, placed before BaseEstimator, that finds parameter names once per class, and checks plain values once.

    scikit-learn inspects the signature and interprets all constraints at every fit: half of the time of a small one.
    """

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        return list(super()._get_param_names())  # type: ignore[misc]

    @classmethod
    @cache
    def _known_values(cls) -> set[tuple[tuple[type, Any], ...]]:
        return set()

    def _validate_params(self) -> None:
        values = tuple([(type(value), value) for value in [getattr(self, name) for name in self._get_param_names()]])
        if not all(kind in _PLAIN for kind, _ in values):  # arrays and the like change, and need not be hashable
            self._check_values()
            return
        known = self._known_values()
        if values in known:
            return
        self._check_values()
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known.add(values)

    def _check_values(self) -> None:
        name = type(self).__name__
        for parameter, allowed in self._parameter_constraints.items():  # type: ignore[attr-defined]
            value = getattr(self, parameter)
            if isinstance(value, bool) and not {"boolean", "verbose"} & {
                one for one in allowed if isinstance(one, str)
            }:
                raise InvalidParameterError(  # Python takes True for the number 1
                    f"The {parameter!r} parameter of {name} must not be a bool. Got {value} instead."
                )
        try:
            super()._validate_params()  # type: ignore[misc]
        except _InvalidParameterError as problem:
            raise InvalidParameterError(str(problem)) from None


@dataclass(frozen=True)
class RowOutput:
    """A model's output for every row, block by block: `of(block)`, a picklable task, for the blocks of `source`.

    The arrays have one column per name in `names`, or are structured with these fields if the columns differ in type.
    """

    source: Source
    names: tuple[str, ...]
    dtype: np.dtype[Any]
    of: Callable[[Block], NDArray[Any]]


def row_output(model: Any, source: Source) -> RowOutput:
    """The output of a fitted model for each row: scores, or the cluster and the distance to its centre, ..."""
    output: RowOutput = model.row_output(source)
    return output


def warn_of_shares(weight: float, rows: int, what: str) -> None:
    """Warn if weights, which mean repetition, seem to be shares of 1, or nearly so; `what` says what comes of it."""
    if weight < 0.1 * rows or (rows > 1 and weight <= 1.001):
        warn(
            f"weights are numbers of repetitions, but these add up to {weight:.4g} for {rows} rows: {what}. Multiply them so "
            "that their mean is 1, or leave them out.",
            FoldwiseWarning,
        )


def n_clusters_of(model: Any) -> int:
    """The number of clusters of a fitted model: `n_clusters_` if the fit determines it, else the parameter `n_clusters`."""
    return int(model.n_clusters_ if hasattr(model, "n_clusters_") else model.n_clusters)


def remember_columns(estimator: Any, source: Source) -> None:
    """Record the columns of the data; called after a fit has succeeded, so that a failed fit changes nothing."""
    forget_rows(estimator)
    estimator.n_features_in_ = source.n_columns
    if source.names is not None:
        estimator.feature_names_in_ = np.asarray(source.names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    for name in ("recipe_", "fill_values_"):  # of a fit before
        estimator.__dict__.pop(name, None)
    if getattr(source, "recipe", None) is not None:
        estimator.recipe_ = source.recipe  # type: ignore[attr-defined]
    estimator.__dict__.pop("image_shape_", None)
    if getattr(source, "image_shape", None) is not None:
        estimator.image_shape_ = source.image_shape  # type: ignore[attr-defined]
    estimator.__dict__.pop("indicators_", None)
    if getattr(source, "indicators", None) is not None:
        estimator.indicators_ = source.indicators  # type: ignore[attr-defined]


def opened_for_fit(estimator: Any, X: Any, weights: Any = None) -> Source:
    """The rows to fit a model to; with prepare="auto", of a table as people have it."""
    if getattr(estimator, "prepare", None) == "auto" and is_table_or_frame(X):
        with forks.importing:
            from foldwise.prepare.build import prepare
        return prepare(X, weights=weights)
    return scan(X, weights=weights)


def open_for_use(estimator: Any, X: Any, weights: Any = None) -> Source:
    """The rows to apply a fitted model to; additional columns of a file are not read."""
    return with_missing(estimator, open_as_given(estimator, X, weights))


def with_missing(estimator: Any, source: Source) -> Source:
    """New rows for a fitted model: missing cells refused, filled as in the fit, or left to the model; new levels neutral.

    Models that give the cells themselves (GIVES_CELLS) give missing ones as missing.
    """
    if getattr(estimator, "indicators_", None) is not None and getattr(estimator, "mean_", None) is not None:
        source = at_centre(source, estimator.mean_)
    policy = getattr(estimator, "missing", "error")
    if policy == "error" or source.sparse:
        return source
    source = allow_missing(source)
    if policy == "model" or getattr(estimator, "GIVES_CELLS", False):
        return source
    return fill_missing(source, estimator.fill_values_) if hasattr(estimator, "fill_values_") else source


def open_as_given(estimator: Any, X: Any, weights: Any = None, *, needed: Sequence[str] | None = None) -> Source:
    """The same with missing cells as they are; of a file, only the columns `needed` are read (None: all of the fit)."""
    recipe = getattr(estimator, "recipe_", None)
    if recipe is not None and is_table_or_frame(X):
        source: Source = recipe.only(needed).open(X, weights=weights)
        warn_of_unseen(source)
        return source
    known = getattr(estimator, "feature_names_in_", None) if needed is None else needed
    if known is not None and is_table(X, known):
        return scan(X, columns=list(known), weights=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)  # the fit already warned
        source = scan(X, weights=weights)
    check_columns(estimator, source)
    return source


def warn_of_unseen(source: Any) -> None:
    """Warn of levels of categories that the fit did not see: such a cell says nothing about its row."""
    for column, levels, cells in source.unseen():
        shown = ", ".join(repr(level) for level in levels[:5]) + (", ..." if len(levels) > 5 else "")
        warn(
            f"{column}: {cells:,} cell{'s' * (cells != 1)} with levels that were not there in the fit ({shown}): they count as "
            "neutral, neither near to nor far from any level.",
            FoldwiseWarning,
        )


def check_columns(estimator: Any, source: Source) -> None:
    """Refuse rows whose columns differ from those of the fit."""
    _check_images(getattr(estimator, "image_shape_", None), getattr(source, "image_shape", None), source.where)
    _check_names(estimator, getattr(estimator, "feature_names_in_", None), source)
    if source.n_columns != estimator.n_features_in_:
        raise DataError(
            f"X has {source.n_columns} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input",
            where=source.where if source.where != "array" else None,
        )


def _check_images(known: tuple[int, ...] | None, shape: tuple[int, ...] | None, where: str) -> None:
    """Refuse images of another size than those of the fit, also if they have as many pixels."""
    if known is None or shape is None or known == shape:
        return
    height, width = known[:2]
    advice = [f"image_size='{width}x{height}'"] if known[:2] != shape[:2] else []
    advice += ["grey=True"] if len(known) == 2 and len(shape) == 3 else []
    colours = " grey" if len(known) < len(shape) else " coloured" if len(known) > len(shape) else ""
    raise DataError(
        f"the model was fitted to{colours} images of {width} x {height} pixels (width x height), but these are "
        f"{shape[1]} x {shape[0]}{' with colours' if len(shape) == 3 else ''}",
        where=where,
        advice=f"Read them with {' and '.join(advice)}" if advice else None,
    )


def _check_names(estimator: Any, known: Any, source: Source) -> None:
    """Names must match those of the fit, in order; the wording of these messages is part of scikit-learn's contract."""
    name = type(estimator).__name__
    if known is None:
        if source.names is not None:
            warn(f"X has feature names, but {name} was fitted without feature names", UserWarning)
        return
    if source.names is None:
        warn(f"X does not have valid feature names, but {name} was fitted with feature names", UserWarning)
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
