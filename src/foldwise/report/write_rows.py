"""Write a model's result for every row to a file, in bounded memory."""

from __future__ import annotations

import os
from typing import Any

from foldwise.data.write import open_writer
from foldwise.fold.passes import Passes
from foldwise.models.base import row_output


def write_transformed(model: Any, source: Any, path: str | os.PathLike[str]) -> int:
    """Stream scores, or clusters with distances or probabilities, to `path`; returns the number of rows written."""
    told = row_output(model, source)
    with open_writer(path, told.names, told.dtype) as writer:
        Passes(told.source, n_threads=model.n_threads).in_order(told.of, writer.write)
    return writer.rows
