"""The report on pictures in a few colours or tiles: before and after, palette, sizes."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.image_file import encoded
from foldwise.data.palette_file import hex_colors
from foldwise.models.images.quantized import QuantizedImage
from foldwise.report.formats import counted, percent
from foldwise.report.pictures import picture, picture_grid, smaller
from foldwise.report.values import Chart, Column, Fact, Group, Note, Part, Report, Table

_MOST_SHOWN = 700  # pixels of a side on a page
_MOST_TILES = 256
_WHOLE = 1 << 22  # pixels of which a PNG file is made to learn its size; of more, of some rows
_BANDS = 16
_THUMBNAIL = 480  # pixels of a side
THUMBNAILS = 12  # pictures of many that a page shows
_INDEXED = 256
_LOSSY = (".jpg", ".jpeg", ".jfif", ".avif")


@dataclass(frozen=True)
class Written:
    """What a table of several pictures says of one."""

    name: str
    shape: tuple[int, int]
    psnr: float
    color_difference: float
    bytes_before: int | None
    bytes_after: int | None
    before: NDArray[np.uint8] | None = None  # small
    after: NDArray[np.uint8] | None = None

    @classmethod
    def of(cls, made: QuantizedImage, bytes_after: int | None, *, shown: bool) -> Written:
        """What is told of a picture; with small pictures, before and after, if it is `shown`."""
        small: list[NDArray[np.uint8] | None] = [None, None]
        if shown and made.original is not None:
            small = [smaller(_eight_bits(one), _THUMBNAIL) for one in (made.original, made.pixels)]
        size = os.path.getsize(made.name) if os.path.isfile(made.name) else None
        return cls(made.name, made.shape, made.psnr, made.color_difference, size, bytes_after, *small)


def quantize_report(made: QuantizedImage, written: tuple[str, int] | None = None) -> Report:
    """On one picture; `written` is the file that it was written to, and its size."""
    height, width = made.shape
    before = "" if made.colors_before is None else f", {counted(made.colors_before, 'colour')}"
    tiles = made.codebook is not None
    what = counted(made.n_codes, "tile") if tiles else counted(made.n_codes, "colour")
    title = f"{what}{f' of {made.block} x {made.block} pixels' if tiles else ''} for {os.path.basename(made.name)}"
    parts: list[Part] = [_pictures(made), _sizes(made, written), _tiles(made) if tiles else _palette(made)]
    notes = [f"Note: {note}." for note in made.notes]
    if not tiles and made.psnr == math.inf and made.colors_before == made.n_codes:
        notes.append(f"Note: the picture has no more than {what}; all are kept exactly.")
    if made.n_codes > _INDEXED and not tiles:
        notes.append(
            f"Note: a palette in an image file has at most {_INDEXED} colours; images are written in full colour."
        )
    if written is not None and os.path.splitext(written[0])[1].lower() in _LOSSY:
        notes.append(
            f"Note: {os.path.splitext(written[0])[1]} files are compressed with loss, which the PSNR above does not count; "
            ".png and .webp files have exactly these colours."
        )
    parts += [Note("\n".join(notes))] if notes else []
    done = f", reduced to {what}" + (
        f" of {made.block} x {made.block} pixels" if tiles else ", dithered" * made.dithered
    )
    return Report(title, [f"{made.name}: {width:,} x {height:,} pixels{before}{done}"], _quality(made), parts)


def folder_report(
    pictures: Sequence[Written], palette: NDArray[np.uint8] | None = None, pixels: NDArray[np.int64] | None = None
) -> Report:
    """On several pictures, with the palette, and the pixels of each of its colours, if they share one."""
    before = [math.nan if one.bytes_before is None else one.bytes_before for one in pictures]
    after = [one.bytes_after for one in pictures if one.bytes_after is not None]  # all, or none if none is written
    table = Table(
        "Pictures",
        [
            Column("picture", [one.name for one in pictures], left=True),
            Column("pixels", [f"{one.shape[1]} x {one.shape[0]}" for one in pictures]),
            Column("PSNR", [one.psnr for one in pictures], decibels),
            Column("colour difference", [one.color_difference for one in pictures], "{:.2f}".format),
            Column("bytes before", before, "{:,.0f}".format),
            *([Column("bytes after", after, "{:,}".format)] if after else []),
        ],
        "PSNR in dB (higher is better). Colour difference: mean CIE 1976, in Lab.",
        wide=True,
        searchable=True,
    )
    facts = [Fact("pictures", len(pictures), f"{len(pictures):,}")]
    if not any(size != size for size in before):
        facts.append(Fact("bytes before", sum(before), f"{sum(before):,.0f}"))
    facts += [Fact("bytes after", sum(after), f"{sum(after):,}")] if after else []
    parts: list[Part] = [table]
    pairs = [
        _pair(one.name, one.before, one.after) for one in pictures if one.before is not None and one.after is not None
    ]
    if pairs:
        more = f"The first {len(pairs)} of {len(pictures):,}." if len(pairs) < len(pictures) else ""
        parts.insert(0, Group(pairs, "Before and after", more, panels=True, wide=True))
    if palette is not None and pixels is not None:
        parts.append(_colours("Shared palette", palette, pixels))
    return Report(f"{counted(len(pictures), 'picture')} in a few colours", facts=facts, parts=parts)


def decibels(value: float) -> str:
    """A PSNR as it is written.

    >>> decibels(28.432), decibels(float("inf"))
    ('28.43', 'no loss')
    """
    return "no loss" if value == math.inf else f"{value:.2f}"


def full_color_bytes(pixels: NDArray[Any]) -> tuple[int, bool]:
    """The size of a PNG file of these pixels, and whether it is exact: of a large picture, some bands of rows stand for all."""
    shown = pixels if pixels.dtype in (np.uint8, np.uint16) else np.rint(pixels * 65535).astype(np.uint16)
    shown = shown[:, :, 0] if shown.ndim == 3 and shown.shape[2] == 1 else shown
    if shown.ndim == 3 and shown.dtype != np.uint8:
        shown = (shown >> 8).astype(np.uint8)  # Pillow writes colours of 8 bits
    height, width = shown.shape[:2]
    if height * width <= _WHOLE:
        return len(encoded(shown)), True
    rows = max(1, _WHOLE // (width * _BANDS))
    starts = np.linspace(0, height - rows, _BANDS).astype(int)
    some = sum(len(encoded(np.ascontiguousarray(shown[start : start + rows]))) for start in starts)
    return round(some * height / (rows * _BANDS)), False


def _quality(made: QuantizedImage) -> list[Fact]:
    if made.psnr != made.psnr:
        return []
    clear = (made.palette if made.codebook is None else made.codebook).shape[-1] == 4  # type: ignore[union-attr]
    of = "RGB times opacity, and opacity" if clear else "grey" if made.grey else "RGB"
    text = "no loss" if made.psnr == math.inf else f"{made.psnr:.2f} dB"
    return [
        Fact("PSNR", made.psnr, text, f"({of}; higher is better)"),
        Fact("colour difference", made.color_difference, f"{made.color_difference:.2f}", "(mean CIE 1976, in Lab)"),
    ]


def _sizes(made: QuantizedImage, written: tuple[str, int] | None) -> Table:
    sizes: list[tuple[str, float, str]] = []
    if made.original is not None and os.path.isfile(made.name):
        sizes.append(("input file", os.path.getsize(made.name), ""))
    if made.original is not None:
        count, exact = full_color_bytes(made.original)
        sizes.append(("lossless PNG", count, "" if exact else "estimated from some rows"))
    tiles = made.codebook is not None
    name, codes, ending = ("tile", "codebook", ".npz") if tiles else ("palette", "palette", ".png")
    plain = f"{counted(made.code_bits, 'bit')} each, and the {codes}"
    sizes.append((f"{name} indices", made.plain_bytes, plain))
    if tiles:
        sizes.append(("entropy coded", round(made.entropy_bytes), f"frequent tiles in fewer bits, and the {codes}"))
    if written is None:
        sizes.append((f"as {ending}", len(made.encoded(ending)), "compressed"))
    else:
        sizes.append((*written, "the file written"))
    bits = [8 * count / (made.shape[0] * made.shape[1]) for _, count, _ in sizes]
    columns = [
        Column("size", [name for name, _, _ in sizes], left=True),
        Column("bytes", [count for _, count, _ in sizes], "{:,.0f}".format),
        Column("bits per pixel", bits, "{:.2f}".format),
        Column("", [remark for _, _, remark in sizes], left=True),
    ]
    return Table("Sizes", columns)


def _pictures(made: QuantizedImage) -> Group:
    shown = made.pixels
    after = Chart(
        "After", lambda: picture(shown, most=_MOST_SHOWN), alt=f"The picture in {made.n_codes} colours or tiles"
    )
    charts = [after]
    if made.original is not None:
        given = _eight_bits(made.original)
        charts.insert(0, Chart("Before", lambda: picture(given, most=_MOST_SHOWN), alt="The picture as it was given"))
    return Group(charts, panels=True, wide=True)


def _palette(made: QuantizedImage) -> Table:
    assert made.palette is not None
    return _colours("Palette", made.palette, made.counts)


def _colours(title: str, palette: NDArray[np.uint8], pixels: NDArray[np.int64]) -> Table:
    """Colours with their shares of the pixels, the largest first."""
    order = np.argsort(-pixels, kind="stable")
    palette, names = palette[order], hex_colors(palette[order])
    shares = (pixels[order] / pixels.sum()).tolist()
    columns = [
        Column("colour", names, left=True),
        *(Column(name, palette[:, j].tolist()) for j, name in enumerate(("red", "green", "blue"))),
        *([Column("opacity", palette[:, 3].tolist())] if palette.shape[1] == 4 else []),
        Column("share", shares, percent, bar=max(shares)),
    ]
    return Table(title, columns, "Share: of the pixels.", most=32, colours=names)


def _pair(name: str, before: NDArray[np.uint8], after: NDArray[np.uint8]) -> Chart:
    title = os.path.basename(name)
    return Chart(title, lambda: picture_grid([before, after], columns=2, side=240), alt=f"{title}, before and after")


def _tiles(made: QuantizedImage) -> Chart:
    book = made.codebook
    assert book is not None
    shown = [tile[:, :, 0] if tile.shape[2] == 1 else tile for tile in book[:_MOST_TILES]]
    more = f" The first {_MOST_TILES} of {len(book):,}." if len(book) > _MOST_TILES else ""
    caption = f"Most frequent first.{more}"
    return Chart(
        "Codebook", lambda: picture_grid(shown, columns=32, side=24, gap=4), caption, alt="The tiles", wide=True
    )


def _eight_bits(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    if pixels.dtype == np.uint16:
        pixels = np.rint(pixels / 257.0)
    elif pixels.dtype != np.uint8:
        pixels = np.rint(pixels * 255.0)
    shown = pixels.astype(np.uint8)
    return shown[:, :, 0] if shown.ndim == 3 and shown.shape[2] == 1 else shown
