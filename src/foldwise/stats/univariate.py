"""Sufficient statistics of one column of values for exponential families, in one pass."""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise import kernels
from foldwise.data.block import Block, Floats
from foldwise.kernels.series import divergence, factorial_rest
from foldwise.stats.logs import Logs, total
from foldwise.stats.rounding import Rounding, some_rows
from foldwise.stats.two_part_mean import moved

MOST_COUNTS = 1 << 16  # whole numbers below this are tallied individually
_TOLD_APART = 2.0**53  # larger float64 values are always whole
_AT_ONCE = 16384
_NOTHING = -1100  # the exponent of zeros, below that of any number
_PLAIN = (1e-100, 1e100)  # the range in which squares and their sums are safe

OUTSIDE = ("negative", "zero", "one", "above one", "fraction")


@dataclass(frozen=True)
class Univariate:
    """Weight, rows with non-zero weight, range, mean and centred sum of squares; on request (`parts`) further statistics.

    Moments are in units of 2 to the `exponent`, which is 0 unless squares would leave float64. `centre` is the mean in two
    parts. `logs` is about x (its squares only if "log squares" is among the parts), `complement` about 1 - x, `inverse` the sum
    of (x - mean)^2 / x, `counts` the weights of 0, 1, 2 and so on, `rests` the sum of log x! - x log x + x and
    `divergence` that of x log(x / mean), which do not cancel where counts are large; each is None if it was not requested or
    is undefined for the values. `low_weight` and `high_weight` are the weights of the values that equal the least and the
    greatest one (0 where hardly any of many do); `rounding` says to what unit all values were rounded, if to any.
    `first_rows` and `first_values` locate the first value of each kind in OUTSIDE, for errors; -1 means none.
    """

    weight: float
    rows: int
    exponent: int
    centre: Floats
    squares: float
    low: float
    high: float
    first_rows: NDArray[np.int64]
    first_values: Floats
    logs: Logs | None = None
    complement: Logs | None = None
    inverse: float | None = None
    counts: Floats | None = None
    rests: float | None = None
    divergence: float | None = None
    low_weight: float = 0.0
    high_weight: float = 0.0
    rounding: Rounding | None = None

    @classmethod
    def empty(cls) -> Univariate:
        """The identity of `merge`."""
        nowhere = np.full(len(OUTSIDE), -1, dtype=np.int64)
        return cls(0.0, 0, _NOTHING, np.zeros(2), 0.0, np.inf, -np.inf, nowhere, np.full(len(OUTSIDE), np.nan))

    @classmethod
    def of(cls, block: Block, parts: Set[str] = frozenset()) -> Univariate:
        """The record of a block of one column."""
        x, w, places = values_and_weights(block)
        if not len(x):
            return cls.empty()
        low, high = float(x.min()), float(x.max())
        weight = float(len(x)) if w is None else float(w.sum())
        exponent = _exponent(max(abs(low), abs(high)))
        y = x if exponent == 0 else np.ldexp(x, -exponent)
        mean, rest, squares = _moments(y, w)
        first_rows, first_values = _outside(x, low, high, block.start, places, "counts" in parts)
        record = cls(
            weight,
            len(x),
            exponent,
            np.array([mean, rest]),
            squares,
            low,
            high,
            first_rows,
            first_values,
            low_weight=_at(x, w, low),
            high_weight=_at(x, w, high),
            rounding=Rounding.of(x, w, exact=block.dense().dtype != np.float32),
        )
        if low > 0 and parts & {"logs", "inverse"}:
            # From x itself: rescaling might underflow the smallest values.
            pivot, left = (math.ldexp(part, exponent) for part in (mean, rest))
            logs = Logs.of(x, w, weight, pivot, left, spread="log squares" in parts)
            record = replace(record, logs=logs, inverse=_inverse(y, w, mean) if "inverse" in parts else None)
        if low > 0 and high < 1 and "complement" in parts:
            other = Logs.of(y, w, weight, 1.0 - mean, -rest, of_one=mean, spread=False) if exponent == 0 else None
            record = replace(record, complement=other)
        if "counts" in parts and low >= 0 and first_rows[4] < 0 and high < _TOLD_APART:
            record = replace(record, **_counted(x, w, high, mean, rest))
        return record

    def merge(self, other: Univariate) -> Univariate:
        """Both sets of values together."""
        if other.weight == 0.0:
            return self
        if self.weight == 0.0:
            return other
        exponent = max(self.exponent, other.exponent)
        a, b = self.in_units(exponent), other.in_units(exponent)
        weight = a.weight + b.weight
        share = b.weight / weight
        apart = float((b.centre[0] - a.centre[0]) + (b.centre[1] - a.centre[1]))
        centre = moved(a.centre, np.asarray(apart * share))
        here = a.first_rows >= 0
        here &= (a.first_rows <= b.first_rows) | (b.first_rows < 0)
        merged = Univariate(
            weight,
            a.rows + b.rows,
            exponent,
            centre,
            a.squares + b.squares + apart * apart * (a.weight * share),
            min(a.low, b.low),
            max(a.high, b.high),
            np.where(here, a.first_rows, b.first_rows),
            np.where(here, a.first_values, b.first_values),
            low_weight=a.low_weight * (a.low <= b.low) + b.low_weight * (b.low <= a.low),
            high_weight=a.high_weight * (a.high >= b.high) + b.high_weight * (b.high >= a.high),
            rounding=None if a.rounding is None else a.rounding.merge(b.rounding),
        )
        changes: dict[str, Any] = {}
        mean = float(centre[0])
        if a.logs is not None and b.logs is not None:
            changes["logs"] = a.logs.merge(b.logs, a.weight, b.weight, mean, apart)
        if a.complement is not None and b.complement is not None and exponent == 0:
            changes["complement"] = a.complement.merge(b.complement, a.weight, b.weight, 1.0 - mean, -apart)
        if a.inverse is not None and b.inverse is not None:
            changes["inverse"] = _merged_inverse(a, b, mean, apart, share)
        if a.rests is not None and b.rests is not None:
            changes["rests"] = a.rests + b.rests
        if a.divergence is not None and b.divergence is not None:
            about = a.weight * divergence(-apart * share, mean) + b.weight * divergence(apart * (1 - share), mean)
            changes["divergence"] = a.divergence + b.divergence + float(about)
        if a.counts is not None and b.counts is not None:
            counts = np.zeros(max(len(a.counts), len(b.counts)))
            counts[: len(a.counts)] += a.counts
            counts[: len(b.counts)] += b.counts
            changes["counts"] = counts
        return replace(merged, **changes)

    def in_units(self, exponent: int) -> Univariate:
        """The same record with moments in units of another power of 2."""
        step = self.exponent - exponent
        if step == 0:
            return self
        inverse = None if self.inverse is None else math.ldexp(self.inverse, step)
        return replace(
            self,
            exponent=exponent,
            centre=np.ldexp(self.centre, step),
            squares=math.ldexp(self.squares, 2 * step),
            inverse=inverse,
        )

    @property
    def mean(self) -> float:
        """The mean, in units of 2 to the exponent."""
        return float(self.centre[0])

    @property
    def variance(self) -> float:
        """The variance (divisor n), in squared units."""
        return self.squares / self.weight

    def first(self, kind: str) -> tuple[int, float] | None:
        """Row and value of the first value of a kind in OUTSIDE."""
        place = OUTSIDE.index(kind)
        return None if self.first_rows[place] < 0 else (int(self.first_rows[place]), float(self.first_values[place]))


