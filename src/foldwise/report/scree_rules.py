"""The share of the variation along each direction, with the answers of the rules for how many matter."""

from __future__ import annotations

from collections.abc import Sequence

from foldwise.report.labels import text_width
from foldwise.report.svg import BLUE, MUTED, ORANGE, PALE, Plot, line, text

_ROW = 16.0  # pixels between the names of rules


def scree_with_rules(shares: Sequence[float], rules: Sequence[tuple[str, int]], agreed: int | None) -> str:
    """Bars of shares, dark up to the number chosen; each rule is a line after the last direction it keeps, with its name.

    Rules beyond the directions that are drawn are named at the right.
    """
    n = len(shares)
    by_number: dict[int, list[str]] = {}
    for name, number in rules:
        by_number.setdefault(number, []).append(name)
    rows = sorted(by_number)  # from the top: no line runs through the name of a smaller number
    high = 1.06 * max(shares, default=0.0) or 1.0
    plot = Plot((0.5, n + 0.5), (0.0, high), "direction", 620, 300, whole=True, percent=True, top=20 + _ROW * len(rows))
    gap, done = 0.25 * (plot.x(1) - plot.x(0)), 0.0
    for i, share in enumerate(shares):
        ink = PALE if agreed is not None and i >= agreed else BLUE
        done += share
        plot.bars(
            [i + 0.5, i + 1.5], [share], ink, f"direction {i + 1}: {share:.1%}, with those before {done:.1%}", gap
        )
    for row, number in enumerate(rows):
        best, beyond = number == agreed, number > n
        at, x = 16 + _ROW * row, plot.x(min(number, n) + 0.5)
        words = f"{', '.join(by_number[number])}: {number}{' (chosen)' if best else ''}{' (beyond)' if beyond else ''}"
        plot.add(line(x, at - 7, x, plot.bottom, ORANGE if best else MUTED, 2.2 if best else 1.0))
        left = x + text_width(words) + 8 > plot.right
        plot.add(text(x - 5 if left else x + 5, at + 4, words, "end" if left else "start", ORANGE if best else MUTED))
    return plot.svg()
