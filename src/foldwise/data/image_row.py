"""One image as a row of numbers: upright, on white, in grey if asked for, and of the size asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.image_file import is_grey, opened_image, pillow, upright, values_of

_SPARE = 3  # times the size asked for: what a JPEG file is decoded to first, of which nobody sees a difference


def image_row(path: str, size: tuple[int, int] | None = None, *, grey: bool = False) -> NDArray[Any]:
    """The pixels of a file, (height, width) or (height, width, 3): 8 or 16 bits as in the file, or float32.

    `size` is width and height. Pixels of opacity below 1 lie on white. Grey is that of ITU-R 601, as in Pillow.
    """
    with opened_image(path) as opened:
        if size is not None:
            most = _SPARE * max(size)
            opened.draft(None, (most, most))  # JPEG is decoded at a half, a quarter or an eighth, much faster
        picture = _on_white(upright(opened))
        if grey and not is_grey(picture):
            picture = picture.convert("L")
        return values_of(picture if size is None else _resized(picture, size), path)


def _on_white(picture: Any) -> Any:
    if picture.mode not in ("LA", "RGBA"):
        return picture
    plain = pillow().new(picture.mode.removesuffix("A"), picture.size, "white")
    plain.paste(picture.convert(plain.mode), mask=picture.getchannel("A"))
    return plain


def _resized(picture: Any, size: tuple[int, int]) -> Any:
    """The picture with that width and height, whatever its own: each pixel a mean, by Lanczos' filter, of those it covers."""
    if picture.size == size:
        return picture
    if picture.mode not in ("L", "RGB"):  # of other values, Pillow resizes floats only
        picture = pillow().fromarray(np.asarray(picture).astype(np.float32))
    return picture.resize(size, pillow().Resampling.LANCZOS)
