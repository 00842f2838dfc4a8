"""What `look` says of images: how many there are, how large, of which kind, and which labels they have."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from foldwise.data.files import Files, find
from foldwise.data.image_file import ImageHeader, image_header
from foldwise.data.image_shape import said_as
from foldwise.data.reading import Reading
from foldwise.data.row_names import LABEL, row_names_of
from foldwise.data.scan import scan
from foldwise.errors import DataError
from foldwise.report.formats import counted
from foldwise.report.values import Column, Note, Report, Table

_MOST_SHOWN = 40


class ImageLook:
    """What a set of images holds. Prints itself; `as_dict()` gives the same as plain values."""

    def __init__(self, source: Any) -> None:
        self._source, self.rows = source, int(source.n_rows)
        self.image_shape: tuple[int, ...] = source.image_shape
        names = row_names_of(source)
        cells = None if names is None else names.columns.get(LABEL)
        levels, counts = (np.array([]), np.array([])) if cells is None else np.unique(cells, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        self.labels: dict[str, int] = {str(levels[j]): int(counts[j]) for j in order}

    def as_dict(self, *, values: bool = False) -> dict[str, Any]:
        """The number of images, their height, width and channels, and how many have each label; `values` are not given."""
        shape = self.image_shape
        size = {"height": shape[0], "width": shape[1], "channels": shape[2] if len(shape) == 3 else 1}
        return {"rows": self.rows, "image": size, "labels": self.labels, "warnings": []}

    def report(self) -> Report:
        """The look as a report."""
        kind = getattr(self._source, "kind", None)
        held = f"{counted(self.rows, 'image')} of {said_as(self.image_shape)}{f', {kind}' if kind else ''}"
        lines = [
            f"{self._source.where}: {held}",
            f"each is a row of {counted(self._source.n_columns, 'column')}",
        ]
        columns = [
            Column("label", list(self.labels), left=True),
            Column("images", list(self.labels.values()), "{:,}".format),
        ]
        title = "Labels" if getattr(self._source, "paths", None) is None else "Labels: the subfolders"
        return Report(
            "What the images are", lines, parts=[Table(title, columns, most=_MOST_SHOWN)] if self.labels else []
        )

    def __repr__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()


class MixedImageLook:
    """What a folder holds whose images differ in size or kind, so that they are no rows before they are made alike."""

    def __init__(self, files: Files, heads: Sequence[ImageHeader], reading: Reading) -> None:
        self.where, self.rows = files.where, len(heads)
        self.sizes = _frequent((head.width, head.height) for head in heads)
        self.kinds = _frequent(("grey" if head.grey else "with colours", head.kind) for head in heads)
        self._each = _frequent(
            (head.width, head.height, "grey" if head.grey else "with colours", head.kind) for head in heads
        )
        self.advice = _ways(self.sizes, self.kinds, reading)

    def as_dict(self, *, values: bool = False) -> dict[str, Any]:
        """How many images have each size and kind, and what makes them alike; `values` are not given."""
        names = ("width", "height", "colours", "values", "images")
        each = [dict(zip(names, (*which, count), strict=True)) for which, count in self._each.items()]
        return {"rows": self.rows, "images": each, "warnings": [self.advice]}

    def report(self) -> Report:
        """The look as a report."""
        each = list(self._each)
        columns = [
            Column("width x height", [f"{one[0]} x {one[1]}" for one in each]),
            Column("kind", [one[2] for one in each], left=True),
            Column("values", [one[3] for one in each], left=True),
            Column("images", list(self._each.values()), "{:,}".format),
        ]
        lines = [f"{self.where}: {counted(self.rows, 'image')} that differ"]
        return Report(
            "What the images are", lines, parts=[Table("Sizes and kinds", columns, most=_MOST_SHOWN), Note(self.advice)]
        )

    def __repr__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()


def _frequent(found: Iterable[tuple[Any, ...]]) -> dict[tuple[Any, ...], int]:
    """Each with its count, the most frequent first."""
    return dict(Counter(found).most_common())


def _ways(sizes: dict[tuple[Any, ...], int], kinds: dict[tuple[Any, ...], int], reading: Reading) -> str:
    """What makes the images alike: all that is needed, at once."""
    (width, height), count = next(iter(sizes.items()))
    ways = [f"image_size='{width}x{height}' (the size of {count:,} of them)"] if len(sizes) > 1 else []
    if reading.image_size is not None:
        ways = ["image_size='{}x{}'".format(*reading.image_size)]
    ways += ["grey=True"] if len({colours for colours, _ in kinds}) > 1 or reading.grey else []
    told = f"To use them as rows, read them with {' and '.join(ways)}." if ways else ""
    if len({values for _, values in kinds}) > 1:
        told += " Values of 8 bits, 16 bits and floats cannot be compared: save all images in the same way."
    return told.strip()


def _differing(x: Any, reading: Reading) -> MixedImageLook | None:
    """The look at files of images that differ in size or kind; None if they do not."""
    found = find(x)
    if found.kind != "image":
        return None
    looked = MixedImageLook(found, [image_header(path) for path in found.paths], reading)
    return looked if looked.advice else None


def look_at_images(x: Any, reading: Reading) -> ImageLook | MixedImageLook | None:
    """The look at images; None if `x` is an array of other numbers, which is looked at like a table."""
    try:
        source: Any = scan(x, reading=reading)
    except DataError:
        if not isinstance(x, (str, os.PathLike, list, tuple)) or (differing := _differing(x, reading)) is None:
            raise
        return differing
    return None if getattr(source, "image_shape", None) is None else ImageLook(source)
