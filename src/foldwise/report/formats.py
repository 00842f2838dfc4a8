"""How numbers are written in reports."""

from __future__ import annotations

import numpy as np

from foldwise.data.block import Floats


def number(value: float) -> str:
    """Five significant digits, without an exponent where that is readable.

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


def short_number(value: float) -> str:
    """Three significant digits.

    >>> short_number(2.0937), short_number(1234.5)
    ('2.09', '1,234')
    """
    size = abs(value)
    if size == 0 or 1e-3 <= size < 100:
        return f"{value:.{2 if size < 10 else 1}f}" if size == 0 or size >= 0.1 else f"{value:.3g}"
    return f"{value:,.0f}" if 100 <= size < 1e7 else f"{value:.2e}"


def percent(share: float) -> str:
    """A share in per cent.

    >>> percent(0.36198)
    '36.2 %'
    """
    return f"{100 * share:.1f} %"


def whole_percent(share: float) -> str:
    """A share in whole per cent.

    >>> whole_percent(0.36198), whole_percent(0.001)
    ('36 %', '0 %')
    """
    return f"{100 * share:.0f} %"


def in_units(values: Floats, deviation: float) -> list[str]:
    """Values of one column, with as many decimals as its standard deviation calls for.

    >>> in_units(np.array([13.7447, 12.25]), 0.81), in_units(np.array([1115.7, 519.5]), 314.0)
    (['13.74', '12.25'], ['1,116', '520'])
    """
    size = float(np.nanmax(np.abs(values), initial=0.0))
    places = int(np.ceil(1.3 - np.log10(deviation))) if 0 < deviation < np.inf else 2
    if size >= 1e9 or places > 6 or (size > 0 and size < 1e-4):
        return ["-" if np.isnan(value) else number(float(value)) for value in values]
    rounded = np.round(values, max(places, 0)) + 0.0  # no -0.0
    return ["-" if np.isnan(value) else f"{value:,.{max(places, 0)}f}" for value in rounded]


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "pass", "passes"), counted(1200, "row")
    ('1 pass', '1,200 rows')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
