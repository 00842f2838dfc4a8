"""One variance for each column, the same in all components."""

from __future__ import annotations

import numpy as np

from foldwise.data.block import Floats
from foldwise.models.mixture.covariance.diag import ColumnVariances
from foldwise.stats.responsibility_sums import ResponsibilitySums


class DiagTied(ColumnVariances):
    """All components share a variance for each column."""

    name, label = "diag-tied", "all ellipsoids alike, along the columns"
    special_case_of = ("diag", "tied")
    shared = True

    def shape(self, k: int) -> tuple[int, ...]:
        """(columns,)."""
        return (self.d,)

    def n_free(self, k: int) -> int:
        """One for each column."""
        return self.d

    def least_rows(self) -> int:
        """All rows determine it together."""
        return 1

    def raw(self, sums: ResponsibilitySums) -> Floats:
        """The squares of all components, over all weight."""
        squares = sums.scatter - sums.counts[:, None] * sums.moves**2
        return np.asarray(np.maximum(squares, 0.0).sum(axis=0) / sums.counts.sum())  # less is rounding

    def matrices(self, covariances: Floats, k: int) -> Floats:
        """The same diagonal one for each component."""
        return np.broadcast_to(np.diag(covariances), (k, self.d, self.d))

    def of_matrices(self, matrices: Floats, weights: Floats) -> Floats:
        """The mean of their diagonals by weight."""
        return np.asarray(weights @ np.diagonal(matrices, axis1=1, axis2=2) / weights.sum())

    def packed(self, whiten: Floats, k: int) -> Floats:
        """A line for each component."""
        return np.broadcast_to(whiten, (k, self.d))
