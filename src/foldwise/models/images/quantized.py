"""A picture in a few colours, or in a few small tiles."""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.atomic import replacing
from foldwise.data.image_file import MOST_PIXELS, encoded, write_image
from foldwise.data.palette_file import hex_colors, npz_content
from foldwise.errors import DataError, MissingFileError, ParameterError
from foldwise.models.images.blocks import grid, joined
from foldwise.reportable import Reportable

_INDEXED = (".gif", ".bmp")  # formats with a palette, beside .png
_OPAQUE = (".jpg", ".jpeg", ".jfif", ".bmp", ".gif", ".pgm", ".ppm", ".pnm", ".pbm")
_INDEXED_MOST = 256
_VERSION = 1
_DAMAGED = (  # what reading a damaged .npz file can end in
    OSError,
    ValueError,
    LookupError,
    TypeError,
    EOFError,
    ArithmeticError,
    MemoryError,
    RuntimeError,
    zlib.error,
    zipfile.BadZipFile,
)
_TILE = 16  # pixels of a side of a tile in a picture of all


def write_codebook(path: str | os.PathLike[str], codebook: NDArray[np.uint8]) -> None:
    """Write tiles: .npy as an array, or as a picture in which they lie side by side with lines of one pixel between them."""
    name = os.fspath(path)
    if name.lower().endswith(".npy"):
        with replacing(name) as file:
            np.save(file, codebook)
        return
    n, block, _, channels = codebook.shape
    across = math.ceil(math.sqrt(n))
    down = -(-n // across)
    larger = max(1, _TILE // block)  # so that they can be looked at
    side = block * larger
    made = np.full((down * (side + 1) - 1, across * (side + 1) - 1, channels), 128, np.uint8)
    made[:, :, 3:] = 255
    for i, tile in enumerate(codebook):
        y, x = (i // across) * (side + 1), (i % across) * (side + 1)
        made[y : y + side, x : x + side] = tile.repeat(larger, 0).repeat(larger, 1)
    write_image(name, made[:, :, 0] if channels == 1 else made)


@dataclass(frozen=True, eq=False)
class QuantizedImage(Reportable):
    """A picture made of `palette` colours (numbered by `labels`, one for each pixel) or, with blocks, of `codebook` tiles.

    `psnr` (decibels, higher is better) and `color_difference` (mean CIE 1976 difference in Lab, 2.3 is just visible) compare it
    with the picture it was made of; both are NaN if that is not known. With opacity, they compare colours times opacity, and
    `psnr` opacity too. `pixels` is the picture itself, `save` writes it, `report` shows it.
    """

    labels: NDArray[Any]
    palette: NDArray[np.uint8] | None
    codebook: NDArray[np.uint8] | None
    shape: tuple[int, int]  # height and width
    grey: bool = False
    psnr: float = float("nan")
    color_difference: float = float("nan")
    colors_before: int | None = None  # distinct ones
    dithered: bool = False
    name: str = "array"
    notes: tuple[str, ...] = ()
    original: NDArray[Any] | None = field(default=None, repr=False)  # its pixels, for the report

    def __repr__(self) -> str:
        size = f"{self.shape[1]} x {self.shape[0]}"
        tiles = "" if self.codebook is None else f" tiles of {self.block} x {self.block} pixels"
        quality = "" if self.psnr != self.psnr else f", PSNR {self.psnr:.2f} dB"
        return f"QuantizedImage({size}, {self.n_codes}{tiles or ' colors'}{quality})"

    @property
    def n_codes(self) -> int:
        """How many colours, or tiles, there are."""
        return len(self._codes)

    @property
    def block(self) -> int:
        """The side of a tile; 1 for colours."""
        return 1 if self.codebook is None else self.codebook.shape[1]

    @property
    def hex(self) -> list[str]:
        """The palette as #rrggbb."""
        return [] if self.palette is None else hex_colors(self.palette)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many pixels (or blocks) have each colour (or tile)."""
        return np.bincount(self.labels.reshape(-1), minlength=self.n_codes)

    @property
    def pixels(self) -> NDArray[np.uint8]:
        """The picture: (height, width), or with 3 or 4 channels."""
        if self.codebook is not None:
            made = joined(self.labels, self.codebook, self.shape)
            return made[:, :, 0] if self.grey else made
        assert self.palette is not None
        colours = self.palette[:, 0] if self.grey else self.palette
        return colours.take(self.labels, axis=0)

    @property
    def code_bits(self) -> int:
        """Bits of a number of a colour or tile: the logarithm of how many there are, rounded up."""
        return max(1, (self.n_codes - 1).bit_length())

    @property
    def plain_bytes(self) -> int:
        """The size without further compression: numbers of `code_bits` each, and the palette or codebook."""
        return -(-self.labels.size * self.code_bits // 8) + self._codes.size

    @property
    def entropy_bytes(self) -> float:
        """The least size that a code of single numbers can have, with the palette or codebook."""
        shares = self.counts[self.counts > 0] / self.labels.size
        return float(-(shares * np.log2(shares)).sum() * self.labels.size / 8 + self._codes.size)

    @property
    def bits_per_pixel(self) -> float:
        """Of `plain_bytes`."""
        return 8 * self.plain_bytes / (self.shape[0] * self.shape[1])

    def encoded(self, ending: str = ".png") -> bytes:
        """The content of a file: an image, in palette colours where the format has them, or .npz with labels and codes."""
        ending = ending.lower()
        if ending == ".npz":
            return self._npz()
        self.check_ending(ending)
        indexed = ending == ".png" or ending in _INDEXED
        if indexed and self.palette is not None and len(self.palette) <= _INDEXED_MOST:
            # From dark to light: numbers of neighbouring pixels are then alike, which makes files up to a fifth smaller.
            order = np.argsort(self.palette[:, :3] @ [299, 587, 114], kind="stable")
            numbers = np.empty(len(order), np.uint8)
            numbers[order] = np.arange(len(order), dtype=np.uint8)
            return encoded(numbers[self.labels], ending, palette=self.palette[order])
        return encoded(self.pixels, ending)

    def check_ending(self, ending: str) -> None:
        """An error if a file with this ending could not hold the picture."""
        if self._codes.shape[-1] == 4 and ending.lower() in _OPAQUE:
            raise ParameterError(f"{ending} has no opacity, and this picture does. Write it as .png, .webp or .npz.")
        if ending.lower() == ".gif" and (self.palette is None or len(self.palette) > _INDEXED_MOST):
            raise ParameterError(
                f".gif holds at most {_INDEXED_MOST} colours, and this picture has more. Write it as .png, .webp or .npz."
            )

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write it in the format that the name's ending says (.npz can be loaded again); returns the number of bytes."""
        content = self.encoded(os.path.splitext(os.fspath(path))[1])
        with replacing(path) as file:
            file.write(content)
        return len(content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> QuantizedImage:
        """Read an .npz file that `save` wrote."""
        name = os.fspath(path)
        if not os.path.exists(name):
            raise MissingFileError("there is no such file", where=name, advice=f"The current folder is {os.getcwd()}")
        try:
            with open(name, "rb") as stream, np.load(stream, allow_pickle=False) as file:
                if sum(part.file_size for part in file.zip.infolist()) > 8 * MOST_PIXELS:
                    raise ValueError("too large")
                version, height, width, grey = (int(one) for one in file["about"])
                codes, labels = file["codes"], file["labels"]
        except _DAMAGED as problem:
            raise DataError("not a quantised image, or a damaged one", where=name) from problem
        block = codes.shape[1] if codes.ndim == 4 else 1
        fits = (
            version == _VERSION
            and codes.ndim in (2, 4)
            and codes.dtype == np.uint8
            and codes.shape[-1] in ((1, 3, 4) if codes.ndim == 4 else (3, 4))
            and (codes.ndim == 2 or codes.shape[2] == block)
            and len(codes) > 0
            and block > 0
            and 0 < height * width <= MOST_PIXELS
            and min(height, width) > 0
            and labels.dtype.kind == "u"
            and labels.shape == grid(height, width, block)
            and int(labels.max()) < len(codes)
        )
        if not fits:
            raise DataError("not a quantised image of this version of Foldwise, or a damaged one", where=name)
        plain = codes.ndim == 2
        return cls(labels, codes if plain else None, None if plain else codes, (height, width), bool(grey), name=name)

    @property
    def _codes(self) -> NDArray[np.uint8]:
        codes = self.palette if self.codebook is None else self.codebook
        assert codes is not None
        return codes

    def _npz(self) -> bytes:
        about = np.array([_VERSION, *self.shape, self.grey], np.int64)
        return npz_content(about=about, codes=self._codes, labels=self.labels)
