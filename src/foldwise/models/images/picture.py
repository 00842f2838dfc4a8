"""Pictures as models of images take them: whole numbers of 8 or 16 bits in 1, 3 or 4 channels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.files import images_in, matching, natural_order
from foldwise.data.image_file import as_image
from foldwise.errors import DataError, MissingFileError
from foldwise.fold import events
from foldwise.models.images.colour_counts import MOST_COLOURS, ColourCounts


@dataclass(frozen=True, eq=False)
class Picture:
    """Pixels (height, width, 1, 3 or 4) of 8 or 16 bits, and what messages call them."""

    pixels: NDArray[Any]
    name: str
    given: NDArray[Any]

    @classmethod
    def of(cls, image: Any) -> Picture:
        """From a path, a picture of Pillow or an array; numbers that are not whole go from 0 to 1."""
        if isinstance(image, Picture):
            return image
        given, name = as_image(image)
        pixels = given
        if pixels.dtype not in (np.uint8, np.uint16):
            if pixels.min() < 0 or pixels.max() > 1:
                raise DataError(
                    f"pixels from {pixels.min():.4g} to {pixels.max():.4g}",
                    where=name,
                    advice="Give whole numbers of 8 or 16 bits (uint8, uint16), or numbers from 0 to 1",
                )
            pixels = np.rint(pixels * 65535).astype(np.uint16)
        pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
        if pixels.shape[2] not in (1, 3, 4):
            raise DataError(
                f"{pixels.shape[2]} channels",
                where=name,
                advice="Pictures are grey (1), RGB (3) or RGB and opacity (4)",
            )
        if pixels.shape[2] == 4 and (pixels[:, :, 3] == np.iinfo(pixels.dtype).max).all():
            pixels = pixels[:, :, :3]  # all of it opaque
        return cls(pixels, name, given)

    @property
    def channels(self) -> int:
        """1 if grey, 3, or 4 with opacity."""
        return int(self.pixels.shape[2])

    @property
    def unit(self) -> float:
        """What a value is multiplied by to go from 0 to 255."""
        return 1.0 if self.pixels.dtype == np.uint8 else 255 / 65535

    @cached_property
    def counts(self) -> ColourCounts:
        """All its colours."""
        return ColourCounts.of(self.pixels)

    def in_channels(self, channels: int, rows: slice = slice(None)) -> NDArray[Any]:
        """The pixels with more channels: grey repeated, and opaque."""
        some = self.pixels[rows]
        if channels >= 3 and some.shape[2] == 1:
            some = some.repeat(3, axis=2)
        if channels == 4 and some.shape[2] == 3:
            full = np.full((*some.shape[:2], 1), np.iinfo(some.dtype).max, some.dtype)
            some = np.concatenate([some, full], axis=2)
        return some


def listed(images: Any) -> list[Any]:
    """One picture, or the files that a pattern names, those in a folder or those of a list, as a list."""
    if isinstance(images, (list, tuple)) and not _is_pixels(images):
        found = [one for image in images for one in listed(image)]
    elif isinstance(images, (str, os.PathLike)):
        folder = os.path.isdir(images)
        found = sorted(images_in(os.fspath(images)), key=natural_order) if folder else list(matching(images))
        if not found:
            nothing = "no images in this folder" if folder else "no file matches this pattern"
            raise MissingFileError(nothing, where=os.fspath(images))
    else:
        return [images]
    if not found:
        raise DataError("an empty list: there is no picture in it")
    return found


def each(pictures: Sequence[Any]) -> Iterator[Picture]:
    """The pictures, one after the other, of which none is kept."""
    for number, one in enumerate(pictures):
        if len(pictures) > 1:
            name = os.fspath(one) if isinstance(one, (str, os.PathLike)) else "picture"
            events.emit(events.Stage(name, number + 1, len(pictures)))
        yield Picture.of(one)


def counted(pictures: Sequence[Any]) -> ColourCounts:
    """The colours of all pictures."""
    if len(pictures) == 1:
        return Picture.of(pictures[0]).counts.at_most(MOST_COLOURS)
    total: ColourCounts | None = None
    for picture in each(pictures):
        found = ColourCounts.of(picture.pixels, MOST_COLOURS)
        total = found if total is None else total.merge(found, MOST_COLOURS)
    assert total is not None
    return total


def _is_pixels(values: Any) -> bool:
    """Whether a list is one of rows of numbers."""
    first = values[0] if len(values) else None
    return isinstance(first, (list, tuple)) and not any(isinstance(one, (str, os.PathLike)) for one in first)
