"""Points to compare rows with: cluster centres, seeds, candidates. Packed once for a pass, then applied to rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from foldwise.kernels import _core

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]

_PIVOT_UNITS = 2.0**26


@dataclass(frozen=True)
class Rescaling:
    """Rows are used as y = (x - pivot) * scale: centred near the middle of the data, with absolute values of at most 1.

    `scale` is a power of two, so that it causes no rounding, and `pivot` has values of the data's own dtype.
    """

    pivot: Floats
    scale: float

    def apply(self, points: NDArray[Any]) -> Floats:
        """Points converted to y."""
        return np.asarray(points.astype(np.float64) * self.scale - self.pivot * self.scale)

    def undo(self, y: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
        """From y back to the units of the data, rounded to their dtype."""
        return np.asarray((y / self.scale + self.pivot).astype(dtype))


@dataclass(frozen=True)
class Grid:
    """Values of at most 1 are split into two multiples of powers of two, so that sums of up to `rows` of them are exact.

    Exact sums do not depend on the order of their terms, and subtracting a term exactly undoes adding it.
    """

    coarse: float
    fine: float
    bits: int  # the first part is a multiple of 2^-bits

    @property
    def fixed_bits(self) -> int:
        """The bits behind the point of values that the kernels add up as integers, a few thousand at a time.

        They then go to both parts exactly: no more bits than the second part has.
        """
        return min(49, 2 * self.bits)

    def fixed(self, high: Floats, low: Floats, weight: Floats) -> FixedSums:
        """Sums on this grid to which kernels add in fixed point."""
        return high, low, weight, self.fixed_bits, self.bits

    @classmethod
    def of(cls, rows: int) -> Grid:
        """The finest grid for that many terms."""
        bits = 51 - max(rows - 1, 0).bit_length()
        return cls(1.5 * 2.0 ** (52 - bits), 1.5 * 2.0 ** (52 - 2 * bits), bits)

    def cut(self, values: Floats) -> tuple[Floats, Floats]:
        """The two parts; the remainder is dropped (some 2^-60 of the largest value)."""
        high = (values + self.coarse) - self.coarse
        return high, ((values - high) + self.fine) - self.fine


@dataclass(frozen=True)
class CentreGroups:
    """Groups of neighbouring targets, for bounds: `order` lists targets by group, `ends` is where each group ends."""

    order: Labels
    ends: Labels

    def largest(self, values: Floats) -> Floats:
        """The largest value in each group."""
        if len(self.ends) == 1:
            return np.asarray(values.max(keepdims=True))
        return np.asarray(np.maximum.reduceat(values[self.order], np.concatenate([[0], self.ends[:-1]])))


@dataclass(frozen=True)
class Moved:
    """How far targets have moved since bounds were initialised: each, the maximum by group, and overall; rounded up."""

    each: NDArray[Any]
    group: NDArray[Any]
    most: float
    slack: float

    @classmethod
    def of(cls, total: Floats, group: Floats, most: float, d: int, dtype: np.dtype[Any]) -> Moved:
        """From sums in float64; `slack` covers the rounding of updates to bounds."""
        up = np.array(np.inf, dtype)
        longest = float(max(total.max(initial=0.0), group.max(initial=0.0), most)) + 2 * math.sqrt(d)
        return cls(
            np.nextafter(total.astype(dtype), up),
            np.nextafter(group.astype(dtype), up),
            float(np.nextafter(dtype.type(most), up)),
            8 * float(np.finfo(dtype).eps) * longest,
        )


# Buffers for the numbers of rows whose label changes, and for their previous labels.
Changes: TypeAlias = tuple[Labels, Labels]

# The sums of the clusters that rows move between (high and low parts and weights), and the bits of `Grid` for them.
FixedSums: TypeAlias = tuple[Floats, Floats, Floats, int, int]

# Rows as integers of 16 bits (`integer_rows`), and whether they have been written.
KeptIntegers: TypeAlias = tuple[NDArray[np.int32], bool]

# For some rows: upper bounds, lower bounds, and lower bounds by group.
RowBounds: TypeAlias = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


class DenseTargets:
    """Targets for dense rows of one dtype.

    If `observed`, rows may have missing cells, which are NaN, and every distance is over the observed cells of its row. A row
    with nothing observed is in no cluster: its label is -1. If all rows are known to have absolute
    values of at most 1 after the rescaling, `row_length` may tell their typical length: labels are found sooner then, by
    comparing integers. `kept` says that rows are kept as such integers. Up to so many `helpers` that are awake help to pack.
    """

    def __init__(
        self,
        points: NDArray[Any],
        rescaling: Rescaling,
        groups: CentreGroups | None = None,
        observed: bool = False,
        row_length: float = 0.0,
        kept: bool = False,
        helpers: int = 0,
    ) -> None:
        self.points, self.rescaling, self.groups, self.observed = points, rescaling, groups, observed
        self.row_length, self.kept = row_length, kept
        order, ends = (None, None) if groups is None else (groups.order, groups.ends)
        self._core = _core.Targets(points, rescaling.pivot, rescaling.scale, order, ends, observed, row_length, kept, helpers)

    @property
    def rounded(self) -> bool:
        """Whether rows are compared as integers: not with targets too far away, or all at the pivot."""
        return self._core.rounded

    def __reduce__(self) -> tuple[Any, ...]:
        given = self.points, self.rescaling, self.groups, self.observed, self.row_length, self.kept
        return DenseTargets, given  # repacked when unpickled

    def nearest(
        self,
        rows: NDArray[Any],
        labels: Labels,
        near: NDArray[Any] | None = None,
        next_: NDArray[Any] | None = None,
        changes: Changes | None = None,
        sums: FixedSums | None = None,
        integers: KeptIntegers | None = None,
        residuals: Floats | None = None,
        fresh: bool = False,
        parts: Any = None,
    ) -> tuple[int, int, int, int]:
        """Write each row's exact nearest target to `labels`; ties go to the lowest number.

        Returns how many labels changed, how many products were formed (in rows), how many rows were near ties, and how many
        were exact ties, decided by the numbers of the targets (or a few more; never fewer). `near` and `next_` receive the
        squared distances, times scale squared, to the nearest and second nearest targets, up to rounding in the rows' dtype.
        Rows whose label changed are written to `changes`, which must have room for all rows, or moved between the `sums` of
        their clusters. `integers` are read if they are ready, and written otherwise; only if the targets are `rounded`.
        What `residuals_and_counts` finds for these labels is added to `residuals`, while rows are in the cache.
        If `fresh`, no row has a label yet: what is in `labels` is not read. If threads share out the rows, `parts`
        (`_core.Parts`) are what is left of them: this call takes some, and returns when there are none, or after some time.
        """
        changed, before = changes or (None, None)
        high, low, weight, bits, coarse_bits = sums or (None, None, None, 0, 0)
        values, ready = integers or (None, False)
        given = changed, before, high, low, weight, bits, coarse_bits, values, ready, residuals, fresh, parts
        return self._core.nearest(rows, labels, near, next_, *given)

    def nearest_bounded(
        self,
        rows: NDArray[Any],
        labels: Labels,
        bounds: RowBounds,
        moved: Moved,
        *,
        fresh: bool,
        changes: Changes | None = None,
        sums: FixedSums | None = None,
        parts: Any = None,
    ) -> tuple[int, int, int, int]:
        """The same with bounds, which are read (unless `fresh`) and written."""
        changed, before = changes or (None, None)
        high, low, weight, bits, coarse_bits = sums or (None, None, None, 0, 0)
        movement = moved.each, moved.group, moved.most, moved.slack, fresh
        given = *bounds, *movement, changed, before, high, low, weight, bits, coarse_bits, parts
        return self._core.nearest_bounded(rows, labels, *given)

    def move_rows(
        self,
        rows: NDArray[Any],
        weights: Floats | None,
        weight_scale: float,
        changes: Changes | None,
        after: Labels,
        slots: Labels,
        grid: Grid,
        sums: tuple[Floats, ...],
    ) -> None:
        """Move rows whose label changed from the sums of one cluster to those of another; without `changes`, add all.

        `slots[label]` is the cluster's row in the sums (high and low parts of the weighted y, two rows of weights and, if
        `observed`, the weights of the missing cells of each column, in two parts).
        A previous label of -1 means that the row was in no cluster.
        """
        which, before = changes or (None, None)
        self._core.move_rows(rows, weights, weight_scale, which, before, after, slots, grid.coarse, grid.fine, *sums)

    def move_rows_fixed(
        self, rows: NDArray[Any], changes: Changes | None, after: Labels, sums: FixedSums
    ) -> None:
        """The same in fixed point, as `nearest` does it."""
        which, before = changes or (None, None)
        self._core.move_rows_fixed(rows, which, before, after, *sums)

    def residuals(
        self, rows: NDArray[Any], weights: Floats | None, labels: Labels, each: Floats | None = None
    ) -> Floats:
        """The weighted squared distances, times scale squared, from each target to its rows; from differences in float64."""
        total = np.zeros(len(self.points))
        self._core.residuals(rows, weights, labels, total, each)
        return total

    def residuals_and_counts(self, rows: NDArray[Any], labels: Labels) -> Floats:
        """In two rows: the same without weights, and the number of rows of each target."""
        found = np.zeros((2, len(self.points)))
        self._core.residuals(rows, None, labels, found[0], None, found[1])
        return found

    def update_closest(
        self, rows: NDArray[Any], weights: Floats | None, taken: int, closest: NDArray[Any]
    ) -> tuple[float, Floats]:
        """Seeding: update `closest` with the first `taken` targets, and evaluate each of the others as a candidate.

        Returns the weighted sum of `closest`, and its value if each of the other targets were added.
        """
        potential = np.empty(len(self.points) - taken)
        return self._core.update_closest(rows, weights, taken, closest, potential), potential

    def distances(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The distance of every row to every target, in the rows' dtype.

        If `observed`, the root of the squares over observed cells times d / (number of observed cells): what is missing counts
        as being as far away, on average, as what is there. NaN for a row with nothing observed.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            gaps = self.observed and bool(np.isnan(rows).any())
            return self._observed_distances(rows) if gaps else self._distances(rows)

    def _observed_distances(self, rows: NDArray[Any]) -> NDArray[Any]:
        out, each = np.empty((len(rows), len(self.points))), np.empty(len(rows))
        some = observed_cells(rows)
        factor = np.divide(rows.shape[1], some, out=np.full(len(rows), np.nan), where=some > 0)
        for number in range(len(self.points)):
            labels = np.where(some > 0, number, -1).astype(np.int32)
            self.residuals(rows, None, labels, each)
            out[:, number] = np.sqrt(each * factor) / self.rescaling.scale
        return np.asarray(out.astype(rows.dtype))

    def _distances(self, rows: NDArray[Any]) -> NDArray[Any]:
        y, points = self.rescaling.apply(rows), self.rescaling.apply(self.points)
        square, norms = np.einsum("ij,ij->i", y, y), np.einsum("ij,ij->i", points, points)
        found = square[:, None] + norms - 2 * (y @ points.T)
        # Where the terms nearly cancel, subtract first and square afterwards.
        row, target = np.nonzero(found < 1e-4 * (square[:, None] + norms))
        for some in np.array_split(np.arange(len(row)), len(row) * y.shape[1] // 4_000_000 + 1):
            gap = y[row[some]] - points[target[some]]
            found[row[some], target[some]] = np.einsum("ij,ij->i", gap, gap)
        out = np.sqrt(found) / self.rescaling.scale
        for far in np.flatnonzero(~np.isfinite(found).all(axis=1)):  # squares overflow before distances do
            gap = rows[far].astype(np.float64) - self.points
            longest = np.abs(gap).max(axis=1)
            out[far] = longest * np.sqrt(np.square(gap / np.where(longest > 0, longest, 1.0)[:, None]).sum(axis=1))
        return np.asarray(out.astype(rows.dtype))


# Integers whose memory serves the next ones (cpp/reused_memory.cpp): with fewer the C library does as well, and more would stay
# in use for too long in systems that are slow to take it back.
_REUSED = 1 << 20, 64 << 20
VECTOR_ROWS = 16  # integers of rows are kept by vectors of so many rows, or of half as many


def integer_rows(n: int, d: int) -> NDArray[np.int32]:
    """Room for n rows of d columns as integers of 16 bits, in whole vectors of rows and from the start of a cache line on.

    Any part that starts at a multiple of `VECTOR_ROWS` can be used alone.
    """
    width = (d + 1) // 2 + 1  # pairs of columns, and the length of the row
    count = -(-n // VECTOR_ROWS) * VECTOR_ROWS * width + 16
    reused = _REUSED[0] <= count <= _REUSED[1]
    room = _core.reused_integers(count) if reused else np.empty(count, dtype=np.int32)
    first = -room.ctypes.data % 64 // room.itemsize
    return room[first : first + n * width].reshape(n, width)


def observed_cells(rows: NDArray[Any]) -> NDArray[np.int64]:
    """The number of observed cells, which are not NaN, of each row."""
    return np.asarray(np.count_nonzero(rows == rows, axis=1))


def rescaling_around(points: NDArray[Any], *, sparse: bool = False) -> Rescaling:
    """A rescaling for rows that are compared with these points."""
    mean = np.zeros(points.shape[1]) if sparse else (points.astype(np.float64) / len(points)).sum(axis=0)
    return rescaling_within(mean, points.min(axis=0), points.max(axis=0), points.dtype)


def rescaling_within(middle: Floats, low: NDArray[Any], high: NDArray[Any], dtype: np.dtype[Any]) -> Rescaling:
    """A rescaling with its pivot at `middle`, in which values from `low` to `high` have absolute values of at most 1."""
    pivot = middle.astype(dtype).astype(np.float64)
    # Halve first: the difference of two large float64 values may overflow.
    reach = float(np.maximum(high / 2.0 - pivot / 2.0, pivot / 2.0 - low / 2.0).max(initial=0.0))
    reach = reach or float(np.abs(pivot).max(initial=0.0)) / 2.0  # all values equal: targets will be of the same size
    if reach == 0.0:
        return Rescaling(pivot, 1.0)
    _, exponent = math.frexp(reach)
    most = 126 if dtype == np.float32 else 1022
    scale = 2.0 ** max(-most, min(-(exponent + 1), most))
    if dtype == np.float32:  # few bits, so that it is a number in fixed point (see `Grid.fixed_bits`)
        pivot = np.rint(pivot * scale * _PIVOT_UNITS) / _PIVOT_UNITS / scale
    return Rescaling(pivot, scale)


def targets_of(
    points: NDArray[Any],
    rescaling: Rescaling,
    *,
    sparse: bool,
    observed: bool = False,
    row_length: float = 0.0,
    kept: bool = False,
    helpers: int = 0,
) -> Any:
    """Targets for dense or for sparse rows, or (`observed`) for dense rows that may have missing cells.

    `row_length` and `kept` may be given if no row has absolute values above 1 after the rescaling (see `DenseTargets`, also for
    `helpers`).
    """
    if sparse:
        from foldwise.kernels.sparse import SparseTargets

        return SparseTargets(points, rescaling)
    return DenseTargets(points, rescaling, observed=observed, row_length=row_length, kept=kept, helpers=helpers)
