"""The rows of a fit and what one pass over them tells: number, weights, the automatic gamma."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats, block_of, stack
from foldwise.data.row_pairs import rescaling_of, shift_of_sparse, to_arrays
from foldwise.errors import DataError
from foldwise.kernels.targets import Rescaling, rescaling_within
from foldwise.models.kernel.functions import Kernel, kernel_class
from foldwise.models.kernel.kernel_matrix import ComputedMatrix
from foldwise.models.session import Session
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.extent import Extent

_LARGEST = 1e300  # and its inverse: a gamma beyond has not all its digits, or is 0 or infinite
_SMALL = 1000


@dataclass(frozen=True)
class _Seen:
    """What the first pass finds: the extent of the rows, and their weights."""

    extent: Extent
    weights: tuple[Floats, ...]

    @classmethod
    def of(cls, block: Block) -> _Seen:
        return cls(Extent.of(block), () if block.weights is None else (np.array(block.weights),))

    def merge(self, other: _Seen) -> _Seen:
        return _Seen(self.extent.merge(other.extent), self.weights + other.weights)


class KernelFitData:
    """The rows of one fit, seen once."""

    def __init__(self, opened: Session) -> None:
        self.passes, self.seed, self._model, self._where = opened.passes, opened.seed, opened.model, opened.where
        seen = self.passes.fold(_Seen.of)
        self._extent, self._columns = seen.extent, seen.extent.columns
        self.weights = np.concatenate(seen.weights) if seen.weights else None
        self.n, self.d, self.n_with_weight = seen.extent.count, self.passes.source.n_columns, self._columns.rows

    @property
    def figures(self) -> tuple[Any, ...]:
        """What ties a checkpoint to these values."""
        return self._columns.weight, self._columns.centre, self._columns.squares, self._extent.low, self._extent.high

    def rows(self, which: NDArray[np.intp]) -> Block:
        """Some rows, by rising numbers."""
        return block_of(stack([rows for _, rows in self.passes.take_as_they_are(which)]))

    def sample(self, size: int) -> tuple[Block, Floats | None]:
        """Rows that count, drawn without repetition, and their weights."""
        which = sample_rows(np.ones(self.n) if self.weights is None else self.weights, size, self.seed)
        return self.rows(which), None if self.weights is None else self.weights[which]

    @cached_property
    def canonical_order(self) -> NDArray[np.intp] | None:
        """The rows of a small table sorted by their values, so that a start does not depend on their order.

        None for a large table, where sorting would cost more than the start.
        """
        if self.n > _SMALL or (self.passes.source.sparse and self.n * self.d > _SMALL**2):
            return None
        return np.asarray(np.lexsort(self.passes.take(np.arange(self.n)).T[::-1]))

    # ------------------------------------------------------------ where rows are seen from

    @cached_property
    def _moments(self) -> tuple[Floats, Floats, float]:
        """Mean and centred squares of the columns, times a scale and its square; and that scale, at which nothing overflows."""
        extent, source = self._extent, self.passes.source
        mean = self._columns.mean
        middle = np.zeros_like(mean) if source.sparse else mean
        scale = rescaling_within(middle, extent.low, extent.high, source.dtype).scale
        if 2.0**-400 < scale < 2.0**400:
            squares = self._columns.squares * scale * scale
        else:
            squares = self.passes.fold(partial(_scaled_moments, scale)).squares
        return mean * scale, squares, scale

    @cached_property
    def rescaling(self) -> Rescaling:
        """Where rows that need not be in memory are seen from."""
        mean, source = self._columns.mean, self.passes.source
        if source.sparse:
            scaled, squares, scale = self._moments
            mean = shift_of_sparse(scaled, squares, self._columns.weight) / scale
        return rescaling_within(mean, self._extent.low, self._extent.high, source.dtype)

    @property
    def spread(self) -> tuple[float, float]:
        """The mean squared distance of rows to their mean, times the square of a scale; and that scale."""
        _, squares, scale = self._moments
        return float(squares.sum() / self._columns.weight), scale

    # ------------------------------------------------------------ the kernel

    @cached_property
    def gamma(self) -> float | None:
        """The gamma that was given or found; None for kernels without."""
        kind, given = kernel_class(self._model.kernel), self._model.gamma
        if not kind.has_gamma:
            return None
        if given != "auto":
            return float(given)
        found = kind.automatic_gamma(self)
        if not 1 / _LARGEST < found < _LARGEST:
            raise DataError(
                f"gamma='auto' is {found:.3g} for these rows, which leaves the range of float64",
                where=self._where,
                advice=f"{'Divide' if found < 1 else 'Multiply'} the data by a constant, so that values are nearer to 1",
            )
        return found

    def kernel(self, rescaling: Rescaling) -> Kernel:
        """The model's kernel, for rows seen through a rescaling."""
        return kernel_class(self._model.kernel).of(self._model, self.gamma or 1.0, rescaling)

    def matrix(self, budget: float) -> tuple[ComputedMatrix, str]:
        """The kernel matrix of all rows, and how it is held."""
        rows = self._all_rows
        matrix = ComputedMatrix(self.passes, self.kernel(rescaling_of(rows)), rows, budget)
        return matrix, "kept" if matrix.is_kept else "in tiles"

    @cached_property
    def _all_rows(self) -> Block:
        return self.rows(np.arange(self.n))

    @property
    def attributes(self) -> dict[str, Any]:
        """What an exact model keeps of its rows."""
        return {"gamma_": self.gamma, "rows_": to_arrays(self._all_rows)}


def _scaled_moments(scale: float, block: Block) -> ColumnMoments:
    return ColumnMoments.of(block.times_number(scale, np.float64))


def sample_rows(weights: Floats, size: int, seed: int) -> NDArray[np.intp]:
    """Numbers of rows that count: all, or that many drawn without repetition."""
    some = np.flatnonzero(weights)
    if len(some) <= size:
        return some
    return np.sort(np.random.default_rng([seed, 1]).choice(some, size, replace=False))
