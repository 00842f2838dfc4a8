"""What is in each column: counts, range, mean and spread, a small histogram, the most frequent levels, the length of texts.

A profile merges, so that profiles of parts give that of the whole. They are computed by aggregates inside DuckDB, for files,
queries and frames alike: `profile` for all columns at once.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from foldwise.data.first_rows import FEW_COLUMNS, Cells, FirstRows, aggregates, counts_of, own_aggregates

Holds = Literal["numbers", "words", "dates", "booleans", "nested"]

BINS = 10
MOST_LEVELS = 100  # levels that are counted all; of more, the most frequent
_TOP = 20
_EXACT_ROWS = 200_000  # up to which different values are counted rather than estimated
_MOST_HISTOGRAMS = FEW_COLUMNS
_BLOCKS = "▁▂▃▄▅▆▇█"
_Span: TypeAlias = tuple[float, float, int]  # of a histogram: where it begins and ends, and the number of bins


@dataclass(frozen=True)
class Histogram:
    """Counts of numbers in bins of equal width; those beyond the ends are in the first and the last bin."""

    low: float
    high: float
    counts: tuple[int, ...]

    def merge(self, other: Histogram) -> Histogram | None:
        """Both together; None if the bins differ."""
        if (self.low, self.high) != (other.low, other.high):
            return None
        return replace(self, counts=tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)))

    @property
    def line(self) -> str:
        """The histogram as a line of blocks.

        >>> Histogram(0.0, 4.0, (0, 1, 8, 3)).line
        ' ▁█▃'
        """
        most = max(self.counts, default=0)
        return "".join(" " if n == 0 else _BLOCKS[min(7, math.ceil(8 * n / most) - 1)] for n in self.counts)


@dataclass(frozen=True)
class ColumnProfile:
    """The figures of one column. Those that do not apply to what it holds are None or empty.

    `distinct` counts different values; unless `exact`, it is an estimate, or after a merge at least the truth of one part.
    `levels` are the most frequent ones with their counts, all of them if `all_levels`. `running`: whole numbers, each one more
    than that before.

    >>> a, b = ColumnProfile.of([1, 2, None]), ColumnProfile.of([3])
    >>> both = a.merge(b)
    >>> both.rows, both.missing, both.mean, both.maximum, both.running
    (4, 1, 2.0, 3, False)
    """

    holds: Holds
    rows: int = 0
    missing: int = 0
    distinct: int = 0
    exact: bool = True
    minimum: Any = None
    maximum: Any = None
    mean: float | None = None
    squares: float | None = None  # sum of squared differences from the mean
    whole: bool = True
    running: bool = True
    histogram: Histogram | None = None
    levels: tuple[tuple[str, int], ...] = ()
    all_levels: bool = True
    longest: int = 0
    words: int = 0  # in all cells together
    infinite: int = 0

    @property
    def present(self) -> int:
        """How many cells are not missing."""
        return self.rows - self.missing

    @property
    def deviation(self) -> float | None:
        """The standard deviation (of the rows, not estimated for others)."""
        return None if self.squares is None or not self.present else math.sqrt(self.squares / self.present)

    @property
    def words_per_cell(self) -> float:
        """The mean number of words."""
        return self.words / self.present if self.present else 0.0

    @property
    def missing_share(self) -> float:
        """The share of cells without a value."""
        return self.missing / self.rows if self.rows else 0.0

    @classmethod
    def empty(cls, holds: Holds) -> ColumnProfile:
        """The profile of no rows."""
        return cls(holds)

    @classmethod
    def of(cls, values: Sequence[Any], bins: tuple[float, float] | None = None) -> ColumnProfile:
        """The profile of numbers, dates, booleans or words, None if missing: the plain form of what DuckDB computes."""
        there = [value for value in values if value is not None]
        first = there[0] if there else 0.0
        holds: Holds = "words" if isinstance(first, str) else "numbers"
        if isinstance(first, bool):
            holds = "booleans"
        elif isinstance(first, dt.date):
            holds = "dates"
        made = cls(holds, len(values), len(values) - len(there), len(set(there)))
        if holds != "words" and there:
            made = replace(made, minimum=min(there), maximum=max(there))
        if holds in ("words", "booleans"):
            counts: dict[str, int] = {}
            for value in there:
                counts[_level(value)] = counts.get(_level(value), 0) + 1
            made = replace(made, **_top(counts))
        if holds == "words":
            return replace(
                made,
                longest=max(map(len, there), default=0),
                words=sum(text.count(" ") + 1 for text in there),
                running=not there,
            )
        if holds == "numbers" and there:
            mean = math.fsum(there) / len(there)
            squares = math.fsum((value - mean) ** 2 for value in there)
            steps = all(b == a + 1 for a, b in pairwise(there)) and len(there) == len(values)
            whole = all(float(value).is_integer() for value in there)
            infinite = sum(map(math.isinf, there))
            made = replace(made, mean=mean, squares=squares, whole=whole, running=whole and steps, infinite=infinite)
            if bins is not None:
                made = replace(made, histogram=_histogram(there, *bins))
        return made if holds == "numbers" or not there else replace(made, running=False)

    def merge(self, other: ColumnProfile) -> ColumnProfile:
        """The profile of both; this one's rows come first."""
        if not other.rows or not self.rows:
            return self if not other.rows else other
        a, b = self.present, other.present
        mean, squares = self.mean, self.squares
        if not a:
            mean, squares = other.mean, other.squares
        elif b and mean is not None and squares is not None and other.mean is not None and other.squares is not None:
            gap = other.mean - mean
            mean, squares = mean + gap * (b / (a + b)), squares + other.squares + gap * gap * (a * (b / (a + b)))
        levels = dict(self.levels)
        for level, n in other.levels:
            levels[level] = levels.get(level, 0) + n
        merged = (
            _top(levels) if self.all_levels and other.all_levels else {"levels": _largest(levels), "all_levels": False}
        )
        counted = merged["all_levels"] and self.holds in ("words", "booleans") and self.exact and other.exact
        return ColumnProfile(
            self.holds,
            self.rows + other.rows,
            self.missing + other.missing,
            len(levels) if counted else max(self.distinct, other.distinct),
            bool(counted or (self.exact and other.exact and not (a and b))),
            _least(min, self.minimum, other.minimum),
            _least(max, self.maximum, other.maximum),
            mean,
            squares,
            self.whole and other.whole,
            self._runs_into(other),
            _joined(self, other),
            longest=max(self.longest, other.longest),
            words=self.words + other.words,
            infinite=self.infinite + other.infinite,
            **merged,
        )

    def _runs_into(self, other: ColumnProfile) -> bool:
        if not (self.running and other.running and self.missing + other.missing == 0):
            return False
        return bool(other.minimum == self.maximum + 1)


