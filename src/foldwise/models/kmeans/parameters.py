"""What each parameter of KMeans may be."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

CONSTRAINTS: dict[str, Any] = {
    "n_clusters": [Interval(Integral, 1, None, closed="left")],
    "init": [StrOptions({"k-means++", "random", "k-means||"}), callable, "array-like"],
    "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "verbose": ["verbose"],
    "random_state": ["random_state"],
    "copy_x": ["boolean"],
    "algorithm": [StrOptions({"auto", "lloyd", "elkan", "bounded"})],
    "search": [StrOptions({"none", "breathing", "split-merge"})],
    "metric": [StrOptions({"euclidean", "cosine"})],
    "scale": ["boolean"],
    "time_budget": [Interval(Real, 0, None, closed="left"), None],
    "checkpoint": [str, os.PathLike, None],
    "n_threads": [Interval(Integral, 1, None, closed="left"), None],
}

BOUNDS = {"auto": "auto", "lloyd": "off", "elkan": "on", "bounded": "on"}
NOT_ABOUT_THE_RESULT = ("algorithm", "checkpoint", "copy_x", "n_threads", "time_budget", "verbose")
