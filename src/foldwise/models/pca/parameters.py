"""What each parameter of PCA may be, and which names mean what."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

CONSTRAINTS: dict[str, Any] = {
    "n_components": [
        Interval(Integral, 0, None, closed="left"),
        Interval(RealNotInt, 0, 1, closed="neither"),
        StrOptions({"mle", "parallel", "gavish-donoho"}),
        None,
    ],
    "copy": ["boolean"],
    "whiten": ["boolean"],
    "svd_solver": [StrOptions({"auto", "full", "covariance_eigh", "arpack", "randomized", "krylov", "power"})],
    "tol": [Interval(Real, 0, None, closed="left")],
    "iterated_power": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
    "n_oversamples": [Interval(Integral, 1, None, closed="left")],
    "power_iteration_normalizer": [StrOptions({"auto", "QR", "LU", "none"})],
    "random_state": ["random_state"],
    "scale": ["boolean"],
    "ddof": [Interval(Real, 0, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left"), None],
    "time_budget": [Interval(Real, 0, None, closed="left"), None],
    "checkpoint": [str, os.PathLike, None],
    "n_threads": [Interval(Integral, 1, None, closed="left"), None],
}

# What a partial fit works out when it is first asked for it: all that `_finish` sets.
WORKED_OUT = frozenset(
    (
        "column_variances_",
        "components_",
        "explained_variance_",
        "explained_variance_ratio_",
        "mean_",
        "n_components_",
        "n_iter_",
        "n_samples_",
        "noise_variance_",
        "outcome_",
        "rank_",
        "residuals_",
        "scale_",
        "singular_values_",
        "total_weight_",
        "trace_",
    )
)
NOT_ABOUT_THE_RESULT = ("checkpoint", "n_threads", "time_budget", "max_iter", "random_state")
