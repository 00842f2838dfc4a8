"""`fw.explore`, and opening the rows that it explores."""

from __future__ import annotations

import inspect
import os
from dataclasses import replace
from typing import Any

import numpy as np

from foldwise.data.missing import allow_missing
from foldwise.data.scan import is_table_or_frame, scan
from foldwise.data.source import count_rows
from foldwise.errors import DataError, ParameterError
from foldwise.fold.passes import Passes
from foldwise.models.fitted_rows import remember_rows
from foldwise.models.parameters import identity, is_whole, seed_of
from foldwise.models.session import open_passes
from foldwise.selection.explore.result import Exploration
from foldwise.selection.explore.resume import Finished
from foldwise.selection.explore.steps import Steps

_LEAST_ROWS = 5


def explore(
    X: Any,
    *,
    n_clusters: int | None = None,
    max_clusters: int = 20,
    scale: bool | str = "auto",
    metric: str = "auto",
    missing: str = "model",
    categories: str = "auto",
    max_rows: int = 100_000,
    weights: Any = None,
    random_state: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    n_threads: int | None = None,
    engine: Any = None,
    **preparing: Any,
) -> Exploration:
    """Which directions matter in a table, which groups there are, how many, and how sure that is.

    Runs PCA and the votes for the number of components; the votes for the number of clusters, which may find none; k-means, a
    Gaussian mixture, and which of them describes rows better that were held out; a consensus of many clusterings; the stability
    of clusters and rows; what sets each cluster apart, in words; and rows far from all others. The result has all of it as
    objects, shows itself in a notebook, and writes its page with `.report("report.html")`.

    Parameters
    ----------
    X : whatever `fw.scan` reads. Files and frames are prepared as by `fw.prepare`, whose options can be given too (`columns`,
        `exclude`, `ids`, `labels`, `as_`, `where`, `whole`, and how a file is read; of images and arrays: `image_size`,
        `grey`, `table`).
    n_clusters : the number of clusters, if it is known; None lets the criteria vote, up to `max_clusters`.
    scale : whether columns are standardised; "auto" does so if their spreads differ more than 5-fold, unless most have the same
        range, as pixels do. metric : "euclidean", "cosine" or "auto": cosine for sparse rows.
    missing : what to do about missing cells, as for `fw.KMeans`.
    categories : "describe" the result, or "encode": used together with numbers. "auto" encodes them only where there are fewer
        than two columns of numbers.
    max_rows : of larger tables, steps that take long use a random sample of so many rows; components and k-means clusters are
        those of all rows, and every row is assigned exactly.
    weights : numbers of repetitions, or the name of a column with them.
    random_state : the seed; None is a fixed seed.
    checkpoint : a folder that keeps the results of long steps, so that a run that was stopped or killed goes on from there;
        it is removed at the end.

    Ctrl-C gives what was found so far; `unfinished` names the steps that were not done.

    >>> import numpy as np
    >>> import foldwise as fw
    >>> rng = np.random.default_rng(0)
    >>> found = fw.explore(np.concatenate([rng.normal(size=(60, 3)) + 6 * i for i in range(3)]))
    >>> found.n_clusters, [one.rows for one in found.summaries]
    (3, [60, 60, 60])
    """
    if scale != "auto" and not isinstance(scale, bool | np.bool_):
        raise ParameterError(f'scale={scale!r}: give True, False or "auto".')
    if metric not in ("auto", "euclidean", "cosine"):
        raise ParameterError(f"metric={metric!r}: give 'auto', 'euclidean' or 'cosine'.")
    if n_clusters is not None and not (is_whole(n_clusters) and n_clusters >= 1):
        raise ParameterError(f"n_clusters={n_clusters!r}: give a whole number of at least 1, or None to find it out.")
    if not (is_whole(max_clusters) and max_clusters >= 2):
        raise ParameterError(f"max_clusters={max_clusters!r}: give a whole number of at least 2.")
    if not (is_whole(max_rows) and max_rows >= 1000):
        raise ParameterError(f"max_rows={max_rows!r}: give a whole number of at least 1000.")
    source = open_rows(X, categories=categories, weights=weights, **preparing)
    if missing != "error" and not source.sparse:
        source = allow_missing(source)
    asked = {
        "n_clusters": n_clusters,
        "max_clusters": max_clusters,
        "scale": scale,
        "metric": metric,
        "missing": missing,
        "categories": categories,
        "max_rows": max_rows,
        "random_state": random_state,
    }
    with open_passes(source, engine=engine, n_threads=n_threads) as passes:
        _check(passes, n_clusters)
        finished = None
        if checkpoint is not None:
            finished = Finished(
                checkpoint, identity({**asked, "seed": seed_of(random_state), "data": source.fingerprint()})
            )
        found = Steps(passes, asked, seed_of(random_state), n_threads, finished).all_steps()
        if finished is not None and not found.unfinished:
            finished.remove()
    for model in (found.pca, found.kmeans):
        if model is not None:  # what they were fitted to is gone, what is behind it is not
            remember_rows(model, source, None, found.overview.rows)
    if getattr(source, "recipe", None) is not None:
        asked["categories"] = source.recipe.categories
    given = {"weights": weights} if isinstance(weights, str) else {}
    return replace(found, source=source, settings=asked, command=_command(X, asked, given | preparing))


