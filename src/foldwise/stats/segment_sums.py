"""Sums over the pixels of each segment of an image: the statistic behind superpixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats


@dataclass(frozen=True)
class SegmentSums:
    """For each segment the sums of its colours (whole numbers), rows and columns, and its number of pixels.

    Whole numbers are added without rounding, so that `merge` is exact in any order.
    """

    values: NDArray[np.int64]  # segments x (channels + 3)

    @classmethod
    def empty(cls, n_segments: int, channels: int) -> SegmentSums:
        """The identity of `merge`."""
        return cls(np.zeros((n_segments, channels + 3), np.int64))

    @classmethod
    def of(
        cls, colours: NDArray[np.int16], places: NDArray[np.int64], labels: NDArray[np.int32], n_segments: int
    ) -> SegmentSums:
        """The sums of some pixels: their colours (pixels x channels), places (pixels x 2) and segments."""
        values = np.zeros((n_segments, colours.shape[1] + 3), np.int64)
        np.add.at(values, labels, np.column_stack([colours, places, np.ones(len(labels), np.int64)]))
        return cls(values)

    def merge(self, other: SegmentSums) -> SegmentSums:
        """Both together."""
        return SegmentSums(self.values + other.values)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of pixels of each segment."""
        return self.values[:, -1]

    def centres(self, otherwise: Floats) -> Floats:
        """The mean colour, row and column of each segment; a row of `otherwise` for those without pixels."""
        sizes = self.sizes[:, None]
        return np.where(sizes > 0, self.values[:, :-1] / np.maximum(sizes, 1), otherwise)
