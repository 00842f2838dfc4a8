"""What a covariance type is: what the M-step makes of the sums, and everything else that depends on the shape of components."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.errors import ParameterError
from foldwise.fold.passes import Passes
from foldwise.kernels.mixture import Components, Kind, Scatter
from foldwise.kernels.mixture_gaps import GapComponents
from foldwise.stats.responsibility_sums import ResponsibilitySums


class TooFewColumnsError(ParameterError):
    """A covariance type needs more columns."""


@dataclass(frozen=True)
class CovarianceType(ABC):
    """The covariances of k components in `d` columns, as one array (scikit-learn's `covariances_`).

    `whole` is the covariance matrix of all rows or, for types that need no more, the variances of the columns. `whiten` is
    scikit-learn's `precisions_cholesky_`: what turns x - mean into independent unit normals.
    """

    d: int

    name: ClassVar[str]
    label: ClassVar[str]  # the shape of the components in words
    special_case_of: ClassVar[tuple[str, ...]] = ()  # the types that include this one, and may start from its result
    shared: ClassVar[bool] = False  # whether all components have the same covariance
    compares_columns: ClassVar[bool] = False  # whether columns must be in comparable units
    scatter: ClassVar[Scatter]  # the squares that the M-step needs
    layout: ClassVar[Kind]  # how the compiled kernel takes `whiten`

    @classmethod
    def of_columns(cls, d: int, n_latent: int | None) -> Self:
        """The type for d columns; `n_latent` is for those with latent directions."""
        return cls(d)

    @abstractmethod
    def shape(self, k: int) -> tuple[int, ...]:
        """The shape of the covariances of k components."""

    @abstractmethod
    def n_free(self, k: int) -> int:
        """How many numbers in the covariances of k components are free."""

    @abstractmethod
    def least_rows(self) -> int:
        """Fewer rows than this cannot determine a component's covariance."""

    @abstractmethod
    def of_all_rows(self, passes: Passes) -> tuple[Floats, Floats]:
        """The mean of all rows, and `whole`."""

    # ------------------------------------------------------------ the M-step

    @abstractmethod
    def raw(self, sums: ResponsibilitySums) -> Floats:
        """The covariances about the new means, without any ridge."""

    @abstractmethod
    def with_ridge(self, raw: Floats, ridge: Floats) -> Floats:
        """Covariances with the variances in `ridge`, one for each column, added."""

    @abstractmethod
    def variances(self, covariances: Floats) -> Floats:
        """The variances in each column: one line for each component, or a single one if they share it."""

    @abstractmethod
    def collapsed(self, raw: Floats, ridge: Floats, whole: Floats) -> list[bool]:
        """Which of the `stacked` covariances are flat, with less variance than the ridge, where the data as a whole are not.

        A direction in which no data vary, as with columns that add up to a constant, does not count, nor does one in which
        they vary by no more than rounding error.
        """

    @abstractmethod
    def broad(self, whole: Floats, share: float, ridge: Floats) -> Floats:
        """The covariance of one component that knows nothing yet: that of all rows times `share`, with a ridge."""

    @abstractmethod
    def sound(self, covariances: Floats, ridge: Floats, share: float) -> Floats:
        """Covariances without a density get one: no variance is then below `share` of the column's, or below rounding if
        they have one by rounding alone.
        """

    @abstractmethod
    def is_rounding(self, covariances: Floats, whiten: Floats) -> bool:
        """Whether the density of some component hangs on how its sums were rounded."""

    # ------------------------------------------------------------ densities

    @abstractmethod
    def whiten(self, covariances: Floats) -> Floats:
        """`precisions_cholesky_`; LinAlgError if there is none."""

    @abstractmethod
    def log_determinants(self, whiten: Floats) -> Floats:
        """The log-determinant of each component's `whiten`, or one for all."""

    @abstractmethod
    def traces(self, whiten: Floats, ridge: Floats) -> Floats:
        """The trace of ridge times precision of each component, or one for all."""

    @abstractmethod
    def precisions(self, whiten: Floats) -> Floats:
        """The inverses of the covariances."""

    @abstractmethod
    def draw(self, normals: Floats, covariance: Floats) -> Floats:
        """Unit normals as deviations from the mean of a component with this covariance."""

    # ------------------------------------------------------------ between types and units

    @abstractmethod
    def matrices(self, covariances: Floats, k: int) -> Floats:
        """The covariances as k full matrices."""

    @abstractmethod
    def of_matrices(self, matrices: Floats, weights: Floats) -> Floats:
        """The covariances of this type nearest to k full matrices."""

    @abstractmethod
    def scaled(self, covariances: Floats, factor: Floats) -> Floats:
        """Covariances of columns multiplied by `factor`."""

    @abstractmethod
    def scaled_whiten(self, whiten: Floats, factor: Floats) -> Floats:
        """`whiten` for rows that are still to be multiplied by `factor`."""

    @abstractmethod
    def invert(self, precisions: Floats) -> Floats:
        """Covariances from precisions; ParameterError unless they are precisions."""

    # ------------------------------------------------------------ what follows from these

    def n_parameters(self, k: int) -> int:
        """How many numbers are free: weights, means and covariances."""
        return self.n_free(k) + k * self.d + k - 1

    def stacked(self, covariances: Floats) -> Floats:
        """One covariance for each component, or a single one if they share it."""
        return covariances[None] if self.shared else covariances

    def take(self, covariances: Floats, which: NDArray[Any]) -> Floats:
        """The covariances of some components."""
        return covariances if self.shared else covariances[which]

    def packed(self, whiten: Floats, k: int) -> Floats:
        """`whiten` in the kernel's layout."""
        return whiten

    def components(
        self,
        weights: Floats,
        means: Floats,
        whiten: Floats,
        pivot: Floats,
        dtype: np.dtype[Any],
        *,
        ridge: Floats | None = None,
        scatter: Scatter = "none",
        narrow: bool = True,
        gaps: bool = False,
    ) -> Components | GapComponents:
        """What rows are compared with; `ridge` lowers each density as in the fit's lower bound.

        With `gaps`, rows may have missing cells, which are integrated out.
        """
        with np.errstate(divide="ignore"):  # a weight of zero is a log of minus infinity, and that is right
            logs = np.log(weights) + self.log_determinants(whiten) - self.d / 2 * math.log(2 * math.pi)
        if ridge is not None:
            logs = logs - self.traces(whiten, ridge) / 2
        logs = np.ascontiguousarray(np.broadcast_to(logs, weights.shape), dtype=np.float64)
        means, whiten = np.ascontiguousarray(means), np.ascontiguousarray(self.packed(whiten, len(weights)))
        make = GapComponents if gaps else Components
        return make(self.layout, logs, means, whiten, pivot, dtype, scatter=scatter, narrow=narrow)

    def _refuse_precisions(self, should_be: str) -> ParameterError:
        return ParameterError(f"'{self.name} precision' should be {should_be}")
