"""What each parameter of GaussianMixture and SoftKMeans may be, and whether it affects the result."""

from __future__ import annotations

from dataclasses import replace

from foldwise.models.mixture.covariance import COVARIANCE_TYPES
from foldwise.models.parameters import ARRAY_OR_NONE, IGNORED, SHARED, Parameter, number, one_of, shared, whole, words

_COMMON = shared("tol", "random_state", "scale", "time_budget", "checkpoint", "n_threads") | {"n_init": whole()}

MIXTURE: dict[str, Parameter] = {
    **_COMMON,
    **shared("missing", "prepare"),
    "n_components": whole(),
    "covariance_type": one_of(*COVARIANCE_TYPES),
    "reg_covar": number(0, None, "left", words("auto", "total")),
    "max_iter": whole(0),
    "init_params": one_of("kmeans", "random", "random_from_data", "k-means++"),
    "search": one_of("split-merge", "none"),
    "weights_init": ARRAY_OR_NONE,
    "means_init": ARRAY_OR_NONE,
    "precisions_init": ARRAY_OR_NONE,
    "n_latent": whole(1, None),
    "warm_start": IGNORED,  # where it goes on from is part of a checkpoint's key
    "verbose": SHARED["verbose"],
    "verbose_interval": replace(whole(), affects_result=False),
}

SOFT: dict[str, Parameter] = {
    **_COMMON,
    **shared("n_clusters", "max_iter"),
    "beta": number(0, None, "neither", words("anneal")),
    "init": Parameter((words("k-means++", "random", "k-means||"), callable, "array-like")),
}