def _command(X: Any, asked: dict[str, Any], preparing: dict[str, Any]) -> str:
    """The call that repeats an exploration; arrays and frames are X there."""
    usual = {name: one.default for name, one in inspect.signature(explore).parameters.items()}
    given = {name: value for name, value in asked.items() if value != usual[name]}
    files = isinstance(X, list | tuple) and all(isinstance(one, str) for one in X)
    what = repr(X) if isinstance(X, str) or files else "X"
    return f"fw.explore({', '.join([what, *(f'{name}={value!r}' for name, value in {**given, **preparing}.items())])})"


def open_rows(X: Any, *, categories: str = "auto", weights: Any = None, **preparing: Any) -> Any:
    """The rows: of a table prepared, with its categories encoded if there are hardly any numbers; else as `scan` gives them."""
    if categories not in ("auto", "describe", "encode"):
        raise ParameterError(f"categories={categories!r}: must be 'auto', 'describe' or 'encode'.")
    if not is_table_or_frame(X):
        for name in preparing:
            if name not in ("image_size", "grey", "table"):  # how images and arrays are read
                raise ParameterError(f"{name}: only for files and data frames, which have columns to prepare.")
        return scan(X, weights=weights, **preparing)
    from foldwise.prepare.build import prepare

    if categories != "auto":
        return prepare(X, categories=categories, weights=weights, **preparing)
    try:
        made = prepare(X, categories="describe", weights=weights, **preparing)
    except DataError as problem:
        if "no column of numbers" not in problem.what:
            raise
        return prepare(X, categories="encode", weights=weights, **preparing)
    few = len(made.recipe.having("used")) < 2 and made.recipe.having("describing")
    return prepare(X, categories="encode", weights=weights, **preparing) if few else made


def _check(passes: Passes, wanted: int | None) -> None:
    source = passes.source
    where = source.where if source.where != "array" else None
    if source.n_columns < 2:
        raise DataError(
            "there is only one column of numbers, so no directions or groups of rows to explore",
            where=where,
            advice="foldwise fit-distribution describes one column, foldwise cluster -k auto finds groups in it",
        )
    rows = count_rows(source)
    if wanted is not None and wanted > rows:
        raise DataError(
            f"n_clusters={wanted} is more than the {rows:,} rows", where=where, advice="Ask for fewer clusters"
        )
    if rows < _LEAST_ROWS:
        raise DataError(
            f"{rows} row{'s are' if rows != 1 else ' is'} too few to explore",
            where=where,
            advice=f"Give at least {_LEAST_ROWS}",
        )
