"""Choices by held-out cells: how strong the prior of a normal distribution should be, and how many components there are.

Each observed cell is predicted from the others of its row, by a model without that row, and the squared errors (in standard
deviations of the column, at most 3) are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, DenseBlock, Floats
from foldwise.fold import blas
from foldwise.fold.passes import Passes
from foldwise.kernels import missing_cells
from foldwise.kernels.missing_cells import Units
from foldwise.stats.array_sum import ArraySum

STRENGTHS = (0.001, 0.01, 0.1, 1.0, 4.0, 16.0, 64.0)
_MOST_WORK = 2e9  # multiplications; beyond, a sample of rows is looked at


@dataclass(frozen=True)
class Fit:
    """A normal distribution over rows in `units`: its mean, and the expected scatter of the complete rows."""

    units: Units
    prior: Floats
    weight: float
    observed: float
    mean: Floats
    expected: Floats


def choose_strength(
    passes: Passes, fit: Fit, rows: tuple[NDArray[Any], Floats | None] | None
) -> tuple[float, Floats]:
    """The strength of the prior, of those in STRENGTHS, with the least error, and the errors of all.

    A row is taken out of the scatter in closed form (a change of rank one). Other rows' missing cells were filled with its
    help, too; for that it is taken out as if it counted 1 / share^2 times, where `share` is the share of cells observed.
    """
    with blas.single():
        inverses = np.stack([np.linalg.inv(fit.expected + np.diag(one * fit.prior)) for one in STRENGTHS])
    removed = fit.weight / max(fit.weight - 1.0, 1.0) / fit.observed**2
    if rows is not None:
        sums = missing_cells.left_out(*rows, fit.units, fit.mean, inverses, removed)
    else:
        share = _MOST_WORK / (fit.weight * len(STRENGTHS) * len(fit.mean) ** 2)
        task = partial(_errors, fit=fit, inverses=inverses, removed=removed, share=share)
        sums = passes.fold(task).value
    errors = sums[:-1] / max(float(sums[-1]), 1.0)
    best = int(np.argmin(np.where(np.isfinite(errors), errors, np.inf)))
    return STRENGTHS[best], errors


def _errors(block: Block, fit: Fit, inverses: Floats, removed: float, share: float) -> ArraySum:
    block = sample(block, share)
    return ArraySum(
        missing_cells.left_out(block.dense(), block.weights, fit.units, fit.mean, inverses, removed)
    )


def sample(block: Block, share: float) -> Block:
    """About this share of the rows, which depends on what is in a row, not on where it is."""
    if share >= 1.0:
        return block
    keep = hashes(block.dense()) < np.uint64(share * 2.0**64)
    weights = None if block.weights is None else block.weights[keep]
    return DenseBlock(np.ascontiguousarray(block.dense()[keep]), block.start, weights)


def hashes(rows: NDArray[Any]) -> NDArray[np.uint64]:
    """A number for each row that looks random, and is the same for equal rows; missing cells are all alike."""
    wide = np.where(np.isnan(rows), np.nan, rows.astype(np.float64)) + 0.0  # -0 becomes 0
    bits = np.ascontiguousarray(wide).view(np.uint64)
    odd = np.random.default_rng(rows.shape[1]).integers(0, 2**63, rows.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = np.zeros(len(rows), dtype=np.uint64)
    for j in range(rows.shape[1]):
        mixed = (mixed ^ (bits[:, j] >> np.uint64(29)) ^ bits[:, j]) * odd[j]
        mixed ^= mixed >> np.uint64(32)
    return mixed
