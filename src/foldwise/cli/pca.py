"""`foldwise pca`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from foldwise.cli.options import Columns, File, Threads, Weights, Where


def pca(
    file: File,
    /,
    *,
    components: Annotated[str | None, Parameter(name=["--components", "-k"])] = None,
    scale: bool = False,
    whiten: bool = False,
    out: Path | None = None,
    model: Path | None = None,
    report: Path | None = None,
    columns: Columns = None,
    where: Where = None,
    weights: Weights = None,
    solver: Literal["auto", "full", "covariance_eigh", "krylov", "power"] = "auto",
    checkpoint: Path | None = None,
    threads: Threads = None,
) -> int:
    """Find the directions in which the rows of a table vary most.

    Prints the variance of each direction, its share, and the columns that make it up.

    Parameters
    ----------
    file
        CSV, Parquet, JSON lines or .npy; a quoted glob ("data/*.parquet"), or SQL text that names files.
    components
        How many to keep: a number, a share of variance such as 0.95, or a rule: mle, parallel, gavish-donoho.
    scale
        Divide each column by its standard deviation first: for columns in different units.
    whiten
        Give all scores variance one.
    out
        Write the scores of every row here (.parquet, .csv, .csv.gz, .jsonl or .npy).
    model
        Write the fitted model here; `foldwise apply` uses it on new rows.
    report
        Write a page with the figures and plots here (.html).
    solver
        The way to compute; the answer is the same.
    checkpoint
        For krylov and power: a file to go on from if the fit is stopped.
    """
    from foldwise import PCA, progress, save, scan
    from foldwise.cli.options import check_outputs, column_list, left_out_quietly, number_or_rule, write_rows
    from foldwise.cli.show import show
    from foldwise.data.files import format_of
    from foldwise.errors import ParameterError
    from foldwise.report.pca import summary

    check_outputs(file, out, model, report=report)
    if out is not None:
        format_of(os.fspath(out))
    if checkpoint is not None and solver not in ("krylov", "power"):
        raise ParameterError(f"--checkpoint is for --solver krylov or power: {solver} takes one pass and cannot go on.")
    with left_out_quietly():
        source = scan(file, columns=column_list(columns, file), where=where, weights=weights)
    fitted = PCA(
        number_or_rule(components),
        scale=scale,
        whiten=whiten,
        svd_solver=solver,
        checkpoint=checkpoint,
        n_threads=threads,
    )
    with progress():
        fitted.fit(source)
    show(summary(fitted))
    if model is not None:
        save(fitted, model)
        show(f"model: {model}")
    if out is not None:
        show(f"scores: {write_rows(fitted, source, out)}")
    if report is not None:
        from foldwise.report.page import write_pca_page

        show(f"report: {write_pca_page(fitted, source, report)}")
    return 130 if fitted.outcome_.reason == "interrupted" else 0
