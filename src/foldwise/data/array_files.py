"""Which files hold arrays of numbers or images rather than tables: their columns have no names, and need no preparing."""

from __future__ import annotations

import os
from typing import Any

from foldwise.data import files, image_endings

_ARRAYS = {"npy", "image", "idx"}


def is_array_file(x: Any, table: str | None = None) -> bool:
    """Whether a path, a pattern, a folder or a list of paths refers to arrays or images; `table` is one asked for.

    >>> is_array_file("x.npy"), is_array_file("faces/*.png"), is_array_file("x.csv"), is_array_file("-")
    (True, True, False, False)
    """
    if isinstance(x, (list, tuple)) and x:
        return is_array_file(x[0], table)
    if not isinstance(x, (str, os.PathLike)):
        return False
    text = os.path.expanduser(os.fspath(x))
    if text.lower().endswith(".npy") or image_endings.has_image_ending(text):
        return True
    try:
        first = next(files.images_in(text), text) if os.path.isdir(text) else files.matching(text)[0]
        if not os.path.isfile(first):
            return False
        kind = files.format_of(first)
    except (IndexError, OSError, ValueError):  # whoever opens it says what is wrong
        return False
    if kind == "npz":
        from foldwise.data.npz_images import holds_images

        return holds_images(first, table)
    return kind in _ARRAYS
