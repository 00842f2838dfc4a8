"""Arrays of images: which shapes are rows of pixels, and what a user says about the size of the images."""

from __future__ import annotations

import numpy as np

from foldwise.data import check
from foldwise.data.reading import Reading
from foldwise.errors import DataError, ParameterError

_CHANNELS = (1, 3, 4)
_WIDEST_OF_SMALL = 16  # pixels: (1000, 4, 4) are small images, (480, 640, 4) is one large one
_SMALL_KINDS = ("u1", "u2", "i1", "i2", "f2", "f4")


def rows_of_images(shape: tuple[int, ...], where: str) -> tuple[int, ...] | None:
    """The shape of each image in an array of more than two dimensions; None for a plain table. Anything doubtful is refused."""
    if len(shape) == 3 and not (shape[2] in (3, 4) and shape[1] > _WIDEST_OF_SMALL):
        return shape[1:]
    if len(shape) == 4 and shape[3] in _CHANNELS:
        return shape[1:3] if shape[3] == 1 else shape[1:]
    if len(shape) == 3:
        raise DataError(
            f"an array of shape {shape} is taken for one image with colours, not for rows",
            where=where,
            advice="Images are rows of an array (images, height, width) or (images, height, width, channels)",
        )
    if len(shape) == 4:
        raise DataError(
            f"an array of shape {shape} has its channels not last, or too many of them (1, 3 or 4 make an image)",
            where=where,
            advice="If they come second, save array.transpose(0, 2, 3, 1); for other data, array.reshape(len(array), -1)",
        )
    check.two_dimensional(shape, where)
    return None


def said_shape(
    n_columns: int, known: tuple[int, ...] | None, reading: Reading, where: str
) -> tuple[int, ...] | None:
    """The shape of the images in the rows of an array: as known, or as `image_size` says."""
    if reading.grey:
        raise ParameterError("grey=True is for files of images: make an array grey before it is saved.")
    if reading.image_size is None:
        return known
    width, height = reading.image_size
    if known is not None and known[:2] != (height, width):
        raise ParameterError(
            f"{where}: image_size='{width}x{height}', but the images of this array have {known[1]} x {known[0]} pixels "
            "(width x height). Only files of images can be resized."
        )
    found = {height * width: (height, width), height * width * 3: (height, width, 3)}.get(n_columns)
    if known is None and found is None:
        raise ParameterError(
            f"{where}: image_size='{width}x{height}' is {width * height:,} pixels, or 3 times as many columns with colours, "
            f"but there are {n_columns:,} columns."
        )
    return known or found


def float_for(stored: np.dtype[np.generic]) -> np.dtype[np.floating]:
    """The narrowest of float32 and float64 that holds the values of images exactly."""
    return np.dtype(np.float32 if stored.str[1:] in _SMALL_KINDS else np.float64)


