"""What a model says of every row, to a file, in bounded memory."""

from __future__ import annotations

import os
from typing import Any

from foldwise.data.write import open_writer
from foldwise.fold.run import Run


def write_transformed(model: Any, source: Any, path: str | os.PathLike[str]) -> int:
    """Stream the codes of all rows to `path`; gives the number of rows written."""
    names = [str(name) for name in model.get_feature_names_out()]
    with open_writer(path, names, source.dtype) as writer:
        Run(source, n_threads=model.n_threads).in_order(model.codes_of, writer.write)
    return writer.rows
