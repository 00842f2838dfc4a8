"""Arrays of images in an .npz archive: (images, height, width[, channels]); an array of labels may lie beside them."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.array_stream import StreamSource
from foldwise.data.npy import Layout, header_of, refuse_where
from foldwise.data.reading import Reading
from foldwise.errors import DataError, FoldwiseError

_LABEL_WORDS = ("label", "target", "class", "y")


def holds_images(path: str, table: str | None = None) -> bool:
    """Whether an archive is to be read as images: the array asked for has more than two dimensions, or only such are there."""
    try:
        layouts = _layouts(path)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError):
        return False  # whoever opens it says what is wrong
    if table is not None:
        return table in layouts and len(layouts[table].shape) > 2
    dimensions = [len(layout.shape) for layout in layouts.values() if layout.dtype.kind in "biuf"]
    return 2 not in dimensions and any(number > 2 for number in dimensions)


def open_npz_images(
    path: str, reading: Reading, *, columns_: Any, where: Any, weights: Any, dtype: Any
) -> StreamSource:
    """A source over the images of an archive."""
    refuse_where(where, path)
    layouts = _layouts(path)
    deep = [name for name, layout in layouts.items() if len(layout.shape) > 2 and layout.dtype.kind in "biuf"]
    name = deep[0] if reading.table is None else reading.table
    if reading.table is None and len(deep) > 1:
        shown = ", ".join(f"{one} ({' x '.join(map(str, layouts[one].shape))})" for one in deep)
        raise DataError(f"several arrays of images: {shown}", where=path, advice=f"Choose one: table={deep[0]!r}")
    given = {"columns_": columns_, "weights": weights, "dtype": dtype, "name": name}
    labels = _labels(path, layouts, name)
    return StreamSource(path, layouts[name], partial(member, path, name), reading, labels=labels, **given)


@contextmanager
def member(path: str, name: str) -> Iterator[Any]:
    """An array of an archive, open where its values begin."""
    with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
        header_of(file, path)
        yield file


def _layouts(path: str) -> dict[str, Layout]:
    with zipfile.ZipFile(path) as archive:
        found = {}
        for info in archive.infolist():
            if info.filename.endswith(".npy"):
                with archive.open(info) as file:
                    found[info.filename.removesuffix(".npy")] = header_of(file, path)
        return found


def _labels(path: str, layouts: dict[str, Layout], name: str) -> NDArray[Any] | None:
    """The one array with a whole number or a text for each image, or that of several whose name says so."""
    rows = layouts[name].shape[:1]
    fitting = [one for one, layout in layouts.items() if layout.shape == rows and layout.dtype.kind in "iuUS"]
    if len(fitting) > 1:
        fitting = [one for one in fitting if any(word in one.lower() for word in _LABEL_WORDS)]
    if len(fitting) != 1:
        return None
    try:
        with np.load(path, allow_pickle=False) as archive:
            labels: NDArray[Any] = archive[fitting[0]]
    except (OSError, ValueError, EOFError, FoldwiseError):
        return None
    return np.char.decode(labels, "utf-8", "replace") if labels.dtype.kind == "S" else labels
