"""An array in a file, such as `.npy`, read block by block with `pread` rather than mapped: memory holds only blocks in use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foldwise.data import check, column_selection
from foldwise.data.block import DenseBlock
from foldwise.data.files import Stamp, stamp, unchanged
from foldwise.data.image_shape import float_for, rows_of_images, said_shape, white_of
from foldwise.data.reading import FOUND_OUT, Reading
from foldwise.data.source import Piece, RowRange, row_ranges
from foldwise.errors import DataError


class Descriptor:
    """A file descriptor, closed when the last piece that reads from it is gone."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)

    def read_into(self, array: NDArray[Any], offset: int, where: str) -> None:
        """Fill a contiguous array from `offset`; thread-safe, since no file position is shared."""
        left = array.reshape(-1).view(np.uint8).data  # as bytes: memoryview does not support non-native byte order
        while left:
            count = os.preadv(self.number, [left], offset)
            if count == 0:
                raise DataError("the file ends too early", where=where, advice="It was truncated while being read")
            left, offset = left[count:], offset + count


class Layout(NamedTuple):
    """How an array lies in its file."""

    shape: tuple[int, ...]
    fortran: bool  # whether columns are contiguous
    dtype: np.dtype[Any]
    offset: int  # where the values begin


class NpySource:
    """An array in a `.npy` file, or one whose `layout` is known; if it has more than two dimensions, its rows are images."""

    sparse = False
    slow = False
    in_memory = False
    names: tuple[str, ...] | None = None
    left_out: tuple[str, ...] = ()
    image_shape: tuple[int, ...] | None = None
    labels: NDArray[Any] | None = None

    def __init__(
        self,
        path: str,
        columns_: Any,
        weights: Any,
        dtype: np.dtype[np.floating] | None,
        *,
        flat: bool = False,
        layout: Layout | None = None,
        reading: Reading = FOUND_OUT,
    ) -> None:
        """With `flat`, a 1-D array is read as one column."""
        self.where = path
        self._stamp: Stamp = stamp(path)
        shape, self._fortran, self._stored, self._offset = layout or header(path)
        if flat and len(shape) == 1:
            shape = (*shape, 1)
        image = rows_of_images(shape, path)
        small = float_for(self._stored) if image is not None or layout is not None else None
        self._axes = shape[1:]
        shape = shape[0], math.prod(shape[1:])
        self.white = white_of(self._stored)
        self.image_shape = said_shape(shape[1], image, reading, path)
        check.number_kind(self._stored, path)
        if self._stored.kind not in "biuf":
            raise DataError(
                f"values of dtype {self._stored} cannot be read from a .npy file",
                where=path,
                advice="Save numbers: np.save(path, array.astype(float))",
            )
        self.n_rows, self._width = shape
        self._chosen = None
        if not column_selection.all_numeric(columns_):
            self._chosen = column_selection.positions(columns_, None, self._width, path)
            self.names, self.image_shape = column_selection.labels(self._chosen, self._width), None
        self.positions = self._chosen
        self.n_columns = self._width if self._chosen is None else len(self._chosen)
        check.not_empty(self.n_rows, self.n_columns, path)
        need = self._offset + self.n_rows * self._width * self._stored.itemsize
        if self._stamp.size < need:
            raise DataError(
                f"the file is truncated: {self._stamp.size} bytes instead of {need}",
                where=path,
                advice="Copy or save it again",
            )
        single = self._stored.kind == "f" and self._stored.itemsize == 4
        self.dtype: np.dtype[np.floating] = dtype or small or np.dtype(np.float32 if single else np.float64)
        if isinstance(weights, str):
            column_selection.find(weights, None, path)
        self.row_weights = None if weights is None else check.weights(weights, path, self.n_rows)

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks to load."""
        unchanged([self.where], [self._stamp])
        opened = _OpenNpy(self, Descriptor(os.open(self.where, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))))
        for piece in row_ranges(self, first, last):
            assert isinstance(piece, RowRange)
            yield RowRange(opened, piece.start, piece.stop)
        unchanged([self.where], [self._stamp])

    def load(self, start: int, stop: int, file: Descriptor) -> DenseBlock:
        """The block of rows from `start` to `stop` - 1, from the open file."""
        raw = self._strips(file, start, stop) if self._fortran else self._rows(file, start, stop)
        with np.errstate(over="ignore"):
            values = np.ascontiguousarray(raw, dtype=self.dtype)
        weights = None if self.row_weights is None else self.row_weights[start:stop]
        return DenseBlock(values, start, weights, check.Finite(self.where, None, self._chosen))

    def _rows(self, file: Descriptor, start: int, stop: int) -> NDArray[Any]:
        raw = np.empty((stop - start, self._width), dtype=self._stored)
        file.read_into(raw, self._offset + start * self._width * self._stored.itemsize, self.where)
        return raw if self._chosen is None else raw[:, self._chosen]

    def _strips(self, file: Descriptor, start: int, stop: int) -> NDArray[Any]:
        wanted = range(self._width) if self._chosen is None else self._chosen
        raw = np.empty((self.n_columns, stop - start), dtype=self._stored)
        places = np.arange(self._width).reshape(self._axes, order="F").ravel()  # of columns among the strips
        for strip, column in zip(raw, places[list(wanted)].tolist(), strict=True):
            file.read_into(strip, self._offset + (column * self.n_rows + start) * self._stored.itemsize, self.where)
        return raw.T

    def fingerprint(self) -> str:
        """Name, size, modification time and columns."""
        name = Path(self.where).name
        return f"npy {name} {self._stamp.size} {self._stamp.time} {self._chosen} {self.dtype.name}"


class _OpenNpy:
    """The file, open for one pass."""

    def __init__(self, source: NpySource, file: Descriptor) -> None:
        self._source, self._file = source, file

    def load(self, start: int, stop: int) -> DenseBlock:
        """The block of rows from `start` to `stop` - 1."""
        return self._source.load(start, stop, self._file)


def header(path: str) -> Layout:
    """The layout that a `.npy` file says it has."""
    with open(path, "rb") as file:
        return header_of(file, path)


def header_of(file: Any, where: str) -> Layout:
    """The same of an open file."""
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except OSError:
        raise
    except Exception as problem:  # NumPy parses the header as Python, which fails in many ways
        text = str(problem) if len(str(problem)) <= 200 else f"{str(problem)[:197]}..."
        advice = "Copy it again, or save the array again with numpy.save"
        raise DataError(f"not a .npy file, or truncated ({text})", where=where, advice=advice) from None
    if not all(type(length) is int and length >= 0 for length in shape):
        raise DataError(f"the header is damaged: the shape is {shape}", where=where, advice="Save the array again")
    return Layout(shape, fortran, dtype, file.tell())


def open_npy(path: str, reading: Reading, *, columns_: Any, where: Any, weights: Any, dtype: Any) -> NpySource:
    """A source over a `.npy` file."""
    refuse_where(where, path)
    return NpySource(path, columns_, weights, check.float_dtype(dtype), reading=reading)


def refuse_where(where: Any, path: str) -> None:
    """Raise if rows are to be chosen by a condition."""
    if where is not None:
        raise DataError(
            f"where= is not possible for {'a .npy file' if path.lower().endswith('.npy') else 'an array'}",
            where=path,
            advice="Load it (np.load) and pass a mask, or store the table as Parquet",
        )
