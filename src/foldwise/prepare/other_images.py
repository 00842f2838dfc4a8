"""Other images as rows of pixels like those that are known: in the same shape, and between the same black and white."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.array_files import is_array_file
from foldwise.data.block import Floats
from foldwise.data.files import find
from foldwise.data.image_endings import has_image_ending
from foldwise.data.image_file import as_image, image_header
from foldwise.data.image_row import image_row
from foldwise.data.resample import resample
from foldwise.errors import DataError
from foldwise.prepare.images import FILES, ImageRows, are_paths, guessed_white, read_images, shape_of


def like_images(others: Any, known: ImageRows) -> tuple[NDArray[Any], str | None]:
    """Other images, of any size, as rows of pixels; and what is to be said about their values, if anything.

    Files of images lie on white where they are transparent, as those of a set do. White is what the files or the type of the
    values say; where nothing says, values are taken to be in the units of the images that are known.
    """
    rows, note = _files(others, known) if _are_files(others) else _arrays(others, known)
    if not len(rows):
        raise DataError("there is no other image", advice="Give at least one")
    if not np.isfinite(rows).all():
        raise DataError("some pixels of the other images are not finite numbers", advice="Replace them first")
    return np.asarray(rows, known.values.dtype), note


def _are_files(others: Any) -> bool:
    if are_paths(others):
        return len(others) > 0 and all(has_image_ending(os.fspath(one)) for one in others)
    if not isinstance(others, (str, os.PathLike)):
        return False
    name = os.path.expanduser(os.fspath(others))
    return os.path.isdir(name) or has_image_ending(name) or (is_array_file(name) and find(name).kind == "image")


def _files(others: Any, known: ImageRows) -> tuple[Floats, str | None]:
    folder = os.path.expanduser(os.fspath(others)) if isinstance(others, (str, os.PathLike)) else ""
    if os.path.isdir(folder) and not is_array_file(folder):
        raise DataError("no images in this folder", where=folder)
    height, width = known.shape[:2]
    rows, note = [], None
    for path in find(others).paths:
        pixels = image_row(path, (width, height), grey=len(known.shape) == 2)
        head = image_header(path)
        white = 255.0 if head.kind == "8 bits" else 65535.0 if head.kind == "16 bits" else guessed_white(pixels)
        if pixels.max() > white:  # 32 bits
            white = math.nan
        row, said = _scaled(resample(pixels[None], known.shape).reshape(1, -1), white, FILES, known)
        rows.append(row)
        note = note or said
    return np.concatenate(rows), note


def _arrays(others: Any, known: ImageRows) -> tuple[Floats, str | None]:
    if isinstance(others, (list, tuple)) and len(set(map(shape_of, others))) > 1:  # of several sizes: one by one
        parts = [_arrays(as_image(one)[0][None], known) for one in others]
        return np.concatenate([rows for rows, _ in parts]), next((note for _, note in parts if note), None)
    if not isinstance(others, (str, os.PathLike)) and not hasattr(others, "pieces"):
        shape, pixels = np.shape(others), math.prod(known.shape)
        one = shape in (known.shape, (pixels,)) or (len(shape) == 2 and shape[1] != pixels)  # of any size
        if one and shape != ():
            others = np.asarray(others)[None]
        if np.shape(others)[1:] == (math.prod(known.shape),):
            others = np.asarray(others).reshape(-1, *known.shape)
    found = read_images(others)
    rows = resample(found.pictures(), known.shape).reshape(len(found.values), -1)
    return _scaled(rows, found.white, found.said_by, known)


def _scaled(rows: Floats, white: float, said_by: str, known: ImageRows) -> tuple[Floats, str | None]:
    """Rows in units of the known images.

    A set of whole numbers from 0 to 16, whatever their type, has no white that could be compared with that of photographs: its
    own range is then taken for that from black to white.
    """
    high = float(known.values.max())
    unknown = math.isnan(known.white)
    faint = said_by == FILES and known.said_by != FILES and high <= known.white / 4
    if (unknown and said_by) or faint:
        low = min(0.0, float(known.values.min()))
        if not high > low or math.isnan(white):
            return rows, None
        black = "" if low == 0 else f" and black {low:.4g}, the lowest"
        note = f"The images do not say which value is white: white of the other images became {high:.4g}, the highest{black}."
        return low + rows * ((high - low) / white), note
    factor = known.white / white
    return rows * (factor if math.isfinite(factor) else 1.0), None
