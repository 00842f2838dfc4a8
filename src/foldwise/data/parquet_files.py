"""Parquet files of which the pages are decoded here rather than by DuckDB: columns of numbers, uncompressed or snappy.

DuckDB reads the metadata, and everything that is not so simple. On two cores, it took as long to decode 8 million rows of 64
numbers as to decode them here and make a PCA of them, and a third of that went into fresh memory for its results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.duckdb_connection import literal
from foldwise.data.duckdb_sql import Column
from foldwise.kernels.parquet import COMPRESSIONS, ENCODINGS, TYPES, ParquetReader, reader_of

_MOST_PARTS = 4_000_000  # columns in row groups, of which to remember places


@dataclass(frozen=True, eq=False)
class ParquetFiles:
    """Where the columns of Parquet files are: for each row group its file and rows, for each column and group the place."""

    paths: tuple[str, ...]
    files: NDArray[np.int64]
    rows: NDArray[np.int64]
    places: NDArray[np.int64]  # row group, column: offset, bytes, compression
    columns: dict[str, tuple[int, str, bool]]  # position, type in the file, whether cells may be missing

    @property
    def n_rows(self) -> int:
        """The rows of all files."""
        return int(self.rows.sum())

    def reader(self, needed: Sequence[Column]) -> ParquetReader | None:
        """A reader of these columns; None if one of them is not so simple."""
        found = [self.columns.get(column.name) for column in needed]
        if any(one is None or one[1] != TYPES.get(column.type) for one, column in zip(found, needed, strict=True)):
            return None
        simple = [one for one in found if one is not None]
        kinds = [(column.type, optional) for column, (_, _, optional) in zip(needed, simple, strict=True)]
        at = [place for place, _, _ in simple]
        return reader_of(self.paths, self.files, self.rows, self.places[:, at], kinds)


@dataclass(frozen=True)
class Metadata:
    """What DuckDB says about the row groups of Parquet files."""

    n_rows: int
    groups: int
    largest: int  # bytes of a row group, decompressed
    files: ParquetFiles | None  # None if none of the columns can be read here


def metadata(paths: Sequence[str], query: Any) -> Metadata:
    """The metadata of files; `query(sql)` returns the rows of a query, and raises DuckDB's errors."""
    listed = ", ".join(literal(path) for path in paths)
    parts = query(
        "SELECT file_name, row_group_id, row_group_num_rows, path_in_schema, compression, encodings, "
        "dictionary_page_offset, data_page_offset, total_compressed_size, total_uncompressed_size "
        f"FROM parquet_metadata([{listed}])"
    )
    groups: dict[tuple[str, int], int] = {}
    sizes: dict[tuple[str, int], int] = {}
    for file, group, rows, *_, size in parts:
        groups[file, group] = rows
        sizes[file, group] = sizes.get((file, group), 0) + (size or 0)
    files = _simple_columns(tuple(paths), listed, parts, groups, query) if len(set(paths)) == len(paths) else None
    n_rows = int(query(f"SELECT sum(num_rows) FROM parquet_file_metadata([{listed}])")[0][0])
    if files is not None and files.n_rows != n_rows:
        files = None
    return Metadata(n_rows, len(groups), max(sizes.values(), default=0), files)


def _simple_columns(
    paths: tuple[str, ...], listed: str, parts: list[Any], groups: dict[tuple[str, int], int], query: Any
) -> ParquetFiles | None:
    schema = "file_name, name, type, repetition_type, num_children, converted_type, logical_type"
    kinds = _flat_columns(len(paths), query(f"SELECT {schema} FROM parquet_schema([{listed}])"))
    number = {path: k for k, path in enumerate(paths)}
    if not kinds or len(parts) > _MOST_PARTS or any(file not in number for file, _ in groups):
        return None
    order = sorted(groups, key=lambda one: (number[one[0]], one[1]))
    place = {group: g for g, group in enumerate(order)}
    position = {name: j for j, name in enumerate(kinds)}
    places = np.full((len(order), len(kinds), 3), -1, np.int64)
    for file, group, _, name, compression, encodings, dictionary, data, size, _ in parts:
        j = position.get(name)
        if j is None:
            continue
        known = compression in COMPRESSIONS and ENCODINGS.issuperset((encodings or "").split(", "))
        if not known or data is None or size is None or places[place[file, group], j, 1] >= 0:
            del position[name]
            continue
        start = dictionary if dictionary and 0 < dictionary < data else data
        places[place[file, group], j] = start, size, COMPRESSIONS[compression]
    complete = np.asarray((places[:, :, 1] >= 0).all(axis=0))
    columns = {name: (j, *kinds[name]) for name, j in position.items() if complete[j]}
    files = np.array([number[file] for file, _ in order], np.int64)
    return ParquetFiles(paths, files, np.array([groups[one] for one in order], np.int64), places, columns)


def _flat_columns(n_files: int, schema: list[Any]) -> dict[str, tuple[str, bool]]:
    """How columns that are not nested are stored, and whether cells may be missing, if that is the same in all files."""
    found: dict[str, list[Any]] = {}
    inside: dict[str, int] = {}  # parts of nested columns that are still to come
    for file, name, kind, repetition, children, converted, logical in schema:
        if file not in inside:  # the first element is the table
            inside[file] = 0
            continue
        if not inside[file] and children is None and repetition in ("REQUIRED", "OPTIONAL"):
            found.setdefault(name, []).append((kind, repetition, converted, logical))
        inside[file] = max(inside[file] - 1, 0) + (children or 0)
    same = {name: own[0] for name, own in found.items() if len(own) == n_files and len(set(own)) == 1}
    return {name: (kind, repetition == "OPTIONAL") for name, (kind, repetition, _, _) in same.items()}
