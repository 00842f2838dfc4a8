"""One variance for each component, the same in all directions."""

from __future__ import annotations

import numpy as np

from foldwise.data.block import Floats
from foldwise.models.mixture.covariance.diagonals import DiagonalType, squares_about_means
from foldwise.stats.responsibility_sums import ResponsibilitySums


class Spherical(DiagonalType):
    """Each component has one variance."""

    name, label = "spherical", "each a sphere of its own size"
    special_case_of = ("diag",)
    compares_columns = True
    layout = "spherical"

    def shape(self, k: int) -> tuple[int, ...]:
        """(components,)."""
        return (k,)

    def n_free(self, k: int) -> int:
        """One for each component."""
        return k

    def least_rows(self) -> int:
        """Two have a distance."""
        return 2

    def raw(self, sums: ResponsibilitySums) -> Floats:
        """The mean over the columns of the squares of each component, over its weight."""
        return np.asarray(squares_about_means(sums).mean(axis=1))

    def with_ridge(self, raw: Floats, ridge: Floats) -> Floats:
        """The mean of it."""
        return np.asarray(raw + ridge.mean())

    def variances(self, covariances: Floats) -> Floats:
        """The same in all columns."""
        return np.repeat(covariances[:, None], self.d, axis=1)

    def collapsed(self, raw: Floats, ridge: Floats, whole: Floats) -> list[bool]:
        """In all columns alike."""
        mean = float(whole.mean())
        return [bool(one < ridge.mean() and mean > 4 * ridge.mean()) for one in raw]

    def broad(self, whole: Floats, share: float, ridge: Floats) -> Floats:
        """The mean variance of all rows."""
        return np.asarray((whole * share + ridge).mean())

    def log_determinants(self, whiten: Floats) -> Floats:
        """The same for each column."""
        return np.asarray(self.d * np.log(whiten))

    def traces(self, whiten: Floats, ridge: Floats) -> Floats:
        """The mean ridge for each column."""
        return np.asarray(whiten**2 * self.d * ridge.mean())

    def matrices(self, covariances: Floats, k: int) -> Floats:
        """Multiples of the identity."""
        return np.asarray(self.variances(covariances)[:, :, None] * np.eye(self.d))

    def of_matrices(self, matrices: Floats, weights: Floats) -> Floats:
        """The means of their diagonals."""
        return np.asarray(np.diagonal(matrices, axis1=1, axis2=2).mean(axis=1))

    def scaled(self, covariances: Floats, factor: Floats) -> Floats:
        """By the square of the factor; by the mean square, if columns have different ones."""
        one = factor[0] if (factor == factor[0]).all() else np.sqrt((factor**2).mean())
        return np.asarray(covariances * one * one)

    def scaled_whiten(self, whiten: Floats, factor: Floats) -> Floats:
        """By the one factor."""
        return np.asarray(whiten * factor[0])
