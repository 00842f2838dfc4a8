"""A folder of images, or a list of them, as rows: one row per image, its pixels as columns, decoded when a block is loaded."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data import check, column_selection
from foldwise.data.block import DenseBlock
from foldwise.data.files import Files, unchanged
from foldwise.data.image_file import ImageHeader, image_header
from foldwise.data.image_row import image_row
from foldwise.data.image_shape import in_pixels
from foldwise.data.reading import Reading
from foldwise.data.source import Piece, row_ranges
from foldwise.errors import DataError, warn


class ImageSource:
    """Images of one size. Columns are pixels, row by row from the top, channels last; values are those of the files.

    `image_shape` is (height, width) or (height, width, 3); `paths` are the files, `labels` the subfolders that they are in, or
    None if there is only one folder.
    """

    sparse = False
    slow = True
    in_memory = False
    names: tuple[str, ...] | None = None
    left_out: tuple[str, ...] = ()

    def __init__(self, files: Files, reading: Reading, *, columns_: Any, weights: Any, dtype: Any) -> None:
        self.where, self.paths, self._stamps = files.where, files.paths, files.stamps
        self._size, self._grey = reading.image_size, bool(reading.grey)
        self.labels = folder_labels(self.paths)
        heads = _alike(self.paths, self._size, grey=self._grey)
        self._shape = image_row(self.paths[0], self._size, grey=self._grey).shape
        self.image_shape: tuple[int, ...] | None = self._shape
        self.kind, wide = heads[0].kind, any(head.wide for head in heads)
        self.white = {"8 bits": 255.0, "16 bits": None if wide else 65535.0}.get(self.kind)
        self.n_rows, width = len(self.paths), math.prod(self._shape)
        self._chosen = None
        if not column_selection.all_numeric(columns_):
            self._chosen = column_selection.positions(columns_, None, width, self.where)
            self.names, self.image_shape = column_selection.labels(self._chosen, width), None
        self.positions = self._chosen
        self.n_columns = width if self._chosen is None else len(self._chosen)
        check.not_empty(self.n_rows, self.n_columns, self.where)
        self.dtype: np.dtype[np.floating] = check.float_dtype(dtype) or np.dtype(np.float64 if wide else np.float32)
        if isinstance(weights, str):
            column_selection.find(weights, None, self.where)
        self.row_weights = None if weights is None else check.weights(weights, self.where, self.n_rows)

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks to load."""
        return row_ranges(self, first, last)

    def load(self, start: int, stop: int) -> DenseBlock:
        """The block of the images from `start` to `stop` - 1."""
        rows = np.empty((stop - start, self.n_columns), self.dtype)
        for number in range(start, stop):
            pixels = self._pixels(number).reshape(-1)
            rows[number - start] = pixels if self._chosen is None else pixels[self._chosen]
        weights = None if self.row_weights is None else self.row_weights[start:stop]
        return DenseBlock(rows, start, weights)

    def _pixels(self, number: int) -> NDArray[Any]:
        path, stamps = self.paths[number : number + 1], self._stamps[number : number + 1]
        unchanged(path, stamps)
        try:
            pixels = image_row(path[0], self._size, grey=self._grey)
        except DataError:
            unchanged(path, stamps)  # if it is being written, that is the reason
            raise
        unchanged(path, stamps)
        if pixels.shape != self._shape:  # which the head of the file did not tell
            refuse_shapes(self.paths[0], self._shape, path[0], pixels.shape)
        return pixels

    def fingerprint(self) -> str:
        """Names, sizes and times of the files, and what is made of them."""
        listed = [(os.path.basename(path), *stamp) for path, stamp in zip(self.paths, self._stamps, strict=True)]
        digest = hashlib.sha256(repr(listed).encode()).hexdigest()[:16]
        return f"images {self.n_rows} {digest} {self._shape} {self._grey} {self._chosen} {self.dtype.name}"


def open_images(files: Files, reading: Reading, *, columns_: Any, where: Any, weights: Any, dtype: Any) -> ImageSource:
    """A source over images."""
    if where is not None:
        raise DataError(
            "where= is not possible for images", where=files.where, advice="Pass a list of the files to use"
        )
    return ImageSource(files, reading, columns_=columns_, weights=weights, dtype=dtype)


def _alike(paths: Sequence[str], size: tuple[int, int] | None, *, grey: bool) -> list[ImageHeader]:
    """The heads of the files, which must promise rows of one length and one kind; pixels are not decoded for that."""
    heads = [image_header(path) for path in paths]
    first = heads[0]
    for path, head in zip(paths, heads, strict=True):
        shapes = [(one.height, one.width, 0 if grey or one.grey else 3) for one in (first, head)]
        if size is not None:
            shapes = [(size[1], size[0], shape[2]) for shape in shapes]
        if shapes[0] != shapes[1]:
            # The head need not tell all, as when a PNG file says at its end how the camera was held.
            pair = [image_row(one, size, grey=grey).shape for one in (paths[0], path)]
            if pair[0] != pair[1]:
                refuse_shapes(paths[0], pair[0], path, pair[1])
        if head.kind != first.kind:
            raise DataError(
                f"{paths[0]} has values of {first.kind} and {path} of {head.kind}, which cannot be compared",
                advice="Save all images in the same way",
            )
    _say(paths, [head.several for head in heads], "several pictures; the first of each is used")
    _say(paths, [head.loses_bits for head in heads], "16 bits for each colour, of which the upper 8 are read")
    return heads


def _say(paths: Sequence[str], which: Sequence[bool], what: str) -> None:
    if any(which):
        first = paths[list(which).index(True)]
        more = f" and {sum(which) - 1:,} more have" if sum(which) > 1 else " has"
        warn(f"{first}{more} {what}.")


def refuse_shapes(path: str, shape: tuple[int, ...], other: str, another: tuple[int, ...]) -> None:
    """Raise for images of different sizes, or of grey and of colours."""
    if shape[:2] != another[:2]:
        height, width = shape[:2]
        own, theirs = in_pixels(shape[:2]), in_pixels(another[:2])
        raise DataError(
            f"images differ in size: {path} has {own} and {other} {theirs} pixels (width x height)",
            advice=f"image_size='{width}x{height}' makes all images as large as the first",
        )
    grey, colour = (path, other) if len(shape) == 2 else (other, path)
    raise DataError(f"{grey} is grey and {colour} has colours", advice="grey=True makes all images grey")


def folder_labels(paths: Sequence[str]) -> NDArray[np.str_] | None:
    """The folder of each file, seen from the one that holds them all; None if they are all in one.

    >>> folder_labels(["faces/ann/1.png", "faces/bob/1.png", "faces/bob/2.png"]).tolist()
    ['ann', 'bob', 'bob']
    """
    folders = [os.path.dirname(os.path.abspath(path)) for path in paths]
    if len(set(folders)) == 1:
        return None
    common = os.path.commonpath(folders)
    return np.array([os.path.relpath(folder, common).replace(os.sep, "/") for folder in folders])
