"""`foldwise apply`."""

from __future__ import annotations

from pathlib import Path

from foldwise.cli.options import COMPUTE, Compute, File, Output, Where


def apply(model: Path, file: File, /, *, out: Path, where: Where = None, compute: Compute = COMPUTE) -> None:
    """Apply a saved model to new rows and write the result for each: scores, or clusters.

    Parameters
    ----------
    model
        A model saved with --model.
    file
        The new rows. The columns of the fit are found by name; others are ignored.
    out
        The file to write (.parquet, .csv, .csv.gz, .jsonl or .npy).
    """
    from foldwise import load
    from foldwise.cli.check_outputs import check_outputs
    from foldwise.cli.options import scan_quietly
    from foldwise.cli.output import show, write_rows
    from foldwise.errors import ParameterError
    from foldwise.models.base import check_columns

    check_outputs(file, Output(out=out), model=model)
    fitted = load(model)
    if not hasattr(fitted, "get_params"):
        raise ParameterError(
            f"{model} holds a fitted distribution, which cannot be applied to rows. "
            "In Python, fw.load(...) gives its pdf, cdf and quantiles."
        )
    fitted.n_threads = compute.threads
    names = getattr(fitted, "feature_names_in_", None)
    source = scan_quietly(file, columns=None if names is None else list(names), where=where)
    check_columns(fitted, source)
    with compute.engine_context():
        failure = show(f"written: {write_rows(fitted, source, out)}")
    if failure is not None:
        raise failure
