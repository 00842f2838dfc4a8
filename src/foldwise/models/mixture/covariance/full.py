"""A covariance matrix for each component."""

from __future__ import annotations

import numpy as np

from foldwise.data.block import Floats
from foldwise.models.mixture.covariance.matrices import MatrixType
from foldwise.stats.responsibility_sums import ResponsibilitySums


class OwnMatrices(MatrixType):
    """Each component has a matrix of its own."""

    scatter = layout = "full"

    def shape(self, k: int) -> tuple[int, ...]:
        """(components, columns, columns)."""
        return k, self.d, self.d

    def raw(self, sums: ResponsibilitySums) -> Floats:
        """The scatter of each component, over its weight."""
        return sums.scatter / sums.safe_counts[:, None, None] - sums.moves[:, :, None] * sums.moves[:, None, :]

    def with_ridge(self, raw: Floats, ridge: Floats) -> Floats:
        """On the diagonals."""
        ridged = raw + np.diag(ridge)
        return self.formed((ridged + ridged.transpose(0, 2, 1)) / 2)

    def matrices(self, covariances: Floats, k: int) -> Floats:
        """They are."""
        return covariances

    def of_matrices(self, matrices: Floats, weights: Floats) -> Floats:
        """Each by itself."""
        return self.formed(matrices)


class Full(OwnMatrices):
    """Any matrix."""

    name, label = "full", "each an ellipsoid of its own"

    def n_free(self, k: int) -> int:
        """A triangle for each component."""
        return k * self.d * (self.d + 1) // 2

    def least_rows(self) -> int:
        """Enough to span all columns."""
        return self.d + 1

    def formed(self, matrices: Floats) -> Floats:
        """Any will do."""
        return matrices
