"""Palettes in files: tables and lists of colours, palettes of GIMP, and pictures that have a palette."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.atomic import replacing
from foldwise.data.image_file import encoded, pillow, read_image
from foldwise.errors import DataError, MissingFileError, ParameterError

TEXTS = (".csv", ".gpl", ".hex", ".txt")
PICTURES = (".png", ".gif", ".bmp")
_HEX = re.compile(
    r"(?:^|[\s,;\"'])#([0-9a-fA-F]{8}|[0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b|^\s*([0-9a-fA-F]{8}|[0-9a-fA-F]{6})\s*$"
)
_NEARLY = re.compile(r"\s*#\w{3,8}\s*$")  # what is meant to be a colour, and none
_CHANNELS = (("red", "r"), ("green", "g"), ("blue", "b"), ("opacity", "alpha", "a"))
_WRITE = "Write each colour in a line, as #rrggbb or as 255 128 0"
_MOST = 1 << 16
_SWATCH = 32  # pixels of a side of a colour in a picture of a palette


def hex_colors(palette: NDArray[np.uint8]) -> list[str]:
    """Colours as web pages write them.

    >>> hex_colors(np.array([[255, 128, 0, 255], [1, 2, 3, 0]], np.uint8))
    ['#ff8000', '#01020300']
    """
    opaque = palette.shape[1] == 3 or (palette[:, 3] == 255)
    short = np.broadcast_to(opaque, len(palette))
    return [f"#{bytes(row[: 3 if plain else 4]).hex()}" for row, plain in zip(palette, short, strict=True)]


def check_palette_name(path: str | os.PathLike[str]) -> None:
    """An error if a palette cannot be written under this name."""
    if os.path.splitext(os.fspath(path))[1].lower() not in (*TEXTS, ".png"):
        raise ParameterError(f"{os.fspath(path)}: palettes are written as {', '.join(TEXTS)} or .png.")


def read_palette(path: str | os.PathLike[str]) -> NDArray[np.uint8]:
    """The colours of a file, as RGB, or RGBA if one is not opaque.

    A text has one colour in a line: hexadecimal, or its red, green and blue from 0 to 255; lines before the first colour may
    say anything. A picture has its own palette or, without one, the colours of its pixels, of which there must be few.
    """
    name = os.path.expanduser(os.fspath(path))
    if not os.path.exists(name):
        raise MissingFileError("there is no such file", where=name, advice=f"The current folder is {os.getcwd()}")
    try:
        with open(name, "rb") as file:
            start = file.read(4096)
    except OSError as problem:
        raise DataError(f"the palette cannot be read ({problem.strerror})", where=name) from None
    if b"\0" in start or os.path.splitext(name)[1].lower() in PICTURES:
        return _of_picture(name)
    with open(name, encoding="utf-8-sig", errors="replace") as lines:
        return _of_lines(lines.read(1 << 24).splitlines(), name)


def as_palette(given: Any) -> NDArray[Any]:
    """Colours as an array: from a file of any kind that `read_palette` knows, from texts such as "#ff8000", or as they are.

    >>> as_palette(["#ff8000", "#000000"]).tolist()
    [[255, 128, 0], [0, 0, 0]]
    """
    if isinstance(given, (str, os.PathLike)):
        return read_palette(given)
    if isinstance(given, (list, tuple)) and given and all(isinstance(one, str) for one in given):
        return _of_lines(given, "palette")
    return np.asarray(given)


def write_palette(path: str | os.PathLike[str], palette: NDArray[np.uint8], pixels: Sequence[int] | None = None) -> int:
    """Write colours, with the numbers of `pixels` that they stand for if those are known; returns the number of bytes."""
    check_palette_name(path)
    ending = os.path.splitext(os.fspath(path))[1].lower()
    content = _encoded(palette, ending, pixels)
    with replacing(path) as file:
        file.write(content)
    return len(content)


def _encoded(palette: NDArray[np.uint8], ending: str, pixels: Sequence[int] | None) -> bytes:
    names, rows = hex_colors(palette), palette.tolist()
    if ending == ".png":
        return encoded(palette[None].repeat(_SWATCH, 0).repeat(_SWATCH, 1))
    if ending == ".gpl":
        lines = ["GIMP Palette", "Name: foldwise", "#"]
        lines += [f"{r:3d} {g:3d} {b:3d}\t{name}" for (r, g, b, *_), name in zip(rows, names, strict=True)]
    elif ending == ".csv":
        opacity = ",opacity" if palette.shape[1] == 4 else ""
        lines = [f"color,red,green,blue{opacity}" + (",pixels,share" if pixels is not None else "")]
        total = sum(pixels) if pixels is not None else 1
        for j, (row, name) in enumerate(zip(rows, names, strict=True)):
            counts = f",{pixels[j]},{pixels[j] / total:.6f}" if pixels is not None else ""
            lines.append(f"{name},{','.join(map(str, row))}{counts}")
    else:
        lines = names
    return ("\n".join(lines) + "\n").encode()


def _of_lines(lines: Sequence[str], name: str) -> NDArray[np.uint8]:
    found: list[tuple[int, ...]] = []
    places: list[int] | None = None  # of red, green, blue (and opacity) in a line, if a head says so
    for row, line in enumerate(lines):
        colour = _colour(line, places, name, row)
        if colour is not None:
            found.append(colour)
        elif not found and places is None:
            places = _head(line)
        elif found and line.strip() and not line.lstrip().startswith("#"):
            raise DataError(f"no colour: {line.strip()[:40]!r}", where=name, row=row, advice=_WRITE)
    if not found:
        raise DataError("no colours were found", where=name, advice=_WRITE)
    if any(len(one) == 4 and one[3] < 255 for one in found):
        return _some(np.array([one if len(one) == 4 else (*one, 255) for one in found], np.uint8), name)
    return _some(np.array([one[:3] for one in found], np.uint8), name)


def _colour(line: str, places: list[int] | None, name: str, row: int) -> tuple[int, ...] | None:
    """The colour in a line: hexadecimal, or its first three or four numbers, or those at some places."""
    as_hex = _HEX.search(line)
    if as_hex is not None:
        digits: str = next(filter(None, as_hex.groups()))
        return tuple(bytes.fromhex(digits if len(digits) > 4 else "".join(2 * one for one in digits)))
    if _NEARLY.match(line):
        raise DataError(f"no colour: {line.strip()[:40]!r}", where=name, row=row, advice=_WRITE)
    cells = [cell for cell in re.split(r"\s*[,;\t]\s*|\s+", line.strip()) if cell]
    if places is None:
        numbers = next((i for i, cell in enumerate(cells) if not cell.isdecimal()), len(cells))
        if numbers < 3 and (len(cells) < 2 or not cells[0][0].isdigit()):
            return None
        cells = cells[: min(numbers, 4)]
    else:
        cells = [cells[i] for i in places if i < len(cells)]
    if len(cells) < 3 or not all(cell.isdecimal() and int(cell) < 256 for cell in cells):
        raise DataError(
            "red, green and blue are whole numbers from 0 to 255, and these are not", where=name, row=row, advice=_WRITE
        )
    return tuple(map(int, cells))


def _head(line: str) -> list[int] | None:
    """Where a line of names has red, green and blue, and opacity if it does."""
    names = [cell.strip(" \"'").lower() for cell in re.split(r"[,;\t]", line)]
    found = [next((i for i, name in enumerate(names) if name in known), None) for known in _CHANNELS]
    return None if None in found[:3] else [i for i in found if i is not None]


def _of_picture(name: str) -> NDArray[np.uint8]:
    module = pillow()
    pixels = read_image(name)  # which says what is wrong with a file
    with module.open(name) as opened:
        if opened.mode == "P" and opened.info.get("transparency") is None:
            used = max(index for _, index in opened.getcolors(256)) + 1
            return np.array(opened.getpalette("RGB"), np.uint8).reshape(-1, 3)[:used]
    if pixels.dtype != np.uint8:
        raise DataError("a palette has colours of 8 bits", where=name)
    flat = pixels.reshape(-1, 1).repeat(3, axis=1) if pixels.ndim == 2 else pixels.reshape(-1, pixels.shape[2])
    if flat.shape[1] == 4 and (flat[:, 3] == 255).all():
        flat = flat[:, :3]
    colours, first = np.unique(flat, axis=0, return_index=True)
    if len(colours) > 256:
        raise DataError(
            f"the picture has no palette, and {len(colours):,} colours",
            where=name,
            advice="A palette has at most 256: fit one, as in `foldwise quantize photo.jpg -k 16 --palette-out p.csv`",
        )
    return np.ascontiguousarray(colours[np.argsort(first)])


def _some(palette: NDArray[np.uint8], name: str) -> NDArray[np.uint8]:
    if len(palette) > _MOST:
        raise DataError(f"{len(palette):,} colours; a palette has at most {_MOST:,}", where=name)
    return palette


def npz_content(**arrays: Any) -> bytes:
    """Arrays as the content of a compressed .npz file, the same for the same arrays."""
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()
