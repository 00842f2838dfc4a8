"""Names beside points of a drawing, placed so that they keep apart; a thin line leads to a name that had to move away."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from foldwise.report.labels import text_width
from foldwise.report.svg import MUTED, line, text

_HEIGHT = 15.0  # of text in 12 pixels
_DISTANCES = (5.0, 12.0, 22.0, 34.0, 48.0, 64.0, 84.0, 110.0, 140.0)
_TURNS = (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6)  # of 30 degrees, away from the preferred direction
_LEADS = 13.0  # from here on a line is needed to see whose name it is


@dataclass(frozen=True)
class Anchor:
    """A point with a name, and the direction in which the name should stand (in pixels, y downwards)."""

    x: float
    y: float
    name: str
    across: float
    down: float


@dataclass(frozen=True)
class Box:
    """Where a name stands."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """The area that both cover."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across * down if across > 0 and down > 0 else 0.0

    def outside(self, frame: Box) -> float:
        """How far it sticks out of a frame."""
        across = max(frame.left - self.left, 0.0) + max(self.right - frame.right, 0.0)
        return across + max(frame.top - self.top, 0.0) + max(self.bottom - frame.bottom, 0.0)


def place(anchors: Sequence[Anchor], frame: Box, taken: Sequence[Box] = ()) -> list[Box]:
    """A box for each name, in order: the nearest place that is free, or the one that covers least of what is there.

    >>> one, two = place([Anchor(50, 50, "a", 1, 0), Anchor(50, 51, "b", 1, 0)], Box(0, 0, 100, 100))
    >>> one.overlap(two)
    0.0
    """
    placed, ends = list(taken), [Box(one.x - 3, one.y - 3, one.x + 3, one.y + 3) for one in anchors]
    found = []
    for number, anchor in enumerate(anchors):
        others = placed + ends[:number] + ends[number + 1 :]
        best, least = None, math.inf
        for rank, box in enumerate(_places(anchor)):
            cost = 10.0 * sum(box.overlap(other) for other in others) + 50.0 * box.outside(frame)
            if cost + 0.01 * rank < least:
                best, least = box, cost + 0.01 * rank
            if cost == 0:
                break
        assert best is not None
        found.append(best)
        placed.append(best)
    return found


def _places(anchor: Anchor) -> list[Box]:
    """Where a name could stand, the best first."""
    half = text_width(anchor.name) / 2 + 3
    start = math.atan2(anchor.down, anchor.across)
    boxes = []
    for distance in _DISTANCES:
        for turn in _TURNS:
            across, down = math.cos(start + turn * math.pi / 6), math.sin(start + turn * math.pi / 6)
            x, y = anchor.x + distance * across + half * across, anchor.y + distance * down + _HEIGHT / 2 * down
            boxes.append(Box(x - half, y - _HEIGHT / 2, x + half, y + _HEIGHT / 2))
    return boxes


def draw_labels(anchors: Sequence[Anchor], frame: Box, ink: str, taken: Sequence[Box] = ()) -> list[str]:
    """The names, and the lines that lead to them; they keep off what is `taken`."""
    parts = []
    for anchor, box in zip(anchors, place(anchors, frame, taken), strict=True):
        x, y = min(max(anchor.x, box.left), box.right), min(max(anchor.y, box.top + 2), box.bottom - 2)
        if math.hypot(x - anchor.x, y - anchor.y) > _LEADS:
            parts.append(line(anchor.x, anchor.y, x, y, MUTED, 0.8))
        parts.append(text((box.left + box.right) / 2, box.bottom - 4, anchor.name, "middle", ink))
    return parts
