"""Vector quantisation of square blocks of pixels: each block becomes the number of a codeword, which is a small picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.models.images.colour_counts import STRIP, strips
from foldwise.models.images.palette import fitted, label_type, mean_colours, of_centres
from foldwise.models.images.spaces import coordinates
from foldwise.models.kmeans import KMeans

MOST_BLOCKS = 1 << 17  # that a codebook is fitted to


def blocks_of(pixels: NDArray[Any], block: int, strip: int = STRIP) -> Iterator[NDArray[Any]]:
    """The blocks (rows x columns, block, block, channels) of a picture, from left to right and from top to bottom, by strips.

    At the right and lower edges, the last pixels are repeated until a block is full.
    """
    height, width, channels = pixels.shape
    down, across = grid(height, width, block)
    for rows in strips(down, across * block * block, strip):
        some = pixels[rows.start * block : min(height, rows.stop * block)]
        missing = ((0, (rows.stop - rows.start) * block - len(some)), (0, across * block - width), (0, 0))
        padded = np.pad(some, missing, mode="edge") if any(after for _, after in missing) else some
        tiles = padded.reshape(-1, block, across, block, channels).swapaxes(1, 2)
        yield np.ascontiguousarray(tiles).reshape(-1, block, block, channels)


def grid(height: int, width: int, block: int) -> tuple[int, int]:
    """How many blocks a picture has, down and across."""
    return -(-height // block), -(-width // block)


def joined(labels: NDArray[Any], codebook: NDArray[Any], shape: tuple[int, int]) -> NDArray[Any]:
    """The picture (height, width, channels) that codewords make, without what was added at the edges.

    >>> tiles = np.array([[[[0], [1]], [[2], [3]]], [[[7], [7]], [[7], [7]]]], np.uint8)
    >>> joined(np.array([[0, 1]]), tiles, (2, 3))[:, :, 0]
    array([[0, 1, 7],
           [2, 3, 7]], dtype=uint8)
    """
    block = codebook.shape[1]
    made = np.empty((*shape, codebook.shape[3]), codebook.dtype)
    for row, numbers in enumerate(labels):
        band = codebook[numbers].swapaxes(0, 1).reshape(block, -1, codebook.shape[3])
        place = made[row * block : (row + 1) * block]
        place[:] = band[: len(place), : shape[1]]
    return made


def sample(pictures: Iterable[NDArray[Any]], n_pictures: int, block: int) -> tuple[NDArray[Any], bool]:
    """Blocks to fit a codebook to, evenly from all pictures, and whether some were left out."""
    most = max(1, MOST_BLOCKS // n_pictures)
    kept, cut = [], False
    for pixels in pictures:
        down, across = grid(pixels.shape[0], pixels.shape[1], block)
        step = -(-down * across // most)
        cut |= step > 1
        start = 0
        for tiles in blocks_of(pixels, block):
            kept.append(tiles[-start % step :: step].copy())
            start += len(tiles)
    return np.concatenate(kept), cut


def fit_codebook(
    tiles: NDArray[Any], n_codes: int, space: str, seed: int, n_threads: int | None = None
) -> NDArray[np.uint8]:
    """The best codewords for blocks (uint8, or uint16 in units of 255 / 65535), the one that is used most first."""
    distinct, counts = _distinct(tiles)
    values: NDArray[Any] = _as_bytes(distinct)
    if len(values) > n_codes:
        model = KMeans(n_codes, random_state=seed, n_threads=n_threads)
        labels = fitted(model, vectors(values, space), counts).labels_
        pixels = values.reshape(len(values), -1, values.shape[3])  # of each block, one after the other
        means = [mean_colours(pixels[:, place], counts, labels) for place in range(pixels.shape[1])]
        values = np.stack(means, axis=1).reshape(-1, *tiles.shape[1:])
    codebook = _distinct(np.rint(values).astype(np.uint8))[0]
    used = np.bincount(nearest_codes(distinct, codebook, space, n_threads), counts, minlength=len(codebook))
    order = np.argsort(-used, kind="stable")
    return np.ascontiguousarray(codebook[order])


def _distinct(tiles: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """The blocks that differ from each other, and how often each occurs.

    They are compared byte by byte: a block has thousands of values if it is large, which `axis=0` would take one by one.
    """
    flat = np.ascontiguousarray(tiles).reshape(len(tiles), -1)
    whole = flat.view(np.dtype((np.void, flat.shape[1] * flat.itemsize))).reshape(-1)
    _, first, counts = np.unique(whole, return_index=True, return_counts=True)
    return tiles[first], counts.astype(np.float64)


def nearest_codes(
    tiles: NDArray[Any], codebook: NDArray[np.uint8], space: str, n_threads: int | None = None
) -> NDArray[Any]:
    """The number of the nearest codeword for each block."""
    model = of_centres(vectors(_as_bytes(codebook), space), n_threads)
    labels: NDArray[Any] = model.predict(vectors(_as_bytes(tiles), space)).astype(label_type(len(codebook)))
    return labels


def vectors(tiles: NDArray[Any], space: str) -> NDArray[np.float32]:
    """Blocks as rows: the coordinates of all their pixels, side by side."""
    values = tiles.repeat(3, axis=3) if tiles.shape[3] == 1 else tiles
    if tiles.shape[3] == 1 and space == "rgb":
        values = tiles  # three times the same would only take longer
        return np.ascontiguousarray(values.reshape(len(values), -1), np.float32)
    return np.ascontiguousarray(coordinates(values, space).reshape(len(values), -1), np.float32)


def _as_bytes(tiles: NDArray[Any]) -> NDArray[np.float32]:
    """From 0 to 255."""
    return tiles.astype(np.float32) * np.float32(1 if tiles.dtype != np.uint16 else 255 / 65535)
