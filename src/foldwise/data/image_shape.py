"""Arrays of images: which shapes are rows of pixels, and what a user says about the size of the images."""

from __future__ import annotations

from typing import Any

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


def said_shape(n_columns: int, known: tuple[int, ...] | None, reading: Reading, where: str) -> tuple[int, ...] | None:
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


def refuse_image_options(reading: Reading, what: str) -> None:
    """Raise if something was said of images."""
    if reading.image_size is not None or reading.grey:
        given = "image_size=" if reading.image_size is not None else "grey=True"
        raise ParameterError(f"{given} is for images and arrays of them, not for {what}.")


def pixel_names(shape: tuple[int, ...]) -> list[str]:
    """What reports call the columns of images: the line and the place in it, from 0, and the channel.

    >>> pixel_names((1, 2)), pixel_names((1, 1, 3))
    (['pixel 0,0', 'pixel 0,1'], ['pixel 0,0 red', 'pixel 0,0 green', 'pixel 0,0 blue'])
    """
    places = [f"pixel {y},{x}" for y in range(shape[0]) for x in range(shape[1])]
    if len(shape) == 2:
        return places
    channels = ("red", "green", "blue", "opacity")[: shape[2]]
    return [f"{place} {channel}" for place in places for channel in channels]


def names_of_columns(source: Any) -> tuple[str, ...]:
    """The names of the columns that the models see; of images, pixels by their places; or x0, x1, ..."""
    shape = getattr(source, "image_shape", None)
    if source.names is not None:
        return tuple(map(str, source.names))
    return tuple(f"x{j}" for j in range(source.n_columns)) if shape is None else tuple(pixel_names(shape))


def float_for(stored: np.dtype[np.generic]) -> np.dtype[np.floating]:
    """The narrowest of float32 and float64 that holds the values of images exactly."""
    return np.dtype(np.float32 if stored.str[1:] in _SMALL_KINDS else np.float64)


def white_of(stored: np.dtype[np.generic]) -> float | None:
    """What a white pixel has by the type of the values; None if it does not say.

    >>> white_of(np.dtype(">u2")), white_of(np.dtype(float))
    (65535.0, None)
    """
    return {"u1": 255.0, "u2": 65535.0, "b1": 1.0}.get(stored.str[1:])


def in_pixels(shape: tuple[int, ...]) -> str:
    """A shape, as people say it: width first.

    >>> in_pixels((48, 64)), in_pixels((48, 64, 3))
    ('64 x 48', '64 x 48 x 3')
    """
    return " x ".join(map(str, (shape[1], shape[0], *shape[2:]))) if len(shape) > 1 else str(shape[0])


def said_as(shape: tuple[int, ...]) -> str:
    """The size and the kind of images, in words.

    >>> said_as((48, 64)), said_as((48, 64, 3))
    ('64 x 48 pixels (width x height), grey', '64 x 48 pixels (width x height), with colours')
    """
    return f"{in_pixels(shape[:2])} pixels (width x height), {'grey' if len(shape) == 2 else 'with colours'}"
