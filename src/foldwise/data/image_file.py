"""Images in files: decoded to arrays of pixels as a viewer would show them, and written whole or not at all."""

from __future__ import annotations

import io
import os
import threading
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.atomic import replacing
from foldwise.errors import DataError, MissingFileError, ParameterError, warn

MOST_PIXELS = 178_956_970  # beyond which Pillow itself refuses: a small file can claim to hold as many as it likes
ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".pgm", ".ppm", ".pnm", ".pbm")
_opening = threading.Lock()  # filters of warnings belong to the whole process


def pillow() -> Any:
    """The module PIL.Image, or an error that says how to get it."""
    try:
        from PIL import Image
    except ImportError:
        raise ParameterError(
            'reading and writing images needs Pillow: pip install "foldwise[image]". Arrays of pixels need nothing.'
        ) from None
    return Image


def read_image(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The pixels of a file, turned as its camera says: (height, width) if grey, else (height, width, 3 or 4).

    8 or 16 bits unsigned as in the file, or float32. The fourth channel is opacity. Other kinds (palettes, CMYK, one bit)
    become grey, RGB or RGBA; of an animation, the first picture is read, with a warning.
    """
    name = os.fspath(path)
    image_module = pillow()
    if not os.path.exists(name):
        raise MissingFileError("there is no such file", where=name, advice=f"The current folder is {os.getcwd()}")
    try:
        with _opening, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            opened = image_module.open(name)
        with opened:
            if getattr(opened, "n_frames", 1) > 1:
                warn(f"{name}: {opened.n_frames} pictures in one file; the first is used.")
            return _pixels(opened)
    except image_module.DecompressionBombError:
        raise DataError(
            f"the image has more than {MOST_PIXELS:,} pixels",
            where=name,
            advice="Cut it into parts, or make it smaller",
        ) from None
    except (OSError, ValueError, SyntaxError, EOFError) as problem:
        raise DataError(f"not an image that can be read, or a damaged one ({problem})", where=name) from None


def _pixels(opened: Any) -> NDArray[Any]:
    from PIL import ImageOps

    image = ImageOps.exif_transpose(opened)
    mode = image.mode
    if mode == "1":
        image = image.convert("L")
    elif mode in ("P", "PA", "LA", "La", "RGBa"):
        image = image.convert("RGBA" if "A" in mode.upper() or "transparency" in image.info else "RGB")
    elif mode in ("CMYK", "YCbCr", "LAB", "HSV", "RGBX"):
        image = image.convert("RGB")
    pixels = np.asarray(image)
    if pixels.dtype == np.int32:  # grey of 16 bits in some formats
        fits = pixels.size == 0 or (pixels.min() >= 0 and pixels.max() < 1 << 16)
        return pixels.astype(np.uint16 if fits else np.float32)
    return np.ascontiguousarray(pixels)


def as_image(x: Any) -> tuple[NDArray[Any], str]:
    """Pixels of a path, a picture of Pillow or an array, checked, and what messages call them.

    An array is (height, width) or (height, width, channels): unsigned integers of 8 or 16 bits, or finite numbers.
    """
    if isinstance(x, (str, os.PathLike)):
        return read_image(x), os.fspath(x)
    if hasattr(x, "getexif"):  # of Pillow
        return _pixels(x), "image"
    pixels = np.asarray(x)
    if pixels.ndim not in (2, 3) or pixels.size == 0:
        raise DataError(
            f"an image is an array of shape (height, width) or (height, width, channels), not {pixels.shape}",
            where="array",
        )
    if pixels.dtype == bool:
        pixels = pixels.astype(np.uint8) * np.uint8(255)
    if pixels.dtype not in (np.uint8, np.uint16):
        if pixels.dtype.kind not in "fiu":
            raise DataError(f"pixels are numbers, not {pixels.dtype}", where="array")
        pixels = pixels.astype(np.float64 if pixels.dtype == np.float64 else np.float32)
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
    if ending.lower() not in formats:
        raise ParameterError(f"{ending or 'no ending'}: images are written as {', '.join(ENDINGS)}.")
    # The last per cent of the size takes longer than everything else in a large picture.
    small: dict[str, Any] = {"optimize": True} if pixels.size < 1 << 23 else {"compress_level": 6}
    options = small if ending.lower() == ".png" else {}
    if palette is None:
        image = image_module.fromarray(pixels)
    else:
        image = image_module.fromarray(pixels.astype(np.uint8), "P")
        image.putpalette(palette[:, :3].tobytes())
        if palette.shape[1] == 4:
            options["transparency"] = palette[:, 3].tobytes()
        options["bits"] = next(bits for bits in (1, 2, 4, 8) if len(palette) <= 1 << bits)
    stream = io.BytesIO()
    image.save(stream, formats[ending.lower()], **options)
    return stream.getvalue()
