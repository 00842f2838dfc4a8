"""The last fit as a start: for the same rows, or for others."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from foldwise.data.block import Floats
from foldwise.errors import ParameterError
from foldwise.models.mixture.fit_data import FitData
from foldwise.models.mixture.starts import Start

_ADVICE = "Set warm_start=False for a new fit."


def start(model: Any, ground: FitData, mean: Floats | None, scale: Floats | None) -> tuple[Start, float]:
    """Where the last fit ended, and the lower bound that it had, if it was for the same rows; else NaN.

    Bounds of different rows cannot be compared: a lower one is no sign that nothing is left to do.
    """
    family, k, d = ground.family, model.n_components, ground.d
    kind, seen = getattr(model, "_fitted", (model.covariance_type, ""))
    if model.means_.shape != (k, d):
        raise ParameterError(
            f"warm_start=True goes on from {len(model.means_)} components in {model.means_.shape[1]} columns, "
            f"not {k} in {d}. {_ADVICE}"
        )
    shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[family.layout]
    if kind != model.covariance_type or model.covariances_.shape != shape:
        raise ParameterError(
            f"warm_start=True goes on from covariance_type={kind!r}, not {model.covariance_type!r}. {_ADVICE}"
        )
    if (model.scale_ is None) != (scale is None):
        raise ParameterError(
            f"warm_start=True goes on from scale={model.scale_ is not None}, not {scale is not None}. {_ADVICE}"
        )
    means, covariances = model.means_, model.covariances_
    if scale is not None and mean is not None:  # other rows are standardised otherwise
        ratio = np.asarray(model.scale_ / scale)
        means = means * ratio + (model.mean_ - mean) / scale
        if family.layout == "spherical":
            ratio = np.full(d, np.sqrt((ratio**2).mean()))
        covariances = family.scaled(covariances, ratio)
    before = float("nan")
    if seen == about(model, ground):
        before = float(model.lower_bound_) - float(np.log(ground.factor).sum())
    return Start(model.weights_, means * ground.factor, family.scaled(covariances, ground.factor)), before


def about(model: Any, ground: FitData) -> str:
    """What a lower bound is a bound of: the rows and the ridge."""
    digest = hashlib.sha256(f"{model.reg_covar!r} {model.n_latent} {ground.n}".encode())
    extent, columns = ground.extent, ground.extent.columns
    for part in (columns.weight, columns.centre, columns.squares, extent.low, extent.high):
        digest.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
    return digest.hexdigest()
