"""Tables as colours: values below zero in orange, above in blue, the stronger the further away; readable in the dark, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from foldwise.data.block import Floats
from foldwise.report.labels import cut, shortened, text_width
from foldwise.report.svg import BLUE, INK, ORANGE, fill, start, text

_SHADES = 16
_STRONGEST = 0.72  # opacity: the figures above must stay readable
_SIDE = 16.0  # of cells without figures
_NAME = 190.0  # pixels of a row's name


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
    show: Callable[[float], str] | None = None,
    below: Sequence[Sequence[str]] | None = None,
    dots: Sequence[str] = (),
    name: float = 86.0,
) -> str:
    """Values as coloured cells with their figures; `below` has a second line for each.

    `dots` are the colours of strips below the names of the columns, `name` how many pixels a name takes at most.
    """
    second = [] if below is None else [cell for cells in below for cell in cells]
    heads = [shortened(column, name) for column in columns]
    wide = max([44.0, *(text_width(words) + 12 for words in heads), *(text_width(words, 10) + 10 for words in second)])
    tall, top = (25.0 if below is None else 37.0), 30.0
    names = [shortened(row, _NAME) for row in rows]
    left = 14 + 1.08 * max(map(text_width, names), default=0.0)
    parts = [start(round(left + wide * len(columns) + 4), round(top + tall * len(rows) + 4))]
    for j, column in enumerate(columns):
        x = left + wide * j
        parts.append(f"<g>{_over(column)}{text(x + wide / 2, 17, heads[j], 'middle')}</g>")
        if dots:
            parts.append(f'<rect x="{x + 1:.1f}" y="23" width="{wide - 2:.1f}" height="4" {fill(dots[j])}/>')
    for i, row in enumerate(rows):
        y = top + tall * i
        parts.append(f"<g>{_over(row)}{text(left - 8, y + tall / 2 + 4, names[i], 'end')}</g>")
        for j, value in enumerate(values[i]):
            said = (show or signed)(float(value)) if value == value else "-"
            lines = [said] if below is None else [said, below[i][j]]
            words = f"{cut(row, 80)}, {cut(columns[j], 80)}: {', '.join(lines)}"
            parts.append(_cell(float(value), (left + wide * j, y, wide, tall), reach, lines, words))
    return "".join([*parts, "</svg>"])


def _cell(value: float, box: tuple[float, float, float, float], reach: float, lines: list[str], words: str) -> str:
    (x, y, wide, tall), (ink, opacity) = box, shade(value, reach)
    size = f'x="{x + 1:.1f}" y="{y + 1:.1f}" width="{wide - 2:.1f}" height="{tall - 2:.1f}"'
    parts = [_over(words), f'<rect {size} {fill(ink)} fill-opacity="{opacity:g}"/>']
    middle = x + wide / 2
    parts.append(_plain(text(middle, y + tall / 2 + (4 if len(lines) == 1 else -2), lines[0], "middle", INK)))
    if len(lines) > 1:
        parts.append(_plain(text(middle, y + tall / 2 + 12, lines[1], "middle", INK), ' font-size="10"'))
    return f"<g>{''.join(parts)}</g>"


def _plain(words: str, more: str = "") -> str:
    """Words without the pale outline that words over a drawing have: it would blur figures on a coloured cell."""
    return words.replace("<text ", f'<text stroke="none"{more} ', 1).replace(
        'style="fill:', 'style="stroke:none;fill:', 1
    )


def signed(value: float) -> str:
    """A difference with its sign and one decimal; nearly nothing has no sign.

    >>> signed(1.24), signed(-0.04)
    ('+1.2', '0.0')
    """
    return f"{value:+.1f}" if abs(value) >= 0.05 else "0.0"


def heat_grid(values: Floats, rows: Sequence[str], reach: float) -> str:
    """Values of many rows and columns as colours only; cells of one shade are one path, so that the drawing stays small."""
    names = [shortened(row, _NAME) for row in rows]
    left = 14 + 1.08 * max(map(text_width, names), default=0.0)
    parts = [start(round(left + _SIDE * values.shape[1] + 4), round(_SIDE * len(rows) + 8))]
    for i, row in enumerate(rows):
        parts.append(f"<g>{_over(row)}{text(left - 8, 4 + _SIDE * (i + 0.5) + 4, names[i], 'end')}</g>")
    found: dict[tuple[str, float], list[str]] = {}
    for (i, j), value in np.ndenumerate(values):
        where = f"M{left + _SIDE * j:.0f} {4 + _SIDE * i:.0f}h{_SIDE:g}v{_SIDE:g}h-{_SIDE:g}z"
        found.setdefault(shade(float(value), reach), []).append(where)
    for (ink, opacity), paths in found.items():
        if opacity > 0:
            parts.append(f'<path {fill(ink)} fill-opacity="{opacity:g}" d="{"".join(paths)}"/>')
    return "".join([*parts, "</svg>"])


def _over(words: str) -> str:
    return f"<title>{escape(cut(words, 200))}</title>"
