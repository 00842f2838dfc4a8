"""What each parameter of GaussianMixture and SoftKMeans may be."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

_SHARED: dict[str, Any] = {
    "tol": [Interval(Real, 0, None, closed="left")],
    "n_init": [Interval(Integral, 1, None, closed="left")],
    "random_state": ["random_state"],
    "scale": ["boolean"],
    "time_budget": [Interval(Real, 0, None, closed="left"), None],
    "checkpoint": [str, os.PathLike, None],
    "n_threads": [Interval(Integral, 1, None, closed="left"), None],
}

MIXTURE: dict[str, Any] = {
    **_SHARED,
    "n_components": [Interval(Integral, 1, None, closed="left")],
    "covariance_type": [StrOptions({"full", "tied", "diag", "spherical", "ppca"})],
    "reg_covar": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    "max_iter": [Interval(Integral, 0, None, closed="left")],
    "init_params": [StrOptions({"kmeans", "random", "random_from_data", "k-means++"})],
    "weights_init": ["array-like", None],
    "means_init": ["array-like", None],
    "precisions_init": ["array-like", None],
    "n_latent": [Interval(Integral, 1, None, closed="left"), None],
    "warm_start": ["boolean"],
    "verbose": ["verbose"],
    "verbose_interval": [Interval(Integral, 1, None, closed="left")],
}

SOFT: dict[str, Any] = {
    **_SHARED,
    "n_clusters": [Interval(Integral, 1, None, closed="left")],
    "beta": [Interval(Real, 0, None, closed="neither"), StrOptions({"anneal"})],
    "init": [StrOptions({"k-means++", "random", "k-means||"}), callable, "array-like"],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
}

NOT_ABOUT_THE_RESULT = ("checkpoint", "n_threads", "time_budget", "verbose", "verbose_interval", "warm_start")


def is_whole(value: Any) -> bool:
    """Whether it is a whole number, and no truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)
