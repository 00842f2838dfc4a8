"""`fw.report`: the report on any fitted model or result."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from sklearn.utils.validation import check_is_fitted

from foldwise.data.source import Source
from foldwise.errors import DataError, ParameterError
from foldwise.models.base import open_as_given
from foldwise.models.fitted_rows import rows_of_fit
from foldwise.report.html import write_html
from foldwise.report.in_notebook_models import brief_of_model
from foldwise.report.results import result_report
from foldwise.report.values import Note, Part, Report


def report(
    model_or_result: Any, X: Any = None, path: str | os.PathLike[str] | None = None, *, sample_weight: Any = None
) -> Report:
    """What is known about a fitted model or a result, written as a web page to `path` if one is given.

    Printed, it is text; a notebook shows it as a page. A report on a model reads the rows of the fit again. They are found
    by themselves while they exist (a file, an array or a frame that is still there); else give them as `X`, with
    `sample_weight` if the fit had weights.

    >>> import numpy as np, foldwise as fw
    >>> x = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 9.0], [9.0, 8.0]])
    >>> print(fw.report(fw.KMeans(2, random_state=0).fit(x)).title)
    2 clusters of 4 rows
    """
    made = _made(model_or_result, X, sample_weight)
    made = replace(made, parts=_without_hints(made.parts))
    if path is not None:
        write_html(made, path)
    return made


def _made(found: Any, X: Any, weights: Any) -> Report:
    for kind in type(found).__mro__:
        name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("foldwise.")
        if name in _MODELS:
            check_is_fitted(found)
            grown = brief_of_model(found) if not hasattr(found, "manifest_") else None
            return grown or _MODELS[name](found, X, weights)  # of parts that were not kept, only the model is left
        if name in _WITH_MODELS:
            return _WITH_MODELS[name](found, X, weights)
    told = result_report(found)
    if told is not None:
        return told
    raise ParameterError(
        f"fw.report takes a fitted model, or a result of Foldwise such as that of fw.choose_clusters, not "
        f"{type(found).__name__}. For a table as you have it, use fw.look or fw.explore."
    )


def _without_hints(parts: Sequence[Part]) -> list[Part]:
    """Without what to try next on the command line, from which nobody came."""
    return [part for part in parts if not (isinstance(part, Note) and part.only == "text" and "hint: " in part.text)]


# ---------------------------------------------------------------- rows


def rows_for(model: Any, X: Any = None, sample_weight: Any = None) -> Source:
    """The rows of the fit as a source: `X` if it is given, else what the model remembers."""
    n_rows = None
    if X is None:
        X, sample_weight, n_rows = rows_of_fit(model)
        if isinstance(X, (str, os.PathLike)) and not _is_there(X):
            raise DataError(f"{os.fspath(X)}, which the model was fitted to, is not there any more", advice=_GIVE)
    source = open_as_given(model, X, sample_weight)
    labels = getattr(model, "labels_", None)
    wanted = n_rows if labels is None else len(labels)
    if wanted is not None and source.n_rows is not None and source.n_rows != wanted:
        raise DataError(
            f"there are {source.n_rows:,} rows, but {wanted:,} in the fit", where=source.where, advice=_GIVE
        )
    return source


_GIVE = 'Give the rows of the fit: model.report("r.html", X), or fw.report(model, X)'


def _is_there(place: str | os.PathLike[str]) -> bool:
    name = os.fspath(place)
    return os.path.exists(name) or any(mark in name for mark in "*?[:")  # a pattern, or a table in a database


# ---------------------------------------------------------------- models


def _pca(model: Any, X: Any, weights: Any) -> Report:
    from foldwise.report.pca import pca_report

    return pca_report(model, rows_for(model, X, weights))


def _kmeans(model: Any, X: Any, weights: Any) -> Report:
    from foldwise.report.cluster import cluster_report

    return cluster_report(model, rows_for(model, X, weights))


def _clusters(model: Any, X: Any, weights: Any) -> Report:
    from foldwise.report.groups import groups_report

    return groups_report(model, rows_for(model, X, weights))


def _mixture(model: Any, X: Any, weights: Any) -> Report:
    from foldwise.report.mixture import mixture_report

    return mixture_report(model, rows_for(model, X, weights))


def _ensemble(model: Any, X: Any, weights: Any) -> Report:
    from foldwise.report.ensemble import ensemble_report
    from foldwise.report.groups import Labels

    if model.estimators_ is None:  # of labels: nothing else is known of the rows
        return ensemble_report(model, cast(Source, Labels(model.manifest_.source)))
    return ensemble_report(model, rows_for(model, X, weights))


def _selector(model: Any, X: Any, weights: Any) -> Report:
    from foldwise.report.select import select_report

    return select_report(model, rows_for(model, X, weights))


def _autoencoder(model: Any, X: Any, weights: Any) -> Report:
    from foldwise.report.autoencoder import autoencoder_report

    return autoencoder_report(model, rows_for(model, X, weights))


def _linear_autoencoder(model: Any, X: Any, weights: Any) -> Report:
    from foldwise.report.groups import linear_report

    return linear_report(model)


def _exploration_model(model: Any, X: Any, weights: Any) -> Report:
    """That on its clusters or, if there are none, on its components."""
    return _made(model.pca_ if model.cluster_model_ is None else model.cluster_model_, X, weights)


def _mixture_choice(choice: Any, X: Any, weights: Any) -> Report:
    """With the best model if its rows are there, else the choice alone."""
    from foldwise.report.mixture import mixture_report

    try:
        source = rows_for(choice.best_model, X, weights)
    except DataError:
        if X is not None:
            raise
        alone = result_report(choice)
        assert alone is not None
        return alone
    return mixture_report(choice.best_model, source, choice)


def _exploration(found: Any, X: Any, weights: Any) -> Report:
    import importlib

    made: Report = importlib.import_module("foldwise.report.explore").explore_report(found)
    return made


_MODELS: dict[str, Callable[[Any, Any, Any], Report]] = {
    "models.pca.estimator.PCA": _pca,
    "models.kmeans.estimator.KMeans": _kmeans,
    "models.kmeans.minibatch.MiniBatchKMeans": _clusters,
    "models.kmeans.bisecting.BisectingKMeans": _clusters,
    "models.kernel.estimator.KernelKMeans": _clusters,
    "models.mixture.soft_kmeans.SoftKMeans": _clusters,
    "models.mixture.estimator.GaussianMixture": _mixture,
    "models.ensemble.estimator.ClusterEnsemble": _ensemble,
    "selection.features.estimator.FeatureSelector": _selector,
    "models.autoencoder.estimator.Autoencoder": _autoencoder,
    "models.autoencoder.linear.LinearAutoencoder": _linear_autoencoder,
    "models.exploration.ExplorationModel": _exploration_model,
}
_WITH_MODELS: dict[str, Callable[[Any, Any, Any], Report]] = {
    "selection.choose_mixture.MixtureChoice": _mixture_choice,
    "selection.explore.result.Exploration": _exploration,
}
