"""The search for the columns that explain most of the variance of all: no step of it reads a row."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from foldwise.fold.iterate import iterate
from foldwise.fold.multistart import UNLIMITED
from foldwise.fold.outcome import Outcome, Reason
from foldwise.models.session import Session
from foldwise.selection.features.branch_and_bound import BranchAndBound, check_exhaustive, listed
from foldwise.selection.features.evaluated import Evaluation, Plain
from foldwise.selection.features.explained import ExplainedVariance
from foldwise.selection.features.found import Found, names_in
from foldwise.selection.features.number import Target, auto_target, share_target
from foldwise.selection.features.path import SelectionPath
from foldwise.selection.features.scatter import Scatter, scatter_of
from foldwise.selection.features.search import SEARCHES, Subset, Walk, exhaustive_of_one_size

_MEANING = "share of the variance of all columns that is explained"


def find_by_variance(model: Any, opened: Session) -> Found:
    """The columns for the parameters of `model`, a FeatureSelector, and the rows of its open fit."""
    scatter = scatter_of(opened, model.scale)
    criterion, target = ExplainedVariance(scatter.matrix), _target(model.n_features, scatter)
    d, walk = criterion.d, Walk(lambda step: target is not None and step.score >= target.high)
    most = d if target is not None else int(model.n_features)
    outcome, resumed_at, compared = Outcome(Reason.CONVERGED, 1, 0.0), 0, 0
    if model.search == "exhaustive" and not listed(d):
        outcome, resumed_at, compared = _branch_and_bound(model, opened, criterion, target, walk)
    elif model.search == "backward":
        _backward(criterion, None if target is None else target.low, most, walk)
    elif model.search == "exhaustive":
        check_exhaustive(d, most if target is None else d // 2)
        outcome, resumed_at, compared = _listed(model, opened, criterion, most, walk)
    else:
        SEARCHES[model.search](criterion, most, walk)
    bounds = criterion.bounds(max(step.size for step in walk.steps))
    steps = tuple(replace(step, bound=max(float(bounds[step.size - 1]), step.score)) for step in walk.steps)
    path = SelectionPath(steps, names_in(opened.data), _MEANING)
    choice = None if target is None else target.choice(path)
    return Found(
        path,
        most if choice is None else choice.chosen,
        choice,
        compared,
        replace(outcome, seconds=opened.passes.seconds),
        resumed_at,
        scatter.rows,
        scatter.mean,
        scatter.scale,
        criterion,
    )


def _target(n_features: Any, scatter: Scatter) -> Target | None:
    if isinstance(n_features, Integral):
        return None
    return auto_target(scatter.spectrum) if n_features == "auto" else share_target(float(n_features))


def _backward(criterion: ExplainedVariance, share: float | None, size: int, walk: Walk) -> None:
    """From all columns down to `size`, or to the fewest that explain `share`, with all scores from one elimination."""
    order = criterion.backward_order()
    scores = criterion.nested(order[::-1])  # of the last 1, 2, ... to go
    many = len(order)
    walk.step(scores[-1], many, added=tuple(range(many)))
    for left, column in zip(range(many - 1, 0, -1), order, strict=False):
        if left < size if share is None else scores[left - 1] < share:
            return
        walk.step(scores[left - 1], left, removed=(column,))


class _Score(Plain):
    """What a subset explains, by itself."""

    def __init__(self, criterion: ExplainedVariance) -> None:
        self.criterion = criterion

    def __call__(self, columns: Subset) -> tuple[float, float]:
        return self.criterion.score(columns), float("nan")


def _listed(
    model: Any, opened: Session, criterion: ExplainedVariance, size: int, walk: Walk
) -> tuple[Outcome, int, int]:
    """All subsets of one size, one by one: more columns than branch and bound can take."""
    listed = Evaluation(_Score(criterion), exhaustive_of_one_size, size, criterion.d, opened.passes.n_threads)
    state, outcome, resumed_at = iterate(
        listed.start,
        listed.step,
        listed.done,
        max_iter=UNLIMITED,
        time_budget=model.time_budget,
        checkpoint=opened.checkpoint(criterion.scatter),
    )
    known = listed.walk(state)[1] or listed.walk(listed.step(state)[0])[1]
    best = max(known, key=lambda subset: known[subset][0])
    walk.step(known[best][0], size, added=best)
    return outcome, resumed_at, len(known)


def _branch_and_bound(
    model: Any, opened: Session, criterion: ExplainedVariance, target: Target | None, walk: Walk
) -> tuple[Outcome, int, int]:
    """The best subsets of the size asked for, or of all sizes at which the target could be reached."""
    if target is None:
        sizes = [int(model.n_features)]
    else:
        first = int(np.argmax(criterion.bounds(criterion.d) >= target.low - 1e-9)) + 1
        rough = Walk(lambda step: step.score >= target.high)
        SEARCHES["swap"](criterion, criterion.d, rough)
        sizes = list(range(first, max(first, rough.steps[-1].size) + 1))
    for size in sizes:
        check_exhaustive(criterion.d, size)
    tree = BranchAndBound(criterion, sizes, np.inf if target is None else target.high, opened.passes.n_threads)
    state, outcome, resumed_at = iterate(
        tree.start,
        tree.step,
        tree.done,
        max_iter=UNLIMITED,
        time_budget=model.time_budget,
        checkpoint=opened.checkpoint(criterion.scatter),
    )
    tree.path(state, walk)
    return outcome, resumed_at, int(state["compared"])
