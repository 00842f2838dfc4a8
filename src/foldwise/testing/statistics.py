"""The laws that every statistic must obey."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from foldwise.data.block import Block, DenseBlock


def check_statistic(
    of: Callable[[Block], Any], rows: Any, *, rtol: float = 1e-9, summary: Callable[[Any], Any] | None = None
) -> None:
    """Raise AssertionError unless every split of `rows` merges to the whole, in any grouping, up to rounding.

    `of` computes the statistic of a block. `summary` maps it to the values compared (default: its fields), for statistics
    whose fields are not unique, such as a factor known up to sign.

    >>> from foldwise.stats.column_moments import ColumnMoments
    >>> check_statistic(ColumnMoments.of, [[1.0, 2.0], [3.0, 5.0], [8.0, 13.0]])
    """
    values = np.ascontiguousarray(rows, dtype=np.float64)
    n = len(values)
    whole = of(DenseBlock(values))

    def part(start: int, stop: int) -> Any:
        return of(DenseBlock(values[start:stop], start))

    for cut in sorted({0, 1, n // 3, n // 2, n - 1, n}):
        _same(part(0, cut).merge(part(cut, n)), whole, rtol, summary, f"split at {cut}")
    third, two_thirds = n // 3, 2 * n // 3
    a, b, c = part(0, third), part(third, two_thirds), part(two_thirds, n)
    _same(a.merge(b).merge(c), a.merge(b.merge(c)), rtol, summary, "grouping")


def _same(left: Any, right: Any, rtol: float, summary: Callable[[Any], Any] | None, law: str) -> None:
    if summary is not None:
        pairs = {"summary": (summary(left), summary(right))}
    else:
        pairs = {f.name: (getattr(left, f.name), getattr(right, f.name)) for f in fields(right)}
    for name, (x, y) in pairs.items():
        x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        size = float(np.abs(y).max(initial=0.0))
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * size, err_msg=f"{law}: {name}")
