"""Arrays of pixels as pictures in a page: PNG inside SVG, so that a `Chart` draws them like any other figure."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray


def png(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file of grey, RGB or RGBA pixels of 8 bits; made here, so that a page needs no Pillow.

    >>> png(np.zeros((1, 1), np.uint8))[:4]
    b'\\x89PNG'
    """
    height, width = pixels.shape[:2]
    kind = {1: 0, 3: 2, 4: 6}[1 if pixels.ndim == 2 else pixels.shape[2]]
    rows = np.ascontiguousarray(pixels).reshape(height, -1).astype(np.int16)
    filtered = np.zeros((height, rows.shape[1] + 1), np.uint8)
    filtered[:, 0] = 2  # each row minus the one above, which compresses photographs best for the effort
    filtered[:, 1:] = np.diff(rows, axis=0, prepend=np.int16(0)) & 0xFF
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)),
        (b"IDAT", zlib.compress(filtered.tobytes(), 9)),
        (b"IEND", b""),
    ]
    body = (struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(body)


def picture(pixels: NDArray[np.uint8], *, most: int = 1200) -> str:
    """One picture as SVG, made smaller if a side is longer than `most` pixels."""
    pixels = smaller(pixels, most)
    height, width = pixels.shape[:2]
    scale = max(1, 480 // max(height, width))
    w, h = width * scale, height * scale
    return (
        f'<svg viewBox="0 0 {w} {h}" width="{w}" style="max-width:100%;height:auto">{_image(pixels, 0, 0, w, h)}</svg>'
    )


def picture_grid(
    pictures: Sequence[NDArray[np.uint8]],
    labels: Sequence[str] = (),
    *,
    columns: int = 8,
    side: int = 96,
    gap: int = 10,
) -> str:
    """Pictures of equal size side by side in rows, each with its label below, as SVG."""
    height, width = pictures[0].shape[:2]
    h = round(side * height / width)
    below = 18 if any(labels) else 0
    cells = []
    for number, pixels in enumerate(pictures):
        x, y = (number % columns) * (side + gap), (number // columns) * (h + below + gap)
        cells.append(_image(smaller(pixels, 4 * side), x, y, side, h))
        if number < len(labels) and labels[number]:
            place = f'x="{x + side / 2:g}" y="{y + h + 13}" text-anchor="middle" font-size="11"'
            cells.append(f"<text {place}>{escape(labels[number])}</text>")
    used = min(columns, len(pictures))
    rows = -(-len(pictures) // columns)
    w, total = used * (side + gap) - gap, rows * (h + below + gap) - gap
    return f'<svg viewBox="0 0 {w} {total}" width="{w}" style="max-width:100%;height:auto">{"".join(cells)}</svg>'


def smaller(pixels: NDArray[Any], most: int) -> NDArray[Any]:
    """Pixels averaged in squares until no side is longer than `most`."""
    by = -(-max(pixels.shape[:2]) // most)
    if by <= 1:
        return pixels
    height, width = (max(1, n // by) for n in pixels.shape[:2])
    tall, wide = min(by, pixels.shape[0]), min(by, pixels.shape[1])
    cut = pixels[: height * tall, : width * wide]
    squares = cut.reshape(height, tall, width, wide, -1).mean((1, 3))
    whole = squares.round() if pixels.dtype.kind in "iu" else squares
    made: NDArray[Any] = whole.astype(pixels.dtype).reshape(height, width, *pixels.shape[2:])
    return made


def shades(values: NDArray[Any], *, both: bool = False) -> NDArray[np.uint8]:
    """Numbers as grey pixels: from the least (black) to the largest (white), or with `both`, 0 as middle grey."""
    values = np.asarray(values, np.float64)
    low, high = float(values.min()), float(values.max())
    if both:
        low, high = -max(-low, high), max(-low, high)
    share = (values - low) / (high - low) if high > low else np.full(values.shape, 0.5)
    return (share * 255).round().astype(np.uint8)


def _image(pixels: NDArray[np.uint8], x: float, y: float, width: float, height: float) -> str:
    data = base64.b64encode(png(pixels)).decode()
    sharp = "image-rendering:pixelated" if max(pixels.shape[:2]) < max(width, height) else ""
    return (
        f'<image x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" preserveAspectRatio="none" '
        f'style="{sharp}" href="data:image/png;base64,{data}"/>'
    )
