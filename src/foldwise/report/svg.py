"""What charts are drawn with: lines, words, colours, axes with round numbers. No plotting library, a few kilobytes each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise

from foldwise.report.labels import cut as cut  # charts elsewhere take it from here
from foldwise.report.labels import shortened, text_width

# A page defines the variables for light and for dark; where nobody does, the light colour holds.
INK, MUTED, FAINT = "var(--ink, #1f2933)", "var(--muted, #6b7785)", "var(--faint, #d5dbe1)"
BLUE, ORANGE = "var(--accent, #2f6db3)", "var(--accent2, #c8641b)"
PALE = f"var(--accent-pale, color-mix(in srgb, {BLUE} 26%, transparent))"
TINT = f"var(--accent2-pale, color-mix(in srgb, {ORANGE} 12%, transparent))"
PAPER = "var(--paper, #fff)"
SHADE = f"color-mix(in srgb, {FAINT} 40%, transparent)"

# The first eight are Okabe and Ito's (2008), with yellow made olive and black made grey. The others were chosen one after
# the other so that the least difference is largest, as seen with and without red-green blindness.
_HEX = [
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#5f5a10",
    "#6b7280",
    "#0f4b2d",
    "#1e78f0",
    "#5a2d69",
    "#2d2d96",
    "#b4b469",
    "#00a5ff",
    "#d24b3c",
    "#d2a5a5",
    "#c3004b",
    "#5a2d4b",
    "#4b3c0f",
    "#e15a69",
]
PALETTE = tuple(f"var(--c{i}, {value})" for i, value in enumerate(_HEX))


def colour(cluster: int) -> str:
    """The colour of a cluster; they repeat from the twenty-first on, so numbers are drawn beside them."""
    return PALETTE[cluster % len(PALETTE)]


def fill(ink: str) -> str:
    """An attribute that fills a shape."""
    return f'style="fill:{ink}"'


def stroke(ink: str, width: float = 1, inside: str = "none") -> str:
    """Attributes that draw the outline of a shape."""
    return f'style="fill:{inside};stroke:{ink}" stroke-width="{width:g}"'


def start(width: float, height: float, alt: str = "") -> str:
    """The opening of a drawing; `</svg>` ends it. Without words for those who cannot see it, what is around it has them."""
    label = f'role="img" aria-label="{escape(alt)}"' if alt else 'aria-hidden="true"'
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return f'<svg {size} {label} font-size="12">'


def line(x1: float, y1: float, x2: float, y2: float, ink: str, width: float = 1) -> str:
    """A straight line."""
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} style="stroke:{ink}" stroke-width="{width:g}"/>'


def text(x: float, y: float, words: str, anchor: str, ink: str = INK, room: float = math.inf) -> str:
    """Words at a place; if they take more than `room` pixels they are shortened, and appear in full under the pointer."""
    shown = words if room == math.inf else shortened(words, room)
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {fill(ink)}'
    return f"<text {place}>{over(words) if shown != words else ''}{escape(shown)}</text>"


def over(words: str) -> str:
    """Words that appear under the pointer."""
    return f"<title>{escape(words)}</title>" if words else ""


def dot(x: float, y: float, r: float, ink: str, words: str = "") -> str:
    """A round spot."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:g}" {fill(ink)}>{over(words)}</circle>'


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


