"""The rows of a fit and what one pass over them tells: number, weights, the automatic gamma."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats, block_of, stack
from foldwise.data.row_pairs import rescaling_of, shift_of_sparse, to_arrays
from foldwise.errors import DataError
from foldwise.fold.deadline import Deadline
from foldwise.kernels.targets import Rescaling, rescaling_within
from foldwise.models.kernel.functions import Kernel, kernel_class
from foldwise.models.kernel.kernel_matrix import ComputedMatrix
from foldwise.models.kmeans.fit_data import KMeansData
from foldwise.models.session import Session

_LARGEST = 1e300  # and its inverse: a gamma not far beyond has not all its digits, or is 0 or infinite


class KernelFitData:
    """The rows of one fit, seen once."""

    def __init__(self, opened: Session) -> None:
        self.passes, self.seed, self._model, self._where = opened.passes, opened.seed, opened.model, opened.where
        self._seen = seen = KMeansData(self.passes)
        self._columns, self.weights, self.figures = seen.extent.columns, seen.weights, seen.figures
        self.n, self.d, self.n_with_weight = seen.n, seen.d, seen.counted

    def rows(self, which: NDArray[np.intp]) -> Block:
        """Some rows, by rising numbers."""
        return block_of(stack([rows for _, rows in self.passes.take_as_they_are(which)]))

    def sample(self, size: int) -> tuple[Block, Floats | None]:
        """Rows that count, drawn without repetition, and their weights."""
        which = sample_rows(np.ones(self.n) if self.weights is None else self.weights, size, self.seed)
        return self.rows(which), None if self.weights is None else self.weights[which]

    @property
    def canonical_order(self) -> NDArray[np.intp] | None:
        """The rows of a small table sorted by their values, so that a start does not depend on their order; else None."""
        return self._seen.canonical_order

    # ------------------------------------------------------------ where rows are seen from

    @cached_property
    def rescaling(self) -> Rescaling:
        """Where rows that need not be in memory are seen from."""
        seen, columns = self._seen, self._columns
        if not seen.source.sparse:
            return seen.rescaling
        scale = seen.rescaling.scale
        mean = shift_of_sparse(columns.mean * scale, seen.squares, columns.weight) / scale
        return rescaling_within(mean, seen.extent.low, seen.extent.high, seen.dtype)

    @property
    def spread(self) -> tuple[float, float]:
        """The mean squared distance of rows to their mean, times the square of a scale; and that scale."""
        return float(self._seen.squares.sum() / self._columns.weight), self._seen.rescaling.scale

    # ------------------------------------------------------------ the kernel

    @cached_property
    def gammas(self) -> tuple[float | None, ...]:
        """The gamma that was given, or those to choose from, the usual one first; None for kernels without."""
        kind, given = kernel_class(self._model.kernel), self._model.gamma
        if not kind.has_gamma:
            return (None,)
        if given != "auto":
            return (float(given),)
        first, *others = kind.automatic_gammas(self)
        if not 1 / _LARGEST < first < _LARGEST:
            raise DataError(
                f"gamma='auto' is {first:.3g} for these rows, which leaves the range of float64",
                where=self._where,
                advice=f"{'Divide' if first < 1 else 'Multiply'} the data by a constant, so that values are nearer to 1",
            )
        return first, *others

    @cached_property
    def gamma(self) -> float | None:
        """The gamma of the kernel: the usual one, unless another has been chosen."""
        return self.gammas[0]

    def kernel(self, rescaling: Rescaling, gamma: float | None = None) -> Kernel:
        """The model's kernel, for rows seen through a rescaling."""
        return kernel_class(self._model.kernel).of(self._model, gamma or self.gamma or 1.0, rescaling)

    def matrix(self, deadline: Deadline) -> ComputedMatrix:
        """The kernel matrix of all rows."""
        rows = self.all_rows
        return ComputedMatrix(self.passes, self.kernel(rescaling_of(rows)), rows, deadline)

    def sample_matrix(self, rows: Block | None, which: NDArray[np.intp], gamma: float | None) -> Floats:
        """The kernel matrix of these rows."""
        assert rows is not None
        kernel = self.kernel(self.rescaling, gamma)
        prepared = kernel.prepare(rows)
        return kernel.matrix(prepared, prepared)

    @cached_property
    def all_rows(self) -> Block:
        """All rows in memory."""
        return self.rows(np.arange(self.n))

    @property
    def attributes(self) -> dict[str, Any]:
        """What an exact model keeps of its rows."""
        return {"gamma_": self.gamma, "rows_": to_arrays(self.all_rows)}


def sample_rows(weights: Floats, size: int, seed: int) -> NDArray[np.intp]:
    """Numbers of rows that count: all, or that many drawn without repetition."""
    some = np.flatnonzero(weights)
    if len(some) <= size:
        return some
    return np.sort(np.random.default_rng([seed, 1]).choice(some, size, replace=False))
