"""What the table holds, column by column, and which of the columns that are used go together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.image_shape import names_of_columns
from foldwise.prepare.prepared import prepared_of
from foldwise.selection.explore.result import ColumnSummary, Overview
from foldwise.selection.explore.sample import Sample

_MOST_CORRELATED = 60
_MOST_DRAWN = 2000  # columns with a histogram
_MOST_LEVELS = 20
_BINS = 20
_LEAST_PAIRS = 5  # rows in which both cells are known
_MOST_COMPARED = 5_000_000  # cells, in search of equal rows


def overview_of(source: Any, sample: Sample) -> Overview:
    """The overview of all columns, from the rows of the sample."""
    prepared = prepared_of(source)
    names = used_names(source)
    if prepared is None:
        cells = sample.dense() if not source.sparse else None
        columns = tuple(
            _number(
                name, "used", "numbers", None if cells is None else cells[:, j], sample.weights, drawn=j < _MOST_DRAWN
            )
            for j, name in enumerate(names)
        )
        lines, notes = tuple[str, ...](), tuple[str, ...]()
    else:
        place = {} if source.sparse else {name: j for j, name in enumerate(names)}
        dense = sample.dense() if any(one.name not in sample.cells for one in prepared.recipe.columns) else None
        columns = tuple(
            _column(one, _cells(one.name, sample, dense, place), sample.weights, drawn=j < _MOST_DRAWN)
            for j, one in enumerate(prepared.recipe.columns)
        )
        lines, notes = tuple(prepared.recipe.lines()), tuple(note.text for note in prepared.recipe.notes)
    correlated, correlation = _correlations(source, sample)
    return Overview(
        source.where,
        sample.total,
        len(sample.rows),
        columns,
        correlated,
        correlation,
        lines=lines,
        notes=notes,
        repeated=_repeated(source, sample),
    )


def _repeated(source: Any, sample: Sample) -> int:
    """Rows that are equal to an earlier one of the sample in every column that is used."""
    if source.sparse or len(sample.rows) * source.n_columns > _MOST_COMPARED:
        return 0
    rows = np.ascontiguousarray(sample.dense())
    return len(rows) - len(np.unique(rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))))


def used_names(source: Any) -> tuple[str, ...]:
    """The names of the columns that the models see; of images, pixels by their places; or x0, x1, ..."""
    return names_of_columns(source)


def _cells(name: str, sample: Sample, dense: Floats | None, place: dict[str, int]) -> NDArray[Any] | None:
    """The cells of a column as given or, in a table of very many columns, as models see them."""
    if name in sample.cells:
        return sample.cells[name]
    return dense[:, place[name]] if dense is not None and name in place else None


def _column(one: Any, cells: NDArray[Any] | None, weights: Floats | None, *, drawn: bool) -> ColumnSummary:
    if cells is None:
        return ColumnSummary(one.name, one.kind, one.role, one.reason, 0)
    if one.kind == "number":
        return _number(one.name, one.role, one.reason, cells, weights, drawn=drawn)
    known = np.array([cell for cell in cells if cell is not None], dtype=object)
    texts, counts = np.unique(known.astype(str), return_counts=True)
    order = np.lexsort((texts, -counts))[:_MOST_LEVELS]
    levels = tuple((str(texts[j]), int(counts[j])) for j in order)
    return ColumnSummary(
        one.name,
        one.kind,
        one.role,
        one.reason,
        len(cells) - len(known),
        distinct=len(texts),
        levels=levels if one.kind in ("category", "boolean") else (),
    )


def _number(
    name: str, role: str, why: str, cells: NDArray[Any] | None, weights: Floats | None, *, drawn: bool
) -> ColumnSummary:
    if cells is None:
        return ColumnSummary(name, "number", role, why, 0)
    there = np.isfinite(cells)
    known = cells[there]
    weight = None if weights is None else weights[there]
    if not len(known) or (weight is not None and not weight.sum() > 0):
        return ColumnSummary(name, "number", role, why, len(cells), distinct=0)
    low, high = float(known.min()), float(known.max())
    size = max(abs(low), abs(high), 1e-300)
    scaled = known / size
    mean = float(np.average(scaled, weights=weight))
    edges, counts = None, None
    if drawn and np.isfinite(high - low):
        ends = (low, high) if high > low else (low - 0.5, low + 0.5)
        counts, edges = np.histogram(known, _bins(known, low, high), ends, weights=weight)
    return ColumnSummary(
        name,
        "number",
        role,
        why,
        len(cells) - len(known),
        distinct=len(np.unique(known)) if drawn else None,
        low=low,
        mean=mean * size,
        high=high,
        deviation=float(np.sqrt(np.average((scaled - mean) ** 2, weights=weight))) * size,
        edges=edges,
        counts=counts,
    )


def _bins(known: Floats, low: float, high: float) -> int:
    """Bars of equal width; of few whole numbers one for each."""
    span = high - low
    return max(1, int(span) + 1) if span < _BINS and (known == np.round(known)).all() else _BINS


def _correlations(source: Any, sample: Sample) -> tuple[tuple[int, ...], Floats | None]:
    """Correlations over the rows where both cells are known, of the columns that vary; at most 60 of them."""
    if source.sparse or source.n_columns < 2 or len(sample.rows) < 3:
        return (), None
    cells = sample.dense()
    size = np.fmax.reduce(np.abs(cells), axis=0, initial=1e-300)
    cells = cells / size
    known = np.isfinite(cells)
    if sample.weights is not None:  # a row counts as often as its weight says
        known &= (sample.weights > 0)[:, None]
    weights = np.ones(len(cells)) if sample.weights is None else sample.weights
    counts = np.maximum(weights @ known, 1e-300)
    mean = weights @ np.where(known, cells, 0.0) / counts
    away = np.where(known, cells - mean, 0.0) * np.sqrt(weights)[:, None]
    variance = (away**2).sum(axis=0) / counts
    varies = np.flatnonzero(variance > 1e-24)
    if len(varies) < 2:
        return (), None
    if len(varies) > _MOST_CORRELATED:
        worth = variance[varies] * size[varies] ** 2
        varies = np.sort(varies[np.argsort(-worth, kind="stable")[:_MOST_CORRELATED]])
    x, seen = away[:, varies], known[:, varies].astype(np.float64)
    both = x.T @ x
    scale = np.sqrt((x**2).T @ seen * (seen.T @ (x**2)))
    enough = (seen.T @ seen >= _LEAST_PAIRS) & (scale > 0)
    found = np.divide(both, scale, out=np.full_like(both, np.nan), where=enough)
    return tuple(int(j) for j in varies), np.clip(found, -1.0, 1.0)
