"""Images as the whole numbers that superpixels compare: CIE Lab, or the channels themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from foldwise.errors import DataError, ParameterError
from foldwise.fold import threads
from foldwise.kernels import superpixels as kernel
from foldwise.models.images.colour import linear

T = TypeVar("T")
RANGE = 100.0  # that of lightness in Lab; other numbers are scaled to it
_STRIP = 64  # rows of pixels, which every height of a tile divides


@dataclass(frozen=True)
class Planes:
    """An image in planes of int16, 256 steps to a unit, with the range of values in each cell."""

    values: NDArray[np.int16]  # channels x height x stride
    bounds: NDArray[np.int16]  # cells down x cells across x channels x 2
    width: int

    @property
    def channels(self) -> int:
        """Their number."""
        return int(self.values.shape[0])

    @property
    def height(self) -> int:
        """Rows of pixels."""
        return int(self.values.shape[1])


def strips(height: int) -> list[range]:
    """The rows of an image in parts that depend on its height alone; their number is limited for the sake of many segments."""
    rows = max(_STRIP, -(-height // (16 * _STRIP)) * _STRIP)
    return [range(start, min(start + rows, height)) for start in range(0, height, rows)]


def cells(rows: range) -> range:
    """The rows of cells in a strip."""
    return range(rows.start // kernel.CELL_ROWS, -(-rows.stop // kernel.CELL_ROWS))


def over_strips(
    height: int, work: Callable[[range], T], n_threads: int, take: Callable[[int, T], None] | None = None
) -> list[T]:
    """The result of `work` for each strip, from top to bottom; or `take(number, result)`, in any order."""
    found: dict[int, T] = {}

    def each() -> Iterator[range]:
        yield from strips(height)

    threads.run(each(), lambda _, rows: work(rows), take or found.__setitem__, n_threads)
    return [found[number] for number in sorted(found)]


def as_planes(image: NDArray[Any], space: str, where: str, n_threads: int) -> tuple[Planes, str]:
    """The planes of an image (height x width x channels), and in which space they are: "lab" or "raw"."""
    height, width, channels = image.shape
    space = _space(image, space, where)
    stride = -(-width // kernel.CELL_COLUMNS) * kernel.CELL_COLUMNS
    across, down = stride // kernel.CELL_COLUMNS, -(-height // kernel.CELL_ROWS)
    if space == "lab" and channels == 4 and _opaque(image):
        channels = 3
    values = np.empty((channels, height, stride), np.int16)
    bounds = np.empty((down, across, channels, 2), np.int16)
    fill = _lab_filler(image, values) if space == "lab" else _raw_filler(image, values)

    def work(rows: range) -> None:
        fill(rows)
        kernel.cell_bounds(values, width, cells(rows), bounds)

    over_strips(height, work, n_threads)
    return Planes(values, bounds, width), space


def _space(image: NDArray[Any], space: str, where: str) -> str:
    """What is meant by "auto", or an error."""
    if space not in ("auto", "lab", "raw"):
        raise ParameterError(f"space={space!r} is not one of auto, lab and raw.")
    channels, whole = image.shape[2], image.dtype.kind == "u"
    if space == "auto":
        space = "lab" if channels in (3, 4) or (channels == 1 and whole) else "raw"
        advice = 'or compare the channels as they are with space="raw"'
    else:
        advice = 'or use space="raw"'
    if space == "lab":
        if channels not in (1, 3, 4):
            raise ParameterError(f'space="lab" is for grey, RGB and RGBA images, not for {channels} channels.')
        if not whole and not (image.min() >= 0 and image.max() <= 1):
            raise DataError(
                f"colours are whole numbers of 8 or 16 bits, or go from 0 to 1, but these go from {image.min():.4g} to "
                f"{image.max():.4g}",
                where=where,
                advice=f"Convert them to uint8 or uint16, divide them by their maximum, {advice}",
            )
    return space


def _opaque(image: NDArray[Any]) -> bool:
    full = np.iinfo(image.dtype).max if image.dtype.kind == "u" else 1.0
    return bool((image[..., 3] == full).all())


def _lab_filler(image: NDArray[Any], values: NDArray[np.int16]) -> Callable[[range], None]:
    """Tables of 8 or 16 bits; other numbers are rounded to 16 bits, which Lab in steps of 1/256 does not notice."""
    steps = 255 if image.dtype == np.uint8 else 65535
    light = linear(np.arange(steps + 1) / steps).astype(np.float32)

    def fill(rows: range) -> None:
        if image.dtype.kind == "u":
            kernel.lab_planes(image, light, rows, values)
            return
        part = np.rint(image[rows.start : rows.stop] * steps).astype(np.uint16)
        made = np.empty((values.shape[0], len(rows), values.shape[2]), np.int16)
        kernel.lab_planes(part, light, range(len(rows)), made)
        values[:, rows.start : rows.stop] = made

    return fill


def _raw_filler(image: NDArray[Any], values: NDArray[np.int16]) -> Callable[[range], None]:
    """All channels scaled alike, the least number to 0 and the largest to 100."""
    low, high = float(image.min()), float(image.max())
    half = high / 2 - low / 2  # the difference itself may overflow
    scale = RANGE * kernel.UNIT / 2

    def fill(rows: range) -> None:
        part = image[rows.start : rows.stop].astype(np.float64)
        shares = (part / 2 - low / 2) / half * (2 * scale) if half > 0 else np.zeros(part.shape)
        values[:, rows.start : rows.stop, : image.shape[1]] = np.rint(shares).astype(np.int16).transpose(2, 0, 1)

    return fill
