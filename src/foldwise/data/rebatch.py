"""From column batches of any length to blocks on the grid: which rows of which batches form a block."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from foldwise.kernels.arrow import Batch, copy_into

Part: TypeAlias = tuple[Batch, int, int]  # rows [start, stop) of a batch


def grouped(batches: Iterable[Batch], rows: int) -> Iterator[tuple[int, list[Part]]]:
    """The first row and the parts of each block of `rows` rows, from a stream of batches."""
    start, have, parts = 0, 0, list[Part]()
    for batch in batches:
        at = 0
        while at < batch.rows:
            stop = min(batch.rows, at + rows - have)
            parts.append((batch, at, stop))
            have, at = have + stop - at, stop
            if have == rows:
                yield start, parts
                start, have, parts = start + rows, 0, []
    if parts:
        yield start, parts


class BatchList:
    """Batches held in memory."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = [batch for batch in batches if batch.rows]
        self._ends = list(accumulate(batch.rows for batch in self._batches))
        self.rows = self._ends[-1] if self._ends else 0

    def parts(self, start: int, stop: int) -> list[Part]:
        """The parts that make up rows [start, stop) of the table."""
        found = list[Part]()
        k = bisect_right(self._ends, start)
        while start < stop:
            batch, end = self._batches[k], self._ends[k]
            first = end - batch.rows
            found.append((batch, start - first, min(stop, end) - first))
            start, k = min(stop, end), k + 1
        return found


def rows_of(parts: Sequence[Part], n_columns: int, dtype: np.dtype[Any], first: int = 0) -> NDArray[Any]:
    """The parts as one row-major array, with NaN for missing values."""
    out = np.empty((sum(stop - start for _, start, stop in parts), n_columns), dtype=dtype)
    at = 0
    for batch, start, stop in parts:
        copy_into(batch, start, stop, out, at, first=first)
        at += stop - start
    return out
