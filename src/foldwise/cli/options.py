"""What several commands take, and what they do with it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter

from foldwise.errors import LeftOutWarning, ParameterError

File: TypeAlias = str
Columns: TypeAlias = Annotated[
    list[str] | None,
    Parameter(help="Columns to use, repeated or as a list: --columns a --columns b. Default: all that are numbers."),
]
Where: TypeAlias = Annotated[str | None, Parameter(help='Only rows for which this SQL condition holds, as in "x > 0".')]
Weights: TypeAlias = Annotated[str | None, Parameter(help="A column that says how many times each row counts.")]
Threads: TypeAlias = Annotated[int | None, Parameter(help="Threads to use; the result does not depend on it.")]


def number_or_rule(text: str | None) -> int | float | str | None:
    """`--components` as PCA takes it.

    >>> number_or_rule("3"), number_or_rule("0.9"), number_or_rule("mle")
    (3, 0.9, 'mle')
    """
    if text is None or text in ("mle", "parallel", "gavish-donoho"):
        return text
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ParameterError(
            f"--components {text}: give a number, a share of variance such as 0.95, or mle, parallel, gavish-donoho."
        ) from None


@contextmanager
def left_out_quietly() -> Iterator[None]:
    """The summary names the columns that were left out; a warning as well would say it twice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        yield


def open_new_rows(model: Any, file: str, where: str | None) -> Any:
    """The columns of the fit, by name where they have names."""
    from foldwise import scan

    names = getattr(model, "feature_names_in_", None)
    with left_out_quietly():
        return scan(file, columns=None if names is None else list(names), where=where)


def write_rows(model: Any, source: Any, out: Path) -> str:
    """Stream what the model says of every row to a file; memory stays bounded."""
    from foldwise import progress
    from foldwise.report.rows import write_transformed

    with progress():
        rows = write_transformed(model, source, out)
    return f"{out} ({rows:,} rows)"
