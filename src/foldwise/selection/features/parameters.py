"""What each parameter of FeatureSelector may be."""

from __future__ import annotations

from numbers import Integral

from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt

from foldwise.models.parameters import Parameter, one_of, shared, whole, words
from foldwise.selection.features.search import SEARCHES

CRITERIA = ("variance-explained", "cluster", "wrapper")
CLUSTER_SCORES = ("between-variance", "silhouette")

PARAMETERS: dict[str, Parameter] = {
    "n_features": Parameter(
        (Interval(Integral, 1, None, closed="left"), Interval(RealNotInt, 0, 1, closed="neither"), words("auto"))
    ),
    "search": one_of(*SEARCHES),
    "criterion": Parameter((words(*CRITERIA), callable)),
    "n_clusters": whole(1, None),
    "estimator": Parameter((HasMethods(["fit"]), None)),
    "cv": Parameter(("cv_object",)),
    "scoring": Parameter((str, callable, None)),
    **shared("scale", "missing", "prepare", "random_state", "time_budget", "checkpoint", "n_threads"),
}
