"""The rows that numbers of clusters are judged by: all of them, or a sample, in memory and in units of about 1."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.source import Source, count_rows
from foldwise.errors import DataError
from foldwise.fold.passes import Passes
from foldwise.models.impute import impute
from foldwise.models.pca import PCA
from foldwise.models.session import Session

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
    def sampled(self) -> bool:
        """Whether some rows of the data were left out."""
        return self.n < self.total

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
    source, notes = fit.passes.source, []
    if fit.missing is not None:
        completed, note = _without_gaps(fit)
        source, notes = completed, [note]
    passes = fit.passes.over(source)
    weights = np.concatenate(passes.each(_weights))
    some = np.flatnonzero(weights)
    if len(some) < 2:
        raise DataError("there are fewer than two rows with weight", where=fit.where, advice="Give more rows")
    wide = source.sparse or source.n_columns > _MOST_COLUMNS
    most = _MOST_VALUES // (_COMPONENTS if wide else max(1, source.n_columns))
    most = max(100, most if max_rows is None else min(most, max_rows))
    taken = some
    if len(some) > most:
        taken = some[np.sort(_drawn(weights[some], most, np.random.default_rng([fit.seed, 4])))]
        notes.append(f"judged by a sample of {most:,} of {len(some):,} rows")
    equal = len(taken) < len(some) or bool((weights[some] == weights[some[0]]).all())
    x = _components(passes, taken, fit.seed) if wide else passes.take(taken).astype(np.float64)
    if wide:
        notes.append(f"judged by the first {x.shape[1]} principal components of {source.n_columns:,} columns")
    kept = None if equal and (weights[some[0]] == 1.0 or len(taken) < len(some)) else weights[taken]
    return Rows(_in_units(x), kept, len(some), tuple(notes))


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
    out = np.empty((len(rows), pca.n_components_))
    for here, some in passes.take_as_they_are(rows):
        out[here] = pca.transform(some)
    return out


def _without_gaps(fit: Session) -> tuple[Source, str]:
    """The rows with each missing cell drawn from the normal distribution that the observed cells suggest."""
    from foldwise.data.arrays import ArraySource

    assert fit.missing is not None
    source = fit.passes.source
    model = PCA(missing="model", random_state=fit.seed, n_threads=fit.passes.n_threads).fit(source)
    found = impute(model, source)
    noise = np.random.default_rng([fit.seed, 6]).standard_normal(found.values.shape)
    values = found.values.astype(np.float64) + noise * found.deviations
    weights = np.concatenate(fit.passes.each(_weights))
    weights[np.concatenate(fit.passes.each(_blank))] = 0.0  # a row of which nothing is known says nothing
    note = f"{fit.missing.cells:,} missing cells were drawn from a normal distribution"
    return ArraySource(np.ascontiguousarray(values), weights=weights), note


def _weights(block: Block) -> Floats:
    return np.ones(block.n_rows) if block.weights is None else np.array(block.weights, dtype=np.float64)


def _blank(block: Block) -> NDArray[np.bool_]:
    return np.asarray(np.isnan(block.dense()).all(axis=1))
