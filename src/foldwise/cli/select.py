"""`foldwise select`."""

from __future__ import annotations

import warnings
from typing import Annotated, Any, Literal, TypeAlias

from cyclopts import Parameter, validators

from foldwise.cli.options import (
    COMPUTE,
    INPUT,
    OUTPUT,
    RESUME,
    Compute,
    File,
    Input,
    Output,
    Resume,
    Scale,
    Seed,
)

_AtLeastTwo: TypeAlias = Annotated[int, Parameter(validator=validators.Number(gte=2))]


def select(
    file: File,
    /,
    *,
    features: Annotated[str, Parameter(name=["--features", "-n"])] = "auto",
    search: Literal["forward", "backward", "floating", "swap", "exhaustive"] = "forward",
    criterion: Literal["variance-explained", "cluster", "wrapper"] | None = None,
    clusters: Annotated[int | None, Parameter(name=["--clusters", "-k"], validator=validators.Number(gte=2))] = None,
    scoring: Literal["between-variance", "silhouette"] | None = None,
    target: str | None = None,
    task: Literal["linear", "neighbours", "forest"] | None = None,
    folds: _AtLeastTwo = 5,
    scale: Scale = False,
    seed: Seed = 0,
    given: Input = INPUT,
    output: Output = OUTPUT,
    resuming: Resume = RESUME,
    compute: Compute = COMPUTE,
) -> int:
    """Choose a few columns that stand for all.

    Prints the columns, every step of the search, and of each column that is left out how much the chosen ones tell of it.

    --out writes the chosen columns of every row.

    Parameters
    ----------
    features
        How many to keep: a number; a share such as 0.9, the fewest that explain so much of the variance; or auto, by a rule
        that is printed.
    search
        forward adds the best column, again and again; backward removes the worst; floating also goes back; swap also exchanges
        columns; exhaustive finds the best subset of all, for up to about 30 columns.
    criterion
        What makes columns good. variance-explained: how much of the variance of all columns they explain (the default).
        cluster: how good the clusters are that k-means finds in them (implied by -k). wrapper: how well they predict --target
        (implied by it).
    clusters
        With --criterion cluster: the number of clusters.
    scoring
        With --criterion cluster: the share of the variance of all columns that lies between the clusters (the default), or the
        mean silhouette in the chosen columns.
    target
        With --criterion wrapper: the column to predict, which is not itself chosen. A category is classified (the score is the
        accuracy), a number predicted (R²). Rows in which it is missing are left out of the search.
    task
        With --criterion wrapper: what predicts. linear (the default): logistic or least-squares regression; neighbours: the 5
        nearest; forest: 100 random trees. Columns are standardised, with or without --scale; missing cells get the mean of the
        training rows.
    folds
        With --criterion wrapper: into how many parts the rows are divided at random for cross-validation.
    """
    from foldwise import FeatureSelector, progress
    from foldwise.cli.check_outputs import check_outputs, refuse_all_columns
    from foldwise.cli.options import number_share_or_auto
    from foldwise.cli.output import finish, save_early
    from foldwise.report.select import select_report

    place = resuming.place(output)
    chosen = _criterion(criterion, clusters=clusters, scoring=scoring, target=target, task=task)
    check_outputs(file, output, place)
    if output.out is not None:
        refuse_all_columns(output.keep)
    settings: dict[str, Any] = {
        "n_features": number_share_or_auto(features, "--features"),
        "search": search,
        "criterion": chosen,
        "scale": scale,
        "missing": given.missing,
        "random_state": seed,
        "time_budget": resuming.time_budget,
        "checkpoint": place,
        "n_threads": compute.threads,
    }
    known = None
    if chosen == "wrapper":
        from foldwise.cli.final_task import estimator_for, open_with_target, splitter_for

        assert target is not None
        source, known = open_with_target(file, given, target)
        weighted, impute = given.weights is not None, given.missing == "model"
        used = estimator_for(task or "linear", known, folds, seed, impute=impute, weighted=weighted)
        # Columns are standardised within the folds, so that test rows have no part in it.
        settings |= {"estimator": used, "cv": splitter_for(known, folds, seed), "scale": False}
    else:
        source = given.open(file)
        settings |= {"n_clusters": clusters, "scoring": scoring} if chosen == "cluster" else {}
    rows, values = (source, None) if known is None else (known.rows, known.values)
    with compute.engine_context():
        with progress(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="sklearn")  # of single folds: rare levels, an early end
            fitted = FeatureSelector(**settings).fit(rows, values)
        save_early(fitted, output)
        report = select_report(fitted, source, known, task or "linear")
        stopped = fitted.outcome_.reason == "interrupted"
        return finish(
            report, output, model=fitted, source=source, rows="chosen columns", checkpoint=place, interrupted=stopped
        )


def _criterion(named: str | None, **given: Any) -> str:
    """The criterion, as named or as other options imply; an error if those belong to another one."""
    from foldwise.errors import ParameterError

    owners = {"clusters": "cluster", "scoring": "cluster", "target": "wrapper", "task": "wrapper"}
    used = [name for name, value in given.items() if value is not None]
    chosen = named or (owners[used[0]] if used else "variance-explained")
    if wrong := [name for name in used if owners[name] != chosen]:
        if named is None:
            raise ParameterError(
                f"--{used[0]} chooses columns for clusters and --{wrong[0]} for a prediction: give one of them."
                if chosen == "cluster"
                else f"--{used[0]} chooses columns for a prediction and --{wrong[0]} for clusters: give one of them."
            )
        raise ParameterError(f"--{wrong[0]} is for --criterion {owners[wrong[0]]}, not {chosen}.")
    if chosen == "cluster" and given["clusters"] is None:
        raise ParameterError("--criterion cluster: give the number of clusters, as in -k 3.")
    if chosen == "wrapper" and given["target"] is None:
        raise ParameterError("--criterion wrapper: give the column to predict, as in --target price.")
    return chosen
