"""What a model was fitted to, remembered without keeping it alive, so that a report can read it again."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any

from sklearn import get_config
from sklearn.utils import estimator_html_repr

from foldwise.data.spool import SpooledSource
from foldwise.errors import DataError
from foldwise.reportable import Reportable

_PLACE = "_fitted_rows"  # not a parameter, not fitted: it stays out of saved, pickled and copied models


class FittedRows:
    """The rows and the weights of a fit: names of files as they are, what is in memory by weak references."""

    __slots__ = ("_rows", "_weights", "n_rows")

    def __init__(self, X: Any, sample_weight: Any, n_rows: int | None) -> None:
        self._rows, self._weights, self.n_rows = _held(X), _held(sample_weight), n_rows

    def get(self) -> tuple[Any, Any] | None:
        """Both, or None if one of them is gone."""
        rows, weights = self._rows(), self._weights()
        return None if rows is _GONE or weights is _GONE else (rows, weights)


_GONE = object()


def _held(value: Any) -> Callable[[], Any]:
    """A function that gives the value, or _GONE."""
    if isinstance(value, SpooledSource):  # its scratch file is gone soon
        return _held(value.source)
    files = value is None or isinstance(value, (str, os.PathLike))
    files = files or (isinstance(value, (list, tuple)) and all(isinstance(one, (str, os.PathLike)) for one in value))
    if files or getattr(value, "in_memory", None) is False:  # a source that only describes where the rows are
        return lambda: value
    try:
        reference = weakref.ref(value)
    except TypeError:  # lists, some lazy tables
        return lambda: _GONE
    return lambda: _GONE if (found := reference()) is None else found


def remember_rows(model: Any, X: Any, sample_weight: Any, n_rows: int | None) -> None:
    """Called at the end of a fit."""
    model.__dict__[_PLACE] = FittedRows(X, sample_weight, n_rows)


def forget_rows(model: Any) -> None:
    """Called when a model goes on with rows that are not kept."""
    model.__dict__.pop(_PLACE, None)


def rows_of_fit(model: Any) -> tuple[Any, Any, int | None]:
    """The rows, the weights and how many rows there were; an error that says what to do if they are gone."""
    kept: FittedRows | None = model.__dict__.get(_PLACE)
    found = None if kept is None else kept.get()
    if kept is None or found is None:
        raise DataError(
            f"the rows that this {type(model).__name__} was fitted to are not in memory any more",
            advice='Give them: model.report("r.html", X), or fw.report(model, X)',
        )
    return *found, kept.n_rows


class ShownModel(Reportable):
    """Mixin, placed before BaseEstimator: reports, and what notebooks show of a fitted model.

    What they show of one that is not fitted is scikit-learn's diagram.
    """

    def _repr_html_(self) -> str | None:
        if get_config()["display"] != "diagram":
            return None
        fitted = not {"manifest_", "n_features_in_"}.isdisjoint(vars(self))
        shown = super()._repr_html_() if fitted else None
        return str(estimator_html_repr(self)) if shown is None else shown

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """What Jupyter asks for first."""
        shown = self._repr_html_()
        return {"text/plain": repr(self), **({} if shown is None else {"text/html": shown})}

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        state.pop(_PLACE, None)
        return state
