"""The rows of a scatter as text for a page: numbers in few bytes, as base64 in JSON, never more than there is room for."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from foldwise.report.labels import cut

if TYPE_CHECKING:
    from foldwise.report.values import Scatter
    from foldwise.selection.explore.result import Points

MOST_POINTS = 1_000_000
_MOST_COMPONENTS = 8
_FIRST_COMPONENTS = 4  # those that all columns and identifiers but the first give way to
_LONGEST_NAME = 100  # characters
_LONGEST_ID = 60
_MOST_LEVELS = 1000
_HEAD = 2000  # bytes for what is not counted below


@dataclass(frozen=True)
class Packed:
    """The text of a scatter's data, safe inside a script element, and what to say about rows or columns that are left out."""

    text: str
    note: str


def pack(scatter: Scatter, room: int) -> Packed:
    """The points in at most `room` bytes: if need be without the last columns, then with fewer points, drawn at random.

    Coordinates have 16 bits, confidences 8; values are 32-bit floats, or places in a list of the few that occur.
    """
    points = _subset(scatter.points, MOST_POINTS)
    clusters = [cut(name, _LONGEST_NAME) for name in scatter.clusters]
    head = _HEAD + len(_script_safe(clusters))
    while True:
        needed, optional = _pieces(scatter, points)
        used = head + sum(_size(piece) for _, piece in needed)
        if used <= room or len(points.rows) <= 1:
            break
        share = max(room - head, 0) / (used - head)
        points = _subset(points, int(len(points.rows) * min(0.98 * share, 0.95)) or 1)
    told: dict[str, Any] = {
        "n": len(points.rows),
        "total": points.total,
        "clusters": clusters,
        **{kind: [] for kind in ("ids", "components", "categories", "columns")},
    }
    for kind, piece in needed:
        told[kind].append(piece) if kind in told else told.update({kind: piece})
    for kind, piece in optional:
        size = _size(piece)
        if used + size <= room:
            told[kind].append(piece)
            used += size
        elif kind == "columns":  # the last of all; those listed first are kept
            break
    return Packed(_script_safe(told), _note(scatter.points, told, scatter))


def _note(points: Points, told: dict[str, Any], scatter: Scatter) -> str:
    """What is not shown."""
    sentences = []
    if told["n"] < len(points.rows):  # that these are a sample themselves is told by who drew it
        sentences.append(f"Shown are {told['n']:,} of {len(points.rows):,} rows, drawn at random.")
    for kind, names, words in (
        ("columns", points.columns, "columns can be chosen as colours"),
        ("components", scatter.components, "directions can be chosen"),
    ):
        if len(told[kind]) < len(names):
            sentences.append(f"{len(told[kind]):,} of {len(names):,} {words}.")
    return " ".join(sentences)


def _subset(points: Points, most: int) -> Points:
    """At most so many points, at random but the same each time."""
    n = len(points.rows)
    if n <= most:
        return points
    kept = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
    return replace(
        points,
        **{
            name: getattr(points, name)[kept]
            for name in ("rows", "scores", "values", "labels", "confidence", "t2", "residual")
        },
        codes=None if points.codes is None else points.codes[kept],
        ids=tuple(points.ids[i] for i in kept) if points.ids else (),
    )


_Piece = tuple[str, dict[str, Any]]


def _pieces(scatter: Scatter, points: Points) -> tuple[list[_Piece], Iterator[_Piece]]:
    """What every page needs, and what it may have, the most useful first."""
    names, d = scatter.components, min(points.scores.shape[1], _MOST_COMPONENTS)
    components = ({"name": cut(names[j], _LONGEST_NAME), **_sixteen_bits(points.scores[:, j])} for j in range(d))
    ids = _ids(points)
    needed: list[_Piece] = [("ids", next(ids))]
    needed += [("components", piece) for piece in islice(components, _FIRST_COMPONENTS)]
    if scatter.clusters:
        needed.append(("labels", _codes(points.labels)))
        if np.isfinite(points.confidence).any():
            needed.append(("confidence", _eighth_bits(points.confidence)))

    def optional() -> Iterator[_Piece]:
        yield from (("ids", piece) for piece in ids)
        if points.codes is not None:
            for j, (name, levels) in enumerate(points.categories):
                told = [cut(level, _LONGEST_NAME) for level in levels[:_MOST_LEVELS]]
                codes = np.where(points.codes[:, j] < len(told), points.codes[:, j], -1)
                yield "categories", {"name": cut(name, _LONGEST_NAME), "levels": told, **_codes(codes)}
        yield from (("components", piece) for piece in components)
        for j, name in enumerate(points.columns):
            yield "columns", {"name": cut(name, _LONGEST_NAME), **_values(points.values[:, j])}

    return needed, optional()


