"""Declarations of the parameters shared by models with cluster centres."""

from __future__ import annotations

from foldwise.models.kmeans.geometry import GEOMETRIES
from foldwise.models.kmeans.local_search import SEARCHES
from foldwise.models.kmeans.seeding import STARTS
from foldwise.models.parameters import IGNORED, Parameter, one_of, shared, words

PARAMETERS: dict[str, Parameter] = {
    **shared("n_clusters", "n_init", "max_iter", "tol", "verbose", "random_state", "scale"),
    **shared("time_budget", "checkpoint", "n_threads"),
    "init": Parameter((words(*STARTS), callable, "array-like")),
    "copy_x": IGNORED,
    "algorithm": one_of("auto", "lloyd", "elkan", "bounded", affects_result=False),
    "search": one_of(*SEARCHES),
    "metric": one_of(*GEOMETRIES),
}

BOUNDS = {"auto": "auto", "lloyd": "off", "elkan": "on", "bounded": "on"}  # by algorithm
