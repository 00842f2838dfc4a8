"""`foldwise cluster`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from foldwise.cli.options import (
    COMPUTE,
    INPUT,
    OUTPUT,
    RESUME,
    AtLeastZero,
    Compute,
    Count,
    File,
    Input,
    OptionalCount,
    Output,
    Resume,
    Scale,
    Seed,
    Steady,
)


def cluster(
    file: File,
    /,
    *,
    clusters: Annotated[str, Parameter(name=["--clusters", "-k"])] = "8",
    scale: Scale = False,
    metric: Literal["euclidean", "cosine"] = "euclidean",
    search: Literal["auto", "none", "breathing", "split-merge"] = "breathing",
    init: Literal["k-means++", "k-means||", "random"] = "k-means++",
    starts: OptionalCount = None,
    seed: Seed = 0,
    max_iter: Count = 300,
    tol: AtLeastZero = 1e-4,
    stability: Steady = False,
    given: Input = INPUT,
    output: Output = OUTPUT,
    resuming: Resume = RESUME,
    compute: Compute = COMPUTE,
) -> int:
    """Find groups of rows that lie close together (k-means).

    Prints the clusters' sizes, what sets each apart, and their centres.

    With -k auto, several criteria vote on the number of clusters first, and may find none. With a range, as in -k 2:12, only
    the votes are printed.

    Parameters
    ----------
    clusters
        The number of clusters; a range of numbers to compare, as in 2:12; or auto.
    metric
        cosine compares the directions of rows and not their lengths: for documents and embeddings.
    search
        How to escape from poor solutions; slower than none, but never worse.
    init
        How to choose the first centres; k-means|| takes few passes: for large files and many clusters.
    starts
        The number of starts, of which the best is kept. Default: 1, or 10 with --init random.
    max_iter
        The largest number of iterations from one start.
    tol
        Stop when the centres move less than this, relative to the spread of the data. 0: when nothing moves.
    """
    from foldwise import KMeans, progress
    from foldwise.cli.check_outputs import check_outputs
    from foldwise.cli.number import chosen_number, end_with_votes, rest_of
    from foldwise.cli.options import number_or_range, refuse_outputs, spooled_scan
    from foldwise.cli.output import finish
    from foldwise.cli.stability import add_stability
    from foldwise.report.choice import choice_report
    from foldwise.report.cluster import cluster_report

    wanted, place = number_or_range(clusters, "--clusters"), resuming.place(output)
    check_outputs(file, output, place)
    settings: dict[str, Any] = {
        "scale": scale,
        "missing": given.missing,
        "metric": metric,
        "search": search,
        "init": init,
        "n_init": starts or "auto",
        "random_state": seed,
        "max_iter": max_iter,
        "tol": tol,
        "n_threads": compute.threads,
    }
    if isinstance(wanted, range):
        refuse_outputs(output, stability=stability)
    with compute.engine_context(), spooled_scan(file, given) as source:
        choice = None
        if not isinstance(wanted, int):
            choice = chosen_number(source, wanted, settings, place, resuming.time_budget)
            if isinstance(wanted, range) or choice.interrupted:
                return end_with_votes(choice, choice_report(choice, source, scale=scale, metric=metric), output, place)
            wanted = choice.n_clusters or 1
        with progress():
            fitted = KMeans(
                wanted, checkpoint=place, time_budget=rest_of(resuming.time_budget, choice), **settings
            ).fit(source)
        with progress():
            report = cluster_report(fitted, source, choice)
        ending: dict[str, Any] = {"interrupted": fitted.outcome_.reason == "interrupted"}
        if stability and not ending["interrupted"]:
            report, ending = add_stability(report, fitted, source, seed)
        return finish(report, output, model=fitted, source=source, rows="clusters", checkpoint=place, **ending)
