"""Means and components of images shown as images, instead of tables with a column for each pixel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.missing import allow_missing
from foldwise.data.source import Source
from foldwise.fold.passes import Passes
from foldwise.report.formats import counted, percent
from foldwise.report.pictures import picture_grid, shades, smaller
from foldwise.report.values import Chart

_MOST_PICTURES = 40
_EVENLY = 8  # images beside each other
_SIDE = 160  # pixels, so that a page with all of them stays small


def image_shape_of(model: Any) -> tuple[int, ...] | None:
    """The shape of the images that a model was fitted to; None if it was fitted to other rows."""
    shape: tuple[int, ...] | None = getattr(model, "image_shape_", None)
    return shape


def telling_names(model: Any, names: list[str]) -> list[str]:
    """The names of columns that are worth telling one by one: none of pixels."""
    return names if image_shape_of(model) is None else []


def component_pictures(pca: Any, names: Sequence[str] | None = None, what: str = "component") -> list[Chart]:
    """The mean image and the components of a PCA, if its rows are images."""
    shape = image_shape_of(pca)
    if shape is None or pca.n_components_ == 0:
        return []
    kept = min(pca.n_components_, _MOST_PICTURES - 1)
    shares = pca.explained_variance_ratio_[:kept]
    labels = [
        "mean",
        *(f"{name} ({percent(float(share))})" for name, share in zip(names or _names(pca), shares, strict=False)),
    ]
    mean = np.asarray(pca.mean_)

    def draw() -> str:
        parts = [shades(_image(each, shape), both=True) for each in np.asarray(pca.components_)[:kept]]
        return picture_grid([shades(_image(mean, shape)), *parts], labels)

    return [
        Chart(
            f"The {what}s as images",
            draw,
            f"Grey: pixels that a {what} leaves alone. Light and dark ones go up and down together, or the other way round."
            f"{_more(pca.n_components_ - kept, f'more {what}')}",
            alt=f"The mean image and {counted(kept, what)} as images of {shape[1]} x {shape[0]} pixels.",
            wide=True,
        )
    ]


def _names(pca: Any) -> list[str]:
    return [str(name) for name in pca.get_feature_names_out()]


def mean_pictures(model: Any, means: Floats, rows: Sequence[int], title: str) -> Chart | None:
    """The mean image of each cluster, if the rows are images; all in the same scale of brightness."""
    shape = image_shape_of(model)
    if shape is None:
        return None
    kept = min(len(means), _MOST_PICTURES)
    labels = [f"{i} ({counted(int(rows[i]), 'row')})" for i in range(kept)]

    def draw() -> str | None:
        shown = [i for i in range(kept) if np.isfinite(means[i]).all()]  # an empty cluster has no mean
        if not shown:
            return None
        return picture_grid(as_pictures(means[shown], shape), [labels[i] for i in shown])

    return Chart(
        title,
        draw,
        f"Each pixel is the mean over the images of a cluster.{_more(len(means) - kept, 'more cluster')}",
        alt=f"The mean images of {counted(kept, 'cluster')}, of {shape[1]} x {shape[0]} pixels.",
        wide=True,
    )


def reconstruction_pictures(model: Any, source: Source, worst: Sequence[int]) -> list[Chart]:
    """Some images above what a model makes of their codes: evenly from all, then those that it reconstructs worst."""
    shape, rows = image_shape_of(model), int(model.manifest_.rows)
    if shape is None or source.n_rows != rows:
        return []
    even = np.unique(np.linspace(0, rows - 1, min(rows, _EVENLY)).astype(np.intp)).tolist()
    last = [row for row in worst if row not in even][: 2 * _EVENLY - len(even)]

    def draw() -> str:
        given = Passes(allow_missing(source)).take([*even, *last])
        made = np.asarray(model.inverse_transform(model.transform(given)))
        low, high = float(np.nanmin(given)), float(np.nanmax(given))
        pictures = as_pictures(np.concatenate([np.nan_to_num(given, nan=low), made.clip(low, high)]), shape)
        n = len(given)
        above = [*(f"row {row}" for row in even), *(f"row {row}, worst" for row in last)]
        halves = [range(i, min(i + _EVENLY, n)) for i in range(0, n, _EVENLY)]
        order = [j for half in halves for j in (*half, *(n + i for i in half))]
        labels = [*above, *["from its code"] * n]
        return picture_grid([pictures[j] for j in order], [labels[j] for j in order], columns=len(halves[0]))

    return [
        Chart(
            "Images and what is made of their codes",
            draw,
            "Each image, and below it the reconstruction. Some evenly from all rows, then those that are reconstructed worst.",
            alt=f"{counted(len(even) + len(last), 'image')} and their reconstructions.",
            wide=True,
            only="page",
        )
    ]


def as_pictures(rows: NDArray[Any], shape: tuple[int, ...]) -> list[NDArray[np.uint8]]:
    """Rows of pixels as pictures, all in the same scale of brightness."""
    return list(shades(np.stack([_image(row, shape) for row in rows])))


def _image(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Values of pixels as an image of moderate size, without opacity."""
    image = np.asarray(values, np.float64).reshape(shape)
    return smaller(image[..., :3] if len(shape) == 3 else image, _SIDE)


def _more(count: int, what: str) -> str:
    return f" {counted(count, what)} {'is' if count == 1 else 'are'} not drawn." if count > 0 else ""
