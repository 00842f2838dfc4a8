"""Images of one size, from wherever they are, as rows of pixels, with the label of each if there are any."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.array_files import is_array_file
from foldwise.data.block import Block
from foldwise.data.image_endings import has_image_ending
from foldwise.data.image_file import as_image
from foldwise.data.image_folder import ImageSource
from foldwise.data.image_shape import in_pixels, white_of
from foldwise.data.missing import allow_missing
from foldwise.data.reading import Reading
from foldwise.data.reading import image_size as parsed_size
from foldwise.data.scan import scan
from foldwise.data.source import Source, count_rows
from foldwise.data.subset import gather
from foldwise.errors import DataError, ParameterError
from foldwise.prepare.image_labels import checked_labels, given_labels, labels_in_archive

_MOST_VALUES = 250_000_000  # pixels in memory, 1 GB as float32
_WIDE_VALUES = 20_000_000  # up to which they are float64
FILES, TYPE = "files", "type"  # who says what white is
Shape = tuple[int, ...]


@dataclass(frozen=True)
class ImageRows:
    """Images as rows of pixels.

    `shape` is (height, width) or (height, width, channels), `white` the value of a white pixel as far as that is known (else
    NaN), `said_by` who says so ("files", "type", or "" for a guess by the values), `total` the number of images before some
    were drawn.
    """

    values: NDArray[Any]
    shape: Shape
    labels: NDArray[Any] | None
    where: str
    white: float
    said_by: str
    total: int
    label_name: str = "label"

    def pictures(self) -> NDArray[Any]:
        """The pixels in their places."""
        return self.values.reshape(-1, *self.shape)


def image_rows(
    images: Any,
    labels: Any = None,
    *,
    image_size: Any = None,
    grey: bool = False,
    most: int | None = None,
    seed: int = 0,
) -> ImageRows:
    """Images from a folder, a .npy, .npz or IDX file, a table of pixels, an array or a list, all of one size.

    `labels` is one label per image, or a name: of an array in an .npz file, a column of a table, or a file. `image_size` is the
    width and height that files of images are brought to, and that rows of pixels have. Of more than `most` images, so many are
    drawn at random.
    """
    size = None if image_size is None else parsed_size(image_size)
    found = _read(images, labels, size, grey, most, seed)
    if len(found.values) < 2:
        raise DataError(
            "there is only one image: components are what several differ in",
            where=found.where,
            advice="Give at least two",
        )
    bad = ~np.isfinite(found.values).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError("some pixels are not finite numbers", where=found.where, row=row, advice="Replace them first")
    return found


def read_images(images: Any) -> ImageRows:
    """Images as they are, also a single one."""
    return _read(images, None, None, False, None, 0)


def _read(images: Any, labels: Any, size: Any, grey: bool, most: int | None, seed: int) -> ImageRows:
    if isinstance(images, (list, tuple)) and len(images) and not are_paths(images):
        images = _stacked(images)
    if isinstance(images, (str, os.PathLike)) or are_paths(images):
        reading = Reading(image_size=size, grey=grey or None)
        name = os.path.expanduser(os.fspath(images)) if isinstance(images, (str, os.PathLike)) else list(images)
        is_images = not isinstance(name, str) or os.path.isdir(name) or is_array_file(name) or has_image_ending(name)
        if isinstance(name, str) and name.lower().endswith(".npz"):
            return _of_archive(name, labels, reading, most, seed)
        if not is_images:
            _refuse_grey(grey)
            return _of_table(name, labels, size, most, seed)
        return _of_source(scan(name, reading=reading), given_labels(labels), size, most, seed)
    _refuse_grey(grey)
    if isinstance(images, Source):
        return _of_source(images, given_labels(labels), size, most, seed)
    if hasattr(images, "columns") or hasattr(images, "__arrow_c_stream__"):
        return _of_table(images, labels, size, most, seed)
    return _of_array(np.asarray(images), given_labels(labels), size, most, seed)


def _refuse_grey(grey: bool) -> None:
    if grey:
        raise ParameterError("grey=True is for files of images: make an array grey first, as in images.mean(axis=3).")


def are_paths(images: Any) -> bool:
    """Whether these are names of files in a list."""
    return isinstance(images, (list, tuple)) and all(isinstance(one, (str, os.PathLike)) for one in images)


def _stacked(images: Any) -> NDArray[Any]:
    if not any(isinstance(one, (str, os.PathLike)) or hasattr(one, "getexif") for one in images):
        shapes = set(map(shape_of, images))
        if len(shapes) == 1:
            return np.asarray(images)
    pixels = [as_image(one)[0] for one in images]
    first = pixels[0].shape
    for number, one in enumerate(pixels):
        if one.shape != first:
            raise DataError(
                f"image {number} is {in_pixels(one.shape)}, but the first is {in_pixels(first)}",
                advice="Give images of one size",
            )
    return np.stack(pixels)


def shape_of(image: Any) -> Shape:
    """The shape of an image in a list."""
    try:
        return np.shape(image)
    except ValueError:
        raise DataError("an image has lines of different lengths", advice="Give as many pixels in each line") from None


# ---------------------------------------------------------------- kinds of input


def _of_array(array: NDArray[Any], labels: Any, size: Any, most: int | None, seed: int) -> ImageRows:
    if array.dtype.kind not in "biuf" or array.dtype.names:
        raise DataError(f"pixels are numbers, not {array.dtype}", where="array")
    if array.ndim not in (2, 3, 4) or array.size == 0:
        raise DataError(
            f"images are an array (n, height, width), (n, height, width, channels) or (n, pixels), not {array.shape}",
            where="array",
        )
    shape = _shape(array.shape[1:], size, "array")
    kept, drawn = checked_labels(labels, len(array), "array"), _drawn(len(array), math.prod(shape), most, seed)
    rows = array.reshape(len(array), -1)
    values = _floats(rows if drawn is None else rows[drawn])
    white = white_of(array.dtype)
    kept = kept if drawn is None or kept is None else kept[drawn]
    return ImageRows(values, shape, kept, "array", *_white(white, TYPE, values), len(array))


def _of_source(source: Any, labels: Any, size: Any, most: int | None, seed: int) -> ImageRows:
    """Rows of pixels of any source: one of images says their shape, and who is on them."""
    n, d = count_rows(source), source.n_columns
    shape = _shape(getattr(source, "image_shape", None) or (d,), size, source.where)
    kept = checked_labels(getattr(source, "labels", None) if labels is None else labels, n, source.where)
    drawn = _drawn(n, d, most, seed)
    known = allow_missing(source)  # missing pixels are told in our own words
    rows = known if drawn is None else gather(known, drawn)
    values = _floats(np.concatenate([_unweighted(piece.load(), source.where) for piece in rows.pieces()]))
    kept = kept if drawn is None or kept is None else kept[drawn]
    said_by = FILES if isinstance(source, ImageSource) else TYPE
    white = _white(getattr(source, "white", None), said_by, values)
    return ImageRows(values, shape, kept, source.where, *white, n)


def _unweighted(block: Block, where: str) -> NDArray[Any]:
    if block.weights is not None:
        raise ParameterError(
            f"{where}: the rows have weights, which count for nothing here. Leave them out; fw.PCA takes weights."
        )
    return block.dense()


def _of_archive(path: str, labels: Any, reading: Reading, most: int | None, seed: int) -> ImageRows:
    """An archive may hold labels under the name that was given."""
    source, name = scan(path, reading=reading), "label"
    if isinstance(labels, str) and not os.path.exists(labels):
        labels, name = labels_in_archive(path, labels), labels
    return replace(_of_source(source, given_labels(labels), reading.image_size, most, seed), label_name=name)


def _of_table(x: Any, labels: Any, size: Any, most: int | None, seed: int) -> ImageRows:
    """All columns but the label are pixels, in the order of the columns."""
    from foldwise.data.tables import open_table
    from foldwise.prepare.build import prepare
    from foldwise.prepare.target import target_of

    names = [column.name for column in open_table(x, Reading()).columns]
    name = None
    values = labels
    if isinstance(labels, str) and not os.path.exists(labels):
        name = labels
        if name not in names and name.isdecimal() and int(name) < len(names):
            name = names[int(name)]
        if name not in names:
            shown = ", ".join([*names[:3], "...", names[-1]]) if len(names) > 4 else ", ".join(names)
            raise ParameterError(f"there is no column {labels!r} for the labels; there are {shown}.")
        target = target_of(prepare(x, labels=[name], as_={name: "category"}), name)
        if target.missing:
            raise DataError(f"{target.missing:,} labels are missing", column=name, advice="Fill in who or what it is")
        values = target.values
    source = scan(x, columns=[place for place, one in enumerate(names) if one != name])
    found = _of_source(source, given_labels(values), size, most, seed)
    named = name is not None and not re.fullmatch(r"column\d+|\d+", name)  # else it has no name of its own
    return replace(found, label_name=str(name) if named else "label")


# ---------------------------------------------------------------- pieces


def _shape(own: Shape, size: Any, where: str) -> Shape:
    """The shape of images: their own, or that of so many pixels in a row."""
    if len(own) > 1:
        if size is not None and (size[1], size[0]) != own[:2]:
            raise ParameterError(f"image_size {size[0]}x{size[1]}: the images of {where} have {in_pixels(own)} pixels.")
        return tuple(own)
    pixels = own[0]
    if size is None:
        side = math.isqrt(pixels)
        if side * side == pixels:
            return side, side
        advice = "Say the width and height, as in image_size='28x32'"
        if math.isqrt(pixels - 1) ** 2 == pixels - 1:
            advice += "; or, if one column says what is on the images, name it as labels="
        raise DataError(f"{pixels} pixels in a row are no square image", where=where, advice=advice)
    for shape in ((size[1], size[0]), (size[1], size[0], 3)):
        if math.prod(shape) == pixels:
            return shape
    raise ParameterError(
        f"image_size {size[0]}x{size[1]} has {size[0] * size[1]:,} pixels, but the rows of {where} have {pixels:,}."
    )


def _drawn(n: int, pixels: int, most: int | None, seed: int) -> NDArray[np.intp] | None:
    limit = min(n if most is None else most, max(2, _MOST_VALUES // max(pixels, 1)))
    return None if n <= limit else np.sort(np.random.default_rng(seed).choice(n, limit, replace=False))


def _floats(values: NDArray[Any]) -> NDArray[Any]:
    wide = values.dtype == np.float64 or values.size <= _WIDE_VALUES
    return np.ascontiguousarray(values, np.float64 if wide else np.float32)


def _white(known: float | None, said_by: str, values: NDArray[Any]) -> tuple[float, str]:
    return (guessed_white(values), "") if known is None else (known, said_by)


def guessed_white(values: NDArray[Any]) -> float:
    """What a white pixel has, by the values: 1 of shares, 255 or 65535 of whole numbers as long as they come near."""
    low, high = float(values.min()), float(values.max())
    if low < 0 or not high < 65536:
        return math.nan
    if high <= 1:
        return 1.0
    some = values[:: max(1, len(values) // 100)]
    return math.nan if high < 64 or (some != some.round()).any() else 255.0 if high < 256 else 65535.0
