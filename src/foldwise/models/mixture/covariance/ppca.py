"""A few latent directions and equal noise in all others: mixtures of probabilistic PCA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from foldwise.data.block import Floats
from foldwise.models.mixture.covariance.base import TooFewColumnsError
from foldwise.models.mixture.covariance.full import OwnMatrices


@dataclass(frozen=True)
class PPCA(OwnMatrices):
    """`n_latent` directions with variances of their own (Tipping and Bishop 1999)."""

    n_latent: int

    name, label = "ppca", "each a few directions and noise"
    compares_columns = True

    @classmethod
    def of_columns(cls, d: int, n_latent: int | None) -> Self:
        """Two directions unless it is said; at least one other must be left for the noise."""
        if d < 2 or (n_latent or 1) >= d:
            raise TooFewColumnsError(
                f"{d} columns are too few for ppca: n_latent={n_latent} needs more than that many columns. "
                "Use covariance_type='full'."
            )
        return cls(d, min(2 if n_latent is None else n_latent, d - 1))

    def n_free(self, k: int) -> int:
        """Orthogonal directions with lengths, and the noise, for each component."""
        q = self.n_latent
        return k * (self.d * q - q * (q - 1) // 2 + 1)

    def least_rows(self) -> int:
        """Enough to span the directions, and one for the noise."""
        return self.n_latent + 2

    def formed(self, matrices: Floats) -> Floats:
        """Each with its largest variances kept and the others made equal."""
        return np.stack([_ppca(one, self.n_latent) for one in matrices])


def _ppca(covariance: Floats, q: int) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    d = len(values)
    noise = float(values[: d - q].mean())
    top = vectors[:, d - q :]
    found = (top * (values[d - q :] - noise)) @ top.T
    found[np.diag_indices(d)] += noise
    return np.asarray((found + found.T) / 2)
