"""`foldwise cluster`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter, validators

from foldwise.cli.options import Columns, File, Threads, Weights, Where


def cluster(
    file: File,
    /,
    *,
    clusters: Annotated[str, Parameter(name=["--clusters", "-k"])] = "8",
    scale: bool = False,
    metric: Literal["euclidean", "cosine"] = "euclidean",
    search: Literal["none", "breathing", "split-merge"] = "breathing",
    init: Literal["k-means++", "k-means||", "random"] = "k-means++",
    starts: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = None,
    seed: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 0,
    max_iter: Annotated[int, Parameter(validator=validators.Number(gte=1))] = 300,
    tol: Annotated[float, Parameter(validator=validators.Number(gte=0))] = 1e-4,
    out: Path | None = None,
    model: Path | None = None,
    report: Path | None = None,
    columns: Columns = None,
    where: Where = None,
    weights: Weights = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    time_budget: Annotated[float | None, Parameter(validator=validators.Number(gt=0))] = None,
    threads: Threads = None,
) -> int:
    """Find groups of rows that lie close together (k-means).

    Prints the clusters' sizes, what sets each apart, and their centres.

    With a range, as in -k 2:12, prints instead how the inertia falls as clusters are added, and where it bends.

    Parameters
    ----------
    file
        CSV, Parquet, JSON lines or .npy; a quoted glob ("data/*.parquet"), or SQL text that names files.
    clusters
        How many clusters, or a range of numbers to compare, as in 2:12.
    scale
        Divide each column by its standard deviation first: for columns in different units.
    metric
        cosine compares the directions of rows and not their lengths: for documents and embeddings.
    search
        How to leave bad solutions; never worse than none, but slower.
    init
        How to start: k-means|| takes few passes, for large files and many clusters.
    starts
        How many starts, of which the best is kept. Default: 1, or 10 for --init random.
    seed
        Another number gives other starts; the same number gives the same clusters.
    max_iter
        The most iterations of a start.
    tol
        Stop when the centres move less than this, relative to the spread of the data. 0: when nothing moves.
    out
        Write the cluster of every row, and the distance to its centre, here (.parquet, .csv, .csv.gz, .jsonl or .npy).
    model
        Write the fitted model here; `foldwise apply` uses it on new rows.
    report
        Write a page with the figures and plots here (.html).
    checkpoint
        Keep the state of the fit in this file, and go on from it if it is there. It is removed when the fit is done.
    resume
        --checkpoint beside --model (else --out), with .checkpoint added to the name: run a stopped command again to go on.
    time_budget
        Stop after this many seconds of steps, with the best clusters so far; finding a start is not counted.
    """
    from foldwise import scan
    from foldwise.cli.options import check_outputs, checkpoint_place, column_list, left_out_quietly, number_or_range
    from foldwise.data.files import format_of
    from foldwise.data.spool import spooled

    asked = number_or_range(clusters)
    place = checkpoint_place(checkpoint, resume, model, out)
    check_outputs(file, out, model, place, report=report)
    if out is not None:
        format_of(os.fspath(out))
    settings: dict[str, Any] = {
        "scale": scale,
        "metric": metric,
        "search": search,
        "init": init,
        "n_init": starts or "auto",
        "random_state": seed,
        "max_iter": max_iter,
        "tol": tol,
        "n_threads": threads,
    }
    if isinstance(asked, range):
        _refuse_for_a_range(out=out, model=model, checkpoint=checkpoint, resume=resume, time_budget=time_budget)
    with left_out_quietly():
        opened = scan(file, columns=column_list(columns, file), where=where, weights=weights)
    with spooled(opened) as source:
        if isinstance(asked, range):
            return _compare(source, asked, settings, report)
        settings |= {"checkpoint": place, "time_budget": time_budget}
        return _fit(source, asked, settings, out, model, report)


def _fit(
    source: Any, k: int, settings: dict[str, Any], out: Path | None, model: Path | None, report: Path | None
) -> int:
    from foldwise import KMeans, progress, save
    from foldwise.cli.options import write_rows
    from foldwise.cli.show import show
    from foldwise.report.cluster import summary
    from foldwise.selection.profile import profile

    fitted = KMeans(k, **settings)
    with progress():
        fitted.fit(source)
    with progress():
        found = profile(fitted, source)
    show(summary(fitted, found))
    if settings["checkpoint"] is not None and settings["checkpoint"].exists():
        show(f"checkpoint: {settings['checkpoint']} (run the same command again to go on)")
    if model is not None:
        save(fitted, model)
        show(f"model: {model}")
    if out is not None:
        show(f"clusters: {write_rows(fitted, source, out)}")
    if report is not None:
        from foldwise.report.cluster_page import write_cluster_page

        with progress():
            show(f"report: {write_cluster_page(fitted, source, found, report)}")
    return 130 if fitted.outcome_.reason == "interrupted" else 0


def _compare(source: Any, ks: range, settings: dict[str, Any], report: Path | None) -> int:
    from foldwise import inertia_curve, progress
    from foldwise.cli.show import show
    from foldwise.report.curve import summary

    with progress():
        curve = inertia_curve(source, ks, **settings)
    show(summary(curve, source))
    if report is not None:
        from foldwise.report.cluster_page import write_curve_page

        show(f"report: {write_curve_page(curve, source, report)}")
    return 0


def _refuse_for_a_range(**options: Any) -> None:
    from foldwise.errors import ParameterError

    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if given:
        raise ParameterError(
            f"{', '.join(given)}: not with a range of numbers. Look at the curve, then choose one number."
        )