def values_and_weights(block: Block) -> tuple[Floats, Floats | None, NDArray[np.intp] | None]:
    """The values of a block as float64 and their weights, without those of weight 0, and their positions in the block."""
    x = block.dense().reshape(-1)
    if x.dtype != np.float64:
        x = x.astype(np.float64)
    w = block.weights
    if w is None or w.all():
        return x, w, None
    places = np.flatnonzero(w)
    return x[places], w[places], places


def _at(x: Floats, w: Floats | None, value: float) -> float:
    """The weight of the values that equal one of them; 0 in a large block in which hardly any do."""
    if len(x) > _AT_ONCE and not (x[some_rows(len(x))] == value).any():
        return 0.0
    here = x == value
    return float(np.count_nonzero(here)) if w is None else float(w[here].sum())


def _exponent(size: float) -> int:
    if size == 0.0:
        return _NOTHING
    return 0 if _PLAIN[0] < size < _PLAIN[1] else math.frexp(size)[1]


def _moments(y: Floats, w: Floats | None) -> tuple[float, float, float]:
    """The mean in two parts and the sum of squares about it."""
    _, mean, squares = kernels.columns(np.ascontiguousarray(y).reshape(-1, 1), w)
    return float(mean[0, 0]), float(mean[1, 0]), float(squares[0])


def _inverse(y: Floats, w: Floats | None, mean: float) -> float:
    """The sum of (y - mean)^2 / y."""
    sums = []
    for start in range(0, len(y), _AT_ONCE):
        some = y[start : start + _AT_ONCE]
        gaps = some - mean
        with np.errstate(over="ignore", divide="ignore"):  # reported by the family that needs it
            quotients = gaps / some
        sums.append(total(gaps * quotients, None if w is None else w[start : start + _AT_ONCE]))
    return float(np.sum(sums))


def _counted(x: Floats, w: Floats | None, high: float, mean: float, rest: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if high < MOST_COUNTS:
        w = np.bincount(x.astype(np.intp), w).astype(np.float64)
        x = np.arange(len(w), dtype=np.float64)
        found = {"counts": w}
    rests, apart = [], []
    for start in range(0, len(x), _AT_ONCE):
        some, times = x[start : start + _AT_ONCE], None if w is None else w[start : start + _AT_ONCE]
        rests.append(total(factorial_rest(some), times))
        apart.append(total(divergence((some - mean) - rest, mean), times))
    return found | {"rests": float(np.sum(rests)), "divergence": float(np.sum(apart))}


def _merged_inverse(a: Univariate, b: Univariate, mean: float, apart: float, share: float) -> float:
    """The sum of (x - m)^2 / x about a new m, as a sum of non-negative terms."""
    found = 0.0
    for part, gap in ((a, -apart * share), (b, apart * (1 - share))):
        assert part.inverse is not None
        found += part.inverse * (mean / part.mean) ** 2 + part.weight * gap * (gap / part.mean)
    return found


def _outside(
    x: Floats, low: float, high: float, start: int, places: NDArray[np.intp] | None, whole: bool
) -> tuple[NDArray[np.int64], Floats]:
    rows, values = np.full(len(OUTSIDE), -1, dtype=np.int64), np.full(len(OUTSIDE), np.nan)

    def note(kind: int, bad: NDArray[np.bool_]) -> None:
        if bad.any():
            at = int(np.argmax(bad))
            rows[kind] = start + (at if places is None else int(places[at]))
            values[kind] = x[at]

    if low < 0:
        note(0, x < 0)
    if low <= 0 <= high:
        note(1, x == 0)
    if low <= 1 <= high:
        note(2, x == 1)
    if high > 1:
        note(3, x > 1)
    if whole:
        note(4, x != np.floor(x))
    return rows, values
