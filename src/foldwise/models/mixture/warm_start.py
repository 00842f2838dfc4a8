"""The last fit as a start: for the same rows, or for others."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.errors import ParameterError
from foldwise.models.mixture.fit_data import FitData
from foldwise.models.mixture.start import Start

_ADVICE = "Set warm_start=False for a new fit."


def start(model: Any, data: FitData, mean: Floats | None, scale: Floats | None) -> tuple[Start, float]:
    """Where the last fit ended, and the lower bound that it had, if it was for the same rows; else NaN.

    Bounds of different rows cannot be compared: a lower one does not mean that nothing is left to do.
    """
    covariance, factor = data.covariance, data.units.factor
    k, d = model.n_components, covariance.d
    kind, seen = getattr(model, "_fitted", (model.covariance_type, ""))
    if model.means_.shape != (k, d):
        raise ParameterError(
            f"warm_start=True goes on from {len(model.means_)} components in {model.means_.shape[1]} columns, "
            f"not {k} in {d}. {_ADVICE}"
        )
    if kind != model.covariance_type or model.covariances_.shape != covariance.shape(k):
        raise ParameterError(
            f"warm_start=True goes on from covariance_type={kind!r}, not {model.covariance_type!r}. {_ADVICE}"
        )
    if (model.scale_ is None) != (scale is None):
        raise ParameterError(
            f"warm_start=True goes on from scale={model.scale_ is not None}, not {scale is not None}. {_ADVICE}"
        )
    means, covariances = model.means_, model.covariances_
    if scale is not None and mean is not None:  # other rows are standardised differently
        ratio = np.asarray(model.scale_ / scale)
        means = means * ratio + (model.mean_ - mean) / scale
        covariances = covariance.scaled(covariances, ratio)
    before = float("nan")
    if seen == about(model, data):
        before = float(model.lower_bound_) - data.units.log_volume
    return Start(model.weights_, means * factor, covariance.scaled(covariances, factor)), before


def about(model: Any, data: FitData) -> str:
    """What a lower bound is a bound of: the rows and the ridge."""
    digest = hashlib.sha256(f"{model.reg_covar!r} {model.n_latent} {data.extent.count}".encode())
    for part in figures(data):
        digest.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
    return digest.hexdigest()


def figures(data: FitData) -> tuple[Any, ...]:
    """What tells these rows from others."""
    extent, columns = data.extent, data.extent.columns
    return columns.weight, columns.centre, columns.squares, extent.low, extent.high
