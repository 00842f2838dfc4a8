"""`foldwise apply`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from foldwise.cli.options import COMPUTE, FILE_OPTIONS, Compute, File, FileOptions, Output, Where


def apply(
    model: Path,
    file: File,
    /,
    *,
    out: Path,
    keep: Literal["ids", "all"] = "ids",
    where: Where = None,
    options: FileOptions = FILE_OPTIONS,
    compute: Compute = COMPUTE,
) -> None:
    """Apply a saved model to new rows and write the result for each: scores, clusters, or chosen columns.

    Parameters
    ----------
    model
        A model saved with --model.
    file
        The new rows. The columns of the fit are found by name; others are ignored.
    out
        The file to write (.parquet, .csv, .csv.gz, .jsonl or .npy).
    keep
        Which columns of the file are written beside the results: the identifiers and labels of the fit, or all.
    """
    from foldwise import load
    from foldwise.cli.check_outputs import check_outputs, refuse_all_columns
    from foldwise.cli.open_input import open_new_rows
    from foldwise.cli.output import show, write_rows
    from foldwise.errors import ParameterError

    check_outputs(file, Output(out=out), model=model)
    fitted = load(model)
    if not hasattr(fitted, "get_params"):
        raise ParameterError(
            f"{model} holds a fitted distribution, which cannot be applied to rows. "
            "In Python, fw.load(...) gives its pdf, cdf and quantiles."
        )
    if getattr(fitted, "GIVES_CELLS", False):
        refuse_all_columns(keep)
    fitted.n_threads = compute.threads
    with compute.engine_context():
        source = open_new_rows(fitted, file, where, options.reading())
        failure = show(f"written: {write_rows(fitted, source, out, keep)}")
    if failure is not None:
        raise failure
