"""The names of image files: which endings are read, and what to do about those that are not."""

from __future__ import annotations

import os

ENDINGS = (
    ".png",
    ".jpg",
    ".jpeg",
    ".jfif",
    ".gif",
    ".bmp",
    ".tif",
    ".tiff",
    ".webp",
    ".avif",
    ".pgm",
    ".ppm",
    ".pnm",
    ".pbm",
)
_DRAWING = "a drawing of lines and shapes, not of pixels", "Export it as PNG first"
_HEIF = "a photograph in the HEIF format", "Convert it to JPEG or PNG first (heif-convert, or a viewer's export)"
_RAW = "a camera's raw data", "Develop it to TIFF or JPEG first"
_FOREIGN = "an image in a format that is not read", "Save it as PNG or TIFF first"
_OTHERS = {
    **dict.fromkeys((".svg", ".svgz", ".eps", ".ps", ".ai"), _DRAWING),
    **dict.fromkeys((".heic", ".heif"), _HEIF),
    **dict.fromkeys((".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".orf"), _RAW),
    **dict.fromkeys((".jp2", ".j2k", ".jxl", ".tga", ".exr", ".dcm", ".ico", ".pcx"), _FOREIGN),
    ".pdf": ("a document, not an image", "Export its page as PNG first"),
    ".psd": ("a document with layers", "Export it as PNG first"),
}


def has_image_ending(path: str) -> bool:
    """Whether a file, or every file that a pattern matches, is called like an image that can be read.

    >>> has_image_ending("faces/*.PNG"), has_image_ending("faces/*")
    (True, False)
    """
    return path.lower().endswith(ENDINGS)


def is_left_out(path: str) -> bool:
    """Whether somebody may miss a file in a folder of images: it is called like an image that cannot be read.

    >>> is_left_out("x.HEIC"), is_left_out("x.png"), is_left_out("notes.txt"), is_left_out("report.pdf")
    (True, False, False, False)
    """
    return not_read(path) is not None and not path.lower().endswith(".pdf")


def not_read(path: str) -> tuple[str, str] | None:
    """What a kind of image is that cannot be read, and what to do; None if the name says nothing of the kind."""
    return _OTHERS.get(os.path.splitext(path)[1].lower())
