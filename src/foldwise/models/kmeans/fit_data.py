"""The data of one fit: their extent and weights, and access to rows by number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats, dense_rows, stack
from foldwise.data.cache import cached
from foldwise.data.scan import scan
from foldwise.data.source import Source, column_label
from foldwise.errors import DataError
from foldwise.fold.passes import Passes
from foldwise.kernels.targets import Grid, Rescaling, rescaling_within, targets_of
from foldwise.models.kmeans.integer_rows import IntegerRows
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.extent import Extent

E = TypeVar("E", bound=Extent)

_SMALL = 1000
_MANY_ROWS = 8192  # for fewer, it does not pay to prepare centres for a quicker comparison
_SHRINK = 2.0**-64  # values times this can be summed without leaving float64
_MOST_REACH = 2.0**1021  # half of the largest distance from the mean that a power of two can bring to 1


@dataclass(frozen=True)
class _Summary:
    """The extent of some blocks, and the weights of their rows."""

    extent: Extent
    weights: tuple[Floats, ...]

    @classmethod
    def of(cls, block: Block) -> _Summary:
        return cls(Extent.of(block), () if block.weights is None else (np.array(block.weights),))

    def merge(self, other: _Summary) -> _Summary:
        return _Summary(self.extent.merge(other.extent), self.weights + other.weights)


class KMeansData:
    """The data and their summary statistics, found in one pass."""

    observed = False  # whether rows may have missing cells
    extent: Extent

    def __init__(self, passes: Passes, rescaling: Rescaling | None = None, *, whole: Passes | None = None) -> None:
        """`whole` are passes over the data that these rows are a sample of; messages refer to it."""
        self.passes, self.source = passes, passes.source
        self._summarise(passes)
        self.n, self.d, self.dtype = self.extent.count, self.source.n_columns, self.source.dtype
        mean = self.extent.columns.mean
        middle = np.zeros_like(mean) if self.source.sparse else mean  # a pivot would make them dense
        _check_reach(self.extent, middle, passes if whole is None else whole)
        own = rescaling_within(middle, self.extent.low, self.extent.high, self.dtype)
        self.squares = self._squares(own.scale)
        self.rescaling = own if rescaling is None else rescaling
        if rescaling is not None:
            self.squares = self.squares * (rescaling.scale / own.scale) ** 2
        self.grid = Grid.of(self.n)
        heaviest = math.frexp(self.extent.heaviest)[1] if self.extent.heaviest != 1.0 else 0
        self.weight_scale = 2.0 ** min(-heaviest, 1000)
        self.within = self._is_within()
        self.fixed = self._can_be_fixed()
        self.block_rows = passes.block_rows

    def _summarise(self, passes: Passes) -> None:
        """The extent and the weights, in one pass."""
        with np.errstate(over="ignore", invalid="ignore"):  # mended below
            found = passes.fold(_Summary.of)
        self.extent = with_mean(found.extent, passes, ColumnMoments)
        self.weights = np.concatenate(found.weights) if found.weights else None

    def _squares(self, scale: float) -> Floats:
        """The centred sum of squares of each column, times scale squared."""
        columns = self.extent.columns
        if 2.0**-400 < scale < 2.0**400:
            return np.asarray(columns.squares * scale * scale)
        task = partial(_scaled_moments, scale=scale, moments=type(columns))
        return np.asarray(self.passes.fold(task).squares)  # unscaled squares leave float64

    def _can_be_fixed(self) -> bool:
        """Whether rows can be summed in fixed point: float32 without weights, within 1 of a pivot that has few bits."""
        if self.weights is not None or self.source.sparse or self.observed or self.dtype != np.float32:
            return False
        pivot = np.abs(self.rescaling.pivot * self.rescaling.scale)
        return self.within and bool(pivot.max() < 2.0**25)

    def _is_within(self) -> bool:
        """Whether no row has absolute values above 1 after the rescaling."""
        apply, extent = self.rescaling.apply, self.extent
        return bool(np.maximum(apply(extent.high), -apply(extent.low)).max() <= 1.0)

    @property
    def counted(self) -> int:
        """The number of rows with non-zero weight."""
        return self.extent.columns.rows

    @property
    def figures(self) -> tuple[Any, ...]:
        """Values that tie a checkpoint to these data."""
        return self.extent.figures

    @property
    def mean_variance(self) -> float:
        """The mean variance of the columns, in units of the rescaled data; `tol` is relative to it."""
        return float(self.squares.mean()) / self.extent.columns.weight

    @cached_property
    def row_length(self) -> float:
        """The typical length of float32 rows after the rescaling, if no value exceeds 1; 0 otherwise, and for few rows.

        The extent leaves out rows of weight 0, which may lie anywhere.
        """
        plain = self.dtype == np.float32 and not (self.source.sparse or self.observed) and self.counted == self.n
        if not plain or not self.within or self.n < _MANY_ROWS:
            return 0.0
        return math.sqrt(self.spread / self.extent.columns.weight)

    @cached_property
    def spread(self) -> float:
        """The inertia of all rows about the pivot."""
        columns, rescaling = self.extent.columns, self.rescaling
        offset = (columns.mean - rescaling.pivot) * rescaling.scale
        return float(self.squares.sum() + columns.weight * (offset @ offset))

    @cached_property
    def integers(self) -> IntegerRows:
        """The decision whether rows are kept as integers between passes."""
        return IntegerRows(self.passes, self.n, comparable=self.row_length > 0)

    def targets(self, points: NDArray[Any], *, for_labels: bool = False, kept: bool = False) -> Any:
        """Points prepared for comparison with blocks of this source; `for_labels` if no distances are wanted.

        `kept` if this pass uses the rows that are kept as integers.
        """
        row_length = self.row_length if for_labels else 0.0
        sparse, observed, helpers = self.source.sparse, self.observed, self.passes.helpers
        given = points, self.rescaling
        return targets_of(
            *given, sparse=sparse, observed=observed, row_length=row_length, kept=kept, helpers=helpers
        )

    def unscaled(self, inertia: float) -> float:
        """An inertia converted to the units of the data."""
        return inertia / self.rescaling.scale / self.rescaling.scale

    # ------------------------------------------------------------ some of the rows

    @property
    def chances(self) -> Floats | None:
        """How often each row is drawn as a start: its weight; None if all are drawn alike."""
        return self.weights

    def filled(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows that can serve as centres: complete ones."""
        return rows

    def gaps(self, rows: NDArray[Any], points: NDArray[Any]) -> Floats:
        """The differences between some rows and some points, in units of the rescaled data: rows x points x columns."""
        return np.asarray(self.rescaling.apply(rows)[:, None, :] - self.rescaling.apply(points))

    def take(self, which: Sequence[int] | NDArray[np.intp]) -> NDArray[Any]:
        """Some rows, by number, as a dense array."""
        return self.passes.take(which)

    def sample(self, size: int, rng: np.random.Generator) -> KMeansData:
        """A random sample of rows, drawn without replacement, in memory and with the same rescaling."""
        which = np.sort(rng.choice(self.n, size, replace=False))
        weights = None if self.weights is None else np.ascontiguousarray(self.weights[which])
        rows = stack([rows for _, rows in self.passes.take_as_they_are(which)])
        return type(self)(self.passes.over(cached(self._opened(rows, weights)), here=True), self.rescaling)

    def _opened(self, rows: Any, weights: Floats | None) -> Source:
        return scan(rows, weights=weights)

    @property
    def is_small(self) -> bool:
        """Whether the cost of handling all rows at once is negligible."""
        return self.n <= _SMALL and not (self.source.sparse and self.n * self.d > _SMALL**2)

    @cached_property
    def canonical_order(self) -> NDArray[np.intp] | None:
        """The rows of a small table sorted by value, or None for a large one; so that a start does not depend on row order.

        In a large table, sorting would cost more than the start.
        """
        if not self.is_small:
            return None
        return np.asarray(np.lexsort(self.take(np.arange(self.n)).T[::-1]))


