"""The IDX format, in which the MNIST digits come, plain or compressed by gzip: one row for each entry of the first dimension.

Its labels are in a file of their own, which is found by its name: train-labels-idx1-ubyte beside train-images-idx3-ubyte.
"""

from __future__ import annotations

import gzip
import math
import os
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data import check
from foldwise.data.array_stream import StreamSource
from foldwise.data.npy import Layout, NpySource, refuse_where
from foldwise.data.reading import Reading
from foldwise.data.sniff import IDX_TYPES, is_idx
from foldwise.errors import DataError, warn

_MOST_LABELS = 1 << 26


def open_idx(
    path: str, reading: Reading, *, columns_: Any, where: Any, weights: Any, dtype: Any
) -> NpySource | StreamSource:
    """A source over an IDX file; images of three dimensions have an `image_shape`, and `labels` if their file is there too."""
    refuse_where(where, path)
    layout = idx_layout(path)
    source: NpySource | StreamSource
    if is_packed(path):
        way = partial(after_header, path)
        source = StreamSource(path, layout, way, reading, columns_=columns_, weights=weights, dtype=dtype)
    else:
        kind = check.float_dtype(dtype)
        source = NpySource(path, columns_, weights, kind, flat=True, layout=layout, reading=reading)
    source.labels = _labels_beside(path, layout)
    return source


def is_packed(path: str) -> bool:
    """Whether a file is compressed by gzip, by its content."""
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


def idx_layout(path: str) -> Layout:
    """The shape and type of the values in a file."""
    with _opened(path) as file:
        try:
            head = file.read(4)
            head += file.read(4 * head[3]) if len(head) == 4 else b""
        except (OSError, EOFError, zlib.error) as problem:
            raise DataError(
                f"the compressed file is damaged ({problem})", where=path, advice="Copy or compress it again"
            ) from None
    if not is_idx(head):
        raise DataError(
            "not a file in the IDX format, or truncated", where=path, advice="It begins with two bytes of 0 and a type"
        )
    shape = struct.unpack(f">{head[3]}I", head[4:])
    return Layout(tuple(shape), False, np.dtype(IDX_TYPES[head[2:3]]), len(head))


def _opened(path: str) -> Any:
    return gzip.open(path, "rb") if is_packed(path) else open(path, "rb")


@contextmanager
def after_header(path: str) -> Iterator[Any]:
    """The file, open where its values begin."""
    with _opened(path) as file:
        head = file.read(4)
        file.read(4 * head[3])
        yield file


def idx_values(path: str) -> NDArray[Any]:
    """All values of a small file, such as one of labels, in their shape."""
    layout = idx_layout(path)
    need = math.prod(layout.shape)
    if need > _MOST_LABELS:
        raise DataError(f"{need:,} values are too many for labels", where=path)
    try:
        with after_header(path) as file:
            content = file.read(need * layout.dtype.itemsize)
    except (OSError, EOFError, zlib.error) as problem:
        raise DataError(
            f"the compressed file is damaged ({problem})", where=path, advice="Copy or compress it again"
        ) from None
    if len(content) < need * layout.dtype.itemsize:
        has = len(content) // layout.dtype.itemsize
        raise DataError(
            f"the file is truncated: {has:,} values instead of {need:,}", where=path, advice="Copy or save it again"
        )
    return np.frombuffer(content, layout.dtype).astype(layout.dtype.newbyteorder("=")).reshape(layout.shape)


def _labels_beside(path: str, layout: Layout) -> NDArray[Any] | None:
    """The labels in the file that belongs to a file of images, if it is there and has as many."""
    folder, name = os.path.split(path)
    base = re.sub(r"\.gz$", "", name, flags=re.IGNORECASE)
    other = re.sub(r"images?(.?)idx\d", r"labels\1idx1", base, flags=re.IGNORECASE)
    if len(layout.shape) < 2 or other == base:
        return None
    ignored: list[str] = []
    for candidate in (other, f"{other}.gz"):
        beside = os.path.join(folder, candidate)
        if not os.path.isfile(beside):
            continue
        try:
            labels = idx_values(beside)
        except (DataError, OSError) as problem:  # labels are a bonus: without them, images are still images
            ignored.append(str(problem))
            continue
        if labels.shape == layout.shape[:1]:
            return labels
        shape = " x ".join(f"{one:,}" for one in labels.shape)
        ignored.append(f"{beside}: there are {layout.shape[0]:,} images, but {shape} labels")
    if ignored:
        warn(f"The file of labels beside the images is not used. {ignored[0].rstrip('.')}.")
    return None
