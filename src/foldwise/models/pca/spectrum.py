"""What every PCA solver is asked for and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from foldwise.data.block import Floats
from foldwise.errors import DataError, ParameterError
from foldwise.fold.checkpoint import Checkpoint
from foldwise.fold.outcome import Outcome, Reason


@dataclass(frozen=True)
class Plan:
    """The question: how many leading directions (None: all), of which matrix, and how hard to try."""

    n_components: int | None = None
    solver: str = "auto"
    scale: bool = False
    ddof: float = 1.0
    tol: float = 0.0
    max_iter: int | None = None
    seed: int = 0
    time_budget: float | None = None
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True)
class Spectrum:
    """The answer: leading variances (falling) and unit directions (rows), with a certificate.

    `residuals[i]` is the norm of S v - l v; by it, a true eigenvalue of S lies within that distance of `variances[i]`.
    """

    weight: float
    rows: int
    mean: Floats
    scale: Floats | None
    total_variance: float
    column_variances: Floats
    variances: Floats
    directions: Floats
    residuals: Floats
    outcome: Outcome = field(default_factory=lambda: Outcome(Reason.CONVERGED, 1, 0.0))
    resumed_at: int = 0

    def signed(self) -> Spectrum:
        """The same with the sign convention applied.

        Of each direction the largest loading is positive; among loadings that are equal to one part in a million the first
        counts, so that rounding, which differs between solvers, does not decide.
        """
        sizes = np.abs(self.directions)
        if not sizes.size:
            return self
        leading = np.argmax(sizes >= sizes.max(axis=1, keepdims=True) * (1 - 1e-6), axis=1)
        negative = self.directions[np.arange(len(leading)), leading] < 0
        return replace(self, directions=np.where(negative[:, None], -self.directions, self.directions))


def lengths(columns: Floats) -> Floats:
    """The length of each column, also where the squares of its numbers would overflow or vanish."""
    size = float(np.abs(columns).max(initial=0.0))
    return np.asarray(np.linalg.norm(columns / size, axis=0) * size) if size > 0 else np.zeros(columns.shape[1])


def spread(weight: float, squares: Floats, plan: Plan) -> Floats | None:
    """The standard deviation by which each column is divided, or None; a constant column is divided by one."""
    if not plan.scale:
        return None
    deviation = np.sqrt(squares / (weight - plan.ddof))
    return np.where(deviation > 0, deviation, 1.0)


def column_variances(weight: float, squares: Floats, scale: Floats | None, plan: Plan) -> Floats:
    """The variance of each column, after scaling."""
    variances = squares / (weight - plan.ddof)
    return variances if scale is None else variances / scale**2


def check(weight: float, rows: int, squares: Floats, plan: Plan) -> float:
    """The total variance, if there is one that a float64 can hold."""
    if rows < 2 or weight <= plan.ddof:
        raise DataError(
            f"Found array with {rows} sample(s) (total weight {weight:g}) while a minimum of 2 is required by PCA: "
            f"a variance with ddof={plan.ddof:g} cannot be formed",
            advice="Give more rows",
        )
    total = float(squares.sum()) / (weight - plan.ddof)
    column = int(np.argmax(squares))
    if not np.isfinite(total):
        raise DataError(
            "values are so large that their variance overflows float64",
            column=column,
            advice="Divide the data by a constant first",
        )
    if plan.scale:
        return float(np.count_nonzero(squares))
    return total


def components(plan: Plan, rows: int, weight: float, n_columns: int) -> int:
    """How many directions to find: as many as asked for, or all that these rows, repeated by their weights, can have."""
    most = min(max(rows, int(weight)), n_columns)
    asked = most if plan.n_components is None else plan.n_components
    if not 0 <= asked <= most:
        raise ParameterError(
            f"n_components={asked} must be between 0 and min(n_samples, n_features)={most} with "
            f"svd_solver={plan.solver!r}"
        )
    return asked
