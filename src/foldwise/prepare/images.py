"""Images of one size, from wherever they are, as rows of pixels, with the label of each if there are any."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.idx import is_idx, read_idx
from foldwise.data.image_file import ENDINGS, as_image
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
    """Images as rows of pixels: `shape` is (height, width) or (height, width, channels), `white` the largest value that a
    pixel can have as far as the type says (NaN for fractions), `total` how many images there were before some were drawn."""

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
    images: Any, labels: Any = None, *, shape: Any = None, most: int | None = None, seed: int = 0
) -> ImageRows:
    """Images from a folder, a .npy, .npz or IDX file, a table of pixels, an array or a list, all of one size.

    `labels` is one label per image, or a name: of an array in an .npz file, a column of a table, or a file. `shape` is needed
    where rows of pixels do not say it and are not square. Of more than `most` images, so many are drawn at random.
    """
    found = _read(images, labels, shape, most, seed)
    if len(found.values) < 2:
        raise DataError(
            f"there is {len(found.values)} image: components are what several differ in",
            where=found.where,
            advice="Give at least two",
        )
    bad = ~np.isfinite(found.values).all(axis=1)
    if bad.any():
        raise DataError(
            "some pixels are not finite numbers", where=found.where, row=int(np.argmax(bad)), advice="Replace them first"
        )
    return found


def parsed_shape(shape: Any) -> Shape | None:
    """A shape as given: "64x64", "64x64x3", or numbers.

    >>> parsed_shape("28x32"), parsed_shape((8, 8))
    ((28, 32), (8, 8))
    """
    if shape is None:
        return None
    parts = re.split(r"[x,×]", shape.strip().lower()) if isinstance(shape, str) else list(shape)
    try:
        found = tuple(int(part) for part in parts)
    except (TypeError, ValueError):
        found = ()
    if len(found) not in (2, 3) or min(found) < 1:
        raise ParameterError(f"shape {shape}: give height and width, as in 64x64, or 64x64x3 for colours.")
    return found


def _read(images: Any, labels: Any, shape: Any, most: int | None, seed: int) -> ImageRows:
    wanted = parsed_shape(shape)
    if isinstance(images, (str, os.PathLike)):
        path = os.path.expanduser(os.fspath(images))
        ending = os.path.splitext(path.removesuffix(".gz"))[1].lower()
        if not os.path.exists(path) and not any(mark in path for mark in "*?["):
            raise MissingFileError("there is no such file", where=path, advice=f"The current folder is {os.getcwd()}")
        if os.path.isdir(path) or ending in ENDINGS:
            return _of_source(scan(path), labels, wanted, most, seed)
        if ending == ".npz":
            return _of_archive(path, labels, wanted, most, seed)
        if ending == ".npy":
            return _of_array(np.load(path, mmap_mode="r"), _given(labels), wanted, path, most, seed)
        if is_idx(path):
            return _of_array(read_idx(path), _given(labels), wanted, path, most, seed)
        return _of_table(path, labels, wanted, most, seed)
    if isinstance(images, Source):
        return _of_source(images, _given(labels), wanted, most, seed)
    if isinstance(images, (list, tuple)) and not np.isscalar(images) and len(images):
        return _of_array(_stacked(images), _given(labels), wanted, "images", most, seed)
    if hasattr(images, "columns") and hasattr(images, "iloc"):
        return _of_table(images, labels, wanted, most, seed)
    return _of_array(np.asarray(images), _given(labels), wanted, "array", most, seed)


def _stacked(images: Any) -> NDArray[Any]:
    if not any(isinstance(one, (str, os.PathLike)) or hasattr(one, "getexif") for one in images):
        try:
            return np.asarray(images)
        except ValueError:
            pass
    pixels = [as_image(one)[0] for one in images]
    first = pixels[0].shape
    for number, one in enumerate(pixels):
        if one.shape != first:
            raise DataError(
                f"image {number} is {by(one.shape)}, but the first is {by(first)}", advice="Give images of one size"
            )
    return np.stack(pixels)


def by(shape: Shape) -> str:
    """A shape in words.

    >>> by((64, 48))
    '64 x 48'
    """
    return " x ".join(map(str, shape))


# ---------------------------------------------------------------- kinds of input


def _of_array(
    array: NDArray[Any], labels: Any, shape: Shape | None, where: str, most: int | None, seed: int, name: str = "label"
) -> ImageRows:
    if array.dtype.kind not in "biuf" or array.dtype.names:
        raise DataError(f"pixels are numbers, not {array.dtype}", where=where)
    if array.ndim not in (2, 3, 4) or array.size == 0:
        raise DataError(
            f"images are an array (n, height, width), (n, height, width, channels) or (n, pixels), not {array.shape}",
            where=where,
        )
    n, own = len(array), array.shape[1:]
    if len(own) == 1:
        own = _shape_of_pixels(own[0], shape, where)
    elif shape is not None and shape != own:
        raise ParameterError(f"shape {by(shape)}: the images of {where} are {by(own)}.")
    kept, drawn = _labels(labels, n, where), _drawn(n, int(np.prod(own)), most, seed)
    values = array if drawn is None else array[drawn]
    white = {"u1": 255.0, "u2": 65535.0, "b1": 1.0}.get(array.dtype.str[1:], math.nan)
    values = _floats(values.reshape(len(values), -1))
    return ImageRows(values, own, kept if drawn is None or kept is None else kept[drawn], where, white, n, name)


def _of_source(source: Any, labels: Any, shape: Shape | None, most: int | None, seed: int) -> ImageRows:
    """Rows of pixels of any source: one of images says their shape, and who is on them."""
    n, d = count_rows(source), source.n_columns
    own = getattr(source, "image_shape", None) or _shape_of_pixels(d, shape, source.where)
    if shape is not None and shape != own:
        raise ParameterError(f"shape {by(shape)}: the images of {source.where} are {by(own)}.")
    kept = _labels(getattr(source, "labels", None) if labels is None else labels, n, source.where)
    drawn = _drawn(n, d, most, seed)
    rows = gather(source, drawn)
    values = np.concatenate([piece.load().dense() for piece in rows.pieces()])
    white = 255.0 if float(values.max(initial=0)) > 1 and float(values.max()) <= 255 else math.nan
    kept = kept if drawn is None or kept is None else kept[drawn]
    return ImageRows(_floats(values), tuple(own), kept, source.where, white, n)


def _of_archive(path: str, labels: Any, shape: Shape | None, most: int | None, seed: int) -> ImageRows:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError) as problem:
        raise DataError(f"not an .npz archive, or damaged ({problem})", where=path) from None
    wide = [name for name, array in arrays.items() if array.ndim >= 2 and array.dtype.kind in "biuf"]
    if not wide:
        raise DataError("no array of images", where=path, advice="Save them as np.savez(path, images=..., labels=...)")
    main = max(wide, key=lambda name: arrays[name].size)
    n, own_name = len(arrays[main]), "label"
    if isinstance(labels, str) and not os.path.exists(labels):
        if labels not in arrays:
            raise ParameterError(f"{path} has no array {labels!r}; it has {', '.join(arrays)}.")
        labels, own_name = arrays[labels], labels
    elif labels is None:
        fitting = [name for name, array in arrays.items() if array.shape == (n,) and array.dtype.kind in "biuUS"]
        if len(fitting) == 1:
            labels, own_name = arrays[fitting[0]], fitting[0]
    return _of_array(arrays[main], _given(labels), shape, path, most, seed, own_name)


def _of_table(x: Any, labels: Any, shape: Shape | None, most: int | None, seed: int) -> ImageRows:
    """All columns of numbers but the label are pixels, in the order of the columns."""
    from foldwise.data.reading import Reading
    from foldwise.data.tables import open_table
    from foldwise.prepare.build import prepare
    from foldwise.prepare.target import target_of

    table, name = open_table(x, Reading()), None
    names = [column.name for column in table.columns]
    values = labels
    if isinstance(labels, str) and not os.path.exists(labels):
        if labels not in names:
            raise ParameterError(f"there is no column {labels!r} for the labels.")
        name = labels
        target = target_of(prepare(x, labels=[name], as_={name: "category"}), name)
        if target.missing:
            raise DataError(f"{target.missing:,} labels are missing", column=name, advice="Fill in who or what it is")
        values = target.values
    source = scan(x, columns=[one for one in names if one != name])
    found = _of_source(source, _given(values), shape, most, seed)
    return replace(found, label_name=name or "label")


# ---------------------------------------------------------------- pieces


def _shape_of_pixels(pixels: int, shape: Shape | None, where: str) -> Shape:
    side = math.isqrt(pixels)
    if shape is None:
        if side * side == pixels:
            return side, side
        raise DataError(
            f"{pixels} pixels in a row are no square image", where=where, advice="Say the shape, as in 28x32 (height x width)"
        )
    if int(np.prod(shape)) != pixels:
        raise ParameterError(f"shape {by(shape)} has {int(np.prod(shape))} pixels, but the rows of {where} have {pixels}.")
    return shape


def _given(labels: Any) -> Any:
    """Labels, read from a file if they are named by one."""
    if not isinstance(labels, (str, os.PathLike)):
        return labels
    path = os.path.expanduser(os.fspath(labels))
    if not os.path.exists(path):
        raise MissingFileError("there is no such file of labels", where=path)
    if path.endswith(".npy"):
        return np.load(path, allow_pickle=False)
    if is_idx(path):
        return read_idx(path)
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
    if given.dtype.kind == "f" and not np.isnan(given).any() and (given == given.round()).all():
        given = given.astype(np.int64)
    if given.dtype.kind == "O" and any(one is None or one != one for one in given):
        raise DataError("some labels are missing", where=where, advice="Give one label per image")
    if given.dtype.kind == "f" and np.isnan(given).any():
        row = int(np.argmax(np.isnan(given)))
        raise DataError("this label is missing", where=where, row=row, advice="Give one label per image")
    return given.astype(str) if given.dtype.kind not in "iu" else given


def _drawn(n: int, pixels: int, most: int | None, seed: int) -> NDArray[np.intp] | None:
    limit = min(n if most is None else most, max(2, _MOST_VALUES // max(pixels, 1)))
    return None if n <= limit else np.sort(np.random.default_rng(seed).choice(n, limit, replace=False))


def _floats(values: NDArray[Any]) -> NDArray[Any]:
    wide = values.dtype == np.float64 or (values.size <= _WIDE_VALUES and values.dtype != np.float32)
    return np.ascontiguousarray(values, np.float64 if wide else np.float32)


def like_images(others: Any, known: ImageRows) -> NDArray[Any]:
    """Other images as rows of pixels like those that are known: in the same shape, and between the same black and white."""
    if isinstance(others, (str, os.PathLike)) and os.path.isdir(os.path.expanduser(os.fspath(others))):
        rows, white = _any_size(os.path.expanduser(os.fspath(others)), known.shape)
    else:
        given = np.asarray(others) if not isinstance(others, (str, os.PathLike)) else None
        if given is not None and given.ndim in (2, 3) and given.shape == known.shape:
            given = given[None]  # one image
        found = _read(others if given is None else given, None, None, None, 0)
        rows, white = resample(found.pictures(), known.shape).reshape(len(found.values), -1), found.white
    if not np.isfinite(rows).all():
        raise DataError("some pixels of the other images are not finite numbers", advice="Replace them first")
    own = known.white if known.white == known.white else 1.0 if 0 <= known.values.min() and known.values.max() <= 1 else white
    factor = own / white if white == white and own == own else 1.0
    return np.asarray(rows * factor, known.values.dtype)


def _any_size(folder: str, shape: Shape) -> tuple[NDArray[Any], float]:
    found = []
    for place, _, files in sorted(os.walk(folder)):
        for name in sorted(files):
            if name.lower().endswith(ENDINGS):
                pixels = as_image(os.path.join(place, name))[0]
                white = {"u1": 255.0, "u2": 65535.0}.get(pixels.dtype.str[1:], 1.0)
                found.append(resample(pixels[None].astype(np.float64) * (255.0 / white), shape).reshape(-1))
    if not found:
        raise DataError("no images in this folder", where=folder)
    return np.stack(found), 255.0
