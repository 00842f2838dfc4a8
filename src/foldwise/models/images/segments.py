"""What segments of an image are like: mean colours, sizes, shapes, and how much of the image they explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.image_file import as_image
from foldwise.data.n_threads import count
from foldwise.errors import DataError
from foldwise.kernels import superpixels as kernel
from foldwise.models.images.planes import over_strips

_FAR = 60  # powers of two


def on_outlines(labels: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which pixels lie on an outline: those whose right or lower neighbour is in another segment.

    >>> on_outlines(np.array([[0, 0, 1]], np.int32)).tolist()
    [[False, True, False]]
    """
    found = np.zeros(labels.shape, bool)
    found[:, :-1] |= labels[:, :-1] != labels[:, 1:]
    found[:-1] |= labels[:-1] != labels[1:]
    return found


@dataclass(frozen=True)
class SegmentFigures:
    """One entry for each segment: pixels, sides of pixels on its outline, mean row and column, and its box.

    The outline includes the edge of the picture. A box has the first row and column and the last row and column.
    """

    sizes: NDArray[np.int64]
    outlines: NDArray[np.int64]
    centres: Floats
    boxes: NDArray[np.int64]

    @classmethod
    def of(cls, labels: NDArray[np.int32], n: int) -> SegmentFigures:
        """Those of segments 0 to `n` - 1, none of which is empty."""
        found = kernel.shapes(labels, n)
        sizes = found[:, 0]
        return cls(sizes, found[:, 1], found[:, 2:4] / sizes[:, None], found[:, [4, 6, 5, 7]])

    @property
    def quotients(self) -> Floats:
        """4 pi times the area by the squared length of the outline: 0.785 for a square, less for anything else of pixels."""
        found: Floats = 4 * np.pi * self.sizes / self.outlines.astype(np.float64) ** 2
        return found

    @property
    def quotient(self) -> float:
        """Their mean, weighted by the number of pixels."""
        return float((self.quotients * self.sizes).sum() / self.sizes.sum())


def means_and_variation(
    image: NDArray[Any], labels: NDArray[np.int32], sizes: NDArray[np.int64], n_threads: int
) -> tuple[Floats, float]:
    """The mean of each segment (segments x channels), and the share of the variation of pixels that lies between them.

    An image of one colour is explained by any segments: its share is 1.
    """
    power = 0
    if image.dtype.kind == "f":  # squares of numbers near either end of the range would be lost
        power = int(np.frexp(max(-float(image.min()), float(image.max())))[1])
        power = power if abs(power) > _FAR else 0
        image = np.ldexp(image, -power) if power else image
    every = max(1, int(np.sqrt(image.shape[0] * image.shape[1] / 10_000)))
    pivot = image[::every, ::every].reshape(-1, image.shape[2]).astype(np.float64).mean(0)
    if image.dtype.kind == "u":
        pivot = np.rint(pivot)  # sums of whole numbers have no rounding errors

    def work(rows: range) -> tuple[int, Floats, Floats]:
        part = labels[rows.start : rows.stop]
        base, last = int(part.min()), int(part.max())
        return base, *kernel.pixel_sums(image, labels, pivot, rows, base, last - base + 1)

    sums, squares = np.zeros((len(sizes), image.shape[2])), np.zeros(image.shape[2])
    for base, some, square in over_strips(image.shape[0], work, n_threads):
        sums[base : base + len(some)] += some
        squares += square
    pixels = float(sizes.sum())
    mean = sums.sum(0) / pixels
    shifted = sums / sizes[:, None] - mean
    between = float((sizes[:, None] * shifted**2).sum())
    total = float((squares - pixels * mean**2).sum())
    constant = between == 0 and total <= 1e-12 * float(squares.sum())
    return np.ldexp(pivot + sums / sizes[:, None], power), 1.0 if constant else min(1.0, between / total)


def explained_variation(image: Any, labels: Any) -> float:
    """The share of an image's variation that is left if each pixel has the mean of its segment (Moore et al. 2008).

    `labels` has a whole number for each pixel: segments of any method, not only of `superpixels`.

    >>> explained_variation([[0.0, 0.0, 8.0, 8.0]], [[0, 0, 1, 1]])
    1.0
    """
    pixels = with_channels(as_image(image)[0])
    numbers = label_numbers(labels, pixels.shape[:2])
    sizes = np.bincount(numbers.reshape(-1))
    return means_and_variation(pixels, numbers, sizes, count())[1]


def isoperimetric_quotient(labels: Any) -> float:
    """How compact segments are: the mean of 4 pi area / outline², weighted by area (Schick et al. 2012).

    Outlines are counted in sides of pixels, with the edge of the picture. A square has pi / 4, as much as pixels can have.

    >>> round(isoperimetric_quotient([[0, 0, 1, 1], [0, 0, 1, 1]]), 4)
    0.7854
    """
    numbers = label_numbers(labels, None)
    return SegmentFigures.of(numbers, int(numbers.max()) + 1).quotient


def with_channels(pixels: NDArray[Any]) -> NDArray[Any]:
    """An image with three axes."""
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def label_numbers(labels: Any, shape: tuple[int, ...] | None) -> NDArray[np.int32]:
    """Labels of pixels as numbers from 0 of which every one occurs."""
    given = np.asarray(labels)
    if given.ndim != 2 or given.size == 0 or given.dtype.kind not in "iub":
        raise DataError(f"labels are whole numbers in rows and columns, not {given.dtype} of shape {given.shape}")
    if shape is not None and given.shape != shape:
        raise DataError(f"there are {shape} pixels, but labels for {given.shape}")
    _, numbers = np.unique(given, return_inverse=True)
    return np.ascontiguousarray(numbers.reshape(given.shape), np.int32)
