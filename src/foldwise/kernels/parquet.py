"""Pages of Parquet files, decoded: a typed entry point to `cpp/parquet.cpp`."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foldwise.kernels._core import ParquetReader, RowRange

__all__ = ["ParquetReader", "RowRange", "reader_of"]

COMPRESSIONS = {"UNCOMPRESSED": 0, "SNAPPY": 1}
TYPES = {  # as stored, of the SQL types that can be read
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "BOOLEAN": "BOOLEAN",
    **dict.fromkeys(("INTEGER", "UINTEGER", "SMALLINT", "USMALLINT", "TINYINT", "UTINYINT"), "INT32"),
    **dict.fromkeys(("BIGINT", "UBIGINT"), "INT64"),
}
ENCODINGS = frozenset({"PLAIN", "PLAIN_DICTIONARY", "RLE", "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"})


def reader_of(
    paths: Sequence[str],
    files: NDArray[np.int64],
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
    columns: Sequence[tuple[str, bool]],
) -> ParquetReader:
    """A reader of row groups: the file and the number of rows of each, and where each of its columns is.

    `places[g, j]` is the offset in the file, the number of bytes and the compression (0: none, 1: snappy) of column j in row
    group g. `columns` are the SQL type of each column and whether cells may be missing. `reader.read(range)` raises
    RuntimeError for whatever is damaged or not understood.
    """
    names = [os.fsencode(path) for path in paths]
    return ParquetReader(names, files, rows, np.ascontiguousarray(places), list(columns))
