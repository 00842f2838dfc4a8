"""Numbers that stand for missing: 999, -99, -1, far from all other values of their column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foldwise.data.first_rows import Cells, own_aggregates
from foldwise.prepare.profile import ColumnProfile

_HIGH = (9, 77, 88, 97, 98, 99, 777, 888, 997, 998, 999, 7777, 8888, 9998, 9999, 99999, 999999)
_LOW = (
    -1,
    -7,
    -8,
    -9,
    -77,
    -88,
    -97,
    -98,
    -99,
    -777,
    -888,
    -997,
    -998,
    -999,
    -7777,
    -8888,
    -9998,
    -9999,
    -99999,
    -999999,
)
CANDIDATES = frozenset((*_HIGH, *_LOW))
_FEWEST_VALUES = 4  # different ones


@dataclass(frozen=True)
class Sentinel:
    """A number that seems to stand for missing, and how many cells have it."""

    value: int
    count: int


def find(relation: Any, columns: Sequence[Cells], profiles: Sequence[ColumnProfile]) -> list[tuple[Sentinel, ...]]:
    """The sentinels of columns of numbers; only columns that begin or end with a candidate are asked about."""
    asked = [
        j
        for j, seen in enumerate(profiles)
        if {seen.minimum, seen.maximum} & CANDIDATES and seen.distinct >= _FEWEST_VALUES
    ]
    listed = ", ".join(map(str, sorted(CANDIDATES)))
    wanted = (
        f"min({{x}}) FILTER ({{x}} NOT IN ({listed}))",
        f"max({{x}}) FILTER ({{x}} NOT IN ({listed}))",
        f"histogram({{x}}) FILTER ({{x}} IN ({listed}))",
    )
    found: list[tuple[Sentinel, ...]] = [()] * len(columns)
    for j, (low, high, counts) in zip(
        asked, own_aggregates(relation, [columns[j] for j in asked], [wanted] * len(asked)), strict=True
    ):
        found[j] = judged(low, high, {int(value): int(n) for value, n in (counts or {}).items()})
    return found


def judged(low: float | None, high: float | None, counts: dict[int, int]) -> tuple[Sentinel, ...]:
    """Which of the candidates, with their counts, are far from the other values, which lie from `low` to `high`.

    >>> judged(18, 88, {999: 6, 77: 1})
    (Sentinel(value=999, count=6),)
    >>> judged(195, 15961, {999: 1, 9999: 1})
    ()
    """
    if low is None or high is None or low == high:
        return ()
    return tuple(Sentinel(value, n) for value, n in sorted(counts.items()) if _far(value, n, low, high))


def _far(value: int, count: int, low: float, high: float) -> bool:
    span = high - low
    if value > high:
        return value - high > span and (count > 1 or value - high > 5 * span)
    if value >= low or low < 0:
        return value < low - span and (count > 1 or value < low - 5 * span)
    # All others are positive or zero.
    return count > 1 and (value <= -7 or high >= 3)
