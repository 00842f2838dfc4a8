"""A picture in the colours of a palette or the tiles of a codebook, and how much it differs from what it was."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.errors import DataError
from foldwise.kernels import dither
from foldwise.models.images.blocks import blocks_of, grid, joined, nearest_codes
from foldwise.models.images.colour import rgb_to_lab
from foldwise.models.images.colour_counts import Lookup, keys_of, strips
from foldwise.models.images.palette import in_channels, label_type, nearest
from foldwise.models.images.picture import Picture
from foldwise.models.images.quantized import QuantizedImage
from foldwise.models.images.spaces import premultiplied

_CHUNK = 1 << 18


def apply_palette(
    picture: Picture, palette: NDArray[np.uint8], space: str, dithering: bool, n_threads: int | None = None
) -> QuantizedImage:
    """Each pixel in the nearest colour, or with errors passed on to its neighbours."""
    height, width = picture.pixels.shape[:2]
    counts = picture.counts
    channels = max(3, picture.channels, palette.shape[1])
    notes = []
    if channels > palette.shape[1]:
        notes.append("the palette has no opacity: the picture becomes opaque")
    if picture.pixels.dtype != np.uint8:
        notes.append("the picture has 16 bits, its palette 8")
    targets = in_channels(palette, channels)
    colours = in_channels(counts.colours(), channels)
    labels = np.empty((height, width), label_type(len(palette)))
    if dithering:
        labels = _dithered(picture, targets)
        squares, difference = _pixel_errors(picture, colours, targets, labels)
    else:
        numbers = nearest(colours, targets, space, n_threads)
        lookup = Lookup(counts, numbers)
        for rows, keys in zip(strips(height, width), keys_of(picture.pixels), strict=True):
            labels[rows] = lookup(keys).reshape(-1, width)
        squares, difference = _colour_errors(colours, targets, numbers, counts.counts)
    grey = picture.channels == 1 and palette.shape[1] == 3 and bool((palette == palette[:, :1]).all())
    return QuantizedImage(
        labels,
        palette,
        None,
        (height, width),
        grey,
        psnr_of(squares, height * width * channels),
        difference / (height * width),
        len(counts.keys),
        dithering,
        picture.name,
        tuple(notes),
        picture.given,
    )


def apply_codebook(
    picture: Picture, codebook: NDArray[np.uint8], space: str, n_threads: int | None = None
) -> QuantizedImage:
    """Each block of pixels as the nearest tile."""
    height, width = picture.pixels.shape[:2]
    block, channels = codebook.shape[1], codebook.shape[3]
    notes = []
    if picture.channels > channels:
        raise DataError(
            f"{picture.channels} channels, but {channels} in the tiles",
            where=picture.name,
            advice="Fit the tiles to pictures of this kind",
        )
    if picture.pixels.dtype != np.uint8:
        notes.append("the picture has 16 bits, its tiles 8")
    pixels = picture.in_channels(channels)
    labels = np.concatenate([nearest_codes(tiles, codebook, space, n_threads) for tiles in blocks_of(pixels, block)])
    labels = labels.reshape(grid(height, width, block))
    squares = difference = 0.0
    step = block * max(1, (1 << 18) // (block * width))
    for start in range(0, height, step):
        rows = slice(start, min(height, start + step))
        made = joined(labels[start // block : -(-rows.stop // block)], codebook, (rows.stop - start, width))
        before = pixels[rows].reshape(-1, channels) * picture.unit
        one, other = _errors(_rgb(before), _rgb(made.reshape(-1, channels)))
        squares, difference = squares + float(one.sum()), difference + float(other.sum())
    return QuantizedImage(
        labels,
        None,
        codebook,
        (height, width),
        channels == 1,
        psnr_of(squares, height * width * max(3, channels)),
        difference / (height * width),
        None,
        False,
        picture.name,
        tuple(notes),
        picture.given,
    )


def psnr_of(squares: float, values: int) -> float:
    """Peak signal-to-noise ratio in decibels, of a sum of squared differences of values from 0 to 255.

    >>> round(psnr_of(4 * 100.0, 4), 2)
    28.13
    """
    return math.inf if squares == 0 else 10 * math.log10(255.0**2 * values / squares)


def _rgb(values: NDArray[Any]) -> NDArray[np.float64]:
    values = np.asarray(values, np.float64)
    return values.repeat(3, axis=1) if values.shape[1] == 1 else values


def _errors(before: NDArray[Any], after: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Squared differences of colours, summed over channels, and their CIE 1976 differences."""
    squares = ((premultiplied(before) - premultiplied(after)) ** 2).sum(axis=1)
    return squares, np.linalg.norm(_lab(before) - _lab(after), axis=1)


def _lab(colours: NDArray[Any]) -> NDArray[np.float64]:
    """CIE Lab; with opacity, times it."""
    found = rgb_to_lab(np.asarray(colours[:, :3], np.float64) / 255.0)
    return found if colours.shape[1] == 3 else found * (colours[:, 3:] / 255.0)


def _colour_errors(
    colours: NDArray[np.float64], palette: NDArray[np.uint8], numbers: NDArray[Any], counts: NDArray[np.int64]
) -> tuple[float, float]:
    """Sums over pixels, from distinct colours."""
    after = premultiplied(palette), _lab(palette)
    squares = difference = 0.0
    for start in range(0, len(colours), _CHUNK):
        some = slice(start, start + _CHUNK)
        lost = premultiplied(colours[some]) - after[0][numbers[some]]
        squares += float((lost**2).sum(axis=1) @ counts[some])
        lost = _lab(colours[some]) - after[1][numbers[some]]
        difference += float(np.linalg.norm(lost, axis=1) @ counts[some])
    return squares, difference


def _pixel_errors(
    picture: Picture, colours: NDArray[np.float64], palette: NDArray[np.uint8], labels: NDArray[Any]
) -> tuple[float, float]:
    """The same where pixels of one colour have different labels."""
    place = Lookup(picture.counts, np.arange(len(colours), dtype=np.uint32))
    before = premultiplied(colours).astype(np.float32), _lab(colours).astype(np.float32)
    after = premultiplied(palette).astype(np.float32), _lab(palette).astype(np.float32)
    squares = difference = 0.0
    height, width = labels.shape
    for rows, keys in zip(strips(height, width), keys_of(picture.pixels), strict=True):
        numbers, some = place(keys), labels[rows].reshape(-1)
        lost = before[0].take(numbers, axis=0) - after[0].take(some, axis=0)
        squares += float(np.einsum("ij,ij->", lost, lost, dtype=np.float64))
        lost = before[1].take(numbers, axis=0) - after[1].take(some, axis=0)
        difference += float(np.sqrt(np.einsum("ij,ij->i", lost, lost)).sum(dtype=np.float64))
    return squares, difference


def _dithered(picture: Picture, palette: NDArray[np.uint8]) -> NDArray[Any]:
    channels = palette.shape[1]
    if channels == 3 and picture.channels == 1 and (palette == palette[:, :1]).all():
        return dither(picture.pixels, np.ascontiguousarray(palette[:, :1], np.float32))
    pixels = picture.in_channels(channels)
    if channels == 4:
        opacity = pixels[:, :, 3:].astype(np.uint32)
        full = int(np.iinfo(pixels.dtype).max)
        seen = (pixels[:, :, :3] * opacity + full // 2) // full
        pixels = np.concatenate([seen.astype(pixels.dtype), pixels[:, :, 3:]], axis=2)
    return dither(np.ascontiguousarray(pixels), np.ascontiguousarray(premultiplied(palette), np.float32))
