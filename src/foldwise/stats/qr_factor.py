"""The triangular factor of the centred rows: all that an SVD needs, without forming a covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foldwise.data.block import Block, Floats
from foldwise.kernels.reference import LEAST_POSITIVE
from foldwise.stats.two_part_mean import distance, moved


@dataclass(frozen=True)
class QRFactor:
    """Total weight, number of rows with non-zero weight, centre, and R from a QR factorisation: R'R = the scatter.

    The singular values of R are those of the centred rows to full precision; computed from R'R, small ones would lose half
    their digits. Two factors merge by factorising them stacked, with one row for the distance between their means.
    """

    weight: float
    rows: int
    centre: Floats
    factor: Floats

    @classmethod
    def empty(cls, n_columns: int) -> QRFactor:
        """The identity of `merge`."""
        return cls(0.0, 0, np.zeros((2, n_columns)), np.zeros((0, n_columns)))

    @classmethod
    def of(cls, block: Block) -> QRFactor:
        """The factor of a block's rows about their own mean."""
        weight, centre, _ = block.column_moments()
        if weight == 0.0:
            return cls.empty(block.n_columns)
        rows = (block.dense().astype(np.float64) - centre[0]) - centre[1]
        if block.weights is not None:
            rows *= np.sqrt(block.weights)[:, None]
        return cls(weight, block.rows_with_weight, centre, np.asarray(np.linalg.qr(rows, mode="r")))

    def merge(self, other: QRFactor) -> QRFactor:
        """The factor of both sets of rows together."""
        if other.weight == 0.0:
            return self
        if self.weight == 0.0:
            return other
        weight = self.weight + other.weight
        delta = distance(self.centre, other.centre)
        between = np.sqrt(self.weight * other.weight / weight) * delta
        factor = np.asarray(np.linalg.qr(np.vstack([self.factor, other.factor, between[None]]), mode="r"))
        return QRFactor(weight, self.rows + other.rows, moved(self.centre, delta * (other.weight / weight)), factor)

    @property
    def mean(self) -> Floats:
        """The mean of each column."""
        return np.asarray(self.centre[0])

    @property
    def squares(self) -> Floats:
        """The centred sum of squares of each column; never zero if the column varies."""
        squares = np.einsum("ij,ij->j", self.factor, self.factor)
        return np.asarray(np.where((squares == 0) & self.factor.any(axis=0), LEAST_POSITIVE, squares))
