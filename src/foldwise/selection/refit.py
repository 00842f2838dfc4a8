"""Fitting a model again with the same settings, to other rows, and labelling rows with it: ours or scikit-learn's."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block
from foldwise.data.missing import allow_missing
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.errors import DataError, ParameterError
from foldwise.fold import events
from foldwise.fold.outcome import Reason
from foldwise.fold.passes import Passes
from foldwise.models.base import KnownParameters, n_clusters_of, open_as_given, opened_for_fit
from foldwise.models.hashing import scrambled

# What would leak one fit into another, or stop it early.
_SET_ASIDE = {"checkpoint": None, "time_budget": None, "warm_start": False, "prepare": None}
_IDLE = ("n_jobs", "verbose")  # of scikit-learn: no result depends on them


@dataclass(frozen=True)
class Refit:
    """A model's settings, fitted afresh to other rows."""

    model: Any
    seed: int
    n_clusters: int | None = None  # of components that were merged

    @classmethod
    def of(cls, model: Any, seed: int) -> Refit:
        """The settings of a model, fitted or not."""
        if inspect.isclass(model) or not (hasattr(model, "fit") and hasattr(model, "predict")):
            name = model.__name__ if inspect.isclass(model) else type(model).__name__
            raise ParameterError(
                f"{name}: stability needs a clustering with fit and predict, such as fw.KMeans(3), fitted or not."
            )
        if hasattr(model, "__sklearn_tags__") and model.__sklearn_tags__().input_tags.pairwise:
            raise ParameterError(
                "a precomputed kernel has no rows that could be drawn again. Fit the kernel to rows instead."
            )
        merged = getattr(model, "clusters_", None) is not None and hasattr(model, "merge")
        return cls(model, seed, n_clusters_of(model) if merged else None)

    @property
    def ours(self) -> bool:
        """Whether it is a model of Foldwise, which takes sources and weights."""
        return isinstance(self.model, KnownParameters)

    @property
    def fitted(self) -> bool:
        """Whether the model is fitted."""
        return hasattr(self.model, "n_features_in_")

    def settings(self) -> dict[str, Any]:
        """What the fits of repeats depend on, besides rows and seeds."""
        given = self.model.get_params(deep=not self.ours)
        if self.ours:
            known = {name: value for name, value in given.items() if self.model.PARAMETERS[name].affects_result}
        else:
            known = {name: _by_type(value) for name, value in given.items() if name.split("__")[-1] not in _IDLE}
        return {name: value for name, value in known.items() if name.split("__")[-1] != "random_state"}

    def open(self, X: Any, sample_weight: Any) -> Source:
        """The rows as they are fitted, with whatever is missing in them."""
        if not self.ours:
            return scan(X, weights=sample_weight)
        opening = open_as_given if self.fitted else opened_for_fit
        source = opening(self.model, X, sample_weight)
        missing = getattr(self.model, "missing", "error")
        return source if missing == "error" or source.sparse else allow_missing(source)

    def fit(self, rows: Source, number: int | None) -> Any:
        """The settings fitted to other rows, with a seed of their own for each number; None keeps the model's own.

        What scikit-learn would draw at random every time anew (random_state=None, also inside of a pipeline) has a seed, too.
        """
        from sklearn.base import clone

        model = clone(self.model)
        known = model.get_params(deep=False)
        changes: dict[str, Any] = {name: value for name, value in _SET_ASIDE.items() if name in known}
        mixed = scrambled(
            np.array([self.seed & (2**64 - 1)], dtype=np.uint64) + np.uint64(0 if number is None else number + 1)
        )
        seeds = known if self.ours else model.get_params(deep=True)
        for name, value in seeds.items():
            seeded = name == "random_state" or name.endswith("__random_state")
            if seeded and (number is not None or (value is None and not self.ours)):
                changes[name] = int(mixed[0] >> np.uint64(33))
        model.set_params(**changes)
        with warnings.catch_warnings(), events.muted():
            warnings.simplefilter("ignore")  # that one of many fits did not converge is no news
            if not self.ours:
                return _fit_foreign(model, rows)
            model.fit(rows)
            if model.outcome_.reason is Reason.INTERRUPTED:
                raise KeyboardInterrupt
            return model if self.n_clusters is None else model.merge(rows, min(self.n_clusters, len(model.weights_)))

    def labels(self, model: Any, passes: Passes) -> NDArray[np.int32]:
        """The clusters of rows, by a fitted model; -1 for rows in none."""
        with warnings.catch_warnings(), events.muted():
            warnings.simplefilter("ignore")
            if self.ours:
                return np.asarray(model.predict(passes.source), dtype=np.int32)
            return np.asarray(passes.rows(_PredictForeign(model)), dtype=np.int32)


def count_of(labels: NDArray[np.int32], model: Any, ours: bool) -> int:
    """The number of clusters: of the model, or as many as its labels need."""
    return max(n_clusters_of(model) if ours else 0, int(labels.max(initial=-1)) + 1)


def _by_type(value: Any) -> Any:
    """A parameter; of an estimator inside another its type, since its own parameters are listed beside it."""
    if isinstance(value, list | tuple):
        return [_by_type(one) for one in value]
    return type(value) if hasattr(value, "get_params") else value


def _fit_foreign(model: Any, rows: Source) -> Any:
    """Fit to drawn rows: repeated, since not every clustering takes weights."""
    from foldwise.data.block import join

    block = join([piece.load() for piece in rows.pieces()], 0)
    if block.weights is None:
        return model.fit(block.rows)
    if (block.weights == np.rint(block.weights)).all():
        return model.fit(block.rows[np.repeat(np.arange(block.n_rows), block.weights.astype(np.intp))])
    if "sample_weight" in inspect.signature(model.fit).parameters:
        return model.fit(block.rows, sample_weight=block.weights)
    raise DataError(
        f"the weights are not whole numbers, and {type(model).__name__} takes no weights",
        advice="Round the weights, or leave them out",
    )


@dataclass(frozen=True)
class _PredictForeign:
    model: Any

    def __call__(self, block: Block) -> NDArray[np.int32]:
        return np.asarray(self.model.predict(block.rows)).astype(np.int32)
