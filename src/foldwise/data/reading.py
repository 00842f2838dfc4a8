"""What a user may say about how a file is to be read; whatever is not said is found out from the file."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from foldwise.errors import ParameterError


@dataclass(frozen=True)
class Reading:
    """Options of reading: None means that the file tells."""

    header: bool | None = None  # whether the first line has the names of the columns
    delimiter: str | None = None  # what separates cells; " " stands for any number of blanks
    decimal: str | None = None  # "." or ","
    encoding: str | None = None
    missing_values: tuple[str, ...] | None = None  # words that stand for a missing cell, besides an empty one
    sheet: str | None = None  # of a workbook: name, or number counted from 1
    table: str | None = None  # of a database, or the array of an .npz file
    skip: int | None = None  # lines before the table
    comment: str | None = None  # what a line begins with that is not part of the table
    image_size: tuple[int, int] | None = None  # of images: width and height
    grey: bool | None = None  # whether images are to lose their colours

    @property
    def given(self) -> dict[str, object]:
        """The options that were given."""
        return {
            field.name: getattr(self, field.name) for field in fields(self) if getattr(self, field.name) is not None
        }


_MOST_PIXELS = 100_000_000  # a row of so many takes 400 MB
FOUND_OUT = Reading()  # nothing was said


def reading_options(reading: Reading | None, options: Mapping[str, Any]) -> Reading:
    """What a call said about reading: a record, or its fields by name.

    >>> reading_options(None, {"decimal": ",", "missing_values": "unknown"}).given
    {'decimal': ',', 'missing_values': ('unknown',)}
    """
    if reading is not None and options:
        raise ParameterError(f"give reading= or {', '.join(options)}, not both.")
    known = [field.name for field in fields(Reading)]
    for name in options:
        if name not in known:
            raise ParameterError(f"{name}: there is no such option. Those of reading are {', '.join(known)}.")
    values = dict(options)
    if isinstance(values.get("missing_values"), str):
        values["missing_values"] = (values["missing_values"],)
    elif values.get("missing_values") is not None:
        values["missing_values"] = tuple(map(str, values["missing_values"]))
    if isinstance(values.get("sheet"), int):
        values["sheet"] = str(values["sheet"])
    if values.get("image_size") is not None:
        values["image_size"] = image_size(values["image_size"])
    if values.get("grey") is not None:
        values["grey"] = bool(values["grey"]) or None
    return (reading or FOUND_OUT) if not values else Reading(**values)


def image_size(given: Any) -> tuple[int, int]:
    """Width and height of images: a pair of numbers, or a text such as "64x48".

    >>> image_size("64x48"), image_size((64, 48))
    ((64, 48), (64, 48))
    """
    parts = re.split(r"\s*[xX\u00d7]\s*", given.strip()) if isinstance(given, str) else given
    try:
        width, height = (operator.index(int(part) if isinstance(part, str) else part) for part in parts)
    except (TypeError, ValueError):
        width = height = 0
    if width < 1 or height < 1:
        raise ParameterError(
            f"image_size={given!r}: give the width and the height in pixels, as in image_size='64x48'."
        )
    if width * height > _MOST_PIXELS:
        raise ParameterError(f"image_size={given!r}: at most {_MOST_PIXELS:,} pixels are columns.")
    return width, height
