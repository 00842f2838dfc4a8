"""Collapsed components: each starts anew where the others explain the rows worst."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.kernels.mixture import Components
from foldwise.kernels.mixture_gaps import GapComponents
from foldwise.models.mixture.covariance import CovarianceType
from foldwise.models.mixture.covariance.diag import Diag
from foldwise.models.mixture.fit_data import FitData, Ridge
from foldwise.models.mixture.start import Start

_TAIL = 0.01  # of the rows: those with the lowest densities, one of which is the new mean
_SHARE = 0.1  # of an even share: below it a component may be too light
_MANY = 2  # times the rows that determine a covariance: so many are no accident; nor is
_MUCH = 0.5  # of an even share
_ROOM = 2  # times the rows that determine a covariance: where an even share has fewer, flat components are to be expected


def crowded(covariance: CovarianceType, weight: float, k: int) -> bool:
    """Whether there are so few rows that some components cannot but be flat: starting these anew would not help."""
    return not covariance.shared and weight / k < _ROOM * covariance.least_rows()


def least_weight(covariance: CovarianceType, counts: Floats) -> float:
    """The weight below which the rows of a component say too little about its shape to start from it."""
    weight, k = float(counts.sum()), len(counts)
    return _SHARE * weight / k if crowded(covariance, weight, k) else covariance.least_rows()


def ill(
    data: FitData, ridge: Ridge, counts: Floats, raw: Floats, whiten: Floats | None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which components have too little weight to have a shape or are flat where the data are not; and which of them to leave.

    Too little is less than the rows that determine a covariance, unless there are so few that an even share is hardly more. A
    flat one with many rows, or much of the weight, is no accident: these rows are alike. Nor is it where even shares are
    `crowded`. `whiten` belongs to the covariances with their ridge; None if they have none.
    """
    covariance, k = data.covariance, len(counts)
    least = covariance.least_rows()
    light = np.asarray(counts < min(least, _SHARE * data.weight / k))
    each = covariance.stacked(raw)
    suspects = np.arange(len(each))
    if whiten is not None:  # the trace is at least the largest share that the ridge has of a variance
        suspects = np.flatnonzero(np.atleast_1d(covariance.traces(whiten, ridge.flat)) >= 0.5)
    flat = np.zeros(len(each), dtype=bool)
    if len(suspects):
        flat[suspects] = covariance.collapsed(each[suspects], ridge.flat, data.whole)
    if covariance.shared:  # nobody's own: if it is flat, starting components anew does not help
        all_flat = np.full(k, flat[0])
        return light | all_flat, all_flat
    much = 0.0 if crowded(covariance, data.weight, k) else min(_MANY * least, _MUCH * data.weight / k)
    return light | flat, flat & ~light & (counts >= much)


def restarted(data: FitData, ridge: Ridge, start: Start, bad: NDArray[np.bool_], rng: np.random.Generator) -> Start:
    """The components with the bad ones put on rows that the others explain worst; their shape is that of all rows."""
    covariance, k, good = data.covariance, len(bad), ~bad
    others = start.weights[good] / start.weights[good].sum()
    whiten = covariance.whiten(covariance.take(start.covariances, good))
    compared = covariance.components(others, start.means[good], whiten, data.pivot, data.dtype, gaps=data.gaps)
    densities = data.passes.rows(_DensityIfCounted(compared, _of_all(data, ridge)))
    size = max(4 * covariance.least_rows(), int(_TAIL * data.extent.count), int(bad.sum()))
    size = min(size, int(np.isfinite(densities).sum()))
    worst = np.argpartition(densities, size - 1)[:size]
    worst = worst[np.argsort(densities[worst], kind="stable")]  # whatever order the rows came in
    means, weights = start.means.copy(), start.weights.copy()
    weights[good] = others * (1.0 - bad.sum() / k)
    weights[bad] = 1.0 / k
    means[bad] = data.complete.take([int(worst[rng.integers(len(worst))]) for _ in range(int(bad.sum()))])
    return Start(weights, means, data.broadened(start.covariances, bad, ridge))


def _of_all(data: FitData, ridge: Ridge) -> Components | GapComponents | None:
    """The distribution of all rows, if cells are missing."""
    if data.one is None:
        return None
    kind, one = Diag(data.covariance.d), data.one
    whiten = kind.whiten((np.diagonal(one.matrix) + ridge.flat)[None])
    return kind.components(np.ones(1), one.mean[None], whiten, data.pivot, data.dtype, gaps=True)


@dataclass(frozen=True)
class _DensityIfCounted:
    """The log density of each row of a block; infinity for rows of weight 0, which are not to be explained.

    Densities of rows with different missing cells can be compared only relative to those that `whole` has for them.
    """

    components: Components | GapComponents
    whole: Components | GapComponents | None

    def __call__(self, block: Block) -> Floats:
        total = np.empty(block.n_rows)
        self.components.logs(block.unchecked, total, None)
        if self.whole is not None:
            of_all = np.empty(block.n_rows)
            self.whole.logs(block.unchecked, of_all, None)
            total = np.where(np.isnan(block.unchecked).all(axis=1), np.inf, total - of_all)
        return total if block.weights is None else np.where(block.weights > 0, total, np.inf)
