"""The E-step of a normal distribution over rows with missing cells: what the rows would add up to, were they complete."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foldwise import kernels
from foldwise.data.block import Block, Floats
from foldwise.kernels import missing_cells
from foldwise.kernels.missing_cells import Units
from foldwise.stats.moments import Moments


@dataclass(frozen=True)
class CompletedMoments:
    """Moments of rows whose missing cells are at their conditional means, from the mean of the model, and what they leave out.

    `spread` is the weighted sum of the conditional covariances (upper triangle), `logs` that of the log determinants of the
    precisions of the missing cells. A row without any observed cell says nothing and does not count.
    """

    moments: Moments
    spread: Floats
    logs: float

    @classmethod
    def empty(cls, n_columns: int) -> CompletedMoments:
        """The identity of `merge`."""
        return cls(Moments.empty(n_columns), np.zeros((n_columns, n_columns)), 0.0)

    @classmethod
    def of(cls, block: Block, units: Units, mean: Floats, precision: Floats) -> CompletedMoments:
        """The completed moments of a block's rows, in these units, under the normal distribution given."""
        rows, weights, spread, _, logs = missing_cells.complete(block.dense(), block.weights, units, mean, precision)
        weight, centre, scatter = kernels.scatter(rows, weights)
        return cls(Moments(weight, int(np.count_nonzero(weights)), centre, scatter), spread, logs)

    def merge(self, other: CompletedMoments) -> CompletedMoments:
        """The completed moments of both sets of rows together."""
        return CompletedMoments(self.moments.merge(other.moments), self.spread + other.spread, self.logs + other.logs)

    @property
    def expected(self) -> Floats:
        """The expected scatter matrix of the complete rows about their mean, both triangles."""
        return symmetric(self.moments.scatter + self.spread)

    @property
    def shift(self) -> Floats:
        """By how much the mean moves."""
        return np.asarray(self.moments.centre[0] + self.moments.centre[1])

    def squares(self, precision: Floats) -> float:
        """The weighted sum of the squared Mahalanobis distances of the observed cells."""
        about = symmetric(self.moments.scatter) + self.moments.weight * np.outer(self.shift, self.shift)
        return float(np.einsum("ij,ij->", precision, about))


def symmetric(upper: Floats) -> Floats:
    """Both triangles of a matrix whose upper one is given."""
    above = np.triu(upper, 1)
    return np.asarray(above + above.T + np.diag(np.diagonal(upper)))
