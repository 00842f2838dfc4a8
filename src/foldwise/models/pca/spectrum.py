"""What every PCA solver is asked for and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

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


class Summary(Protocol):
    """A statistic that knows the columns' weight, rows, means and centred sums of squares."""

    @property
    def weight(self) -> float:
        """Total weight."""

    @property
    def rows(self) -> int:
        """Rows with weight."""

    @property
    def mean(self) -> Floats:
        """The mean of each column."""

    @property
    def squares(self) -> Floats:
        """The centred sum of squares of each column."""


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
    floor: float  # variances up to here are nothing but this solver's rounding
    dropped: float | None  # the sum of the variances beyond these, where it is known better than by subtraction
    outcome: Outcome
    resumed_at: int

    @classmethod
    def of(
        cls,
        about: Summary,
        plan: Plan,
        *,
        variances: Floats,
        directions: Floats,
        residuals: Floats,
        floor: float,
        dropped: float | None = None,
        outcome: Outcome | None = None,
        resumed_at: int = 0,
    ) -> Spectrum:
        """What a solver found, with what any statistic of the columns tells."""
        scale = spread(about.weight, about.squares, plan)
        column_variances = about.squares / (about.weight - plan.ddof)
        return cls(
            weight=about.weight,
            rows=about.rows,
            mean=about.mean,
            scale=scale,
            total_variance=check(about.weight, about.rows, about.squares, plan),
            column_variances=column_variances if scale is None else column_variances / scale**2,
            variances=variances,
            directions=np.ascontiguousarray(directions),
            residuals=residuals,
            floor=floor,
            dropped=dropped,
            outcome=outcome or Outcome(Reason.CONVERGED, 1, 0.0),
            resumed_at=resumed_at,
        )

    def settled(self) -> Spectrum:
        """The same with all that is free settled by convention, alike from every solver: null directions and signs."""
        return self._with_canonical_null()._signed()

    def _with_canonical_null(self) -> Spectrum:
        """Directions without variance replaced by ones that only depend on those with variance.

        Any basis of that space would do, and every solver finds another one by rounding. Ours takes the coordinate axes that
        stick out most, in turn, made orthogonal; among axes that are equal to one part in a million the first.
        """
        k, d = self.directions.shape
        kept = min(int(np.count_nonzero(self.variances > self.floor)), max(self.rows - 1, 0))
        if kept == k or (k - kept) * k * d > _MOST_WORK:
            return self
        directions = self.directions.copy()
        outside = 1.0 - np.einsum("ij,ij->j", directions[:kept], directions[:kept])
        for i in range(kept, k):
            axis = int(np.argmax(outside >= outside.max() * (1 - 1e-6)))
            found, new = directions[:i], np.zeros(d)
            new[axis] = 1.0
            for _ in range(2):  # once leaves rounding errors where little of the axis is left
                new -= found.T @ (found @ new)
                new /= np.linalg.norm(new)
            directions[i] = new
            outside = outside - new**2
        # All of the space at right angles to what was kept has variances below the floor, so S v is no longer than that.
        residuals = np.concatenate([self.residuals[:kept], np.full(k - kept, self.floor)])
        return replace(self, directions=directions, residuals=residuals)

    def _signed(self) -> Spectrum:
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


EPS = float(np.finfo(np.float64).eps)
_LEAST_VARIANCE = (
    1e-290  # below, digits of squares are lost; a column that varies has at least the least positive number
)
_MOST_WORK = 20e9  # multiplications spent on directions without variance


def lengths(columns: Floats) -> Floats:
    """The length of each column, also where the squares of its numbers would overflow or vanish."""
    size = float(max(columns.max(initial=0.0), -columns.min(initial=0.0)))
    if 1e-150 < size < 1e150:
        return np.asarray(np.sqrt(np.einsum("ij,ij->j", columns, columns)))
    return np.asarray(np.linalg.norm(columns / size, axis=0) * size) if size > 0 else np.zeros(columns.shape[1])


def spread(weight: float, squares: Floats, plan: Plan) -> Floats | None:
    """The standard deviation by which each column is divided, or None; a constant column is divided by one."""
    if not plan.scale:
        return None
    deviation = np.sqrt(squares / (weight - plan.ddof))
    return np.where(deviation > 0, deviation, 1.0)


def check(weight: float, rows: int, squares: Floats, plan: Plan) -> float:
    """The total variance, if there is one that a float64 can hold."""
    if weight <= plan.ddof:
        raise DataError(
            f"Found array with {rows} sample(s) (total weight {weight:g}) while a minimum of 2 is required by PCA: "
            f"a variance with ddof={plan.ddof:g} cannot be formed",
            advice="Weights mean repetition: scale them to add up to the number of rows"
            if rows > 1
            else "Give more rows",
        )
    variances = squares / (weight - plan.ddof)
    total = float(variances.sum())
    column = int(np.argmax(squares))
    lost = (squares > 0) & (variances < _LEAST_VARIANCE)
    if (plan.scale and lost.any()) or (lost.any() and total < _LEAST_VARIANCE):
        raise DataError(
            "values differ by so little that their variance is lost below the range of float64",
            column=int(np.argmax(lost)),
            advice="Multiply the data by a constant first",
        )
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
