"""What a report on images leaves out, since it would speak of single pixels, and the pictures that it shows instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from foldwise.data.block import Floats
from foldwise.data.missing import allow_missing
from foldwise.errors import FoldwiseError
from foldwise.fold.passes import Passes
from foldwise.report.image_charts import as_pictures, image_shape_of
from foldwise.report.pictures import picture_grid
from foldwise.selection.explore.result import ClusterSummary, Exploration

TYPICAL = 3  # images of a group that its card shows beside their mean


def image_shape_in(found: Exploration) -> tuple[int, ...] | None:
    """The shape of the images that were explored; None for other rows."""
    return image_shape_of(found.pca)


def without_pixels(found: Exploration) -> Exploration:
    """The same, with no pixel in names, traits, rules and unusual rows; as it is if the rows are no images."""
    if image_shape_in(found) is None:
        return found
    points, outliers = found.points, found.outliers
    return replace(
        found,
        summaries=tuple(_plain(one) for one in found.summaries),
        points=None if points is None else replace(points, columns=(), values=points.values[:, :0]),
        outliers=None if outliers is None else replace(outliers, columns=()),
    )


def _plain(one: ClusterSummary) -> ClusterSummary:
    """A group named by labels only, such as "mostly ann"; by nothing if no label stands out."""
    pixels = {f"{side} {trait.column}" for trait in one.traits for side in ("high", "low", "higher", "lower")}
    # A name has at most a few pieces; a label may have a comma of its own, so known pieces are taken away.
    name = f"{one.name}, "
    for piece in sorted(pixels, key=len, reverse=True):
        name = name.replace(f"{piece}, ", "")
    return replace(one, name=name.removesuffix(", "), traits=(), rule=None)


def group_pictures(found: Exploration) -> dict[int, Callable[[], str]]:
    """For each group, what draws its mean image and its most typical images; nothing if the rows are no images."""
    shape, profile = image_shape_in(found), found.profile
    if shape is None or profile is None:
        return {}
    means = np.asarray(profile.means, np.float64)

    @cache
    def typical() -> dict[int, Floats]:
        """The typical images of all groups, which are read again together."""
        places = sorted({row for one in found.summaries for row in one.exemplars[:TYPICAL]})
        if found.source is None or not places:
            return {}
        try:
            rows = Passes(allow_missing(found.source)).take(places)
        except (FoldwiseError, OSError):  # the files are gone by now: the means are shown all the same
            return {}
        return dict(zip(places, rows, strict=True))

    def drawing(one: ClusterSummary) -> str:
        if not np.isfinite(means[one.number]).all():
            return ""
        shown = [typical()[row] for row in one.exemplars[:TYPICAL] if row in typical()]
        pictures = as_pictures(np.stack([means[one.number], *shown]), shape)
        return picture_grid(pictures, ["mean", *["typical"] * len(shown)], columns=TYPICAL + 1, side=80)

    return {one.number: lambda one=one: drawing(one) for one in found.summaries}  # type: ignore[misc]
