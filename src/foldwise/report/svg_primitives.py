"""What pictures are drawn with: lines, words, colours, and round numbers along an axis."""

from __future__ import annotations

import math
from html import escape

INK, FAINT, BLUE, ORANGE = "#1f2933", "#d5dbe1", "#2f6db3", "#c8641b"

# Okabe and Ito's colours (2008), told apart by nearly everybody; yellow darkened, black made grey.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b3a100", "#6b7280")


def colour(cluster: int) -> str:
    """The colour of a cluster; from the ninth on they come again, so numbers are drawn beside them."""
    return PALETTE[cluster % len(PALETTE)]


def start(width: float, height: float) -> str:
    """The opening of a picture; `</svg>` ends it."""
    return f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img" font-size="12">'


def line(x1: float, y1: float, x2: float, y2: float, ink: str, width: float = 1) -> str:
    """A straight line."""
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{ink}" stroke-width="{width:g}"/>'


def text(x: float, y: float, words: str, anchor: str, ink: str = INK) -> str:
    """Words at a place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{ink}">{escape(words)}</text>'


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two values.

    >>> ticks(0.0, 2314.0), ticks(1.0, 10.0, 10)
    ([0.0, 500.0, 1000.0, 1500.0, 2000.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0])
    """
    if not high > low:
        return [low]
    rough = (high - low) / most
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough * 0.9)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def short(value: float) -> str:
    """A number for an axis.

    >>> short(1500.0), short(2.5e9), short(0.05)
    ('1,500', '2.5e9', '0.05')
    """
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e7:
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:g}"
    power = math.floor(math.log10(abs(value)))
    return f"{value / 10.0**power:.3g}e{power}"


def cut(words: str, most: int) -> str:
    """Words, shortened if they are too long.

    >>> cut("od280_od315_of_diluted_wines", 20)
    'od280_od315_of_dilu…'
    """
    return words if len(words) <= most else words[: most - 1] + "…"
