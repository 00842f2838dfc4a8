"""Images of one size, from wherever they are, as rows of pixels, with the label of each if there are any."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.array_files import is_array_file
from foldwise.data.idx_file import after_header, idx_layout
from foldwise.data.image_endings import has_image_ending
from foldwise.data.image_file import as_image
from foldwise.data.missing import allow_missing
from foldwise.data.reading import Reading
from foldwise.data.reading import image_size as parsed_size
from foldwise.data.resample import resample
from foldwise.data.scan import scan
from foldwise.data.source import Source, count_rows
from foldwise.data.subset import gather
from foldwise.errors import DataError, MissingFileError, ParameterError

_MOST_VALUES = 250_000_000  # pixels in memory, 1 GB as float32
_WIDE_VALUES = 20_000_000  # up to which they are float64
Shape = tuple[int, ...]


@dataclass(frozen=True)
class ImageRows:
    """Images as rows of pixels.

    `shape` is (height, width) or (height, width, channels), `white` the value of a white pixel as far as that is known (else
    NaN), `total` the number of images before some were drawn.
    """

    values: NDArray[Any]
    shape: Shape
    labels: NDArray[Any] | None
    where: str
    white: float
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


def _read(images: Any, labels: Any, size: Any, grey: bool, most: int | None, seed: int) -> ImageRows:
    if isinstance(images, (list, tuple)) and len(images) and not _paths(images):
        images = _stacked(images)
    if isinstance(images, (str, os.PathLike)) or _paths(images):
        reading = Reading(image_size=size, grey=grey or None)
        name = os.path.expanduser(os.fspath(images)) if isinstance(images, (str, os.PathLike)) else list(images)
        is_images = not isinstance(name, str) or os.path.isdir(name) or is_array_file(name) or has_image_ending(name)
        if isinstance(name, str) and name.lower().endswith(".npz"):
            return _of_archive(name, labels, reading, most, seed)
        if not is_images:
            return _of_table(name, labels, size, most, seed)
        return _of_source(scan(name, reading=reading), _given(labels), size, most, seed)
    if isinstance(images, Source):
        return _of_source(images, _given(labels), size, most, seed)
    if hasattr(images, "columns") or hasattr(images, "__arrow_c_stream__"):
        return _of_table(images, labels, size, most, seed)
    return _of_array(np.asarray(images), _given(labels), size, most, seed)


def _paths(images: Any) -> bool:
    return isinstance(images, (list, tuple)) and all(isinstance(one, (str, os.PathLike)) for one in images)


def _stacked(images: Any) -> NDArray[Any]:
    if not any(isinstance(one, (str, os.PathLike)) or hasattr(one, "getexif") for one in images):
        shapes = {np.shape(one) for one in images}
        if len(shapes) == 1:
            return np.asarray(images)
    pixels = [as_image(one)[0] for one in images]
    first = pixels[0].shape
    for number, one in enumerate(pixels):
        if one.shape != first:
            raise DataError(
                f"image {number} is {by(one.shape)}, but the first is {by(first)}", advice="Give images of one size"
            )
    return np.stack(pixels)


def by(shape: Shape) -> str:
    """A shape, as people say it: width first.

    >>> by((48, 64)), by((48, 64, 3))
    ('64 x 48', '64 x 48 x 3')
    """
    return " x ".join(map(str, (shape[1], shape[0], *shape[2:]))) if len(shape) > 1 else str(shape[0])


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
    kept, drawn = _labels(labels, len(array), "array"), _drawn(len(array), math.prod(shape), most, seed)
    rows = array.reshape(len(array), -1)
    values = _floats(rows if drawn is None else rows[drawn])
    known = {"u1": 255.0, "u2": 65535.0, "b1": 1.0}.get(array.dtype.str[1:])
    kept = kept if drawn is None or kept is None else kept[drawn]
    return ImageRows(values, shape, kept, "array", known or _white(values), len(array))


def _of_source(source: Any, labels: Any, size: Any, most: int | None, seed: int) -> ImageRows:
    """Rows of pixels of any source: one of images says their shape, and who is on them."""
    n, d = count_rows(source), source.n_columns
    shape = _shape(getattr(source, "image_shape", None) or (d,), size, source.where)
    kept = _labels(getattr(source, "labels", None) if labels is None else labels, n, source.where)
    drawn = _drawn(n, d, most, seed)
    known = allow_missing(source)  # missing pixels are told in our own words
    rows = known if drawn is None else gather(known, drawn)
    values = _floats(np.concatenate([piece.load().dense() for piece in rows.pieces()]))
    kept = kept if drawn is None or kept is None else kept[drawn]
    return ImageRows(values, shape, kept, source.where, _white(values), n)


def _of_archive(path: str, labels: Any, reading: Reading, most: int | None, seed: int) -> ImageRows:
    """An archive may hold labels under the name that was given."""
    source, name = scan(path, reading=reading), "label"
    if isinstance(labels, str) and not os.path.exists(labels):
        with np.load(path, allow_pickle=False) as archive:
            if labels not in archive.files:
                raise ParameterError(f"{path} has no array {labels!r}; it has {', '.join(archive.files)}.")
            labels, name = archive[labels], labels
    return replace(_of_source(source, _given(labels), reading.image_size, most, seed), label_name=name)


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
    found = _of_source(source, _given(values), size, most, seed)
    return replace(found, label_name=name or "label")


# ---------------------------------------------------------------- pieces


def _shape(own: Shape, size: Any, where: str) -> Shape:
    """The shape of images: their own, or that of so many pixels in a row."""
    if len(own) > 1:
        if size is not None and (size[1], size[0]) != own[:2]:
            raise ParameterError(f"image_size {size[0]}x{size[1]}: the images of {where} have {by(own)} pixels.")
        return tuple(own)
    pixels = own[0]
    if size is None:
        side = math.isqrt(pixels)
        if side * side == pixels:
            return side, side
        raise DataError(
            f"{pixels} pixels in a row are no square image",
            where=where,
            advice="Say the width and height, as in image_size='28x32'",
        )
    for shape in ((size[1], size[0]), (size[1], size[0], 3)):
        if math.prod(shape) == pixels:
            return shape
    raise ParameterError(
        f"image_size {size[0]}x{size[1]} has {size[0] * size[1]:,} pixels, but the rows of {where} have {pixels:,}."
    )


def _given(labels: Any) -> Any:
    """Labels, read from a file if they are named by one."""
    if not isinstance(labels, (str, os.PathLike)):
        return labels
    path = os.path.expanduser(os.fspath(labels))
    if not os.path.exists(path):
        raise MissingFileError("there is no such file of labels", where=path)
    if path.endswith(".npy"):
        return np.load(path, allow_pickle=False)
    if is_array_file(path):
        layout = idx_layout(path)
        with after_header(path) as file:
            return np.frombuffer(file.read(), layout.dtype).astype(layout.dtype.newbyteorder("="))
    with open(path, encoding="utf-8") as file:
        return np.array([line.strip() for line in file if line.strip()])


def _labels(labels: Any, n: int, where: str) -> NDArray[Any] | None:
    if labels is None:
        return None
    given = np.asarray(labels)
    if given.shape != (n,):
        raise DataError(
            f"there are {n:,} images, but labels of shape {given.shape}", where=where, advice="Give one label per image"
        )
    missing = [one is None or one != one for one in given.tolist()] if given.dtype.kind in "fO" else []
    if any(missing):
        row = missing.index(True)
        raise DataError("the label is missing", where=where, row=row, advice="Give one label per image")
    if given.dtype.kind == "f" and (given == given.round()).all():
        given = given.astype(np.int64)
    return given if given.dtype.kind in "iu" else given.astype(str)


def _drawn(n: int, pixels: int, most: int | None, seed: int) -> NDArray[np.intp] | None:
    limit = min(n if most is None else most, max(2, _MOST_VALUES // max(pixels, 1)))
    return None if n <= limit else np.sort(np.random.default_rng(seed).choice(n, limit, replace=False))


def _floats(values: NDArray[Any]) -> NDArray[Any]:
    wide = values.dtype == np.float64 or values.size <= _WIDE_VALUES
    return np.ascontiguousarray(values, np.float64 if wide else np.float32)


def _white(values: NDArray[Any]) -> float:
    """What a white pixel has, by the values: 1 of shares, 255 or 65535 of whole numbers as long as they come near."""
    low, high = float(values.min()), float(values.max())
    if low < 0 or not high < 65536:
        return math.nan
    if high <= 1:
        return 1.0
    some = values[:: max(1, len(values) // 100)]
    return math.nan if high < 64 or (some != some.round()).any() else 255.0 if high < 256 else 65535.0


def like_images(others: Any, known: ImageRows) -> NDArray[Any]:
    """Other images as rows of pixels like those that are known: in the same shape, and between the same black and white."""
    if isinstance(others, (str, os.PathLike)) and os.path.isdir(os.path.expanduser(os.fspath(others))):
        rows, white = _any_size(os.path.expanduser(os.fspath(others)), known.shape)
    else:
        if not isinstance(others, (str, os.PathLike)) and np.shape(others) == known.shape:
            others = np.asarray(others)[None]  # one image
        pixels = math.prod(known.shape)
        if not isinstance(others, (str, os.PathLike)) and np.shape(others)[1:] == (pixels,):
            others = np.asarray(others).reshape(-1, *known.shape)
        found = _read(others, None, None, False, None, 0)
        rows, white = resample(found.pictures(), known.shape).reshape(len(found.values), -1), found.white
    if not np.isfinite(rows).all():
        raise DataError("some pixels of the other images are not finite numbers", advice="Replace them first")
    factor = known.white / white
    return np.asarray(rows * (factor if math.isfinite(factor) else 1.0), known.values.dtype)


def _any_size(folder: str, shape: Shape) -> tuple[NDArray[Any], float]:
    found = []
    for place, _, files in sorted(os.walk(folder)):
        for name in sorted(files):
            if has_image_ending(name):
                pixels = as_image(os.path.join(place, name))[0]
                white = {"u1": 255.0, "u2": 65535.0}.get(pixels.dtype.str[1:], 1.0)
                found.append(resample(pixels[None].astype(np.float64) * (255.0 / white), shape).reshape(-1))
    if not found:
        raise DataError("no images in this folder", where=folder)
    return np.stack(found), 255.0
