"""What charts are drawn with: lines, words, colours, axes with round numbers. No plotting library, a few kilobytes each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

INK, MUTED, FAINT, BLUE, ORANGE = "#1f2933", "#7b8794", "#d5dbe1", "#2f6db3", "#c8641b"
PALE, TINT = "#c9d8ea", "#faeee7"  # of blue and of orange

# Okabe and Ito's colours (2008), told apart by nearly everybody; yellow darkened, black made grey.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b3a100", "#6b7280")


def colour(cluster: int) -> str:
    """The colour of a cluster; they repeat from the ninth on, so numbers are drawn beside them."""
    return PALETTE[cluster % len(PALETTE)]


def start(width: float, height: float) -> str:
    """The opening of a drawing; `</svg>` ends it."""
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


class Plot:
    """A chart with a scale on the left and one below; what lies outside is drawn at its edge, or cut off with `clip`.

    `whole` asks for whole numbers below, `percent` for per cent on the left; `top` is the room above for a legend.
    """

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        below: str,
        width: int = 520,
        height: int = 260,
        *,
        whole: bool = False,
        percent: bool = False,
        beside: str = "",
        top: float = 14.0,
        clip: bool = False,
    ) -> None:
        self._x, self._y, self._clip = _widened(*x), _widened(*y), clip
        marks = [(value, f"{100 * value:.0f} %" if percent else short(value)) for value in ticks(*self._y)]
        self.left, self.right = 20.0 + 7 * max(len(words) for _, words in marks) + 14 * bool(beside), width - 14.0
        self.top, self.bottom = top, height - 40.0
        self._parts = [start(width, height)]
        for value, words in marks:
            self._parts.append(line(self.left, self.y(value), self.right, self.y(value), FAINT))
            self._parts.append(text(self.left - 7, self.y(value) + 4, words, "end"))
        for value in ticks(*self._x, 10 if whole else 6):
            if value.is_integer() or not whole:
                self._parts.append(text(self.x(value), self.bottom + 16, short(value), "middle"))
        self._parts.append(text((self.left + self.right) / 2, height - 5, below, "middle"))
        self._more = ""
        if beside:
            middle = (self.top + self.bottom) / 2
            self.add(f'<g transform="rotate(-90 14 {middle:g})">{text(14, middle, beside, "middle")}</g>')
        if clip:  # named by its place: equal names in one page are equal frames
            name = f"frame-{self.left:.0f}-{self.top:.0f}-{self.right:.0f}-{self.bottom:.0f}"
            size = f'width="{self.right - self.left:.1f}" height="{self.bottom - self.top:.1f}"'
            self.add(f'<clipPath id="{name}"><rect x="{self.left:.1f}" y="{self.top:.1f}" {size}/></clipPath>')
            self._more = f' clip-path="url(#{name})"'

    def _share(self, value: float, ends: tuple[float, float]) -> float:
        share = (value - ends[0]) / (ends[1] - ends[0])
        return share if self._clip and math.isfinite(share) else min(max(share, 0.0), 1.0)

    def x(self, value: float) -> float:
        """The place of a value from left to right."""
        return self.left + (self.right - self.left) * self._share(value, self._x)

    def y(self, value: float) -> float:
        """The place of a value from bottom to top."""
        return self.bottom - (self.bottom - self.top) * self._share(value, self._y)

    def add(self, *parts: str) -> None:
        """Put in what was drawn elsewhere."""
        self._parts.extend(parts)

    def line(
        self, xs: Iterable[float], ys: Iterable[float], ink: str, width: float = 2, dash: int = 0, tint: float = 0
    ) -> None:
        """A line through the points that are finite, or with a tint the outline of an area."""
        pairs = zip(xs, ys, strict=True)
        places = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in pairs if math.isfinite(y))
        look = f'fill="{ink}" fill-opacity="{tint:g}" stroke="{ink}" stroke-width="{width:g}"{self._more}'
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.add(f'<{"polygon" if tint else "polyline"} points="{places}" {look}{dashes}/>')

    def dots(
        self, xs: Iterable[float], ys: Iterable[float], ink: str, r: float = 3.5, what: str = "", opacity: float = 1
    ) -> None:
        """A dot at each finite point; `what` has the words that appear over it, as in "{x:g}: {y:.2f}"."""
        self.add(f'<g fill="{ink}" fill-opacity="{opacity:g}"{self._more}>')
        for x, y in zip(xs, ys, strict=True):
            if math.isfinite(x) and math.isfinite(y):
                words = _over(what.format(x=x, y=y))
                self.add(f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="{r:g}">{words}</circle>')
        self.add("</g>")

    def ring(self, x: float, y: float) -> None:
        """A ring that marks a point."""
        self.add(
            f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="8" fill="none" stroke="{ORANGE}" stroke-width="2.5"/>'
        )

    def bars(
        self, edges: Sequence[float], heights: Iterable[float], ink: str, what: str = "", gap: float = 0.6
    ) -> None:
        """A bar between each edge and the next; `what` has the words that appear over it, as in "{low:g}: {height:g}"."""
        for low, high, height in zip(edges[:-1], edges[1:], heights, strict=True):
            x, y = self.x(low) + gap / 2, self.y(height)
            words = _over(what.format(low=low, high=high, height=height))
            size = f'width="{max(self.x(high) - x - gap / 2, 0.6):.1f}" height="{self.bottom - y:.1f}"'
            self.add(f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{ink}">{words}</rect>')

    def svg(self) -> str:
        """The chart as it is now."""
        return "".join([*self._parts, "</svg>"])


def _over(words: str) -> str:
    """Words that appear under the pointer."""
    return f"<title>{escape(words)}</title>" if words else ""


def _widened(low: float, high: float) -> tuple[float, float]:
    """The ends of an axis, apart even if all values are equal."""
    room = 0.0 if high > low else 0.5 * (abs(low) or 1.0)
    return low - room, high + room
