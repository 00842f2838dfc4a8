"""Rows to draw and to list, with what is known of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.missing import allow_missing
from foldwise.data.row_names import LABEL, row_names_of
from foldwise.fold.passes import Passes
from foldwise.models.pca import PCA
from foldwise.prepare.prepared import prepared_of
from foldwise.selection.explore.result import Points
from foldwise.selection.explore.rules import Category
from foldwise.selection.explore.sample import Sample, coded

_MOST_COLUMNS = 60


def category_columns(
    source: Any, sample: Sample, roles: Sequence[str] = ("label", "describing", "used")
) -> list[Category]:
    """The categories of a table that have these roles, with their codes in the rows of the sample."""
    prepared = prepared_of(source)
    if prepared is None:
        return [(LABEL, *coded(sample.cells[LABEL]))] if LABEL in sample.cells and "label" in roles else []
    kinds = ("category", "boolean")
    return [
        (column.name, *coded(sample.cells[column.name]))
        for role in roles
        for column in prepared.recipe.having(role)
        if column.kind in kinds and column.name in sample.cells
    ]


def number_columns(source: Any, names: Sequence[str]) -> tuple[str, ...]:
    """The columns of numbers that are used, as a table has them; of an array all."""
    prepared = prepared_of(source)
    if prepared is None:
        return tuple(names)
    return tuple(column.name for column in prepared.recipe.having("used") if column.kind == "number")


def points_of(
    source: Any,
    sample: Sample,
    pca: PCA,
    names: Sequence[str],
    labels: NDArray[np.int32] | None,
    confidence: Floats | None,
    distances: NDArray[np.float32] | None,
    listed: Sequence[int],
    separation: Floats | None,
) -> Points:
    """The rows of the sample, and those of `listed` that are not among them, in rising order."""
    more = np.setdiff1d(np.asarray(listed, dtype=np.int64), sample.rows)
    rows = np.concatenate([sample.rows, more])
    columns = number_columns(source, names)
    values = _values(source, sample, columns, names, more)
    if len(columns) > _MOST_COLUMNS:
        place = {name: j for j, name in enumerate(names)}
        worth = np.array([0.0 if separation is None else separation[place[name]] for name in columns])
        if separation is None:
            worth = np.nan_to_num(np.nanstd(values, axis=0))
        chosen = np.argsort(-worth, kind="stable")[:_MOST_COLUMNS]
        columns, values = tuple(columns[j] for j in chosen), values[:, chosen]
    categories = category_columns(source, sample)
    codes = np.full((len(rows), len(categories)), -1, dtype=np.int32)
    for j, (_, _, code) in enumerate(categories):
        codes[: len(sample.rows), j] = code
    id_names, ids = _ids(source, sample, more)
    known = _some_known(sample, len(more))
    order = np.argsort(rows, kind="stable")
    order = order[known[order]]
    n = len(order)
    unknown = np.full(n, np.nan)
    return Points(
        rows=rows[order],
        total=sample.total,
        scores=_scores(pca, source, sample, more)[order],
        columns=columns,
        values=values[order],
        labels=np.full(n, -1, np.int32) if labels is None else labels[rows[order]],
        confidence=unknown if confidence is None else np.asarray(confidence, dtype=np.float64)[rows[order]],
        t2=unknown if distances is None else distances[rows[order], 0].astype(np.float64),
        residual=unknown if distances is None else distances[rows[order], 1].astype(np.float64),
        categories=tuple((name, levels) for name, levels, _ in categories),
        codes=codes[order],
        id_names=id_names,
        ids=tuple(ids[j] for j in order),
        blank=len(rows) - n,
    )


def _some_known(sample: Sample, more: int) -> NDArray[np.bool_]:
    """Rows of which any cell is observed; the others have no place among the rest."""
    some = (
        [np.ones(len(sample.rows), dtype=bool)] if sample.source.sparse else [np.isfinite(sample.dense()).any(axis=1)]
    )
    return np.concatenate([*some, np.ones(more, dtype=bool)])


def _scores(pca: PCA, source: Any, sample: Sample, more: NDArray[np.int64]) -> Floats:
    found = np.asarray(pca.scores(sample.source), dtype=np.float64)
    return np.vstack([found, np.asarray(pca.scores(_taken(source, more)), dtype=np.float64)]) if len(more) else found


def _taken(source: Any, more: NDArray[np.int64]) -> Any:
    from foldwise.data.subset import gather
    from foldwise.selection.explore.sample import named

    if source.sparse:
        return named(gather(source, more), source)
    rows = Passes(allow_missing(source)).take(more)
    from foldwise.data.arrays import ArraySource

    return named(ArraySource(rows), source)


def _values(
    source: Any, sample: Sample, columns: Sequence[str], names: Sequence[str], more: NDArray[np.int64]
) -> Floats:
    if not columns:
        return np.zeros((len(sample.rows) + len(more), 0))
    found = sample.values(columns)
    if not len(more):
        return found
    place = {name: j for j, name in enumerate(names)}
    inside = [place[name] for name in columns]
    rows = _taken(source, more)
    blocks = [piece.load() for piece in rows.pieces()]
    dense = np.concatenate([one.unchecked.toarray() if one.sparse else one.unchecked for one in blocks])
    return np.vstack([found, dense[:, inside].astype(np.float64)])


def _ids(source: Any, sample: Sample, more: NDArray[np.int64]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The number of each row in the data as given, and its identifiers and labels, as text."""
    prepared, known = prepared_of(source), row_names_of(source)
    if prepared is None and known is not None:
        cells = known.cells(np.concatenate([sample.rows, more]))
        return tuple(cells), [tuple(map(str, row)) for row in zip(*cells.values(), strict=True)]
    if prepared is None:
        return ("row",), [(str(row),) for row in (*sample.rows.tolist(), *more.tolist())]
    from foldwise.prepare.prepared import carried_columns, names_of_rows

    carried = carried_columns(source, "ids")
    names = list(carried.names)
    own = list(sample.cells)
    columns = [sample.cells[own[0]], *(sample.cells[name] for name in names[1:])]
    ids = [tuple("" if cell is None else str(cell) for cell in row) for row in zip(*columns, strict=True)]
    if len(more):
        _, found = names_of_rows(source, more.tolist())
        ids += [tuple("" if cell is None else str(cell) for cell in row) for row in found]
    return tuple(names), ids
