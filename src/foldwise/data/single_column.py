"""A single column of values from any supported kind of data: the counterpart of `fw.scan` for one-dimensional data."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from foldwise.data.npy import NpySource, header
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.errors import DataError, ParameterError


def scan_column(x: Any, *, column: Any = None, weights: Any = None) -> Source:
    """A source of one column: an array or list of numbers, a Series, a frame, a path, SQL text or a source.

    >>> scan_column([2.0, 3.0, 5.0]).n_rows
    3
    """
    if isinstance(x, Source):
        if column is not None or weights is not None:
            raise ParameterError(
                "columns and weights can be given only when a source is first opened: fw.scan(x, columns=...)"
            )
        return _only(x)
    if isinstance(x, (str, os.PathLike)) and os.fspath(x).endswith(".npy") and _is_flat(x):
        if column not in (None, 0):
            raise DataError(f"there is no column {column!r}: the file has one column", where=os.fspath(x))
        return NpySource(os.fspath(x), None, weights, None, flat=True)
    if getattr(x, "ndim", 2) == 1 and hasattr(x, "to_frame"):  # a pandas or polars Series
        x = x.to_frame()
    elif isinstance(x, (list, tuple, range)) and not (len(x) and isinstance(x[0], (str, os.PathLike))):
        x = np.asarray(x)
    elif hasattr(x, "__array__") and not hasattr(x, "columns") and not hasattr(x, "tocsr"):
        x = np.asarray(x) if not isinstance(x, np.ma.MaskedArray) else x
    if isinstance(x, np.ndarray) and x.ndim == 1:
        if column is not None:
            raise ParameterError(f"column={column!r}: the data have one dimension, so there is no column to choose.")
        x = x.reshape(-1, 1)
    return _only(scan(x, columns="numeric" if column is None else [column], weights=weights))


def _is_flat(path: Any) -> bool:
    if not os.path.isfile(path):  # nothing, or a pipe, which opening would wait for
        return False
    try:
        return len(header(os.fspath(path))[0]) == 1
    except (OSError, DataError):
        return False  # the error is raised when it is opened


def _only(source: Source) -> Source:
    if source.sparse:
        raise DataError("a sparse column cannot be fitted", where=source.where, advice="Pass x.toarray() instead")
    if source.n_columns != 1:
        shown = f"0 to {source.n_columns - 1}"
        if source.names:
            shown = ", ".join(map(repr, source.names[:8])) + (", ..." if len(source.names) > 8 else "")
        raise DataError(
            f"there are {source.n_columns} columns of numbers, but a distribution is fitted to one",
            where=source.where,
            advice=f"Choose one with column= or fw.scan(x, columns=[...]): {shown}",
        )
    return source
