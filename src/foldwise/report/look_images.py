"""What `look` says of images: how many there are, how large, of which kind, and which labels they have."""

from __future__ import annotations

from typing import Any

import numpy as np

from foldwise.data.image_shape import said_as
from foldwise.data.reading import Reading
from foldwise.data.row_names import LABEL, row_names_of
from foldwise.data.scan import scan
from foldwise.report.formats import counted
from foldwise.report.values import Column, Report, Table

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


def look_at_images(x: Any, reading: Reading) -> ImageLook | None:
    """The look at images; None if `x` is an array of other numbers, which is looked at like a table."""
    source: Any = scan(x, reading=reading)
    return None if getattr(source, "image_shape", None) is None else ImageLook(source)
