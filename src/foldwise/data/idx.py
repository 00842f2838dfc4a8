"""IDX files, in which MNIST and its relatives come: a few bytes about the shape, then the numbers."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.compressed import opened
from foldwise.errors import DataError

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def is_idx(path: str) -> bool:
    """Whether a file, compressed or not, begins like one; told by its first four bytes."""
    try:
        with opened(path) as file:
            first = file.read(4)
    except (OSError, DataError):
        return False
    return len(first) == 4 and first[:2] == b"\0\0" and first[2] in _TYPES and 1 <= first[3] <= 4


def read_idx(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The array of an IDX file."""
    name = os.fspath(path)
    with opened(name) as file:
        first = file.read(4)
        shape = tuple(np.frombuffer(file.read(4 * first[3]), ">u4").astype(int).tolist())
        dtype = np.dtype(_TYPES[first[2]])
        size = int(np.prod(shape, dtype=object))
        content = file.read(size * dtype.itemsize)
    if len(shape) < first[3] or len(content) < size * dtype.itemsize:
        raise DataError("the IDX file is truncated", where=name, advice="Copy it again")
    return np.frombuffer(content, dtype).reshape(shape)
