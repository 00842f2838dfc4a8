"""Image files of odd kinds, made by hand where Pillow does not write them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image


def chunked(chunks: list[tuple[bytes, bytes]]) -> bytes:
    """A PNG file of these chunks."""
    body = (struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(body)


def png_of_16_bits(pixels: np.ndarray) -> bytes:
    """(height, width, channels) of uint16 as a PNG file, which Pillow does not write for colours."""
    height, width, channels = pixels.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 16, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, 0)
    return chunked([(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")])


def bomb(side: int = 30_000) -> bytes:
    """A small PNG file that claims to be huge."""
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return chunked([(b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b"")])


def photograph(height: int = 12, width: int = 16, seed: int = 0) -> np.ndarray:
    """Smooth colours, which JPEG keeps nearly."""
    y, x = np.mgrid[:height, :width] / max(height, width)
    planes = [np.sin(3 * x + 2 * y * k + seed) * 90 + 128 for k in range(3)]
    return np.stack(planes, -1).astype(np.uint8)


def save_all(folder: Path, images: np.ndarray, pattern: str = "img{}.png") -> list[Path]:
    """One file for each image."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / pattern.format(number) for number in range(len(images))]
    for path, pixels in zip(paths, images, strict=True):
        Image.fromarray(pixels).save(path)
    return paths
