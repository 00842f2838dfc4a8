"""The rows that numbers of clusters are judged by: all of them, or a sample, in memory and in units of about 1."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.arrays import ArraySource
from foldwise.data.block import Floats
from foldwise.data.source import count_rows
from foldwise.errors import DataError
from foldwise.fold.outcome import Reason
from foldwise.fold.passes import Passes
from foldwise.models.impute import impute
from foldwise.models.pca import PCA
from foldwise.models.session import Session
from foldwise.selection.cluster_moments import blank_rows, repetitions

_MOST_VALUES = 20_000_000  # in memory
_MOST_COLUMNS, _COMPONENTS = 200, 100  # rows with more columns are judged by their principal components


@dataclass(frozen=True)
class Rows:
    """Rows without missing cells, centred and divided by a power of two, each with a weight or all with the same."""

    x: Floats
    weights: Floats | None
    total: int  # rows of the data with weight
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """How many rows."""
        return len(self.x)

    @property
    def weight(self) -> Floats:
        """The weight of each row."""
        return np.ones(self.n) if self.weights is None else self.weights

    @property
    def n_distinct(self) -> int:
        """How many different rows there are."""
        return len(np.unique(self.x, axis=0))

    def take(self, which: NDArray[np.intp] | NDArray[np.bool_]) -> Rows:
        """Some of the rows."""
        return replace(self, x=self.x[which], weights=None if self.weights is None else self.weights[which])

    def at_most(self, count: int, seed: int) -> Rows:
        """A sample of at most `count` rows, each as likely as its weight; then all weigh the same."""
        if self.n <= count:
            return self
        rng = np.random.default_rng([seed, 5, count])
        return replace(self, x=self.x[_drawn(self.weight, count, rng)], weights=None)


def rows_of(fit: Session, max_rows: int | None) -> Rows:
    """The rows of an opened fit, as the model would compare them; a sample of `max_rows` if there are more."""
    passes, notes = fit.passes, []
    source = passes.source
    weights = repetitions(passes)
    if fit.missing is not None:
        weights[blank_rows(passes)] = 0.0  # a row of which nothing is known says nothing
    some = np.flatnonzero(weights)
    if len(some) < 2:
        raise DataError("there are fewer than two rows with weight", where=fit.where, advice="Give more rows")
    _refuse_shares(float(weights.sum()), len(some), fit.where)
    wide = source.sparse or source.n_columns > _MOST_COLUMNS
    most = _MOST_VALUES // (_COMPONENTS if source.sparse else max(1, source.n_columns))
    most = max(100, most if max_rows is None else min(most, max_rows))
    taken = some
    if len(some) > most:
        taken = some[np.sort(_drawn(weights[some], most, np.random.default_rng([fit.seed, 4])))]
        notes.append(f"judged by a sample of {most:,} of {len(some):,} rows")
    kept = None if len(taken) < len(some) or (weights[some] == 1.0).all() else weights[taken]
    if fit.missing is not None:
        x, cells = _without_gaps(passes.take(taken), fit.seed)
        if cells:
            notes.append(f"{cells:,} missing cell{'s were' if cells != 1 else ' was'} drawn from a normal distribution")
        passes, taken = passes.over(ArraySource(x), here=True), np.arange(len(x))
    if wide:
        x = _components(passes, taken, fit.seed)
        notes.append(f"judged by the first {x.shape[1]} principal components of {source.n_columns:,} columns")
    else:
        x = passes.take(taken).astype(np.float64)
    return Rows(_in_units(x), kept, len(some), tuple(notes))


def _refuse_shares(weight: float, rows: int, where: str | None) -> None:
    if weight < 0.1 * rows or weight <= 1.001:
        raise DataError(
            f"the weights add up to {weight:.4g} for {rows} rows, but a weight is a number of repetitions",
            where=where,
            advice="Multiply them so that their mean is 1, or leave them out",
        )


def _drawn(weights: Floats, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Row numbers: without repetition if all weigh the same, otherwise with, in proportion to the weights."""
    if (weights == weights[0]).all():
        return rng.choice(len(weights), count, replace=False).astype(np.intp)
    sums = np.cumsum(weights)
    drawn = np.searchsorted(sums, rng.random(count) * sums[-1], side="right")
    return np.asarray(np.minimum(drawn, len(weights) - 1))


def _in_units(x: Floats) -> Floats:
    """Centred, and divided by a power of two so that squares stay in range; this moves no decision."""
    middle = x.mean(axis=0) if np.isfinite(x.sum()) else np.median(x, axis=0)
    x = x - middle
    reach = float(np.abs(x).max(initial=0.0))
    return x if reach == 0.0 else x * 2.0 ** -max(-1000, min(math.frexp(reach)[1], 1000))


def _components(passes: Passes, rows: NDArray[np.intp], seed: int) -> Floats:
    count = min(_COMPONENTS, passes.source.n_columns - 1, count_rows(passes.source) - 1)
    pca = PCA(max(1, count), random_state=seed, n_threads=passes.n_threads).fit(passes.source)
    uninterrupted(pca)
    out = np.empty((len(rows), pca.n_components_))
    for here, some in passes.take_as_they_are(rows):
        out[here] = pca.transform(some)
    return out


def _without_gaps(x: NDArray[Any], seed: int) -> tuple[Floats, int]:
    """The rows with each missing cell drawn from the normal distribution that the observed cells suggest, and how many were."""
    model = PCA(missing="model", random_state=seed).fit(x)
    uninterrupted(model)
    found = impute(model, x)
    noise = np.random.default_rng([seed, 6]).standard_normal(x.shape)
    return np.ascontiguousarray(found.values.astype(np.float64) + noise * found.deviations), int(found.missing.sum())


def uninterrupted(model: Any) -> None:
    """Raise KeyboardInterrupt if Ctrl-C ended the fit of a model, which then keeps the best so far and says nothing."""
    if model.outcome_.reason is Reason.INTERRUPTED:
        raise KeyboardInterrupt
