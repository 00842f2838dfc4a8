"""Write a model's result for every row to a file, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block
from foldwise.data.files import output_format_of
from foldwise.data.row_names import row_names_of
from foldwise.data.write import Beside, open_writer, unused
from foldwise.fold.passes import Passes
from foldwise.fold.row_arrays import WithRowArray
from foldwise.models.base import RowOutput, row_output, with_missing


def write_transformed(
    model: Any,
    source: Any,
    path: str | os.PathLike[str],
    *,
    keep: str = "ids",
    beside: Sequence[tuple[str, NDArray[Any]]] = (),
    place: int | None = None,
) -> int:
    """Stream scores, or clusters with distances or probabilities, to `path`; returns the number of rows written.

    Of a table, each row comes with its number in the table (from 0), its identifiers and labels, or, with keep="all", with all
    its columns. `beside` are further figures of each row, with their names: after all others, or from `place` on.
    """
    told = row_output(model, with_missing(model, source))
    for number, (name, values) in enumerate(beside):
        told = _with_figure(told, name, values, len(told.names) if place is None else place + number)
    with open_writer(path, told.names, told.dtype, carried(source, keep, path)) as writer:
        Passes(told.source, n_threads=model.n_threads).in_order(told.of, writer.write)
    return writer.rows


def _with_figure(told: RowOutput, name: str, values: NDArray[Any], place: int) -> RowOutput:
    """The output, which has fields, with one more at that place."""
    name = unused(name, told.names)
    names = (*told.names[:place], name, *told.names[place:])
    dtype = np.dtype([(one, values.dtype if one == name else told.dtype[one]) for one in names])
    return RowOutput(told.source, names, dtype, WithRowArray(_AddField(told.of, dtype, name), values))


@dataclass(frozen=True)
class _AddField:
    """Records with one more field."""

    of: Callable[[Block], NDArray[Any]]
    dtype: np.dtype[Any]
    name: str

    def __call__(self, block: Block, values: NDArray[Any]) -> NDArray[Any]:
        """One record per row."""
        found, out = self.of(block), np.empty(block.n_rows, self.dtype)
        for one in self.dtype.names or ():
            out[one] = values if one == self.name else found[one]
        return out


def carried(source: Any, keep: str, path: str | os.PathLike[str]) -> Beside | None:
    """The columns of a table that go beside what a model says of each row, or files and labels of images; None for an array.

    A file without types has cells as they stand in the text file that was read.
    """
    if getattr(source, "recipe", None) is None:
        return row_names_of(source)
    from foldwise.prepare.prepared import carried_columns

    return carried_columns(source, keep, typed=output_format_of(os.fspath(path)) != "csv")
