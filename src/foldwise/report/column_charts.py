"""Small pictures of columns: a histogram of numbers, bars of the most frequent levels of a category."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from foldwise.data.block import Floats
from foldwise.report.labels import cut, shortened
from foldwise.report.svg import BLUE, MUTED, PALE, fill, line, short, start, text, ticks

_WIDTH, _TALL, _ROW = 300, 74.0, 19.0


def small_histogram(edges: Floats | Sequence[float], counts: Sequence[int]) -> str | None:
    """Bars of counts over the values, with a few round values below."""
    low, high, top = float(edges[0]), float(edges[-1]), max(counts, default=0)
    if not high > low or top <= 0:
        return None
    unit, parts = (_WIDTH - 16) / (high - low), [start(_WIDTH, _TALL + 24)]
    for first, last, count in zip(edges[:-1], edges[1:], counts, strict=True):
        x, tall = 8 + unit * (float(first) - low), (_TALL - 6) * count / top
        words = f"<title>{short_value(float(first))} to {short_value(float(last))}: {count:,}</title>"
        size = f'width="{max(unit * float(last - first) - 1, 0.5):.1f}" height="{tall:.1f}"'
        parts.append(f'<rect x="{x:.1f}" y="{_TALL - tall:.1f}" {size} {fill(BLUE)}>{words}</rect>')
    parts.append(line(8, _TALL, _WIDTH - 8, _TALL, MUTED, 0.8))
    for value in ticks(low, high, 4):
        x = 8 + unit * (value - low)
        words, anchor = short(value), "start" if x < 24 else "end" if x > _WIDTH - 24 else "middle"
        parts += [line(x, _TALL, x, _TALL + 4, MUTED), text(x, _TALL + 18, words, anchor, MUTED)]
    return "".join([*parts, "</svg>"])


def short_value(value: float) -> str:
    """A number for words under the pointer."""
    return short(float(f"{value:.4g}"))


def level_bars(levels: Sequence[tuple[str, int]], rest: int = 0, missing: int = 0) -> str | None:
    """The most frequent levels with bars and counts; `rest` is how many rows have other levels."""
    rows = [*levels, *([("other levels", rest)] if rest > 0 else []), *([("(missing)", missing)] if missing else [])]
    top = max((count for _, count in rows), default=0)
    if top <= 0:
        return None
    parts = [start(_WIDTH, _ROW * len(rows) + 6)]
    for i, (level, count) in enumerate(rows):
        y = 3 + _ROW * i
        ink = BLUE if i < len(levels) else PALE
        parts.append(
            f"<g><title>{escape(cut(level, 200))}</title>{text(108, y + 13, shortened(level, 104.0), 'end')}</g>"
        )
        size = f'width="{max(130 * count / top, 0.5):.1f}" height="{_ROW - 6:g}"'
        parts.append(f'<rect x="114" y="{y + 2:.1f}" {size} {fill(ink)}/>')
        parts.append(text(120 + 130 * count / top, y + 13, f"{count:,}", "start", MUTED))
    return "".join([*parts, "</svg>"])
