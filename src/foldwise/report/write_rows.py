"""Write a model's result for every row to a file, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block
from foldwise.data.files import output_format_of
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
    beside: tuple[str, NDArray[Any]] | None = None,
) -> int:
    """Stream scores, or clusters with distances or probabilities, to `path`; returns the number of rows written.

    Of a table, each row comes with its number in the table (from 0), its identifiers and labels, or, with keep="all", with all
    its columns. `beside` is a further figure of each row, and its name.
    """
    told = row_output(model, with_missing(model, source))
    if beside is not None:
        told = _with_figure(told, *beside)
    with open_writer(path, told.names, told.dtype, carried(source, keep, path)) as writer:
        Passes(told.source, n_threads=model.n_threads).in_order(told.of, writer.write)
    return writer.rows


def _with_figure(told: RowOutput, name: str, values: NDArray[Any]) -> RowOutput:
    """The output, which has fields, with one more."""
    name = unused(name, told.names)
    dtype = np.dtype([*((one, told.dtype[one]) for one in told.names), (name, values.dtype)])
    return RowOutput(told.source, (*told.names, name), dtype, WithRowArray(_AddField(told.of, dtype), values))


@dataclass(frozen=True)
class _AddField:
    """Records with one more field."""

    of: Callable[[Block], NDArray[Any]]
    dtype: np.dtype[Any]

    def __call__(self, block: Block, values: NDArray[Any]) -> NDArray[Any]:
        """One record per row."""
        found, out = self.of(block), np.empty(block.n_rows, self.dtype)
        names = self.dtype.names or ()
        for one in names[:-1]:
            out[one] = found[one]
        out[names[-1]] = values
        return out


def carried(source: Any, keep: str, path: str | os.PathLike[str]) -> Beside | None:
    """The columns of a table that go beside what a model says of each row; None for an array.

    A file without types has cells as they stand in the text file that was read.
    """
    if getattr(source, "recipe", None) is None:
        return None
    from foldwise.prepare.prepared import carried_columns

    return carried_columns(source, keep, typed=output_format_of(os.fspath(path)) != "csv")