class Plot:
    """A chart with a scale on the left and one below.

    `whole` asks for whole numbers below, `percent` for per cent on the left; `top` is the room above for a legend. With
    `equal` a unit is as long on both scales: the height follows from the width, and the ends may lie further out.
    Lines end at the frame; a dot or a bar beyond it becomes an arrow at the edge, and words above say how many there are.
    """

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        below: str,
        width: int = 460,
        height: int = 240,
        *,
        whole: bool = False,
        percent: bool = False,
        beside: str = "",
        top: float = 14.0,
        equal: bool = False,
        alt: str = "",
    ) -> None:
        self._x, self._y, self._beyond = _widened(*x), _widened(*y), 0
        self.top, self.right = top, width - 14.0
        if equal:
            height = self._equal_scales(14.0 * bool(beside))
        marks = self._marks(percent)
        self.left, self.bottom = self._room(marks) + 14 * bool(beside), height - 40.0
        self._parts = [start(width, height, alt)]
        for value, words in marks:
            self.add(line(self.left, self.y(value), self.right, self.y(value), FAINT))
            self.add(text(self.left - 7, self.y(value) + 4, words, "end"))
        for value in ticks(*self._x, 10 if whole else 6):
            if value.is_integer() or not whole:
                self.add(line(self.x(value), self.bottom, self.x(value), self.bottom + 4, MUTED))
                self.add(text(self.x(value), self.bottom + 17, short(value), "middle"))
        wide, tall = self.right - self.left, self.bottom - self.top
        at = max((self.left + self.right) / 2, min(text_width(below), width) / 2)
        self.add(text(at, height - 5, below, "middle", room=max(wide, 2 * (width - at))))
        if beside:
            middle = (self.top + self.bottom) / 2
            words = text(14, middle, beside, "middle", room=max(tall, 2 * min(middle, height - middle)))
            self.add(f'<g transform="rotate(-90 14 {middle:g})">{words}</g>')

    def _marks(self, percent: bool = False) -> list[tuple[float, str]]:
        return [(value, f"{100 * value:.3g} %" if percent else short(value)) for value in ticks(*self._y)]

    @staticmethod
    def _room(marks: list[tuple[float, str]]) -> float:
        return 20.0 + 7 * max((len(words) for _, words in marks), default=0)

    def _equal_scales(self, beside: float) -> int:
        """Widen the ends of the flatter scale where the frame would be too flat or too tall; the height that results."""
        for _ in range(2):  # other ends have other numbers, which may need more room
            wide = self.right - self._room(self._marks()) - beside
            shape = (self._y[1] - self._y[0]) / (self._x[1] - self._x[0])
            if shape < _FLATTEST:
                self._y = _stretched(self._y, _FLATTEST / shape)
            elif shape > _TALLEST:
                self._x = _stretched(self._x, shape / _TALLEST)
        shape = (self._y[1] - self._y[0]) / (self._x[1] - self._x[0])
        height = round(self.top + 40 + wide * shape)
        # The height is a whole number of pixels: the last fraction of one goes to the scale on the left.
        self._y = _stretched(self._y, (height - 40 - self.top) / (wide * shape))
        return height

    def x(self, value: float) -> float:
        """The place of a value from left to right."""
        return self.left + (self.right - self.left) * _share(value, self._x)

    def y(self, value: float) -> float:
        """The place of a value from bottom to top."""
        return self.bottom - (self.bottom - self.top) * _share(value, self._y)

    @property
    def box(self) -> tuple[float, float, float, float]:
        """The frame: left, top, right, bottom."""
        return self.left, self.top, self.right, self.bottom

    def add(self, *parts: str) -> None:
        """Put in what was drawn elsewhere."""
        self._parts.extend(parts)

    def line(
        self, xs: Iterable[float], ys: Iterable[float], ink: str, width: float = 2, dash: int = 0, tint: float = 0
    ) -> None:
        """A line through the points that are finite, as far as it lies in the frame; with a tint the outline of an area."""
        places = [(self.x(x), self.y(y)) for x, y in zip(xs, ys, strict=True) if math.isfinite(y)]
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        if tint:
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            self.add(f'<polygon points="{points}" fill-opacity="{tint:g}" {stroke(ink, width, ink)}{dashes}/>')
            return
        for piece in _inside(places, self.box):
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in piece)
            self.add(f'<polyline points="{points}" {stroke(ink, width)}{dashes}/>')

    def dots(
        self, xs: Iterable[float], ys: Iterable[float], ink: str, r: float = 3.5, what: str = "", opacity: float = 1
    ) -> None:
        """A dot at each finite point; `what` has the words that appear over it, as in "{x:g}: {y:.2f}"."""
        far = []
        self.add(f'<g style="fill:{ink}" fill-opacity="{opacity:g}">')
        for x, y in zip(xs, ys, strict=True):
            if math.isfinite(x) and math.isfinite(y):
                words = what.format(x=x, y=y)
                if self.holds(x, y):
                    self.add(f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="{r:g}">{over(words)}</circle>')
                else:
                    far.append((x, y, words))
        self.add("</g>")
        for x, y, words in far:
            self.arrow(x, y, ink, words)

    def holds(self, x: float, y: float) -> bool:
        """Whether a point lies in the frame."""
        left, top, right, bottom = self.box
        return left - 0.5 <= self.x(x) <= right + 0.5 and top - 0.5 <= self.y(y) <= bottom + 0.5

    def arrow(
        self,
        x: float,
        y: float,
        ink: str,
        words: str = "",
        *,
        many: int = 1,
        box: tuple[float, float, float, float] | None = None,
    ) -> None:
        """An arrow at the edge of the frame, or of a box in it, towards what lies beyond: a point, or `many`."""
        left, top, right, bottom = box or self.box
        at_x, at_y = min(max(self.x(x), left), right), min(max(self.y(y), top), bottom)
        turn = math.degrees(math.atan2(self.y(y) - at_y, self.x(x) - at_x))
        self.add(
            f'<path class="beyond" d="M0 0L-8 -4.5L-8 4.5z" transform="translate({at_x:.1f} {at_y:.1f}) rotate({turn:.0f})" '
            f"{fill(ink)}>{over(words)}</path>"
        )
        self._beyond += many

    def ring(self, x: float, y: float) -> None:
        """A ring that marks a point."""
        self.add(f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="8" {stroke(ORANGE, 2.5)}/>')

    def bars(
        self, edges: Sequence[float], heights: Iterable[float], ink: str, what: str = "", gap: float = 0.6
    ) -> None:
        """A bar between each edge and the next; `what` has the words that appear over it, as in "{low:g}: {height:g}"."""
        for low, high, height in zip(edges[:-1], edges[1:], heights, strict=True):
            x, end = max(self.x(low), self.left) + gap / 2, min(self.x(high), self.right) - gap / 2
            y = max(self.y(height), self.top)
            words = over(what.format(low=low, high=high, height=height))
            size = f'width="{max(end - x, 0.6):.1f}" height="{max(self.bottom - y, 0.0):.1f}"'
            self.add(f'<rect x="{x:.1f}" y="{y:.1f}" {size} {fill(ink)}>{words}</rect>')
            if math.isfinite(height) and self.y(height) < self.top - 0.5:
                self.arrow((low + high) / 2, height, INK, what.format(low=low, high=high, height=height))

    def svg(self) -> str:
        """The chart as it is now."""
        said = f"{self._beyond:,} beyond the frame"
        note = [text(self.right, self.top - 3, said, "end", MUTED)] if self._beyond else []
        return "".join([*self._parts, *note, "</svg>"])


_FLATTEST, _TALLEST = 0.5, 1.1  # heights of frames with equal scales, in widths


def _share(value: float, ends: tuple[float, float]) -> float:
    """Where a value lies between the ends; what is not finite lies at one of them."""
    share = (value - ends[0]) / (ends[1] - ends[0])
    return share if math.isfinite(share) else min(max(share, 0.0), 1.0)


def _stretched(ends: tuple[float, float], times: float) -> tuple[float, float]:
    room = (times - 1) * (ends[1] - ends[0]) / 2
    return ends[0] - room, ends[1] + room


def _widened(low: float, high: float) -> tuple[float, float]:
    """The ends of an axis, apart even if all values are equal."""
    room = 0.0 if high > low else 0.5 * (abs(low) or 1.0)
    return low - room, high + room


_Place = tuple[float, float]


def _inside(places: list[_Place], box: tuple[float, float, float, float]) -> list[list[_Place]]:
    """The pieces of a line that lie in a box."""
    pieces: list[list[_Place]] = []
    for one, other in pairwise(places):
        kept = _kept(one, other, box)
        if kept is None:
            continue
        if pieces and pieces[-1][-1] == kept[0]:
            pieces[-1].append(kept[1])
        else:
            pieces.append(list(kept))
    return pieces


def _kept(one: _Place, other: _Place, box: tuple[float, float, float, float]) -> tuple[_Place, _Place] | None:
    """What of a stretch lies in a box: it begins where the last side is entered, and ends where the first is left."""
    (x, y), across, down = one, other[0] - one[0], other[1] - one[1]
    first, last = 0.0, 1.0
    for change, room in ((-across, x - box[0]), (across, box[2] - x), (-down, y - box[1]), (down, box[3] - y)):
        if change == 0:
            if room < -0.5:
                return None
        elif change < 0:
            first = max(first, room / change)
        else:
            last = min(last, room / change)
    if first > last:
        return None
    begin = one if first == 0 else (x + first * across, y + first * down)
    return begin, (other if last == 1 else (x + last * across, y + last * down))
