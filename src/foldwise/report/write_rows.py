"""Write a model's result for every row to a file, in bounded memory."""

from __future__ import annotations

import os
from typing import Any

from foldwise.data.files import output_format_of
from foldwise.data.write import Beside, open_writer
from foldwise.fold.passes import Passes
from foldwise.models.base import row_output, with_missing


def write_transformed(model: Any, source: Any, path: str | os.PathLike[str], *, keep: str = "ids") -> int:
    """Stream scores, or clusters with distances or probabilities, to `path`; returns the number of rows written.

    Of a table, each row comes with its number in the table (from 0), its identifiers and labels, or, with keep="all", with all
    its columns.
    """
    told = row_output(model, with_missing(model, source))
    with open_writer(path, told.names, told.dtype, carried(source, keep, path)) as writer:
        Passes(told.source, n_threads=model.n_threads).in_order(told.of, writer.write)
    return writer.rows


def carried(source: Any, keep: str, path: str | os.PathLike[str]) -> Beside | None:
    """The columns of a table that go beside what a model says of each row; None for an array.

    A file without types has cells as they stand in the text file that was read.
    """
    if getattr(source, "recipe", None) is None:
        return None
    from foldwise.prepare.prepared import carried_columns

    return carried_columns(source, keep, typed=output_format_of(os.fspath(path)) != "csv")
