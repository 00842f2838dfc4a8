"""One covariance matrix for all components."""

from __future__ import annotations

import numpy as np

from foldwise.data.block import Floats
from foldwise.models.mixture.covariance.matrices import MatrixType
from foldwise.stats.responsibility_sums import ResponsibilitySums


class Tied(MatrixType):
    """All components share one matrix."""

    name, label = "tied", "all ellipsoids alike"
    special_case_of = ("full",)
    shared = True
    scatter = layout = "tied"

    def shape(self, k: int) -> tuple[int, ...]:
        """(columns, columns)."""
        return self.d, self.d

    def n_free(self, k: int) -> int:
        """One triangle."""
        return self.d * (self.d + 1) // 2

    def least_rows(self) -> int:
        """All rows determine it together."""
        return 1

    def raw(self, sums: ResponsibilitySums) -> Floats:
        """The pooled scatter, over all weight."""
        return np.asarray((sums.scatter - (sums.moves * sums.counts[:, None]).T @ sums.moves) / sums.counts.sum())

    def with_ridge(self, raw: Floats, ridge: Floats) -> Floats:
        """On the diagonal."""
        return np.asarray((raw + raw.T) / 2 + np.diag(ridge))

    def formed(self, matrices: Floats) -> Floats:
        """Any will do."""
        return matrices

    def matrices(self, covariances: Floats, k: int) -> Floats:
        """The same for each component."""
        return np.broadcast_to(covariances, (k, self.d, self.d))

    def of_matrices(self, matrices: Floats, weights: Floats) -> Floats:
        """Their mean by weight."""
        return np.asarray(np.einsum("k,kij->ij", weights / weights.sum(), matrices))
