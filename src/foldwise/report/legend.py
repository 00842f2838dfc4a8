"""The names of what is drawn, with their colours, above a chart."""

from __future__ import annotations

from collections.abc import Sequence

from foldwise.report.labels import text_width
from foldwise.report.svg import dot, text

_LINE, _WIDEST, _MOST_LINES = 20.0, 180.0, 4


def legend(entries: Sequence[tuple[str, str]], width: float) -> tuple[str, float]:
    """Names and colours in lines as wide as the drawing, and how tall they are; of very many, how many are not named."""
    parts, across, down = list[str](), 14.0, 14.0
    for place, (name, ink) in enumerate(entries):
        wide = min(text_width(name), _WIDEST) + 32.0
        if across + wide > width and across > 14.0:
            across, down = 14.0, down + _LINE
        last = down + _LINE > 14.0 + _MOST_LINES * _LINE
        if last and place < len(entries) - 1 and across + wide + 70 > width:
            parts.append(text(across, down + 4, f"and {len(entries) - place:,} more", "start"))
            break
        parts += [dot(across + 5, down, 5, ink), text(across + 14, down + 4, name, "start", room=_WIDEST)]
        across += wide
    return "".join(parts), (down + 6.0 if parts else 0.0)
