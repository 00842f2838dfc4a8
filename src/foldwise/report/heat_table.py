"""Tables as colours: values below zero in orange, above in blue, the stronger the further away; readable in the dark, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from foldwise.data.block import Floats
from foldwise.report.svg import BLUE, FAINT, INK, MUTED, ORANGE, cut, start, text

_SHADES = 16
_STRONGEST = 0.78  # opacity: the figures above must stay readable
_LETTER = 6.6


def shade(value: float, reach: float) -> tuple[str, float]:
    """The colour of a value and its opacity, in a few steps."""
    share = min(abs(value) / reach, 1.0) if reach > 0 and value == value else 0.0
    return (BLUE if value >= 0 else ORANGE), round(_STRONGEST * round(share * _SHADES) / _SHADES, 3)


def heat_table(
    values: Floats,
    rows: Sequence[str],
    columns: Sequence[str],
    reach: float,
    *,
    show: Callable[[float], str] | None = "{:+.1f}".format,
    below: Sequence[Sequence[str]] | None = None,
    over: Callable[[int, int], str] | None = None,
    dots: Sequence[str] = (),
    widest: int = 28,
) -> str:
    """Values as coloured cells with their figures; `below` has a second line for each, `over` the words under the pointer.

    `dots` are colours beside the names of the columns.
    """
    width_of = max([len(cut(name, 12)) for name in columns] + [5])
    if below is not None:
        width_of = max(width_of, *(len(cell) for line_ in below for cell in line_))
    cell = max(34.0, _LETTER * width_of + 12) if show is not None else 15.0
    tall = 36.0 if below is not None else 24.0 if show is not None else 15.0
    left = 12 + _LETTER * max((len(cut(name, widest)) for name in rows), default=0)
    top = 28.0 if show is not None else 8.0
    parts = [start(round(left + cell * len(columns) + 4), round(top + tall * len(rows) + 6))]
    if show is not None:
        for j, name in enumerate(columns):
            x = left + cell * (j + 0.5)
            parts.append(f"<g>{_over(name)}{text(x, 18, cut(name, 12), 'middle')}</g>")
            if dots:
                parts.append(f'<rect x="{left + cell * j + 1:.1f}" y="23" width="{cell - 2:.1f}" height="4" fill="{dots[j]}"/>')
    for i, name in enumerate(rows):
        y = top + tall * i
        parts.append(f"<g>{_over(name)}{text(left - 8, y + tall / 2 + 4, cut(name, widest), 'end')}</g>")
        if show is None:
            continue
        for j in range(len(columns)):
            parts.append(_cell(values[i, j], left + cell * j, y, cell, tall, reach, show, below, over, (i, j)))
    if show is None:
        parts += _colours(values, left, top, cell, reach)
    return "".join([*parts, "</svg>"])


def _cell(
    value: float,
    x: float,
    y: float,
    wide: float,
    tall: float,
    reach: float,
    show: Callable[[float], str],
    below: Sequence[Sequence[str]] | None,
    over: Callable[[int, int], str] | None,
    place: tuple[int, int],
) -> str:
    ink, opacity = shade(float(value), reach)
    size = f'x="{x + 1:.1f}" y="{y + 1:.1f}" width="{wide - 2:.1f}" height="{tall - 2:.1f}"'
    parts = [f'<rect {size} fill="{ink}" fill-opacity="{opacity:g}"/>']
    words, middle = show(float(value)) if value == value else "-", x + wide / 2
    parts.append(text(middle, y + tall / 2 + (4 if below is None else -2), words, "middle", INK))
    if below is not None:
        second = text(middle, y + tall / 2 + 12, below[place[0]][place[1]], "middle", INK)
        parts.append(second.replace("<text ", '<text font-size="10" ', 1))
    return f"<g>{'' if over is None else _over(over(*place))}{''.join(parts)}</g>"


def _colours(values: Floats, left: float, top: float, cell: float, reach: float) -> list[str]:
    """Cells without figures, all of one shade as one path: thousands of them stay small."""
    found: dict[tuple[str, float], list[str]] = {}
    for (i, j), value in np.ndenumerate(values):
        where = f"M{left + cell * j:.0f} {top + cell * i:.0f}h{cell:.0f}v{cell:.0f}h-{cell:.0f}z"
        found.setdefault(shade(float(value), reach), []).append(where)
    return [
        f'<path fill="{ink}" fill-opacity="{opacity:g}" d="{"".join(paths)}"/>'
        for (ink, opacity), paths in found.items()
        if opacity > 0
    ]


def colour_scale(low: str, high: str, width: float = 260.0) -> str:
    """What the colours mean, as a strip."""
    parts, cell = [start(width, 34)], width / (2 * _SHADES)
    parts.append(f'<rect x="0" y="2" width="{width:g}" height="12" fill="{FAINT}" fill-opacity="0.25"/>')
    for i in range(2 * _SHADES):
        ink, opacity = shade((i + 0.5) / _SHADES - 1.0, 1.0)
        parts.append(f'<rect x="{i * cell:.1f}" y="2" width="{cell:.1f}" height="12" fill="{ink}" fill-opacity="{opacity:g}"/>')
    parts += [text(0, 30, low, "start", MUTED), text(width / 2, 30, "0", "middle", MUTED), text(width, 30, high, "end", MUTED)]
    return "".join([*parts, "</svg>"])


def _over(words: str) -> str:
    return f"<title>{escape(cut(words, 200))}</title>"
