"""`foldwise ensemble`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from foldwise.cli.options import (
    COMPUTE,
    INPUT,
    OUTPUT,
    RESUME,
    Compute,
    Count,
    File,
    Input,
    Output,
    Resume,
    Scale,
    Seed,
)


def ensemble(
    file: File,
    /,
    *,
    clusters: Annotated[str, Parameter(name=["--clusters", "-k"])] = "auto",
    clusterings: Count = 20,
    consensus: Literal["spectral", "kmeans", "average"] = "spectral",
    diversity: Literal["k-range", "restarts", "subsample", "features"] = "k-range",
    labels: bool = False,
    scale: Scale = False,
    seed: Seed = 0,
    given: Input = INPUT,
    output: Output = OUTPUT,
    resuming: Resume = RESUME,
    compute: Compute = COMPUTE,
) -> int:
    """Cluster the rows many times, and find the groups on which the clusterings agree.

    Prints the clusters, how often their rows are together, and how sure each is.

    With --labels, the columns of the file are clusterings made elsewhere, with a label for each row.

    Parameters
    ----------
    clusters
        The number of clusters, or auto: as many as several criteria agree on, as in `foldwise cluster -k auto`. With --labels,
        auto is the number at which the clusterings agree most, or 1 if unrelated ones would agree as much.
    clusterings
        The number of clusterings to make.
    consensus
        How one clustering is made of many: spectral, k-means or average linkage, of how often rows are together.
    diversity
        How the clusterings differ: numbers of clusters, starts alone, the rows or the columns they see.
    labels
        The columns of the file are labels of clusterings; empty cells and -1 are missing labels.
    """
    from foldwise import ClusterEnsemble, progress
    from foldwise.cli.check_outputs import check_outputs
    from foldwise.cli.number import chosen_number, end_with_votes, rest_of
    from foldwise.cli.options import column_list, scan_quietly, spooled_scan
    from foldwise.cli.output import finish
    from foldwise.data.missing import allow_missing
    from foldwise.errors import ParameterError
    from foldwise.report.choice import choice_report
    from foldwise.report.ensemble import ensemble_report

    if clusters != "auto" and not (clusters.isdecimal() and int(clusters) >= 1):
        raise ParameterError(f"--clusters {clusters}: give a number such as 3, or auto.")
    wanted, place = None if clusters == "auto" else int(clusters), resuming.place(output)
    check_outputs(file, output, place)
    settings: dict[str, Any] = {
        "n_clusters": wanted,
        "consensus": consensus,
        "random_state": seed,
        "n_threads": compute.threads,
    }
    if labels:
        resuming.refuse("not with --labels, which takes one step.", scale=scale, model=output.model)
        source = allow_missing(
            scan_quietly(file, columns=column_list(given.columns, file), where=given.where, reading=given.reading())
        )
        fitted = ClusterEnsemble(**settings).fit_labels(source)
        return finish(ensemble_report(fitted, source), output, model=fitted, source=source, rows="clusters")
    settings |= {"n_base": clusterings, "diversity": diversity, "scale": scale, "missing": given.missing}
    settings |= {"checkpoint": place, "time_budget": resuming.time_budget}
    with compute.engine_context(), spooled_scan(file, given) as source:
        choice = None
        if wanted is None:
            choice = chosen_number(source, "auto", settings, place, resuming.time_budget)
            if choice.interrupted:
                return end_with_votes(choice, choice_report(choice, source, scale=scale), output, place)
            settings |= {"n_clusters": choice.n_clusters, "time_budget": rest_of(resuming.time_budget, choice)}
        with progress():
            fitted = ClusterEnsemble(**settings).fit(source)
        with progress():
            report = ensemble_report(fitted, source, choice)
        stopped = fitted.outcome_.reason == "interrupted"
        return finish(
            report, output, model=fitted, source=source, rows="clusters", checkpoint=place, interrupted=stopped
        )
