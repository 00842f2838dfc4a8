"""Rows of the same shape without clusters: what clusters of a table are compared with.

Each column is drawn independently from the distribution with one mode that is nearest to its own: along the principal axes,
which keeps the covariance, or along the columns, which keeps the shape of a box where the axes are arbitrary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.fold import blas
from foldwise.stats.signs import signed

KINDS = ("principal axes", "columns")
_POINTS, _MODES = 128, 40
_EQUAL = 1e-9  # relative: of modes that do equally well but for rounding, the first is taken


@dataclass(frozen=True)
class OneGroup:
    """Distributions with one mode along some axes, about a centre; `axes` are those of the columns if None."""

    centre: Floats
    axes: Floats | None  # axis x column
    quantiles: tuple[tuple[Floats, Floats], ...]  # values and distribution function, for each axis
    gaps: NDArray[np.bool_] | None = None  # where cells were missing in the rows it was learnt from

    @classmethod
    def of(cls, rows: NDArray[np.floating], weights: Floats | None, kind: str) -> OneGroup:
        """The shape of some rows; with missing cells (NaN), along the columns only."""
        wide = rows.astype(np.float64)
        weight = np.ones(len(rows)) if weights is None else weights
        gaps = np.isnan(wide)
        pivot = np.nanmedian(wide, axis=0)  # near the rows: differences keep their digits
        wide -= pivot
        if kind == "columns":
            found = [_one_mode(wide[~gaps[:, j], j], weight[~gaps[:, j]]) for j in range(wide.shape[1])]
            return cls(pivot, None, tuple(found), gaps if gaps.any() else None)
        mean = weight @ wide / weight.sum()
        wide -= mean
        with blas.single():
            _, vectors = np.linalg.eigh((wide.T * weight) @ wide)
            axes = signed(vectors.T)  # the same numbers are drawn along an axis whichever way round it was found
            scores = wide @ axes.T
        found = [_one_mode(scores[:, j], weight) for j in range(scores.shape[1])]
        return cls(pivot + mean, axes, tuple(found))

    def sample(self, n_rows: int, rng: np.random.Generator, dtype: np.dtype[np.floating]) -> NDArray[np.floating]:
        """Rows without clusters, as many as asked for."""
        out = np.empty((n_rows, len(self.quantiles)))
        for j, (values, distribution) in enumerate(self.quantiles):
            out[:, j] = np.interp(rng.random(n_rows), distribution, values)
        if self.axes is not None:
            with blas.single():
                out = out @ self.axes
        out += self.centre
        if self.gaps is not None:
            out[self.gaps[rng.integers(0, len(self.gaps), n_rows)]] = np.nan
        return out.astype(dtype)


def _one_mode(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The distribution with one mode nearest to that of the values, at some of their quantiles.

    Its distribution function is convex up to the mode and concave after it: to the left the greatest convex function below
    the empirical one, to the right the least concave one above. Of several modes the one with the least distance is taken, as
    for the dip statistic (Hartigan and Hartigan 1985).
    """
    x, f = _quantiles(values, weights)
    if len(x) < 3:
        return (x, f) if len(x) > 1 else (np.repeat(x, 2), np.array([0.0, 1.0]))
    best, least = f, np.inf
    for mode in np.unique(np.linspace(0, len(x) - 1, _MODES).astype(np.intp)):
        found = np.concatenate([_bent(x[: mode + 1], f[: mode + 1], True), _bent(x[mode:], f[mode:], False)[1:]])
        apart = float(np.abs(found - f).max())
        if apart < least * (1 - _EQUAL):
            best, least = found, apart
    mean = float(weights @ values / weights.sum())
    spread = float(np.sqrt(weights @ np.square(values - mean) / weights.sum()))
    return _with_moments(x, best, mean, spread), best


def _with_moments(x: Floats, f: Floats, mean: float, spread: float) -> Floats:
    """The values stretched so that the distribution, uniform between them, has this mean and standard deviation."""
    low, high, share = x[:-1], x[1:], np.diff(f)
    own = float(share @ (low + high) / 2)
    low, high = low - own, high - own
    variance = float(share @ (low**2 + low * high + high**2) / 3)
    return np.asarray(mean + (x - own) * (spread / np.sqrt(variance) if variance > 0 else 1.0))


def _quantiles(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Distinct values, and the share of the weight up to about each."""
    some = weights > 0
    order = np.argsort(values[some], kind="stable")
    x, upto = values[some][order], np.cumsum(weights[some][order])
    shares = np.linspace(0.0, 1.0, min(_POINTS, len(x)) + 1)
    x = x[np.minimum(np.searchsorted(upto, shares * upto[-1]), len(x) - 1)]
    last = np.append(np.diff(x) > 0, True)
    x, f = x[last], shares[last]
    f = (f - f[0]) / (f[-1] - f[0]) if len(x) > 1 else f
    return x, f


def _bent(x: Floats, f: Floats, convex: bool) -> Floats:
    """The greatest convex function below the points, or the least concave one above; its slopes are a monotone fit."""
    if len(x) < 3:
        return f
    from scipy.optimize import isotonic_regression

    wide = np.diff(x)
    slopes = isotonic_regression(np.diff(f) / wide, weights=wide, increasing=convex).x
    return np.concatenate([f[:1], f[0] + np.cumsum(slopes * wide)])
