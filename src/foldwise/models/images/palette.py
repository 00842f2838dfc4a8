"""Fitting a palette to the colours of pictures, and finding the entry of each colour."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.errors import NotFinishedWarning
from foldwise.fold.outcome import Reason
from foldwise.models.images.colour_counts import ColourCounts
from foldwise.models.images.spaces import coordinates
from foldwise.models.kmeans import KMeans

_SEARCHED = 8192  # distinct colours from which on the search looks at cells of colours first
_CHUNK = 1 << 18  # colours whose coordinates are held at a time


def fit_palette(
    counts: ColourCounts, n_colors: int, space: str, seed: int, n_threads: int | None = None
) -> NDArray[np.uint8]:
    """The best colours for these pixels, as uint8 RGB or RGBA, largest share first.

    K-means on the distinct colours, weighted by their numbers of pixels, which is k-means on the pixels. Entries are means of
    sRGB values, which least squares in what is shown ask for, whatever space the clusters were found in. Fewer colours than
    asked for are returned if there are no more.
    """
    colours = counts.colours()
    if len(colours) <= n_colors:
        return _by_share(_distinct(colours), coordinates(colours, space), counts.counts, space, n_threads)
    x = coordinates(colours, space)
    weights = counts.counts.astype(np.float64)
    bits = 5 if n_colors < 64 else 6
    cells = counts.cells(bits) if len(colours) > _SEARCHED and counts.bits > bits else None
    options: dict[str, Any] = {"random_state": seed, "n_threads": n_threads}
    if cells is None or cells.max() < 2 * n_colors:
        found = fitted(KMeans(n_colors, search="breathing", **options), x, weights)
    else:
        # The search looks at the means of cells of colours, a tenth as many; what it finds is the start among all colours.
        total = np.bincount(cells, weights)
        means = np.stack([np.bincount(cells, weights * column) for column in x.T], axis=1) / total[:, None]
        start = fitted(KMeans(n_colors, search="breathing", **options), means, total).cluster_centers_
        found = fitted(KMeans(n_colors, init=start, **options), x, weights)
    return _by_share(_distinct(mean_colours(colours, weights, found.labels_)), x, counts.counts, space, n_threads)


def fitted(model: KMeans, x: NDArray[Any], weights: NDArray[Any]) -> KMeans:
    """The model fitted to weighted rows; Ctrl-C is for the caller, who has no use for half a palette."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotFinishedWarning)  # after 300 steps, what is left to gain cannot be seen
        model.fit(x, sample_weight=weights)
    if model.outcome_.reason is Reason.INTERRUPTED:
        raise KeyboardInterrupt
    return model


def nearest(colours: NDArray[Any], palette: NDArray[Any], space: str, n_threads: int | None = None) -> NDArray[Any]:
    """The number of the palette's nearest colour for each colour, in as few bits as that takes."""
    model = of_centres(coordinates(palette, space), n_threads)
    labels = np.empty(len(colours), label_type(len(palette)))
    for start in range(0, len(colours), _CHUNK):
        some = slice(start, start + _CHUNK)
        labels[some] = model.predict(coordinates(colours[some], space))
    return labels


def of_centres(centres: NDArray[Any], n_threads: int | None = None) -> KMeans:
    """A model that finds the nearest of these centres for each row."""
    model = KMeans(len(centres), n_threads=n_threads)
    model.cluster_centers_, model.n_features_in_ = centres, centres.shape[1]
    return model


def label_type(n: int) -> type[Any]:
    """The smallest unsigned type for numbers below `n`."""
    return np.uint8 if n <= 1 << 8 else np.uint16 if n <= 1 << 16 else np.uint32


def in_channels(colours: NDArray[Any], channels: int) -> NDArray[Any]:
    """RGB as opaque RGBA if there are 4 channels."""
    if colours.shape[-1] == channels:
        return colours
    return np.concatenate([colours, np.full((*colours.shape[:-1], 1), 255, colours.dtype)], axis=-1)


def _by_share(
    palette: NDArray[np.uint8], x: NDArray[np.float64], counts: NDArray[np.int64], space: str, n_threads: int | None
) -> NDArray[np.uint8]:
    """The colours of a palette by how many pixels (with coordinates `x`) they stand for, most first; unused ones left out."""
    labels = of_centres(coordinates(palette, space), n_threads).predict(x)
    pixels = np.bincount(labels, counts, minlength=len(palette))
    order = np.argsort(-pixels, kind="stable")
    return np.ascontiguousarray(palette[order[pixels[order] > 0]])


def mean_colours(colours: NDArray[Any], weights: NDArray[np.float64], labels: NDArray[np.int32]) -> NDArray[np.float64]:
    """Mean colours of clusters that have members; with opacity (4 channels), each colour counts in proportion to it."""
    total = np.bincount(labels, weights)
    seen, counted = total, weights
    if colours.shape[1] == 4:
        counted = weights * colours[:, 3]
        seen = np.bincount(labels, counted)
    known = np.where(seen > 0, seen, 1.0)
    means = [np.bincount(labels, counted * column) / known for column in colours.T[:3]]
    if colours.shape[1] == 4:
        means.append(seen / np.where(total > 0, total, 1.0))
    return np.stack(means, axis=1)[total > 0]


def _distinct(colours: NDArray[np.float64]) -> NDArray[np.uint8]:
    rounded: NDArray[np.uint8] = np.unique(np.rint(colours).astype(np.uint8), axis=0)
    return rounded
