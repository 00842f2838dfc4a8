"""Where the variances of pure noise end: the largest eigenvalue of the covariance of columns that have no relation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foldwise.data.block import Floats

# Quantiles of the Tracy-Widom law of order 1 (Bejan 2005): how the largest eigenvalue of noise varies about the edge.
TRACY_WIDOM = {0.5: -1.26857, 0.95: 0.97931, 0.99: 2.02345}


@dataclass(frozen=True)
class NoiseEdge:
    """The largest eigenvalue of a noise covariance is about `edge` + `spread` times a Tracy-Widom variable."""

    edge: float
    spread: float
    slope: float  # the c of El Karoui (2007): minus the Stieltjes transform of the companion law at the edge

    @classmethod
    def of(cls, variances: Floats, freedom: float, counts: Floats | None = None) -> NoiseEdge:
        """The edge of the generalised Marchenko-Pastur law of columns with these variances (El Karoui 2007).

        `freedom` is the number of independent rows. `counts` says how many columns each variance stands for (None: one).

        >>> NoiseEdge.of(np.ones(25), 100).edge  # with equal variances: (1 + sqrt(25 / 100)) ** 2
        2.25
        """
        from scipy.optimize import brentq

        counts = np.ones(len(variances)) if counts is None else counts
        some = (variances > 0) & (counts > 0)
        if not some.any() or freedom <= 0:
            return cls(0.0, 0.0, np.inf)
        top = float(variances[some].max())
        sizes, counts = variances[some] / top, counts[some]

        def excess(u: float) -> float:
            return float(counts @ (sizes * u / (1 - sizes * u)) ** 2) - freedom

        # All columns as large as the largest, and the largest alone, bracket the solution.
        most, least = np.sqrt(freedom / counts.sum()), np.sqrt(freedom / counts[sizes == 1.0].sum())
        low, high = most / (1 + most), least / (1 + least)
        if high - low < 1e-15 or excess(low) >= 0:
            u = low
        else:
            u = float(brentq(excess, low, high, xtol=1e-15, rtol=1e-14)) if excess(high) > 0 else high
        parts = sizes * u / (1 - sizes * u)
        edge = (1 + float(counts @ parts) / freedom) / u
        spread = np.cbrt(1 + float(counts @ parts**3) / freedom) / u / freedom ** (2 / 3)
        return cls(float(edge) * top, float(spread) * top, float(u / top))

    def level(self, chance: float) -> float:
        """The level that the largest eigenvalue of noise stays below with this chance: 0.5, 0.95 or 0.99."""
        return max(self.edge + self.spread * TRACY_WIDOM[chance], 0.0)
