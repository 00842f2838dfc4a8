"""What a PCA solver is, and the options it gets; its answer is a `Spectrum`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from foldwise.data.block import Floats
from foldwise.data.source import Source
from foldwise.errors import DataError, ParameterError
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.passes import Passes
from foldwise.models.standardise import column_scales
from foldwise.prepare.encode import IndicatorGroup
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.moments import Moments
from foldwise.stats.qr_factor import QRFactor

if TYPE_CHECKING:
    from foldwise.models.pca.spectrum import Spectrum

ColumnSummary: TypeAlias = ColumnMoments | Moments | QRFactor  # all know weight, rows, means and sums of squares
EPS = float(np.finfo(np.float64).eps)
# Below, digits of squares are lost; a column that varies has at least the least positive number.
_LEAST_VARIANCE = 1e-290
_SINGLE = 1e-6  # what the kernels promise for any order of rows
_MORE = 1e-6  # of ddof: by less the weights exceed it only through rounding


def rounding_of(dtype: Any, terms: int = 128) -> float:
    """By how much sums of so many products in this arithmetic can be off.

    Each entry of a scatter matrix by this times the root of the product of its two diagonal entries, so that the error of the
    matrix is at most this times its trace.
    """
    return _SINGLE if dtype == np.float32 else 2 * max(terms, 128) * EPS


def floor_of_products(dtype: Any, size: int, largest: float) -> float:
    """Variances up to here are rounding in the eigenvalues of a matrix of products that were added up in this dtype."""
    return (4 * 2.0**-24 if dtype == np.float32 else size * EPS) * largest


def floor_of_rows(dtype: Any, size: int, largest: float) -> float:
    """Variances up to here are rounding in the singular values of rows of this dtype: its square."""
    return (size * float(np.finfo(dtype).eps)) ** 2 * largest


class Solver:
    """One way to find the directions. It has no state; `SOLVERS` lists all of them."""

    name: ClassVar[str]
    names: ClassVar[tuple[str, ...]] = ()  # the values of svd_solver that mean it

    def count(self, asked: str, n_components: Any, source: Source) -> int | None:
        """How many directions n_components asks for (None: all); what this solver cannot do is refused.

        `asked` is the value of svd_solver that it was chosen by.
        """
        return int(n_components) if isinstance(n_components, Integral) else None

    def reads_again(self, *, checkpoint: bool) -> bool:
        """Whether it passes over the rows more than once, so that decoding them once is worth a scratch file."""
        return False

    def solve(self, passes: Passes, options: SolverOptions) -> Spectrum:
        """Find the leading directions."""
        raise NotImplementedError


@dataclass(frozen=True)
class SolverOptions:
    """How many leading directions (None: all), of which matrix, and how hard to try."""

    n_components: int | None = None
    solver: str = "auto"
    scale: bool = False
    ddof: float = 1.0
    tol: float = 0.0
    max_iter: int | None = None
    seed: int = 0
    time_budget: float | None = None
    checkpoint: Checkpoint | None = None
    indicators: tuple[IndicatorGroup, ...] | None = None  # columns of categories: the geometry is that of FAMD
    wide: bool = False  # products of float32 rows in float64: a rule reads variances far below the largest

    def arithmetic(self, source: Source) -> Any:
        """The dtype in which products of rows are added up."""
        return np.dtype(np.float64) if self.wide else source.dtype

    def resolve(self, columns: ColumnSummary) -> tuple[Floats | None, int]:
        """By what each column is divided, and how many directions to find; columns without a variance are refused."""
        self.total_variance(columns)
        return self.deviations(columns), self._count(columns)

    def deviations(self, columns: ColumnSummary) -> Floats | None:
        """The standard deviation by which each column is divided, or None; a constant column is divided by one."""
        if self.indicators is not None:
            return column_scales(columns.mean, columns.squares, columns.weight, self.indicators)
        if not self.scale:
            return None
        deviation = np.sqrt(columns.squares / (columns.weight - self.ddof))
        return np.where(deviation > 0, deviation, 1.0)

    def total_variance(self, columns: ColumnSummary) -> float:
        """The total variance, if there is one that a float64 can hold."""
        weight, rows, squares = columns.weight, columns.rows, columns.squares
        if weight <= self.ddof * (1 + _MORE):
            raise DataError(
                f"Found array with {rows} sample(s) (total weight {weight:g}) while a minimum of 2 is required by PCA: "
                f"a variance with ddof={self.ddof:g} cannot be formed",
                advice="Weights mean repetition: scale them to add up to the number of rows"
                if rows > 1
                else "Give more rows",
            )
        variances = squares / (weight - self.ddof)
        total = float(variances.sum())
        if self.scale or self.indicators is not None or total < _LEAST_VARIANCE:
            lost = (squares > 0) & (variances < _LEAST_VARIANCE)
            if lost.any():
                raise DataError(
                    "values differ by so little that their variance is lost below the range of float64",
                    column=int(np.argmax(lost)),
                    advice="Multiply the data by a constant first",
                )
        if not math.isfinite(total):
            raise DataError(
                "values are so large that their variance overflows float64",
                column=int(np.argmax(np.where(np.isnan(squares), np.inf, squares))),
                advice="Divide the data by a constant first",
            )
        if self.indicators is not None:
            return float((variances / column_scales(columns.mean, squares, weight, self.indicators) ** 2).sum())
        return float(np.count_nonzero(squares)) if self.scale else total

    def _count(self, columns: ColumnSummary) -> int:
        """As many directions as n_components says, or all that these rows, repeated by their weights, can have."""
        most = min(max(columns.rows, int(columns.weight)), dimensions(len(columns.mean), self.indicators))
        asked = most if self.n_components is None else self.n_components
        if not 0 <= asked <= most:
            raise ParameterError(
                f"n_components={asked} must be between 0 and min(n_samples, n_features)={most} with "
                f"svd_solver={self.solver!r}"
            )
        return asked


def dimensions(n_columns: int, indicators: Sequence[IndicatorGroup] | None) -> int:
    """In how many directions the rows can vary: the indicators of a category add up to one, which takes one from them."""
    return n_columns - len(indicators or ())


def lengths(columns: Floats) -> Floats:
    """The length of each column, also where the squares of its numbers would overflow or vanish."""
    size = float(max(columns.max(initial=0.0), -columns.min(initial=0.0)))
    if 1e-150 < size < 1e150:
        return np.asarray(np.sqrt(np.einsum("ij,ij->j", columns, columns)))
    return np.asarray(np.linalg.norm(columns / size, axis=0) * size) if size > 0 else np.zeros(columns.shape[1])
