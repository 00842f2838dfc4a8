"""Places for the names of arrows, so that no two lie over each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from foldwise.report.labels import text_width

_TALL = 15.0
_TURNS = (0.0, 0.35, -0.35, 0.7, -0.7, 1.1, -1.1, 1.5, -1.5)  # radians from the direction of the arrow
_STEPS = (7.0, 16.0, 27.0, 40.0, 55.0, 72.0, 90.0, 120.0, 150.0)  # pixels from its end
_NEAR = 16.0  # a name so near to its arrow needs no line to it

_ALONG = [i / 30 for i in range(31)]

_Point = tuple[float, float]
_Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Placed:
    """The middle of a name, and whether it is so far from its arrow that a line should lead to it."""

    x: float
    y: float
    led: bool


def place_names(start: _Point, ends: Sequence[_Point], names: Sequence[str], frame: _Box) -> list[Placed | None]:
    """A place beyond the end of each arrow from `start`, inside the frame and over no other name; None if there is no room.

    >>> place_names((50, 50), [(80, 50), (80, 51)], ["a", "b"], (0, 0, 200, 100))[0].led
    False
    """
    taken: list[_Box] = []
    along = [(start[0] + t * (x - start[0]), start[1] + t * (y - start[1])) for x, y in ends for t in _ALONG]
    found = []
    for end, name in zip(ends, names, strict=True):
        # Beside all arrows if that is possible, and over no other name in any case.
        found.append(_place(start, end, name, frame, taken, along) or _place(start, end, name, frame, taken, []))
    return found


def _place(start: _Point, end: _Point, name: str, frame: _Box, taken: list[_Box], apart: list[_Point]) -> Placed | None:
    wide = text_width(name) + 4
    direction = math.atan2(end[1] - start[1], end[0] - start[0])
    for step in _STEPS:
        for turn in _TURNS:
            across, down = math.cos(direction + turn), math.sin(direction + turn)
            x, y = end[0] + across * (step + wide / 2), end[1] + down * (step + _TALL / 2)
            box = x - wide / 2, y - _TALL / 2, x + wide / 2, y + _TALL / 2
            within = box[0] >= frame[0] and box[1] >= frame[1] and box[2] <= frame[2] and box[3] <= frame[3]
            free = within and not any(_overlap(box, other) for other in taken)
            if free and not any(box[0] < x < box[2] and box[1] < y < box[3] for x, y in apart):
                taken.append(box)
                return Placed(x, y, step > _NEAR)
    return None


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
