"""Text tables with aligned columns, alike on a terminal, in a pipe and in a file."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> str:
    """Columns as wide as their widest cell; those numbered in `left` are set flush left, the others flush right.

    >>> print(table(["name", "share"], [["a", "9.5 %"], ["bcd", "90.5 %"]]))
    name   share
    a      9.5 %
    bcd   90.5 %
    """
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in [head, *rows]:
        cells = [f"{c:<{w}}" if j in left else f"{c:>{w}}" for j, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def number(value: float) -> str:
    """Five significant digits without an exponent where that is readable.

    >>> number(1234567.0), number(0.012345), number(0.0), number(1e-9)
    ('1,234,567', '0.012345', '0', '1.0000e-09')
    """
    size = abs(value)
    if size == 0:
        return "0"
    if 1e5 <= size < 1e12:
        return f"{value:,.0f}"
    if 1e-4 <= size < 1e5:
        return f"{value:.5g}" if size < 1e4 else f"{value:.1f}"
    return f"{value:.4e}"


def percent(share: float) -> str:
    """A share in per cent.

    >>> percent(0.36198)
    '36.2 %'
    """
    return f"{100 * share:.1f} %"
