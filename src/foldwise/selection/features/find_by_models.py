"""The search for columns by a criterion that fits a model to each subset."""

from __future__ import annotations

from dataclasses import replace
from math import comb
from time import perf_counter
from typing import Any

import numpy as np

from foldwise.data.source import count_rows
from foldwise.errors import DataError, ParameterError
from foldwise.fold.iterate import iterate
from foldwise.fold.multistart import UNLIMITED
from foldwise.fold.outcome import Reason
from foldwise.models.session import Session
from foldwise.selection.features.evaluated import (
    ClusterQuality,
    Evaluation,
    FunctionOfRows,
    Judge,
    TaskScore,
    rows_in_memory,
    warnings_of,
)
from foldwise.selection.features.found import Found, names_in
from foldwise.selection.features.number import nearly_as_good, within_one_error
from foldwise.selection.features.parameters import CLUSTER_SCORES
from foldwise.selection.features.path import SelectionPath
from foldwise.selection.features.search import SEARCHES, Search, exhaustive_of_one_size
from foldwise.stats.extent import Extent

_MOST_SUBSETS = 100_000  # that an exhaustive search may compare


def find_by_models(model: Any, opened: Session, y: Any) -> Found:
    """The columns for the parameters of `model`, a FeatureSelector, and the rows of its open fit."""
    # Subsets are taken of rows that nobody checks again; what is found here also ties a checkpoint to them.
    gaps = opened.missing
    seen = None if gaps is None else (gaps.weight, gaps.centre, gaps.squares)
    figures = opened.passes.fold(Extent.of).figures if seen is None else seen
    judge, rows = _judge(model, opened, y)
    d, auto = opened.source.n_columns, model.n_features == "auto"
    size = (1 if model.search == "backward" else d) if auto else int(model.n_features)
    search: Search = SEARCHES[model.search]
    if model.search == "exhaustive":
        _check_exhaustive(judge, d, size, auto=auto)
        search = search if auto else exhaustive_of_one_size
    evaluation = Evaluation(judge, search, size, d, opened.passes.n_threads)
    state, outcome, resumed_at = iterate(
        evaluation.start,
        evaluation.step,
        evaluation.done,
        max_iter=UNLIMITED,
        time_budget=model.time_budget,
        checkpoint=opened.checkpoint(*figures, **judge.depends_on),
    )
    walk, known = evaluation.walk(state)
    if not walk.steps:  # stopped within the first step: the best subset so far
        if not known:
            if outcome.reason is Reason.INTERRUPTED:
                raise KeyboardInterrupt
            known = evaluation.walk(evaluation.step(state)[0])[1]
        best = max(known, key=lambda subset: known[subset][0])
        walk.step(known[best][0], len(best), added=best)
    path = SelectionPath(tuple(walk.steps), names_in(opened.data), _meaning(model))
    errors = [known.get(tuple(sorted(subset)), (0.0, np.nan))[1] for subset in path.subsets()]
    path = replace(path, steps=tuple(replace(step, error=e) for step, e in zip(path.steps, errors, strict=True)))
    choice = (nearly_as_good if _growing(model) else within_one_error)(path) if auto else None
    wanted = size if choice is None else choice.chosen
    reached = min(path.sizes, key=lambda each: abs(each - wanted))  # of a search that was stopped, the nearest
    return Found(path, reached, choice, len(known), outcome, resumed_at, rows, opened.mean, opened.scale)


def criterion_name(model: Any) -> str:
    """The name of the criterion, which may be a function."""
    if isinstance(model.criterion, str):
        return str(model.criterion)
    return str(getattr(model.criterion, "__name__", type(model.criterion).__name__))


def _growing(model: Any) -> bool:
    """Whether the score tends to grow with every column, so that its peak says nothing."""
    return model.criterion == "cluster" and model.scoring in (None, "between-variance")


def _meaning(model: Any) -> str:
    """What the scores are."""
    if model.criterion == "cluster":
        return "share of the variance of all columns between the clusters" if _growing(model) else "mean silhouette"
    return "cross-validated score" if model.criterion == "wrapper" else criterion_name(model)


def _judge(model: Any, opened: Session, y: Any) -> tuple[Judge, int]:
    """What scores a subset, and how many rows it looks at."""
    if model.criterion == "cluster":
        scoring = model.scoring or CLUSTER_SCORES[0]
        quality = ClusterQuality(opened, model.n_clusters or 2, model.estimator, scoring, model.missing)
        return quality, count_rows(opened.source)
    rows, weights = rows_in_memory(opened.source)
    target = None if y is None else np.asarray(y)
    if target is not None and len(target) != rows.shape[0]:
        raise DataError(f"y has {len(target)} entries, but there are {rows.shape[0]} rows", where=opened.where)
    if weights is not None and not weights.all():
        some = weights > 0
        rows, weights, target = rows[some], weights[some], None if target is None else target[some]
    if weights is not None and (weights == 1.0).all():
        weights = None
    if callable(model.criterion):
        return FunctionOfRows(model.criterion, rows, weights), rows.shape[0]
    task = TaskScore(target, model.estimator, model.cv, model.scoring, rows, weights, opened.seed)
    return task, rows.shape[0]


def _check_exhaustive(judge: Judge, d: int, size: int, *, auto: bool) -> None:
    """Refuse more subsets than anybody waits for, with the time that they would take."""
    many = 2**d - 1 if auto else comb(d, size)
    if many <= _MOST_SUBSETS:
        return
    began = perf_counter()
    with warnings_of(judge):
        judge(tuple(range(size)))
    hours = many * (perf_counter() - began) / 3600
    raise ParameterError(
        f"search='exhaustive': there are {many:,} subsets, each with a fit of its own: about {hours:,.0f} hours. "
        "Use search='floating' or 'forward', or fewer columns."
    )
