"""Images in files: decoded to arrays of pixels as a viewer would show them, and written whole or not at all."""

from __future__ import annotations

import io
import os
import stat
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.atomic import replacing
from foldwise.data.image_endings import ENDINGS, not_read
from foldwise.errors import (
    DataError,
    FoldwiseError,
    FoldwiseWarning,
    MissingDependencyError,
    MissingFileError,
    ParameterError,
    warn,
)

# A small file can claim to hold as many pixels as it likes. Photographs of 200 megapixels exist; this many are 1 GB of memory.
MOST_PIXELS = 250_000_000
_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "DIB", "TIFF", "WEBP", "AVIF", "PPM")  # others could run programs, as EPS does
_SAFE_ERRORS = (SyntaxError, IndexError, TypeError, struct.error)  # with which a reader says that a file is not for it
_ORIENTATION = 0x0112  # the tag
_GREY = ("1", "L", "LA", "La", "I", "F")  # and I;16 in several orders of bytes
_loading = threading.Lock()


def pillow() -> Any:
    """The module PIL.Image, or an error that says how to get it."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingDependencyError(
            'reading and writing images needs Pillow: pip install "foldwise[image]". Arrays of pixels need nothing.'
        ) from None
    return Image


@dataclass(frozen=True)
class ImageHeader:
    """What a file says of its image before any pixel is decoded."""

    width: int
    height: int
    grey: bool
    kind: str  # of values: "8 bits", "16 bits" or "float"
    several: bool  # pictures in one file
    loses_bits: bool  # 16 bits a colour, of which Pillow keeps 8
    wide: bool  # whole numbers of 32 bits, which float32 does not hold


@contextmanager
def opened_image(path: str | os.PathLike[str]) -> Iterator[Any]:
    """A picture of Pillow whose pixels are not decoded yet; whatever goes wrong with it is one error that names the file."""
    name = os.fspath(path)
    pillow()
    try:
        if not stat.S_ISREG(os.stat(name).st_mode) and not os.path.isdir(name):
            raise DataError("this is a pipe, a socket or a device, not a file", where=name)
        with open(name, "rb") as file:
            opened = _recognised(file, name)
            if opened.size[0] * opened.size[1] > MOST_PIXELS:
                width, height = opened.size
                raise DataError(
                    f"the image claims {width:,} x {height:,} pixels; more than {MOST_PIXELS:,} are not read",
                    where=name,
                    advice="Cut it into parts, or make it smaller",
                )
            yield opened
    except (FoldwiseError, FoldwiseWarning):
        raise
    except FileNotFoundError:
        raise MissingFileError(
            "there is no such file", where=name, advice=f"The current folder is {os.getcwd()}"
        ) from None
    except IsADirectoryError:
        raise DataError("this is a folder, not an image", where=name) from None
    except PermissionError:
        raise DataError(
            "the file cannot be read: permission denied", where=name, advice="Ask its owner for the right to read it"
        ) from None
    except MemoryError:
        raise DataError("the image does not fit in memory", where=name, advice="Make it smaller") from None
    except pillow().DecompressionBombError:
        raise DataError(
            "the image has more pixels than Pillow reads of this format",
            where=name,
            advice="Save it as a PNG or JPEG file",
        ) from None
    except Exception as problem:  # readers of damaged files raise many kinds, also warnings if these are errors
        raise DataError(
            f"the image is damaged or incomplete ({_one_line(problem)})", where=name, advice="Copy or save it again"
        ) from None


def _one_line(problem: Exception) -> str:
    return " ".join(str(problem).split()) or type(problem).__name__


def _recognised(file: Any, name: str) -> Any:
    """What Pillow's readers make of a file.

    Its own `open` warns of large images, which could be silenced only for all threads at once.
    """
    module = pillow()
    with _loading:
        module.init()  # its readers; done once
    start = file.read(16)
    for one in _FORMATS:
        factory, accept = module.OPEN.get(one, (None, None))
        try:
            if factory is None or (accept is not None and accept(start) is not True):
                continue
            file.seek(0)
            return factory(file, name)
        except _SAFE_ERRORS:
            continue
    raise _not_an_image(start, name)


def _not_an_image(start: bytes, name: str) -> DataError:
    if not start:
        return DataError("the file is empty (0 bytes)", where=name, advice="Was it written completely?")
    by_content = "x.heic" if start[4:8] == b"ftyp" else "x.svg" if start.lstrip()[:4] in (b"<svg", b"<?xm") else ""
    what, advice = not_read(by_content) or not_read(name) or ("", "")
    if what:
        return DataError(f"not an image that can be read: {what}", where=name, advice=advice)
    return DataError("not an image that can be read", where=name, advice=f"Images are {', '.join(ENDINGS)}")


def image_header(path: str | os.PathLike[str]) -> ImageHeader:
    """What a file says of its image, quickly."""
    with opened_image(path) as opened:
        width, height = opened.size
        # A reader of TIFF turns the picture itself; and of a PNG, pixels would be decoded to look for more.
        if opened.format != "TIFF" and (opened.format != "PNG" or "exif" in opened.info) and _orientation(opened) > 4:
            width, height = height, width
        several, loses, wide = _several(opened), _loses_bits(opened), opened.mode == "I"
        return ImageHeader(width, height, is_grey(opened), _kind(opened.mode), several, loses, wide)


def is_grey(picture: Any) -> bool:
    """Whether a picture of Pillow has no colours, apart from opacity."""
    return picture.mode in _GREY or picture.mode.startswith("I;16")


def _kind(mode: str) -> str:
    return "float" if mode == "F" else "16 bits" if mode.startswith("I") else "8 bits"


def _several(opened: Any) -> bool:
    # The further pictures in photographs of telephones (MPO) are previews and depths, which nobody means.
    return opened.format != "MPO" and bool(getattr(opened, "is_animated", False))


def _loses_bits(opened: Any) -> bool:
    tiles = getattr(opened, "tile", None) or []
    return _kind(opened.mode) == "8 bits" and any(";16" in str(tile[3]) for tile in tiles)


def _orientation(picture: Any) -> int:
    try:
        found = picture.getexif().get(_ORIENTATION, 1)
    except Exception:  # what the camera noted is damaged: viewers show such a picture as it is
        return 1
    return found if isinstance(found, int) and 1 <= found <= 8 else 1


def upright(picture: Any) -> Any:
    """A picture of Pillow as its camera was held, in one of the modes L, LA, RGB, RGBA, I, F or I;16."""
    picture.load()
    orientation = _orientation(picture)
    if orientation > 1:
        ways = pillow().Transpose
        turned = (
            ways.FLIP_LEFT_RIGHT,
            ways.ROTATE_180,
            ways.FLIP_TOP_BOTTOM,
            ways.TRANSPOSE,
            ways.ROTATE_270,
            ways.TRANSVERSE,
            ways.ROTATE_90,
        )
        picture = picture.transpose(turned[orientation - 2])
    mode, transparent = picture.mode, "transparency" in picture.info
    if mode in ("P", "PA", "RGBa", "La", "RGB", "L", "1"):
        grey = mode in ("L", "La", "1")
        wanted = ("LA" if grey else "RGBA") if transparent or mode in ("PA", "RGBa", "La") else "L" if grey else "RGB"
        if mode == "1" and transparent:
            picture = picture.convert("L")
        return picture if mode == wanted else picture.convert(wanted)
    return picture.convert("RGB") if mode in ("CMYK", "YCbCr", "LAB", "HSV", "RGBX") else picture


def read_image(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The pixels of a file, turned as its camera says: (height, width) if grey, else (height, width, 3 or 4).

    8 or 16 bits unsigned as in the file, or float32 (float64 of whole numbers that need more than 16 bits). The fourth channel
    is opacity. Other kinds (palettes, CMYK, one bit, grey with opacity) become grey, RGB or RGBA. Of an animation or of
    several pages, the first picture is read, and of colours of 16 bits the upper 8, both with a warning. Colour profiles in
    the file are not applied: values are those of the file.
    """
    name = os.fspath(path)
    with opened_image(name) as opened:
        if _several(opened):
            warn(f"{name}: {opened.n_frames} pictures in one file; the first is used.")
        if _loses_bits(opened):
            warn(f"{name}: of the 16 bits of each colour, the upper 8 are read; grey images keep all 16.")
        return _pixels(opened, name)


