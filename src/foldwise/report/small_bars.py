"""A small picture for notebooks: bars with a name before each and a figure behind it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_ROW, _NAME, _BAR, _FIGURE = 18, 96, 150, 70
_MOST_LETTERS = 15


def small_bars(
    names: Sequence[str], values: Sequence[float], figures: Sequence[str], inks: Sequence[str], what: str
) -> str:
    """Bars from zero, for values of at least 0; `what` says what they show to those who cannot see them.

    >>> small_bars(["a"], [1.0], ["100 %"], ["#000"], "shares").count("<rect")
    1
    """
    top = max((value for value in values if value == value), default=0.0) or 1.0
    width, height = _NAME + _BAR + _FIGURE, _ROW * len(names) + 2
    told = escape(f"{what}: " + ", ".join(f"{name} {figure}" for name, figure in zip(names, figures, strict=True)))
    parts = [f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="{told}">']
    for i, (name, value, figure, ink) in enumerate(zip(names, values, figures, inks, strict=True)):
        middle = i * _ROW + _ROW / 2 + 1
        shown = name if len(name) <= _MOST_LETTERS else name[: _MOST_LETTERS - 1] + "…"
        long = _BAR * max(value, 0.0) / top if value == value else 0.0
        words = 'font-size="12" fill="currentColor" dominant-baseline="central"'
        parts.append(
            f'<text x="{_NAME - 8}" y="{middle:g}" text-anchor="end" {words}>{escape(shown)}'
            f"<title>{escape(name)}</title></text>"
            f'<rect x="{_NAME}" y="{i * _ROW + 4}" width="{max(long, 0.5):.1f}" height="{_ROW - 6}" rx="2" style="fill:{ink}"/>'
            f'<text x="{_NAME + long + 6:.1f}" y="{middle:g}" {words}>{escape(figure)}</text>'
        )
    return "".join([*parts, "</svg>"])
