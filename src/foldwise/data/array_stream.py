"""An array whose values come one after the other out of a compressed file: read in blocks, from the start at every pass."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data import check, column_selection
from foldwise.data.block import DenseBlock
from foldwise.data.files import stamp, unchanged
from foldwise.data.image_shape import float_for, rows_of_images, said_shape, white_of
from foldwise.data.npy import Layout
from foldwise.data.reading import Reading
from foldwise.data.source import Loaded, Piece, block_rows
from foldwise.errors import DataError

_CHUNK = 1 << 20  # bytes


class StreamSource:
    """Rows of an array in a compressed file; `opened` (picklable) opens it, so that the values come next."""

    sparse = False
    slow = True
    in_memory = False
    names: tuple[str, ...] | None = None
    left_out: tuple[str, ...] = ()

    def __init__(
        self,
        path: str,
        layout: Layout,
        opened: Callable[[], AbstractContextManager[Any]],
        reading: Reading,
        *,
        columns_: Any,
        weights: Any,
        dtype: Any,
        labels: NDArray[Any] | None = None,
        name: str = "",
    ) -> None:
        """`name` is that of the array, if the file has several."""
        self.path, self.where, self._stamp = path, f"{path} ({name})" if name else path, stamp(path)
        shape = layout.shape if len(layout.shape) > 1 else (*layout.shape, 1)
        image = rows_of_images(shape, self.where)
        check.number_kind(layout.dtype, self.where)
        if layout.dtype.kind not in "biuf" or layout.fortran:
            kind = "is stored column by column" if layout.fortran else f"has values of dtype {layout.dtype}"
            raise DataError(
                f"the array {kind}", where=self.where, advice="Save numbers row by row: np.ascontiguousarray(array)"
            )
        self._stored, self._opened = layout.dtype, opened
        self.n_rows, self._width = shape[0], math.prod(shape[1:])
        self.white = white_of(self._stored)
        self.image_shape = said_shape(self._width, image, reading, self.where)
        self.labels = labels
        self._chosen = None
        if not column_selection.all_numeric(columns_):
            self._chosen = column_selection.positions(columns_, None, self._width, self.where)
            self.names, self.image_shape = column_selection.labels(self._chosen, self._width), None
        self.positions = self._chosen
        self.n_columns = self._width if self._chosen is None else len(self._chosen)
        check.not_empty(self.n_rows, self.n_columns, self.where)
        self.dtype: np.dtype[np.floating] = check.float_dtype(dtype) or float_for(self._stored)
        if isinstance(weights, str):
            column_selection.find(weights, None, self.where)
        self.row_weights = None if weights is None else check.weights(weights, self.where, self.n_rows)
        self._finite = check.Finite(self.where, None, self._chosen)

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks, which are read here, one after the other."""
        unchanged([self.path], [self._stamp])
        rows = block_rows(self)
        stop = self.n_rows if last is None else min(last * rows, self.n_rows)
        try:
            with self._opened() as stream:
                self._skip(stream, first * rows * self._width * self._stored.itemsize)
                for start in range(first * rows, stop, rows):
                    yield Loaded(self._block(stream, start, min(start + rows, self.n_rows)))
        except (EOFError, zlib.error, zipfile.BadZipFile, OSError) as problem:
            unchanged([self.path], [self._stamp])
            raise DataError(
                f"the compressed file is damaged ({problem})", where=self.where, advice="Copy or compress it again"
            ) from None
        unchanged([self.path], [self._stamp])

    def _skip(self, stream: Any, count: int) -> None:
        while count:
            got = len(stream.read(min(count, _CHUNK)))
            if not got:
                raise EOFError("it ends too early")
            count -= got

    def _block(self, stream: Any, start: int, stop: int) -> DenseBlock:
        raw = np.empty((stop - start, self._width), self._stored)
        left = raw.reshape(-1).view(np.uint8).data
        while left:
            got = stream.readinto(left)
            if not got:
                raise EOFError("it ends too early")
            left = left[got:]
        chosen = raw if self._chosen is None else raw[:, self._chosen]
        with np.errstate(over="ignore"):
            values = np.ascontiguousarray(chosen, dtype=self.dtype)
        weights = None if self.row_weights is None else self.row_weights[start:stop]
        return DenseBlock(values, start, weights, self._finite)

    def fingerprint(self) -> str:
        """Name, size, modification time and columns."""
        name = self.where.replace(self.path, Path(self.path).name)
        return f"stream {name} {self._stamp.size} {self._stamp.time} {self._chosen} {self.dtype.name}"
