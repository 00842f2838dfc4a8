"""Rows that arrive in batches and are not kept: each centre is the mean of all rows its cluster has received."""

from __future__ import annotations

from typing import Any

import numpy as np

from foldwise.data.cache import cached
from foldwise.data.scan import scan
from foldwise.data.source import Source
from foldwise.data.subset import concatenate, gather
from foldwise.errors import DataError, ParameterError
from foldwise.fold.passes import Passes
from foldwise.models.base import check_columns, remember_columns
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.centre_model import CentreModel
from foldwise.models.kmeans.fit_data import KMeansData


def take(model: CentreModel, X: Any, sample_weight: Any) -> None:
    """Update a model with a batch."""
    known = hasattr(model, "cluster_centers_")
    if known and len(model.cluster_centers_) != model.n_clusters:
        raise ParameterError(
            f"n_clusters={model.n_clusters}, but the earlier batches were put into {len(model.cluster_centers_)} clusters. "
            "The rows are not kept, so their clusters cannot be changed: set n_clusters back, or start anew with "
            "sklearn.base.clone(model)."
        )
    waiting: Source | None = getattr(model, "_waiting", None)
    source = scan(X, weights=sample_weight)
    if known or waiting is not None:
        check_columns(model, source)
    dtype = model.cluster_centers_.dtype if known else source.dtype if waiting is None else waiting.dtype
    if source.dtype != dtype:
        raise DataError(
            f"this batch is {source.dtype}, but earlier ones were {dtype}",
            advice="Pass all batches in the same dtype; fw.scan(batch, dtype=...) converts",
        )
    if not known and waiting is None:
        remember_columns(model, source)
    if known:
        _add(model, source)
        return
    batch = gather(source) if waiting is None else concatenate(waiting, gather(source))
    if (batch.n_rows or 0) < model.n_clusters:
        model._waiting = batch
        return
    model.__dict__.pop("_waiting", None)
    _first(model, batch)


def _assignment(model: CentreModel, source: Source) -> Assignment:
    return Assignment(KMeansData(Passes(cached(model.as_compared(source)), n_threads=model.n_threads)))


def _first(model: CentreModel, source: Source) -> None:
    """A fit to the first rows."""
    from foldwise.models.kmeans.estimator import KMeans

    shared = {name: value for name, value in model.get_params().items() if name in KMeans.PARAMETERS}
    fitted = KMeans(**shared | {"max_iter": 300, "verbose": 0, "checkpoint": None, "time_budget": None}).fit(source)
    for name, value in vars(fitted).items():
        if name.endswith("_") and name not in vars(model):
            setattr(model, name, value)
    model.n_steps_ = 1
    # The means in full precision, which the dtype of the centres may not hold.
    assignment = _assignment(model, source)
    assignment.assign(model.cluster_centers_)
    some = assignment.cluster_weights > 0
    model._means = model.cluster_centers_.astype(np.float64)
    model._means[some] = _exact_means(assignment)[some]


def _exact_means(assignment: Assignment) -> Any:
    """The cluster means in float64; NaN for empty clusters."""
    return assignment.data.rescaling.undo(assignment.sums.means(), np.dtype(np.float64))


def _add(model: CentreModel, source: Source) -> None:
    """Assign each row to the nearest centre, which moves to the mean of all its rows."""
    assignment, before = _assignment(model, source), model.cluster_centers_
    assignment.assign(before)
    weights, old = assignment.cluster_weights, model.cluster_weights_
    means = getattr(model, "_means", before.astype(np.float64))  # a loaded model has only the centres
    some = weights > 0
    total = old + weights
    new = means.copy()
    new[some] += (_exact_means(assignment)[some] - means[some]) * (weights[some] / total[some])[:, None]
    model._means, model.cluster_weights_ = new, total
    model.cluster_centers_ = np.ascontiguousarray(model.geometry.projected(new.astype(before.dtype)))
    assignment.assign(model.cluster_centers_)
    inertia = float(assignment.residuals(model.cluster_centers_).sum())
    model.labels_, model.inertia_ = assignment.labels, assignment.data.unscaled(inertia)
    model.n_steps_ = getattr(model, "n_steps_", 1) + 1
