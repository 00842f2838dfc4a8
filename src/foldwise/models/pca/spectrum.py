"""What a PCA solver answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.fold.outcome import Outcome, Reason
from foldwise.models.pca.solver import ColumnSummary, SolverOptions, dimensions
from foldwise.prepare.encode import IndicatorGroup
from foldwise.stats.signs import signed

_MOST_WORK = 20e9  # multiplications spent on directions without variance


@dataclass(frozen=True)
class Spectrum:
    """Leading variances (falling) and unit directions (rows), with a certificate.

    `residuals[i]` is the norm of S v - l v, plus what the arithmetic that formed S can have changed: a true eigenvalue of the
    covariance of the rows lies within that distance of `variances[i]`.
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
    errors: Floats  # by how much variances can be off: by their residuals, or by less where the solver knows it
    ddof: float = 1.0
    indicators: tuple[IndicatorGroup, ...] | None = None
    algorithm: str | None = None  # what found them, if another solver than the one that was asked,
    notes: tuple[str, ...] = ()  # and why

    @classmethod
    def of(
        cls,
        columns: ColumnSummary,
        options: SolverOptions,
        *,
        variances: Floats,
        directions: Floats,
        residuals: Floats,
        rounding: float | Floats,
        floor: float,
        errors: Floats | None = None,
        dropped: float | None = None,
        outcome: Outcome | None = None,
        resumed_at: int = 0,
    ) -> Spectrum:
        """What a solver found, with what any statistic of the columns says; `rounding` is added to the residuals."""
        scale = options.deviations(columns)
        column_variances = columns.squares / (columns.weight - options.ddof)
        return cls(
            weight=columns.weight,
            rows=columns.rows,
            mean=columns.mean,
            scale=scale,
            total_variance=options.total_variance(columns),
            column_variances=column_variances if scale is None else column_variances / scale**2,
            variances=variances,
            directions=np.ascontiguousarray(directions),
            residuals=residuals + rounding,
            floor=floor,
            dropped=dropped,
            outcome=outcome or Outcome(Reason.CONVERGED, 1, 0.0),
            resumed_at=resumed_at,
            errors=(residuals if errors is None else np.minimum(errors, residuals)) + rounding,
            ddof=options.ddof,
            indicators=options.indicators,
        )

    @classmethod
    def of_model(cls, pca: Any) -> Spectrum:
        """What a fitted PCA has kept of it."""
        return cls(
            weight=pca.total_weight_,
            rows=pca.n_samples_,
            mean=pca.mean_,
            scale=pca.scale_,
            total_variance=float(pca.column_variances_.sum()),
            column_variances=pca.column_variances_,
            variances=pca.explained_variance_,
            directions=pca.components_,
            residuals=pca.residuals_,
            errors=getattr(pca, "variance_errors_", pca.residuals_),
            floor=pca.variance_floor_,
            dropped=None,
            outcome=pca.outcome_,
            resumed_at=0,
            indicators=getattr(pca, "indicators_", None),
        )

    @property
    def whole(self) -> bool:
        """Whether no direction with variance is left out."""
        rows = max(float(self.rows), self.weight)  # repeated rows count as often as they are
        return len(self.variances) >= min(rows, dimensions(len(self.mean), self.indicators))

    def settled(self) -> Spectrum:
        """The same after conventions have settled what is arbitrary, alike for every solver: null directions and signs."""
        directions, residuals, errors = self._with_canonical_null()
        return replace(self, directions=signed(directions), residuals=residuals, errors=errors)

    def _with_canonical_null(self) -> tuple[Floats, Floats, Floats]:
        """Directions without variance replaced by ones that only depend on those with variance; residuals and errors to match.

        Any basis of that space would do, and every solver finds another one by rounding. Ours takes the coordinate axes that
        stick out most, in turn, made orthogonal; among axes that are equal to one part in a million the first.
        """
        k, d = self.directions.shape
        kept = min(int(np.count_nonzero(self.variances > self.floor)), max(self.rows - 1, 0))
        if kept == k or (k - kept) * k * d > _MOST_WORK:
            return self.directions, self.residuals, self.errors
        directions = self.directions.copy()
        outside = 1.0 - np.einsum("ij,ij->j", directions[:kept], directions[:kept])
        for i in range(kept, k):
            axis = int(np.argmax(outside >= outside.max() * (1 - 1e-6)))
            found, new = directions[:i], np.zeros(d)
            new[axis] = 1.0
            for _ in range(2):  # once leaves rounding errors where little of the axis is left
                new -= found.T @ (found @ new)
                new /= math.sqrt(new @ new)
            directions[i] = new
            outside = outside - new**2
        # All of the space at right angles to what was kept has variances below the floor, so S v is no longer than that.
        residuals, errors = self.residuals.copy(), self.errors.copy()
        residuals[kept:] = errors[kept:] = self.floor
        return directions, residuals, errors
