"""Rows with missing cells (NaN) under a normal distribution, one block at a time.

Rows are seen as z = (x - centre) * inverse - mean, in float64. A column whose `inverse` is 0 has no variance: its z is 0, and
none of its cells counts as missing. `reference.py` specifies each function.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foldwise.kernels import _core

Floats = NDArray[np.float64]


class Units(NamedTuple):
    """By which columns are shifted, and then multiplied."""

    centre: Floats
    inverse: Floats


def complete(
    rows: NDArray[Any], weights: Floats | None, units: Units, mean: Floats, precision: Floats
) -> tuple[Floats, Floats, Floats, float, float]:
    """z with each missing cell at its conditional mean; see `reference.complete_cells`.

    With it come the weights (0 for rows without any observed cell), the weighted sum of the conditional covariances (upper
    triangle), the total weight and the weighted sum of the log determinants of the missing cells' precisions.
    """
    n, d = rows.shape
    out, used, spread = np.empty((n, d)), np.empty(n), np.zeros((d, d))
    given = rows, weights, units.centre, units.inverse, mean, precision
    total, logs = _core.complete(*given, out, used, spread, None, None)
    return out, used, spread, total, logs


def fill(rows: NDArray[Any], units: Units, mean: Floats, precision: Floats) -> tuple[Floats, Floats]:
    """z completed, and the standard deviation of each filled cell in the units of the rows; 0 where observed."""
    out, deviations = np.empty(rows.shape), np.empty(rows.shape)
    _core.complete(rows, None, units.centre, units.inverse, mean, precision, out, None, None, deviations, None)
    return out, deviations


def log_determinants(rows: NDArray[Any], units: Units, mean: Floats, precision: Floats) -> tuple[Floats, Floats]:
    """z completed, and for each row the log determinant of the precision of its missing cells."""
    out, logs = np.empty(rows.shape), np.empty(len(rows))
    _core.complete(rows, None, units.centre, units.inverse, mean, precision, out, None, None, None, logs)
    return out, logs


def left_out(
    rows: NDArray[Any], weights: Floats | None, units: Units, mean: Floats, inverses: Floats, removed: float
) -> Floats:
    """Sums of squared errors of predicting each observed cell from the others of its row, and the number of cells.

    One sum for each matrix of `inverses`; see `reference.left_out_cells`.
    """
    out = np.zeros(len(inverses) + 1)
    _core.left_out(rows, weights, units.centre, units.inverse, mean, inverses, removed, out)
    return out


def em_normal(
    rows: NDArray[Any],
    weights: Floats | None,
    units: Units,
    prior: Floats,
    strength: float,
    mean: Floats,
    covariance: Floats,
    *,
    steps: int,
    tol: float,
) -> tuple[Floats, Floats, Floats, int, bool, float]:
    """Steps of EM for one normal distribution, with extrapolation: mean, covariance and expected scatter after them.

    Then the number of steps, whether the last one changed nothing by more than `tol`, and the objective before it. The prior
    counts as `strength` rows with the diagonal covariance `prior`.
    """
    mean, covariance, expected = mean.copy(), covariance.copy(), np.zeros_like(covariance)
    done, settled, objective = _core.em_normal(
        rows, weights, units.centre, units.inverse, prior, strength, steps, tol, mean, covariance, expected
    )
    return mean, covariance, expected, done, settled, objective
