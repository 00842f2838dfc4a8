"""`fw.choose_clusters`: one sweep over numbers of clusters, judged by several criteria that vote."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from foldwise.errors import NotFinishedWarning, ParameterError, warn
from foldwise.fold import blas
from foldwise.fold.iterate import State, iterate
from foldwise.fold.outcome import Outcome, Reason
from foldwise.fold.threads import run
from foldwise.models.kmeans import KMeans
from foldwise.models.parameters import identity, is_whole
from foldwise.models.session import open_checkpoint, session
from foldwise.selection.clusters.criteria import chosen_criteria
from foldwise.selection.clusters.criterion import Criterion, Judgement
from foldwise.selection.clusters.result import ClusterChoice
from foldwise.selection.clusters.rows import Rows, rows_of
from foldwise.selection.clusters.sweep import Sweep, Task
from foldwise.selection.votes import Vote, tally

MAX_ROWS = 20_000
_ROWS_EACH = 3  # at least, on average, in the largest number of clusters that is tried
# Shares of the weight of the other votes, if there are more than _MANY criteria: for one number, which then holds without gaps;
# and for 1, which then holds in spite of them (with many clusters of few rows, some gap is found by chance).
_NEARLY_ALL, _MOST, _MANY = 0.9, 0.6, 5


def choose_clusters(
    X: Any,
    ks: int | Iterable[int] = range(1, 21),
    criteria: str | Iterable[str] | None = None,
    *,
    scale: bool = False,
    metric: str = "euclidean",
    missing: str = "error",
    prepare: str | None = None,
    max_rows: int | None = MAX_ROWS,
    random_state: Any = None,
    sample_weight: Any = None,
    checkpoint: Any = None,
    time_budget: float | None = None,
    n_threads: int | None = None,
    engine: Any = None,
) -> ClusterChoice:
    """How many clusters there are, if any, by the votes of several criteria.

    All criteria judge the same k-means clusters (mixtures start from them). "dip" counts the groups with gaps between them, by
    dip tests of rows that the centres have not seen. Where it finds none, the answer is 1, no clusters, unless 90 % of the
    other votes are for one number (groups of very different sizes can touch without a gap). Where it finds gaps, 60 % of the
    other votes can overrule it (both if more than five criteria vote). Otherwise the number with the most votes wins: "dip" and
    "prediction strength" (Tibshirani and Walther 2005) count twice, "bic" and "icl" of Gaussian mixtures, "silhouette" and
    "gap" once, "calinski-harabasz", "davies-bouldin" and "stability" half; "knee" is only drawn.
    "silhouette", "calinski-harabasz", "davies-bouldin" and "stability" vote 1 unless they are clearly better than for
    references without clusters. The clusters are those of k-means: groups of other shapes may be counted in pieces.

    Parameters
    ----------
    ks : the numbers to try; 1 is always among them, and those with fewer than three different rows for each cluster are left
        out.
    criteria : some of their names; None is all.
    scale, metric, missing, prepare : as for `fw.KMeans`. With missing="model", missing cells are drawn from the normal
        distribution that the observed ones suggest.
    max_rows : larger tables are judged by a sample of this many rows; None takes all, as far as memory allows. Mixtures and
        references take fewer. More than 200 columns, or sparse ones, are judged by their first 100 principal components.
    sample_weight : a weight counts as repetition of its row, except that copies of a row stay together when rows are resampled,
        and that "dip" takes no copies as evidence: how sure a gap is depends on the number of different rows.
    checkpoint, time_budget : a run that was stopped or killed resumes from its checkpoint; Ctrl-C gives the votes of the
        criteria that are finished.

    >>> import numpy as np
    >>> import foldwise as fw
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.standard_normal((50, 2)) + centre for centre in ([0, 0], [6, 0], [3, 6])])
    >>> fw.choose_clusters(X, range(1, 7)).n_clusters
    3
    >>> fw.choose_clusters(rng.random((150, 2)), range(1, 7)).sentence.split(":")[0]
    'No clusters found'
    """
    numbers, asked = _numbers(ks), chosen_criteria(criteria)
    if max_rows is not None and (not is_whole(max_rows) or max_rows < 100):
        raise ParameterError(f"max_rows={max_rows!r}: give a whole number of at least 100, or None for all rows.")
    model = KMeans(
        2,
        scale=scale,
        metric=metric,
        missing=missing,
        prepare=prepare,
        random_state=random_state,
        time_budget=time_budget,
        checkpoint=checkpoint,
        n_threads=n_threads,
    )
    geometry = model.geometry
    with session(model, X, sample_weight, engine=engine, view=geometry.view, centre=geometry.translates) as fit:
        rows = rows_of(fit, max_rows)
        distinct = rows.n_distinct
        tried = tuple(k for k in numbers if k == 1 or _ROWS_EACH * k <= distinct)
        if tried == (1,):
            asked, note = [], f"{distinct} different rows are too few to compare {numbers[1]} or more clusters"
            rows = replace(rows, notes=(*rows.notes, note))
        about = {"ks": tried, "criteria": [one.name for one in asked], "max_rows": max_rows, "seed": fit.seed}
        place = None
        if checkpoint is not None:
            settings = {"scale": scale, "metric": metric, "missing": missing}
            judged = {"rows": identity(rows.x), "weights": identity(rows.weights)}
            place = open_checkpoint(checkpoint, "choose_clusters", {**about, **settings, **judged}, fit.data)
        threads = fit.passes.n_threads
        with blas.single():
            state, outcome = _computed(rows, tried, fit.seed, asked, time_budget, place, threads)
        found = _judged(Sweep(rows, tried, fit.seed, state), asked, outcome)
    if found.interrupted:
        warn(
            f"choose_clusters: {outcome.reason}; not finished: {', '.join(found.unfinished) or 'nothing'}. "
            "The number is that of the other criteria; with a checkpoint the rest can be done later.",
            NotFinishedWarning,
        )
    return found


def _numbers(ks: int | Iterable[int]) -> tuple[int, ...]:
    if not is_whole(ks) and not isinstance(ks, Iterable):
        raise ParameterError(f"ks={ks!r}: give whole numbers of at least 1, such as range(1, 21).")
    given = range(1, int(ks) + 1) if is_whole(ks) else list(ks)  # type: ignore[arg-type]
    if not len(given) or not all(is_whole(k) for k in given) or min(given) < 1:
        raise ParameterError(f"ks={ks!r}: give whole numbers of at least 1, such as range(1, 21).")
    numbers = tuple(sorted({1, *(int(k) for k in given)}))
    if numbers == (1,):
        raise ParameterError("ks: give at least one number of clusters above 1, such as range(1, 21).")
    return numbers


def _computed(
    rows: Rows,
    ks: tuple[int, ...],
    seed: int,
    criteria: list[Criterion],
    time_budget: float | None,
    checkpoint: Any,
    n_threads: int,
) -> tuple[State, Outcome]:
    """All results by name; the tasks of a step run side by side, and do not depend on how many there are."""
    planned = _tasks(Sweep(rows, ks, seed, {}), criteria)

    def left(state: State) -> list[str]:
        return [name for name in planned if f"done {name}" not in state]

    def step(state: State) -> tuple[State, dict[str, float]]:
        todo = left(state)
        fits = [name for name in todo if name.startswith("centres ")]
        batch = list(islice(fits or todo, n_threads))  # criteria need all fits
        tasks = _tasks(Sweep(rows, ks, seed, state, cache), criteria)
        found: dict[str, Any] = {}
        run(
            [tasks[name] for name in batch],
            lambda _, task: (task.name, task.run()),
            lambda _, made: found.update({f"done {made[0]}": np.ones(1), **made[1]}),
            n_threads,
        )
        return {**state, **{name: np.asarray(value) for name, value in found.items()}}, {"tasks": float(len(todo))}

    cache: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of single fits: duplicate rows, runs that end early
        state, outcome, _ = iterate(
            dict,
            step,
            lambda state: not left(state),
            max_iter=len(planned),
            time_budget=time_budget,
            checkpoint=checkpoint,
        )
    if outcome.reason is Reason.INTERRUPTED and any(f"done centres {k}" not in state for k in ks):
        raise KeyboardInterrupt  # nothing can be said yet
    return state, outcome


def _tasks(sweep: Sweep, criteria: list[Criterion]) -> dict[str, Task]:
    """All tasks by name: first the fits; what several criteria need is done once."""
    return {task.name: task for task in (*sweep.fits, *(task for one in criteria for task in one.tasks(sweep)))}


def _judged(sweep: Sweep, criteria: list[Criterion], outcome: Outcome) -> ClusterChoice:
    judgements: dict[str, Judgement] = {}
    unfinished = []
    fitted = all(f"centres {k}" in sweep.state for k in sweep.ks)
    for one in criteria:
        if not fitted or any(f"done {task.name}" not in sweep.state for task in one.tasks(sweep)):
            unfinished.append(one.name)
        else:
            judgements[one.name] = one.judge(sweep)
    votes = [judgement.vote for judgement in judgements.values()]
    number, strength, runner_up = _decided(votes) if votes or not criteria else (None, 0.0, None)
    return ClusterChoice(
        n_clusters=number,
        strength=strength,
        runner_up=runner_up,
        votes=tuple(votes),
        judgements=judgements,
        ks=sweep.ks,
        rows=sweep.rows.total,
        judged_rows=sweep.rows.n,
        notes=sweep.rows.notes,
        outcome=outcome,
        unfinished=tuple(unfinished),
        centers={k: sweep.centres(k) for k in sweep.ks if f"centres {k}" in sweep.state},
    )


def _decided(votes: list[Vote]) -> tuple[int, float, int | None]:
    """The number, the share of the votes for it, and the runner-up.

    1 if no gap was found, unless nearly all other criteria agree on another number: a small group beside a large one may have
    no gap between them. Otherwise the number with the most votes among those above 1, unless most others say 1.
    """
    counted = [one for one in votes if one.counts]
    dip = next((one for one in counted if one.rule == "dip"), None)
    others = tally(one for one in counted if one is not dip)
    if dip is None:  # nobody can rule clusters out: the votes alone
        return 1 if others.agreed is None else others.agreed, others.strength, others.runner_up
    several = tally(one for one in counted if one.chosen != 1)
    number = several.agreed if several.agreed is not None else 1
    enough = len(counted) > _MANY and others.strength >= (_NEARLY_ALL if dip.chosen == 1 else _MOST)
    if dip.chosen == 1:
        number = others.agreed if enough and others.agreed is not None else 1
    elif enough and others.agreed == 1:
        number = 1
    weight = sum(one.weight for one in counted)  # dip's vote is among them
    agree = sum(one.weight for one in counted if one.chosen == number)
    rest = tally(one for one in counted if one.chosen != number)
    return number, agree / weight, rest.agreed