def _pixels(opened: Any, name: str) -> NDArray[Any]:
    picture = upright(opened)
    return values_of(picture.convert("RGBA") if picture.mode == "LA" else picture, name)


def values_of(picture: Any, name: str) -> NDArray[Any]:
    """The values of a picture of Pillow: 8 or 16 bits unsigned, finite float32, or float64 for larger whole numbers."""
    pixels: NDArray[Any] = np.asarray(picture)
    if pixels.dtype.kind in "iu" and pixels.dtype.itemsize > 1:  # also in another order of bytes
        fits = pixels.size == 0 or (pixels.min() >= 0 and pixels.max() < 1 << 16)
        return np.ascontiguousarray(pixels, np.uint16 if fits else np.float64)
    if pixels.dtype.kind == "f" and not np.isfinite(pixels).all():
        raise DataError("some pixels are not finite numbers", where=name, advice="Replace them first")
    return np.ascontiguousarray(pixels)


def as_image(x: Any) -> tuple[NDArray[Any], str]:
    """Pixels of a path, a picture of Pillow or an array, checked, and what messages call them.

    An array is (height, width) or (height, width, channels): unsigned integers of 8 or 16 bits, or finite numbers. Integers of
    other widths that all lie between 0 and 255, as sums and lists give them, are taken for 8 bits.
    """
    if isinstance(x, (str, os.PathLike)):
        return read_image(x), os.fspath(x)
    if hasattr(x, "getexif"):  # of Pillow
        try:
            return _pixels(x, "image"), "image"
        except OSError as problem:  # it is decoded only now
            raise DataError(f"the image is damaged or incomplete ({_one_line(problem)})", where="image") from None
    if np.ma.is_masked(x):
        raise DataError("some pixels are masked", where="array", advice="Fill them first: image.filled(0)")
    try:
        pixels = np.asarray(x)
    except ValueError:
        raise DataError("the rows of pixels have different lengths", where="array") from None
    if pixels.ndim not in (2, 3) or pixels.size == 0:
        raise DataError(
            f"an image is an array of shape (height, width) or (height, width, channels), not {pixels.shape}",
            where="array",
        )
    if pixels.dtype == bool:
        pixels = pixels.astype(np.uint8) * np.uint8(255)
    if pixels.dtype.kind not in "fiu":
        raise DataError(f"pixels are numbers, not {pixels.dtype}", where="array")
    pixels = pixels.astype(pixels.dtype.newbyteorder("="), copy=False)  # files may have their own order of bytes
    if pixels.dtype not in (np.uint8, np.uint16):
        if pixels.dtype.kind in "iu" and pixels.min() >= 0 and pixels.max() <= 255:
            return np.ascontiguousarray(pixels, np.uint8), "array"
        exact = pixels.dtype.itemsize < 4 or pixels.dtype == np.float32
        pixels = pixels.astype(np.float32 if exact else np.float64)
        if not np.isfinite(pixels).all():
            raise DataError("some pixels are not finite numbers", where="array", advice="Replace them first")
    return np.ascontiguousarray(pixels), "array"


