"""Types whose components lie along the columns: what they have in common."""

from __future__ import annotations

import numpy as np

from foldwise.data.block import Floats
from foldwise.fold.passes import Passes
from foldwise.models.mixture.covariance.base import CovarianceType
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.responsibility_sums import ResponsibilitySums


class DiagonalType(CovarianceType):
    """Covariances as variances."""

    scatter = "diag"

    def of_all_rows(self, passes: Passes) -> tuple[Floats, Floats]:
        """The mean and the variances of all rows."""
        columns = passes.fold(ColumnMoments.of)
        return columns.mean, columns.squares / columns.weight

    def whiten(self, covariances: Floats) -> Floats:
        """Inverse standard deviations."""
        if not (covariances > 0).all():
            raise np.linalg.LinAlgError("a variance is not above zero")
        return np.asarray(1.0 / np.sqrt(covariances))

    def precisions(self, whiten: Floats) -> Floats:
        """Inverse variances."""
        return whiten**2

    def draw(self, normals: Floats, covariance: Floats) -> Floats:
        """By standard deviations."""
        return normals * np.sqrt(covariance)

    def sound(self, covariances: Floats, ridge: Floats, share: float) -> Floats:
        """Sums of squares always are."""
        return covariances

    def is_rounding(self, covariances: Floats, whiten: Floats) -> bool:
        """No variance is the difference of larger numbers."""
        return False

    def invert(self, precisions: Floats) -> Floats:
        """One by one."""
        if (precisions <= 0).any():
            raise self._refuse_precisions("positive")
        return np.asarray(1.0 / precisions)


def squares_about_means(sums: ResponsibilitySums) -> Floats:
    """The variances of each component in each column."""
    return np.maximum(sums.scatter / sums.safe_counts[:, None] - sums.moves**2, 0.0)  # less is rounding
