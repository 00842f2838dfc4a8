"""A variance for each component and column."""

from __future__ import annotations

import numpy as np

from foldwise.data.block import Floats
from foldwise.models.mixture.covariance.diagonals import DiagonalType, squares_about_means
from foldwise.stats.responsibility_sums import ResponsibilitySums


class ColumnVariances(DiagonalType):
    """A variance for each column, of each component or of all together."""

    layout = "diag"

    def with_ridge(self, raw: Floats, ridge: Floats) -> Floats:
        """Column by column."""
        return raw + ridge

    def variances(self, covariances: Floats) -> Floats:
        """They are."""
        return self.stacked(covariances)

    def collapsed(self, raw: Floats, ridge: Floats, whole: Floats) -> list[bool]:
        """In any column."""
        return [bool(((one < ridge) & (whole > 4 * ridge)).any()) for one in raw]

    def broad(self, whole: Floats, share: float, ridge: Floats) -> Floats:
        """The variances of all rows."""
        return whole * share + ridge

    def log_determinants(self, whiten: Floats) -> Floats:
        """Sums of logs."""
        return np.asarray(np.log(whiten).sum(axis=-1))

    def traces(self, whiten: Floats, ridge: Floats) -> Floats:
        """Sums over the columns."""
        return np.asarray(whiten**2 @ ridge)

    def scaled(self, covariances: Floats, factor: Floats) -> Floats:
        """By the square of the factor."""
        return covariances * factor * factor

    def scaled_whiten(self, whiten: Floats, factor: Floats) -> Floats:
        """By the factor."""
        return whiten * factor


class Diag(ColumnVariances):
    """Each component has a variance for each column."""

    name, label = "diag", "each an ellipsoid along the columns"
    special_case_of = ("full",)

    def shape(self, k: int) -> tuple[int, ...]:
        """(components, columns)."""
        return k, self.d

    def n_free(self, k: int) -> int:
        """All of them."""
        return k * self.d

    def least_rows(self) -> int:
        """Two have a distance."""
        return 2

    def raw(self, sums: ResponsibilitySums) -> Floats:
        """The squares of each component, over its weight."""
        return squares_about_means(sums)

    def matrices(self, covariances: Floats, k: int) -> Floats:
        """Diagonal ones."""
        return np.asarray(covariances[:, :, None] * np.eye(self.d))

    def of_matrices(self, matrices: Floats, weights: Floats) -> Floats:
        """Their diagonals."""
        return np.array(np.diagonal(matrices, axis1=1, axis2=2))
