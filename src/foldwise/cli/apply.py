"""`foldwise apply`."""

from __future__ import annotations

from pathlib import Path

from foldwise.cli.options import File, Threads, Where


def apply(model: Path, file: File, /, *, out: Path, where: Where = None, threads: Threads = None) -> None:
    """Apply a saved model to new rows and write what it says of each: scores, or clusters.

    Parameters
    ----------
    model
        A file that --model wrote.
    file
        The new rows: the columns of the fit are found by name, others are not read.
    out
        Where to write (.parquet, .csv, .csv.gz, .jsonl or .npy).
    """
    from foldwise import load
    from foldwise.cli.options import check_outputs, open_new_rows, write_rows
    from foldwise.cli.show import show
    from foldwise.errors import ParameterError

    check_outputs(file, out)
    fitted = load(model)
    if not hasattr(fitted, "get_params"):
        raise ParameterError(
            f"{model} holds a fitted distribution, which says nothing of single rows. "
            "In Python, fw.load(...) has its pdf, cdf and quantiles."
        )
    fitted.n_threads = threads
    show(f"written: {write_rows(fitted, open_new_rows(fitted, file, where), out)}")
