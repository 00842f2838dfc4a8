"""PCA of rows with missing cells: EM over the observed cells, then the directions of the covariance that it expects."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.errors import DataError, ParameterError
from foldwise.fold import blas
from foldwise.fold.iterate import iterate
from foldwise.fold.passes import Passes
from foldwise.kernels.missing_cells import Units
from foldwise.models.pca.covariance import from_moments
from foldwise.models.pca.normal_model import NormalModel, inverse, inverse_of
from foldwise.models.pca.observed_em import ObservedEM, Problem
from foldwise.models.pca.rank import RankChoice
from foldwise.models.pca.solver import SolverOptions
from foldwise.models.pca.spectrum import Spectrum
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.moments import Moments
from foldwise.stats.observed import ObservedColumns
from foldwise.stats.two_part_mean import moved

NAME = "EM over the observed cells"  # in the manifest
_MAX_ITER = 1000
_MOST_COLUMNS = 16_384
_CONSTANT = 1e-6  # the prior variance of a constant column among others in common units: positive, and next to nothing


@dataclass(frozen=True)
class ObservedFit:
    """The directions, the normal distribution behind them, the strength of its prior, and the number of components."""

    spectrum: Spectrum
    normal: NormalModel
    strength: float
    error: float  # root mean square of held-out cells, in standard deviations of their columns; NaN if not looked at
    rank: RankChoice | None


def fit_observed(
    passes: Passes, observed: ObservedColumns | None, options: SolverOptions, n_components: Any
) -> ObservedFit:
    """Fit the rows of `passes`, of which NaN is missing, given what is observed of the columns (None: all)."""
    d = passes.source.n_columns
    if passes.source.sparse:
        raise ParameterError(
            "n_components='held-out' needs dense rows; use 'parallel', 'mle' or 'gavish-donoho', or X.toarray()"
        )
    if d > _MOST_COLUMNS:
        raise DataError(
            f"missing='model' forms a matrix of columns by columns, and there are {d}",
            advice="Use missing='mean', or fewer columns",
        )
    if observed is None:
        observed = passes.fold(ObservedColumns.of)
    counted = isinstance(n_components, Integral) and n_components < d - 1 and options.indicators is None
    latent = int(n_components) if counted else None
    if latent is not None and latent > observed.rows:
        raise ParameterError(f"n_components={latent} must be between 0 and min(n_samples, n_features)={observed.rows}")
    scale, prior = _working_units(observed, options, latent)
    problem = Problem(
        units=Units(observed.mean, inverse_of(scale)),
        prior=prior,
        cells=float(observed.weight.sum()),
        rows=observed.rows,
        components=latent,
        **({"tolerance": options.tol} if options.tol else {}),
    )
    if options.checkpoint is not None:
        options.checkpoint.bind(observed.weight, observed.centre, observed.squares)
    em = ObservedEM(passes, problem)
    state, outcome, resumed_at = iterate(
        em.start,
        em.step,
        em.done,
        max_iter=options.max_iter or _MAX_ITER,
        time_budget=options.time_budget,
        checkpoint=options.checkpoint,
    )
    if not state["steps"]:  # stopped before the first step: a model needs one
        state, _ = em.step(state)
    state = em.reached(state)
    centre = moved(observed.centre, scale * state["mean"])
    moments = Moments(
        float(state["weight"]), observed.rows - observed.blank, centre, state["expected"] * np.outer(scale, scale)
    )
    spectrum = replace(from_moments(moments, options, np.float64), outcome=outcome, resumed_at=resumed_at)
    with blas.single(d**3):
        precision, _ = inverse(em.best(state["expected"], float(state["weight"]), float(state["strength"])))
    rank = None
    if n_components == "held-out":
        scaled = options.scale or options.indicators is not None
        own = np.ones(d) if scaled else np.where(scale > 0, scale / _typical(scale), 1.0)
        rank = em.choose_components(state, own, precision)
    errors = state["errors"]
    error = float(np.sqrt(errors.min())) if errors.size else float("nan")
    return ObservedFit(spectrum, NormalModel(moments.mean, scale, precision), float(state["strength"]), error, rank)


def _working_units(observed: ObservedColumns, options: SolverOptions, latent: int | None) -> tuple[Floats, Floats]:
    """By what columns are divided for the EM (0: constant), and the prior variances in these units.

    A full covariance that shrinks to the observed variances is the same model in any units: each column has its own. The noise
    of a probabilistic PCA is equal in all columns, in the units of the PCA.
    """
    # Raises where variances leave the range of float64, or there is none.
    weight = float(observed.weight.max())
    options.total_variance(ColumnMoments(weight, observed.rows - observed.blank, observed.centre, observed.squares))
    variances = observed.squares / observed.weight
    deviations = np.sqrt(variances)
    if latent is None or options.scale:
        return deviations, np.ones(len(deviations))
    unit = _typical(deviations)
    prior = np.where(deviations > 0, (deviations / unit) ** 2, _CONSTANT)
    return np.where(deviations > 0, unit, 0.0), prior


def _typical(deviations: Floats) -> float:
    """The root mean square of those that are not zero; 1 if all are."""
    some = deviations[deviations > 0]
    return float(some.max() * np.sqrt(np.mean((some / some.max()) ** 2))) if some.size else 1.0
