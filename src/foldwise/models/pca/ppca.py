"""PCA as a probability model: the kept directions with their variances, the same noise in all others."""

from __future__ import annotations

import numpy as np

from foldwise.data.block import Block, Floats
from foldwise.errors import DataError
from foldwise.models.pca.normal_model import NormalModel


def covariance(directions: Floats, variances: Floats, noise: float, scale: Floats | None) -> Floats:
    """V' diag(l - noise) V + noise I, in the units of the data."""
    matrix = (directions.T * (variances - noise)) @ directions
    matrix[np.diag_indices_from(matrix)] += noise
    return matrix if scale is None else matrix * np.outer(scale, scale)


def precision(directions: Floats, variances: Floats, noise: float, scale: Floats | None, floor: float = 0.0) -> Floats:
    """The inverse of `covariance`; variances up to `floor` are nothing but rounding, and such a model has no density."""
    k, d = directions.shape
    least = min(float(variances.min(initial=np.inf)), noise if k < d else np.inf)
    if not least > floor:
        raise DataError(
            "the model has directions without any variance, so it has no density",
            advice="Keep fewer components, so that some noise is left for the others",
        )
    if k < d:
        matrix = (np.eye(d) - (directions.T * ((variances - noise) / variances)) @ directions) / noise
    else:
        matrix = (directions.T / variances) @ directions
    return matrix if scale is None else matrix / np.outer(scale, scale)


def normal(directions: Floats, variances: Floats, noise: float, mean: Floats, scale: Floats | None) -> NormalModel:
    """The model as a distribution that fills missing cells; one without noise has next to none."""
    d = len(mean)
    largest = max(float(variances.max(initial=0.0)), noise)
    if largest == 0.0:
        return NormalModel(mean, np.zeros(d), np.eye(d))
    unit, least = np.sqrt(largest), 1e-12
    variances, noise = np.maximum(variances / largest, least), max(noise / largest, least)
    matrix = precision(directions, variances, noise, None)
    return NormalModel(mean, np.full(d, unit) if scale is None else unit * scale, matrix)


def log_constant(precision: Floats) -> float:
    """The part of the log-density that is the same for all rows."""
    _, log_determinant = np.linalg.slogdet(precision)
    return float((log_determinant - len(precision) * np.log(2 * np.pi)) / 2)


def log_density(block: Block, centre: Floats, precision: Floats, constant: float) -> Floats:
    """The log-density of each row."""
    rows = block.times(np.eye(len(centre)), centre)
    return np.asarray(constant - np.einsum("ij,ij->i", rows @ precision, rows) / 2)