def _level(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _largest(counts: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_TOP])


def _top(counts: dict[str, int]) -> dict[str, Any]:
    """The levels with their counts: all, the most frequent first, or if they are many only some."""
    if len(counts) > MOST_LEVELS:
        return {"levels": _largest(counts), "all_levels": False}
    return {"levels": tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))), "all_levels": True}


def _least(which: Any, a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else which(a, b)


def _joined(a: ColumnProfile, b: ColumnProfile) -> Histogram | None:
    if a.histogram is None or b.histogram is None:
        return a.histogram if not b.present else b.histogram if not a.present else None
    return a.histogram.merge(b.histogram)


def _bins(low: float, high: float, whole: bool) -> tuple[float, float, int]:
    """Where a histogram begins and ends, and how many bins it has: of whole numbers, each bin has as many of them."""
    if not whole or not 0 < high - low < 2**53:
        return low, high, BINS
    each = 1 if high - low < 12 else math.ceil((high - low + 1) / BINS)
    bins = math.ceil((high - low + 1) / each)
    return low - 0.5, low - 0.5 + each * bins, bins


def _edges(low: float, high: float, bins: int = BINS) -> list[float]:
    """The inner edges of the bins."""
    return [low + (high - low) * k / bins for k in range(1, bins)]


def _histogram(values: Sequence[float], low: float, high: float) -> Histogram:
    edges = _edges(low, high)
    counts = [0] * BINS
    for value in values:
        counts[sum(value >= edge for edge in edges)] += 1
    return Histogram(low, high, tuple(counts))


# By DuckDB

_NUMBERS = (
    "count({x})",
    "min({x})",
    "max({x})",
    "avg({x})",
    "var_pop({x})",
    "count(*) FILTER ({x} <> floor({x}) OR isinf({x}))",
)
_WORDS = ("count({x})", "coalesce(max(length({x})), 0)", "sum(length({x}) - length(replace({x}, ' ', '')) + 1)")
_DATES = ("count({x})", "min({x})", "max({x})")
_BOOLEANS = ("count({x})", "count(*) FILTER ({x})")


@dataclass(frozen=True)
class Plan:
    """What a column holds, and its cells with the SQL of their values."""

    holds: Holds
    cells: Cells


_WANTED: dict[Holds, tuple[str, ...]] = {
    "numbers": _NUMBERS,
    "words": _WORDS,
    "dates": _DATES,
    "booleans": _BOOLEANS,
    "nested": ("count({x})",),
}


def profile(
    first: FirstRows, plans: Sequence[Plan], relation: Any = None, *, histograms: bool = True
) -> list[ColumnProfile]:
    """The profiles of all columns over the first rows of a table, or in one pass over a `relation` with all rows.

    Levels and running numbers are always those of the first rows, as are the ends of histograms.
    """
    base = first.relation()
    made = _with_infinite(base, plans, _profiles(base, plans, {}, exact=first.rows <= _EXACT_ROWS))
    made = _with_levels(base, plans, made)
    shown = [(j, _span(one)) for j, one in enumerate(made[:_MOST_HISTOGRAMS])] if histograms else []
    spans = {j: span for j, span in shown if span is not None}
    if relation is None:
        return _with_histograms(base, plans, made, spans)
    together = len(plans) <= FEW_COLUMNS
    over_all = _with_infinite(relation, plans, _profiles(relation, plans, spans if together else {}, exact=False))
    joined = [
        replace(
            every,
            levels=some.levels,
            all_levels=some.all_levels and every.distinct <= 1.1 * len(some.levels),
            distinct=max(every.distinct, some.distinct) if not some.all_levels else every.distinct,
        )
        if every.holds == "words"
        else every
        for some, every in zip(made, over_all, strict=True)
    ]
    return joined if together else _with_histograms(relation, plans, joined, spans)


def _profiles(relation: Any, plans: Sequence[Plan], spans: dict[int, _Span], *, exact: bool) -> list[ColumnProfile]:
    distinct = "count(DISTINCT {x})" if exact else "approx_count_distinct({x})"
    wanted = []
    for j, plan in enumerate(plans):
        bins = tuple(f"count(*) FILTER ({{x}} >= {edge!r}::DOUBLE)" for edge in _edges(*spans[j])) if j in spans else ()
        wanted.append(("count(*)", *_WANTED[plan.holds], *bins, *(() if plan.holds == "nested" else (distinct,))))
    found = own_aggregates(relation, [plan.cells for plan in plans], wanted)
    return [
        _from_row(plan.holds, values, exact, spans.get(j))
        for j, (plan, values) in enumerate(zip(plans, found, strict=True))
    ]


def _with_infinite(relation: Any, plans: Sequence[Plan], made: list[ColumnProfile]) -> list[ColumnProfile]:
    """Infinite numbers, counted where the smallest or the largest is one."""
    some = [j for j, one in enumerate(made) if one.holds == "numbers" and _is_infinite(one)]
    found = aggregates(relation, [plans[j].cells for j in some], ("count(*) FILTER (isinf({x}))",))
    for j, (count,) in zip(some, found, strict=True):
        made[j] = replace(made[j], infinite=int(count))
    return made


def _is_infinite(one: ColumnProfile) -> bool:
    return any(end is not None and math.isinf(end) for end in (one.minimum, one.maximum))


def _from_row(holds: Holds, values: tuple[Any, ...], exact: bool, span: _Span | None) -> ColumnProfile:
    rows, present, distinct = int(values[0]), int(values[1]), values[-1]
    made = ColumnProfile(holds, rows, rows - present, distinct, exact, running=False)
    if holds == "nested":
        return replace(made, distinct=0, exact=False, all_levels=False)
    if holds == "numbers":
        low, high, mean, variance, fractions = values[2:7]
        # DuckDB adds up in an order that depends on its threads, so the last digits are not kept.
        squares = None if variance is None else _rounded(variance) * present
        made = replace(made, minimum=low, maximum=high, mean=_rounded(mean), squares=squares, whole=fractions == 0)
        return made if span is None else replace(made, histogram=_binned(span, present, values[7:-1]))
    if holds == "words":
        return replace(made, longest=int(values[2]), words=int(values[3] or 0))
    if holds == "dates":
        return replace(made, minimum=values[2], maximum=values[3])
    counts = {name: n for name, n in (("true", values[2]), ("false", present - values[2])) if n}
    made = replace(made, minimum="false" not in counts, maximum="true" in counts) if counts else made
    return replace(made, **_top(counts))


def _binned(span: _Span, present: int, above: Sequence[int]) -> Histogram:
    """The histogram from the numbers of values above each inner edge."""
    reach = [present, *above, 0]
    return Histogram(*span[:2], tuple(int(a - b) for a, b in pairwise(reach)))


def _rounded(value: float | None) -> float:
    return math.nan if value is None else float(f"{value:.11g}")


def _with_levels(relation: Any, plans: Sequence[Plan], made: list[ColumnProfile]) -> list[ColumnProfile]:
    """Words with their counts: of columns with few levels in one query, of others one by one, if these are not too many."""
    words = [j for j, plan in enumerate(plans) if plan.holds == "words" and made[j].present]
    few = [j for j in words if made[j].distinct <= 1.1 * MOST_LEVELS]
    for j, (counts,) in zip(few, aggregates(relation, [plans[j].cells for j in few], ("histogram({x})",)), strict=True):
        top = _top(counts)
        made[j] = replace(made[j], **top, distinct=len(counts), exact=True)
    for j in [j for j in words if j not in few][:_MOST_HISTOGRAMS]:
        value = plans[j].cells.value.replace("{x}", plans[j].cells.cell)
        made[j] = replace(
            made[j], levels=tuple(counts_of(relation, value, f"({value}) IS NOT NULL", 5)), all_levels=False
        )
    others = [j for j in words if not made[j].levels]
    for j in others:
        made[j] = replace(made[j], all_levels=False)
    return made


def _span(one: ColumnProfile) -> _Span | None:
    if one.holds != "numbers" or one.minimum is None or one.minimum == one.maximum:
        return None
    low, high = float(one.minimum), float(one.maximum)
    return _bins(low, high, one.whole) if math.isfinite(high - low) else None


def _with_histograms(
    relation: Any, plans: Sequence[Plan], made: list[ColumnProfile], spans: dict[int, _Span]
) -> list[ColumnProfile]:
    wanted = [
        tuple(f"count(*) FILTER ({{x}} >= {edge!r}::DOUBLE)" for edge in _edges(*span)) for span in spans.values()
    ]
    found = own_aggregates(relation, [plans[j].cells for j in spans], wanted)
    for (j, span), above in zip(spans.items(), found, strict=True):
        made[j] = replace(made[j], histogram=_binned(span, made[j].present, above))
    return made
