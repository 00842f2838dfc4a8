"""Completed tables: each missing cell at what a fitted model expects of it, with a standard deviation.

A model that fills cells in its own way has a method `_impute_block(values)`, which takes rows with NaN and returns them
completed, with the deviations. For other models with centres, a cell is filled from the centre nearest to the row's other
cells.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from foldwise.data.block import Block, Floats
from foldwise.data.mapped import MappedSource
from foldwise.data.missing import AllowMissing, FillMissing, allow_missing
from foldwise.data.source import Source
from foldwise.errors import DataError, ParameterError
from foldwise.fold.passes import Passes
from foldwise.models.base import open_for_use, with_missing
from foldwise.reportable import Reportable
from foldwise.stats.array_sum import ArraySum

_SHOWN = 8  # columns in the printed form


@dataclass(frozen=True, repr=False)
class Imputed(Reportable):
    """A completed table.

    `values` has the observed cells as they were given, bit by bit, and a value for each missing one; `deviations` the standard
    deviation of each filled cell, and 0 elsewhere; `missing` says which cells were filled.
    """

    values: NDArray[Any]
    deviations: NDArray[Any]
    missing: NDArray[np.bool_]
    columns: tuple[str, ...]
    model: str
    index: Any = field(default=None, compare=False)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def frame(self) -> Any:
        """The completed table as a pandas DataFrame, with the index of the one given (pandas must be installed)."""
        import pandas as pd

        return pd.DataFrame(self.values, columns=list(self.columns), index=self.index)

    def __repr__(self) -> str:
        n, d = self.values.shape
        counts = self.missing.sum(axis=0)
        filled, rows = int(counts.sum()), int(self.missing.any(axis=1).sum())
        lines = [f"{n:,} x {d:,} values, {filled:,} of them filled by {self.model}, in {rows:,} rows"]
        some = np.flatnonzero(counts)
        for j in some[np.argsort(-counts[some], kind="stable")][:_SHOWN]:
            deviation = float(np.sqrt(np.mean(np.square(self.deviations[self.missing[:, j], j], dtype=np.float64))))
            lines.append(f"  {self.columns[j]}: {counts[j]:,} filled, give or take {deviation:.4g}")
        if len(some) > _SHOWN:
            lines.append(f"  and {len(some) - _SHOWN:,} more columns")
        return "\n".join(lines)


def impute(model: Any, X: Any) -> Imputed:
    """Fill the missing cells (NaN) of X by a fitted model, with a standard deviation for each.

    `fw.PCA` and `fw.GaussianMixture` give the conditional mean of the cell given the others of its row. k-means gives the value
    of the centre that is nearest in the cells observed; the deviation is then the spread of the column's observed cells within
    the cluster, over the rows of X. A row without any observed cell gets the means of the columns (k-means: the centre of all
    centres, weighted by their clusters). The model may have been fitted to these rows or to others.

    >>> import numpy as np, foldwise as fw
    >>> x = np.array([[1.0, 2.1], [2.0, 3.9], [3.0, 6.1], [4.0, 8.0], [5.0, np.nan]])
    >>> done = fw.impute(fw.PCA(missing="model").fit(x), x)
    >>> done.values[-1].round(1), done.missing.sum()
    (array([ 5., 10.]), np.int64(1))
    """
    check_is_fitted(model)
    source = _with_gaps(open_for_use(model, X))
    if source.sparse:
        raise DataError("sparse data was passed, whose empty cells are zeros, not missing", advice="Give dense rows")
    passes = Passes(source, n_threads=getattr(model, "n_threads", None))
    fill = getattr(model, "_impute_block", None) or _by_centres(model, passes)
    names = source.names if source.names is not None else tuple(f"x{j}" for j in range(source.n_columns))
    found = passes.rows(partial(_filled, fill=fill))
    return Imputed(
        values=found["values"].copy() if len(found) else found["values"],
        deviations=found["deviations"].copy(),
        missing=found["missing"].copy(),
        columns=tuple(map(str, names)),
        model=type(model).__name__,
        index=getattr(X, "index", None) if hasattr(X, "iloc") else None,
    )


def _filled(block: Block, fill: Any) -> NDArray[Any]:
    rows = block.dense()
    n, d = rows.shape
    out = np.empty(n, dtype=[("values", rows.dtype, d), ("deviations", rows.dtype, d), ("missing", bool, d)])
    missing = np.isnan(rows)
    values, deviations = fill(rows)
    out["values"] = np.where(missing, values, rows)
    out["deviations"] = np.where(missing, deviations, 0.0)
    out["missing"] = missing
    return out


def _with_gaps(source: Source) -> Source:
    """The source with its missing cells, however the model deals with them in other calls."""
    while isinstance(source, MappedSource) and isinstance(source.change, (FillMissing, AllowMissing)):
        source = source.source
    return allow_missing(source)


@dataclass(frozen=True)
class _Complete:
    """Missing cells at what the model expects there."""

    fill: Any

    def __call__(self, block: Block) -> Block:
        rows = block.dense()
        missing = np.isnan(rows)
        return (
            block.with_rows(np.where(missing, self.fill(rows)[0], rows).astype(rows.dtype)) if missing.any() else block
        )


def completed(model: Any, source: Source) -> Source:
    """New rows for a fitted model, with missing cells at what it expects there: for pictures of the rows."""
    seen = with_missing(model, source)
    if getattr(model, "missing", "error") != "model" or source.sparse or not hasattr(model, "_impute_block"):
        return seen
    return MappedSource(seen, _Complete(model._impute_block))


# ---------------------------------------------------------------- models with centres


def _by_centres(model: Any, passes: Passes) -> Any:
    """Filling by the nearest centre."""
    centres = getattr(model, "cluster_centers_", None)
    if not isinstance(centres, np.ndarray) or centres.shape[1] != passes.source.n_columns:
        raise ParameterError(
            f"a {type(model).__name__} does not say what values its columns have: it cannot fill cells"
        )
    if getattr(model, "metric", "euclidean") != "euclidean":
        raise ParameterError("centres of metric='cosine' are directions, which do not say how large a cell is")
    centres = np.asarray(centres, dtype=np.float64)
    scale = getattr(model, "scale_", None)
    scale = np.ones(centres.shape[1]) if scale is None else np.asarray(scale)
    mean = getattr(model, "mean_", None)
    mean = np.zeros(centres.shape[1]) if mean is None else np.asarray(mean)
    given = getattr(model, "cluster_weights_", np.ones(len(centres)))
    start = _Centres(centres, mean, scale, np.zeros_like(centres), np.asarray(given, dtype=np.float64))
    sums = passes.fold(partial(_spread_sums, centres=start)).value
    spread = np.sqrt(sums[0] / np.where(sums[1] > 0, sums[1], 1.0))
    # A cluster without any observed cell in a column gets the spread that the column has in the others.
    all_of_it = np.sqrt(sums[0].sum(axis=0) / np.maximum(sums[1].sum(axis=0), 1e-300))
    return _Centres(centres, mean, scale, np.where(sums[1] > 0, spread, all_of_it), start.weights)


@dataclass(frozen=True)
class _Centres:
    """Centres of rows (x - mean) / scale, the spread of each column about each of them, and the weights of the clusters."""

    centres: Floats
    mean: Floats
    scale: Floats
    spread: Floats
    weights: Floats

    def nearest(self, rows: NDArray[Any]) -> tuple[Floats, NDArray[np.intp]]:
        """The rows in the centres' space, and the centre nearest in what is observed; the first among equals."""
        z = (rows.astype(np.float64) - self.mean) / self.scale
        best, label = np.full(len(z), np.inf), np.zeros(len(z), dtype=np.intp)
        for number, centre in enumerate(self.centres):
            away = np.where(np.isnan(z), 0.0, z - centre)
            squared = np.einsum("ij,ij->i", away, away)
            closer = squared < best
            best[closer], label[closer] = squared[closer], number
        return z, label

    def __call__(self, rows: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
        """The rows completed, and the deviations."""
        _, label = self.nearest(rows)
        values, deviations = self.centres[label], self.spread[label]
        blank = np.isnan(rows).all(axis=1)
        if blank.any():
            share = self.weights / self.weights.sum()
            middle = share @ self.centres
            values[blank] = middle
            deviations[blank] = np.sqrt(share @ (self.spread**2 + (self.centres - middle) ** 2))
        return values * self.scale + self.mean, deviations * self.scale


def _spread_sums(block: Block, centres: _Centres) -> ArraySum:
    rows = block.dense()
    z, label = centres.nearest(rows)
    seen = ~np.isnan(z)
    weights = np.ones(len(z)) if block.weights is None else block.weights
    sums = np.zeros((2, *centres.centres.shape))
    away = np.where(seen, z - centres.centres[label], 0.0) ** 2
    for number in range(len(centres.centres)):
        mine = label == number
        sums[0, number] = np.einsum("i,ij->j", weights[mine], away[mine])
        sums[1, number] = np.einsum("i,ij->j", weights[mine], seen[mine].astype(np.float64))
    return ArraySum(sums)