def _sixteen_bits(values: NDArray[Any]) -> dict[str, Any]:
    """Coordinates as whole numbers from 0 to 65535; the ends are met exactly, so that none lies outside its frame."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    step = (high - low) / 65535 or 1.0
    whole = np.rint((np.nan_to_num(values, nan=low, posinf=high, neginf=low) - low) / step)
    return {"offset": low, "scale": step, "u16": _base64(whole.astype("<u2"))}


def _eighth_bits(shares: NDArray[Any]) -> dict[str, Any]:
    """Shares from 0 to 1 as bytes from 0 to 250; 255 is missing."""
    whole = np.where(np.isfinite(shares), np.rint(250 * np.clip(shares, 0, 1)), 255)
    return {"u8": _base64(whole.astype("u1"))}


def _codes(codes: NDArray[Any]) -> dict[str, Any]:
    """Whole numbers from -1 on, one more than that stored: 0 is missing."""
    stored = np.maximum(codes, -1) + 1
    few = stored.max(initial=0) < 256
    return {"u8": _base64(stored.astype("u1"))} if few else {"u16": _base64(stored.astype("<u2"))}


def _values(values: NDArray[Any]) -> dict[str, Any]:
    """32-bit floats, or, if that is shorter, the few that occur and the place of each among them."""
    single = values.astype("<f4")
    single[~np.isfinite(single)] = np.nan
    if len(single) > 100 and len(np.unique(single[:1000])) <= 0.9 * min(len(single), 1000):
        occur, places = np.unique(single, return_inverse=True)  # a NaN is one of them
        if len(occur) <= 256:
            return {"list": _base64(occur), "u8": _base64(places.astype("u1"))}
        if len(occur) <= min(65536, len(single) // 2):
            return {"list": _base64(occur), "u16": _base64(places.astype("<u2"))}
    return {"f4": _base64(single)}


def _ids(points: Points) -> Iterator[dict[str, Any]]:
    """The identifiers; whole numbers that rise in small steps as these steps."""
    n = len(points.rows)
    if not points.ids:
        yield {"name": "row", **_whole(points.rows)}
        return
    for j, name in enumerate(points.id_names):
        texts = [row[j] if j < len(row) else "" for row in points.ids]
        told = {"name": cut(name, _LONGEST_NAME)}
        if all(text.isascii() and text.isdigit() and len(text) < 10 and text == str(int(text)) for text in texts):
            yield {**told, **_whole(np.array(texts, np.int64) if n else np.zeros(0, np.int64))}
        else:
            yield {**told, "texts": [cut(text, _LONGEST_ID) for text in texts]}


def _whole(numbers: NDArray[Any]) -> dict[str, Any]:
    """Whole numbers of at most 32 bits."""
    steps = np.diff(numbers, prepend=numbers[:1])
    if len(steps) and steps.min() >= 0 and steps.max() < 65536:
        narrow, kind = ("u8", "u1") if steps.max() < 256 else ("u16", "<u2")
        return {"first": int(numbers[0]), narrow: _base64(steps.astype(kind))}
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= 2**32):
        return {"texts": [str(number) for number in numbers.tolist()]}
    return {"u32": _base64(numbers.astype("<u4"))}


def _base64(values: NDArray[Any]) -> str:
    return b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


def _size(piece: dict[str, Any]) -> int:
    """The bytes of a piece in the page; names and texts may need escapes, and count as they are written."""
    encoded = ("u8", "u16", "u32", "f4")
    return sum(20 + len(value if key in encoded else _script_safe(value)) for key, value in piece.items())


def _script_safe(value: Any) -> Any:
    """JSON that no text in it can end early: of ASCII, and without the characters that mean something to HTML."""
    from markupsafe import Markup

    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