def write_image(path: str | os.PathLike[str], pixels: NDArray[Any], *, palette: NDArray[np.uint8] | None = None) -> int:
    """Write pixels in the format that the name's ending says; returns the number of bytes.

    With `palette` (colours x 3 or 4), `pixels` are numbers of colours, in as few bits as that takes.
    """
    content = encoded(pixels, os.path.splitext(os.fspath(path))[1], palette=palette)
    with replacing(path) as file:
        file.write(content)
    return len(content)


def encoded(pixels: NDArray[Any], ending: str = ".png", *, palette: NDArray[np.uint8] | None = None) -> bytes:
    """The content of an image file."""
    image_module = pillow()
    formats = image_module.registered_extensions()
    ending = ending.lower()
    if ending not in formats or ending not in ENDINGS:
        raise ParameterError(f"{ending or 'no ending'}: images are written as {', '.join(ENDINGS)}.")
    # The last per cent of the size takes longer than everything else in a large picture.
    small: dict[str, Any] = {"optimize": True} if pixels.size < 1 << 23 else {"compress_level": 6}
    exact: dict[str, Any] = {"lossless": True, "exact": True}
    options = small if ending == ".png" else exact if ending == ".webp" else {}
    stream = io.BytesIO()
    try:
        if palette is None:
            image = image_module.fromarray(pixels)
        else:
            image = image_module.fromarray(pixels.astype(np.uint8), "P")
            image.putpalette(palette[:, :3].tobytes())
            if palette.shape[1] == 4:
                options["transparency"] = palette[:, 3].tobytes()
            options["bits"] = next(bits for bits in (1, 2, 4, 8) if len(palette) <= 1 << bits)
        image.save(stream, formats[ending], **options)
    except (OSError, TypeError, ValueError, KeyError) as problem:  # such as opacity in a JPEG file
        raise ParameterError(
            f"pixels of {pixels.dtype} and shape {pixels.shape} cannot be written as {ending} ({_one_line(problem)}). "
            "PNG takes grey of 8 and 16 bits and colours of 8, with or without opacity."
        ) from None
    return stream.getvalue()
