"""PCA as a probability model: the kept directions with their variances, the same noise in all others."""

from __future__ import annotations

import numpy as np

from foldwise.data.block import Block, Floats
from foldwise.errors import DataError


def covariance(directions: Floats, variances: Floats, noise: float, scale: Floats | None) -> Floats:
    """V' diag(l - noise) V + noise I, in the units of the data."""
    matrix = (directions.T * (variances - noise)) @ directions
    matrix[np.diag_indices_from(matrix)] += noise
    return matrix if scale is None else matrix * np.outer(scale, scale)


def precision(directions: Floats, variances: Floats, noise: float, scale: Floats | None) -> Floats:
    """The inverse of `covariance`, without inverting a d x d matrix where there is noise."""
    d = directions.shape[1]
    if noise > 0:
        shares = (variances - noise) / np.where(variances > 0, variances, 1.0)
        matrix = (np.eye(d) - (directions.T * shares) @ directions) / noise
    else:
        try:
            matrix = np.asarray(np.linalg.inv(covariance(directions, variances, noise, None)), dtype=np.float64)
        except np.linalg.LinAlgError:
            raise DataError(
                "the model has directions without any variance, so it has no density",
                advice="Keep fewer components, so that some noise is left for the others",
            ) from None
    return matrix if scale is None else matrix / np.outer(scale, scale)


def log_constant(precision: Floats) -> float:
    """The part of the log-density that is the same for all rows."""
    _, log_determinant = np.linalg.slogdet(precision)
    return float((log_determinant - len(precision) * np.log(2 * np.pi)) / 2)


def log_density(block: Block, centre: Floats, precision: Floats, constant: float) -> Floats:
    """The log-density of each row."""
    rows = block.times(np.eye(len(centre)), centre)
    return np.asarray(constant - np.einsum("ij,ij->i", rows @ precision, rows) / 2)
