"""Means and components of images shown as images, instead of tables with a column for each pixel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.report.formats import counted, percent
from foldwise.report.pictures import picture_grid, shades, smaller
from foldwise.report.values import Chart

_MOST_PICTURES = 40
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
    labels = ["mean", *(f"{name} ({percent(float(share))})" for name, share in zip(names or _names(pca), shares, strict=False))]
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


def as_pictures(rows: NDArray[Any], shape: tuple[int, ...]) -> list[NDArray[np.uint8]]:
    """Rows of pixels as pictures, all in the same scale of brightness."""
    return list(shades(np.stack([_image(row, shape) for row in rows])))


def _image(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Values of pixels as an image of moderate size, without opacity."""
    image = np.asarray(values, np.float64).reshape(shape)
    return smaller(image[..., :3] if len(shape) == 3 else image, _SIDE)


def _more(count: int, what: str) -> str:
    return f" {counted(count, what)} {'is' if count == 1 else 'are'} not drawn." if count > 0 else ""
