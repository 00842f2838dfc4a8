"""What is known of the rows of images: their files and their labels, to be carried beside what a model says of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROW, FILE, LABEL = "row", "file", "label"


class RowNames:
    """Columns of texts, one cell for each row: the file if it has one, and the label if there are labels.

    They can be written beside rows: `names` and an Arrow stream. The first column is the number of the row, counted from 0.
    """

    def __init__(self, paths: Sequence[str] | None, labels: NDArray[Any] | None, weights: Any = None) -> None:
        self.paths, self.labels, self.weights = paths, labels, weights

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns of texts."""
        found = {} if self.paths is None else {FILE: _texts(self.paths)}
        return found if self.labels is None else {**found, LABEL: _texts(self.labels.tolist())}

    @property
    def names(self) -> Sequence[str]:
        """The names of all columns."""
        return [ROW, *self.columns]

    def cells(self, which: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """All columns, for some rows by number."""
        return {ROW: np.asarray(which), **{name: column[which] for name, column in self.columns.items()}}

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The columns as an Arrow stream."""
        from foldwise.data.duckdb_connection import connect

        columns = self.columns
        rows = len(next(iter(columns.values())))
        values = {"c0": np.arange(rows), **{f"c{j + 1}": column for j, column in enumerate(columns.values())}}
        connection = connect()
        connection.register("images", values)
        return connection.sql("FROM images").__arrow_c_stream__()

    def fall_back(self, problem: Exception) -> bool:
        """There is only one way to give these columns."""
        return False


def _texts(values: Sequence[Any]) -> NDArray[Any]:
    found = np.empty(len(values), dtype=object)
    found[:] = [str(value) for value in values]
    return found


def row_names_of(source: Any) -> RowNames | None:
    """The files and labels of the rows of a source, or of the one behind it that has as many rows; None if there are none."""
    while source is not None:
        paths, labels = getattr(source, "paths", None), getattr(source, "labels", None)
        if paths is not None or labels is not None:
            return RowNames(paths, labels, getattr(source, "row_weights", None))
        source = getattr(source, "source", None)
    return None
