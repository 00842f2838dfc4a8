"""Distances in feature space from sums of kernel values, and who is nearest to whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foldwise.data.block import Floats
from foldwise.kernels.targets import Labels

# Distances that differ by less than this share of their terms are equal: otherwise rounding would decide, and differently for
# the same row among other rows.
_EQUAL, _NONE = 1e-11, 1e-14


@dataclass(frozen=True)
class Means:
    """Cluster means in feature space: their weights and squared lengths. The means themselves are known by their members alone.

    If `normalized`, a row counts in proportion to its degree (the sum of its kernel with all rows), and is divided by it: then
    the sum of distances is a normalised cut (Dhillon, Guan and Kulis 2004).
    """

    weights: Floats
    norms: Floats
    normalized: bool

    def distances(self, sums: Floats, diagonal: Floats | None, degrees: Floats | None = None) -> tuple[Floats, Labels]:
        """|phi(x) - mean|^2 = K(x, x) - 2 sum K(x, member) / weight + |mean|^2 of each row and mean, and the nearest mean.

        Infinite for a cluster without weight; of means that are equally near but for rounding, the one with the lowest number.
        Without the `diagonal`, distances lack K(x, x), which does not change which mean is nearest.
        """
        some = self.weights > 0
        inner = np.divide(sums, self.weights, out=np.zeros_like(sums), where=some)
        if self.normalized:
            scale = self.degrees(sums) if degrees is None else degrees
            assert scale is not None
            inner = inner / scale[:, None]
            diagonal = None if diagonal is None else diagonal / scale**2
        own = np.zeros(len(sums)) if diagonal is None else diagonal
        squares = own[:, None] - 2 * inner + self.norms
        size = np.abs(inner).max(axis=1) if diagonal is None else np.abs(own)
        size = size + float(np.abs(self.norms).max(initial=0.0))
        squares[np.abs(squares) < _NONE * size[:, None]] = 0.0  # mere rounding, which a root would enlarge
        squares[:, ~some] = np.inf
        slack = _EQUAL * size
        nearest = np.argmax(squares <= (squares.min(axis=1) + slack)[:, None], axis=1)
        if diagonal is not None:  # below 0 by rounding; anything lower is real, of a kernel that is not positive
            squares[(squares < 0) & (squares > -slack[:, None])] = 0.0
        return squares, nearest.astype(np.int32)

    def degrees(self, sums: Floats) -> Floats | None:
        """What rows with these sums are divided by, if at all."""
        if not self.normalized:
            return None
        found = sums.sum(axis=1)
        return np.where(found > 0, found, 1.0)  # 0: too far from all rows for float64


def means_of(sums: Floats, members: Labels, weights: Floats, k: int, degrees: Floats | None = None) -> Means:
    """The means of clusters with these members, from `sums` = K @ coefficients(members, weights, k)."""
    total = np.asarray(np.bincount(members, effective_weights(weights, degrees), minlength=k), dtype=np.float64)
    own = np.bincount(members, weights * sums[np.arange(len(members)), members], minlength=k)
    norms = np.divide(own, total**2, out=np.zeros(k), where=total > 0)
    return Means(total, norms, degrees is not None)


def effective_weights(weights: Floats, degrees: Floats | None) -> Floats:
    """How much each row counts."""
    return weights if degrees is None else weights * degrees


def coefficients(members: Labels, weights: Floats, k: int) -> Floats:
    """One column for each cluster, with the weights of its members."""
    out = np.zeros((len(members), k))
    out[np.arange(len(members)), members] = weights
    return out
