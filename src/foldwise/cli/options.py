"""What several commands take, and what they do with it."""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter, validators

from foldwise.errors import LeftOutWarning, ParameterError

File: TypeAlias = str
Columns: TypeAlias = Annotated[
    list[str] | None,
    Parameter(help="Columns to use, as in --columns a,b; numbers from 0 on for .npy. Default: all that are numbers."),
]
Where: TypeAlias = Annotated[str | None, Parameter(help='Only rows for which this SQL condition holds, as in "x > 0".')]
Weights: TypeAlias = Annotated[str | None, Parameter(help="A column that says how many times each row counts.")]
Threads: TypeAlias = Annotated[
    int | None,
    Parameter(help="Threads to use; the result does not depend on it.", validator=validators.Number(gte=1)),
]


def number_or_rule(text: str | None) -> int | float | str | None:
    """`--components` as PCA takes it.

    >>> number_or_rule("3"), number_or_rule("0.9"), number_or_rule("mle")
    (3, 0.9, 'mle')
    """
    if text is None or text in ("mle", "parallel", "gavish-donoho"):
        return text
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if value >= 1 and value.is_integer():
        return int(value)
    if text == "0" or 0 < value < 1:
        return value or 0
    raise ParameterError(
        f"--components {text}: give a number, a share of variance such as 0.95, or mle, parallel, gavish-donoho."
    )


def number_or_range(text: str, option: str = "--clusters") -> int | range:
    """`--clusters` or `--components`: one number, or the first and the last of several.

    >>> number_or_range("8"), number_or_range("2:12")
    (8, range(2, 13))
    """
    first, colon, last = text.partition(":")
    if first.isdecimal() and int(first) >= 1 and not colon:
        return int(first)
    if first.isdecimal() and last.isdecimal() and 1 <= int(first) < int(last):
        return range(int(first), int(last) + 1)
    raise ParameterError(f"{option} {text}: give a number such as 8, or a range such as 2:12.")


def column_list(columns: list[str] | None, file: str) -> list[str] | list[int] | None:
    """`--columns` as `scan` takes them: commas separate names, and a .npy file has positions instead.

    >>> column_list(["a, b", "c"], "x.csv"), column_list(["0,2"], "x.npy")
    (['a', 'b', 'c'], [0, 2])
    """
    if columns is None:
        return None
    names = [name.strip() for text in columns for name in text.split(",")]
    return [int(name) for name in names] if file.endswith(".npy") and all(n.isdigit() for n in names) else names


def check_outputs(file: str, *outputs: Path | None, report: Path | None = None) -> None:
    """Refuse, before any work is done, what could not be written or would overwrite the data."""
    if report is not None and report.suffix.lower() not in (".html", ".htm"):
        raise ParameterError(f"--report {report}: the report is a web page; give a name that ends in .html.")
    sources = [path for path in glob.glob(file) if os.path.exists(path)]
    for output in (*outputs, report):
        if output is None:
            continue
        if not output.absolute().parent.is_dir():
            raise ParameterError(f"{output}: the folder {output.parent} does not exist. Make it first.")
        if output.exists() and any(os.path.samefile(output, source) for source in sources):
            raise ParameterError(
                f"{output}: this is the file that is read; writing would destroy it. Give another name."
            )


@contextmanager
def left_out_quietly() -> Iterator[None]:
    """The summary names the columns that were left out; a warning as well would say it twice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        yield


def open_new_rows(model: Any, file: str, where: str | None) -> Any:
    """The columns of the fit, by name where they have names."""
    from foldwise import scan
    from foldwise.models.base import check_columns

    names = getattr(model, "feature_names_in_", None)
    with left_out_quietly():
        source = scan(file, columns=None if names is None else list(names), where=where)
    check_columns(model, source)
    return source


def write_rows(model: Any, source: Any, out: Path) -> str:
    """Stream what the model says of every row to a file; memory stays bounded."""
    from foldwise import progress
    from foldwise.report.write_rows import write_transformed

    with progress():
        rows = write_transformed(model, source, out)
    return f"{out} ({rows:,} rows)"


def checkpoint_place(checkpoint: Path | None, resume: bool, model: Path | None, out: Path | None) -> Path | None:
    """Where the state of a fit is kept: as given, or with --resume beside what is written."""
    if checkpoint is not None or not resume:
        return checkpoint
    beside = model or out
    if beside is None:
        raise ParameterError("--resume needs a place for its file: give --model or --out as well, or use --checkpoint.")
    return beside.with_name(beside.name + ".checkpoint")
