"""One fitted model and one result of every kind, on a few rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import foldwise as fw
from foldwise.errors import FoldwiseWarning

_RNG = np.random.default_rng(1)
GROUP = np.repeat([0, 1, 2], 20)
ROWS = pd.DataFrame(
    _RNG.normal(size=(60, 4)) + np.array([[0, 0, 0, 0], [6, 0, 3, 0], [0, 7, 3, 0]])[GROUP],
    columns=["height", "weight", "age", "income"],
)
_GAPS = ROWS.to_numpy().copy()
_GAPS[3, 1] = np.nan

MODELS: dict[str, Callable[[], Any]] = {
    "PCA": lambda: fw.PCA(3).fit(ROWS),
    "PCA by a rule": lambda: fw.PCA("parallel", scale=True).fit(ROWS),
    "KMeans": lambda: fw.KMeans(3, scale=True, random_state=0).fit(ROWS),
    "MiniBatchKMeans": lambda: fw.MiniBatchKMeans(3, random_state=0).fit(ROWS),
    "BisectingKMeans": lambda: fw.BisectingKMeans(3, random_state=0).fit(ROWS),
    "KernelKMeans": lambda: fw.KernelKMeans(3, random_state=0).fit(ROWS),
    "GaussianMixture": lambda: fw.GaussianMixture(3, random_state=0, scale=True).fit(ROWS),
    "SoftKMeans": lambda: fw.SoftKMeans(3, random_state=0).fit(ROWS),
    "ClusterEnsemble": lambda: fw.ClusterEnsemble(3, n_base=5, random_state=0).fit(ROWS),
    "FeatureSelector": lambda: fw.FeatureSelector(2).fit(ROWS),
    "LinearAutoencoder": lambda: fw.LinearAutoencoder(2).fit(ROWS),
    "Autoencoder": lambda: fw.Autoencoder(2, max_iter=3, random_state=0).fit(ROWS),
}


def _task() -> Any:
    return fw.choose_components(ROWS, GROUP, estimator=LogisticRegression())


RESULTS: dict[str, Callable[[], Any]] = {
    "ClusterChoice": lambda: fw.choose_clusters(ROWS, 4, random_state=0),
    "ComponentChoice": lambda: fw.choose_components(ROWS),
    "ComponentChoice with a task": _task,
    "TaskScores": lambda: _task().task,
    "Vote": lambda: fw.choose_components(ROWS).votes[0],
    "MixtureChoice": lambda: fw.choose_mixture(ROWS, range(1, 4), random_state=0),
    "Stability": lambda: fw.stability(made("KMeans"), ROWS, n_repeats=10, random_state=0),
    "FittedDistribution": lambda: fw.fit_distribution(ROWS["height"], "normal"),
    "Comparison": lambda: fw.fit_distribution(ROWS["height"]),
    "Goodness": lambda: made("FittedDistribution").goodness_of_fit(),
    "Silhouette": lambda: fw.silhouette(ROWS, GROUP, values=True),
    "ClusterScores": lambda: fw.scores(ROWS, GROUP),
    "InertiaCurve": lambda: fw.inertia_curve(ROWS, range(1, 5), random_state=0),
    "DipTest": lambda: fw.dip_test(ROWS["height"]),
    "CodeComparison": lambda: fw.compare_codes(ROWS, [1, 2], time_budget=5, random_state=0),
    "SelectionPath": lambda: made("FeatureSelector").path_,
    "Coassociation": lambda: made("ClusterEnsemble").coassociation_,
    "ConsensusChoice": lambda: fw.ClusterEnsemble(random_state=0, n_base=5).fit(ROWS).choice_,
    "RankChoice": lambda: made("PCA by a rule").rank_,
    "LabelledMatrix": lambda: made("PCA").loadings_,
    "Recipe": lambda: fw.prepare(ROWS).recipe,
    "Imputed": lambda: fw.impute(fw.PCA(2, missing="model").fit(_GAPS), _GAPS),
    "ensemble of labels": lambda: fw.ClusterEnsemble(3).fit_labels(np.column_stack([GROUP, GROUP[::-1], GROUP])),
}


@cache
def made(name: str) -> Any:
    """The model or the result of this name, made once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FoldwiseWarning)
        return (MODELS | RESULTS)[name]()
