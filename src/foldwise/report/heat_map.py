"""A square matrix of shares as a picture: a small PNG inside the SVG, since thousands of squares would be a large page."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.report.svg import BLUE, INK, MUTED, colour, fill, line, start, stroke, text

_SIZE, _EDGE, _RIGHT = 420.0, 30.0, 62.0
_DARK = f"color-mix(in srgb, {BLUE} 60%, {INK})"  # of 1; 0 is the paper


def heat_map(matrix: Floats, groups: Sequence[int], alt: str = "") -> str:
    """The matrix from paper (0) to dark blue (1); `groups` are those of its rows, in order, with a coloured edge for each."""
    n = len(matrix)
    picture = png((255 * np.clip(np.nan_to_num(matrix), 0.0, 1.0)).round().astype(np.uint8))
    name = f"heat-{zlib.crc32(picture):08x}"  # named by what is in it: equal names in one page are equal pictures
    width, height = _SIZE + _EDGE + _RIGHT, _SIZE + _EDGE + 4
    place = f'x="{_EDGE:g}" y="{_EDGE:g}" width="{_SIZE:g}" height="{_SIZE:g}"'
    image = f'style="image-rendering: pixelated" href="data:image/png;base64,{base64.b64encode(picture).decode()}"'
    # The picture says how much of the colour is seen, so that one picture serves light and dark pages.
    parts = [start(width, height, alt)]
    parts.append(f'<mask id="{name}"><image {place} preserveAspectRatio="none" {image}/></mask>')
    parts.append(f'<rect {place} {fill(_DARK)} mask="url(#{name})"/>')
    bounds = [0, *(i for i in range(1, n) if groups[i] != groups[i - 1]), n]
    for first, last in pairwise(bounds):
        at, length, ink = _EDGE + _SIZE * first / n, _SIZE * (last - first) / n, fill(colour(groups[first]))
        side = f"{max(length - 1, 0.5):.1f}"
        parts.append(f'<rect x="{at:.1f}" y="{_EDGE - 12:g}" width="{side}" height="9" {ink}/>')
        parts.append(f'<rect x="{_EDGE - 12:g}" y="{at:.1f}" width="9" height="{side}" {ink}/>')
        if length > 12:
            parts.append(text(_EDGE - 16, at + length / 2 + 4, str(groups[first]), "end"))
            parts.append(text(at + length / 2, _EDGE - 16, str(groups[first]), "middle"))
    parts += _legend()
    return "".join([*parts, "</svg>"])


def _legend() -> list[str]:
    """The scale of colours, at the right."""
    x, tall, steps = _EDGE + _SIZE + 14, 160.0, 40
    parts = []
    for i in range(steps):
        at = _EDGE + tall * i / steps
        size = f'width="12" height="{tall / steps + 0.3:.1f}" fill-opacity="{1 - i / (steps - 1):.3f}"'
        parts.append(f'<rect x="{x:g}" y="{at:.1f}" {size} {fill(_DARK)}/>')
    parts.append(f'<rect x="{x:g}" y="{_EDGE:g}" width="12" height="{tall:g}" {stroke(MUTED, 0.5)}/>')
    for share in (0.0, 0.5, 1.0):
        y = _EDGE + tall * (1 - share)
        parts += [line(x + 12, y, x + 15, y, MUTED), text(x + 18, y + 4, f"{share:g}", "start")]
    return parts


def png(pixels: NDArray[np.uint8]) -> bytes:
    """A picture in shades of grey as a PNG file.

    >>> png(np.zeros((2, 2), dtype=np.uint8))[1:4]
    b'PNG'
    """
    height, width = pixels.shape
    lines = np.concatenate([np.zeros((height, 1), dtype=np.uint8), pixels], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body