def with_mean(extent: E, passes: Passes, moments: Any) -> E:
    """The extent with the right mean, even if sums of the values leave float64; takes another pass then."""
    columns = extent.columns
    if np.isfinite(columns.mean).all():
        return extent
    scaled = passes.fold(partial(_scaled_moments, scale=_SHRINK, moments=moments)).centre / _SHRINK
    return replace(extent, columns=replace(columns, centre=scaled, squares=np.full(len(columns.squares), np.inf)))


def _check_reach(extent: Extent, middle: Floats, passes: Passes) -> None:
    """Refuse values so far from the mean that differences leave float64, by row and column."""
    reach = np.maximum(extent.high / 2 - middle / 2, middle / 2 - extent.low / 2)  # halved: it must not overflow itself
    if not reach.max(initial=0.0) >= _MOST_REACH:
        return
    column = int(np.argmax(reach))
    value, row = max(passes.each(partial(_farthest_value, column=column, middle=float(middle[column]))), key=_distance)[
        1:
    ]
    raise DataError(
        f"the value {value:.3g} is too far from the mean ({middle[column]:.3g}) for distances in float64",
        where=passes.source.where,
        row=row,
        column=column_label(passes.source, column),
        advice="Divide the data by a constant, or use scale=True",
    )


def _farthest_value(block: Block, column: int, middle: float) -> tuple[float, float, int]:
    """Half the distance from the middle, the value and the row of the value farthest from it."""
    values = dense_rows(block.unchecked[:, [column]])[:, 0].astype(np.float64)
    away = np.nan_to_num(np.abs(values / 2 - middle / 2), nan=-1.0)
    if block.weights is not None:
        away = np.where(block.weights > 0, away, -1.0)
    place = int(np.argmax(away))
    return float(away[place]), float(values[place]), block.start + place


def _distance(found: tuple[float, float, int]) -> float:
    return found[0]


def _scaled_moments(block: Block, scale: float, moments: Any) -> Any:
    return moments.of(block.times_number(scale, np.float64))
