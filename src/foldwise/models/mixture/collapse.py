"""Collapsed components: each starts anew where the others explain the rows worst."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.block_grid import rows_per_block
from foldwise.models.mixture.covariance_types import collapsed
from foldwise.models.mixture.fit_data import FitData
from foldwise.models.mixture.starts import Start, broad

_TAIL = 0.01  # of the rows: those with the lowest densities, one of which is the new mean
_SHARE = 0.1  # of an even share: below it a component may be too light
_MANY = 5  # times the rows that determine a covariance: so many are no accident; nor is
_MUCH = 0.5  # of an even share


def ill(
    ground: FitData, counts: Floats, raw: Floats, whiten: Floats | None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which components have too little weight to have a shape or are flat where the data are not; and which of them to leave.

    Too little is less than the rows that determine a covariance, unless there are so few that an even share is hardly more. A
    flat one with many rows, or much of the weight, is no accident: these rows are alike. `whiten` belongs to the covariances
    with their ridge; None if they have none.
    """
    family, k = ground.family, len(counts)
    light = np.asarray(counts < min(family.least_rows(), _SHARE * ground.weight / k))
    flat = np.zeros(k, dtype=bool)
    if family.layout == "tied":  # nobody's own: if it is flat, starting components anew does not help
        if (whiten is None or family.traces(whiten, ground.flat) >= 0.5) and collapsed(
            family, raw[None], ground.flat, ground.whole
        )[0]:
            return np.ones(k, dtype=bool), np.ones(k, dtype=bool)
    else:
        suspects = np.arange(k)
        if whiten is not None:  # the trace is at least the largest share that the ridge has of a variance
            suspects = np.flatnonzero(family.traces(whiten, ground.flat) >= 0.5)
        if len(suspects):
            flat[suspects] = collapsed(family, raw[suspects], ground.flat, ground.whole)
    return light | flat, flat & (counts >= min(_MANY * family.least_rows(), _MUCH * ground.weight / k))


def restarted(ground: FitData, start: Start, bad: NDArray[np.bool_], rng: np.random.Generator) -> Start:
    """The components with the bad ones put on rows that the others explain worst; their shape is that of all rows."""
    family, k = ground.family, len(bad)
    good = ~bad
    others = start.weights[good] / start.weights[good].sum()
    covariances = start.covariances if family.layout == "tied" else start.covariances[good]
    densities = _of_rows_that_count(ground, others, start.means[good], family.whiten(covariances))
    size = max(4 * family.least_rows(), int(_TAIL * ground.n), int(bad.sum()))
    size = min(size, int(np.isfinite(densities).sum()))
    worst = np.argpartition(densities, size - 1)[:size]
    worst = np.sort(worst[np.argsort(densities[worst], kind="stable")])
    means, weights = start.means.copy(), start.weights.copy()
    weights[good] = others * (1.0 - bad.sum() / k)
    weights[bad] = 1.0 / k
    for j in np.flatnonzero(bad):
        means[j] = _row(ground, int(worst[rng.integers(len(worst))]))
    new = start.covariances
    if family.layout != "tied":
        new = start.covariances.copy()
        new[bad] = broad(ground, k)
    return Start(weights, means, new)


def _of_rows_that_count(ground: FitData, weights: Floats, means: Floats, whiten: Floats) -> Floats:
    components = ground.family.components(weights, means, whiten, ground.pivot, ground.dtype)

    def of(block: Block) -> Floats:
        total = np.empty(block.n_rows)
        components.logs(block.unchecked, total, None)
        return total if block.weights is None else np.where(block.weights > 0, total, np.inf)

    return ground.run.rows(of)


def _row(ground: FitData, number: int) -> Floats:
    """One row; only its block is read."""
    wanted = number // rows_per_block(ground.d, ground.dtype)
    for place, piece in enumerate(ground.source.pieces()):
        if place == wanted:
            block = piece.load()
            return np.asarray(block.unchecked[number - block.start], dtype=np.float64)
    raise IndexError(number)
