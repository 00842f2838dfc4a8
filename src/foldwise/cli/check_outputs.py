"""Refuse, before any work is done, what could not be written, or would overwrite the data or another output."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from pathlib import Path

from foldwise.cli.options import Output
from foldwise.errors import OutputError, ParameterError


def check_outputs(
    file: str,
    output: Output,
    checkpoint: Path | None = None,
    *,
    model: Path | None = None,
    rows: bool = True,
    more: Mapping[str, Path] | None = None,
) -> None:
    """Check what a command that reads `file` (and `model`) is to write; with `rows`, --out has one line for each row.

    `more` are further outputs by their options, or these outputs by the options that they have in a command of its own ways.
    """
    from foldwise.data.atomic import Replacement
    from foldwise.data.files import output_format_of
    from foldwise.data.inputs import files_read

    given = {"--out": output.out, "--model": output.model, "--report": output.report, "--checkpoint": checkpoint}
    given |= more or {}
    outputs = {option: os.path.expanduser(path) for option, path in given.items() if path is not None}
    if output.report is not None and output.report.suffix.lower() not in (".html", ".htm"):
        raise ParameterError(f"--report {output.report}: the report is a web page; give a name that ends in .html.")
    if output.out is not None and rows:
        output_format_of(os.fspath(output.out))
    for option, path in outputs.items():
        try:
            Replacement(path).close()  # the only sure way to learn whether there may be a file
        except OutputError as error:
            raise OutputError(f"{option} {error}") from error
    for (option, path), (other, another) in itertools.combinations(outputs.items(), 2):
        if _same(path, another):
            raise ParameterError(f"{option} {path} and {other} {another} are the same file. Give two names.")
    existing = {option: path for option, path in outputs.items() if os.path.exists(path)}
    sources = files_read(file) if existing else []
    if model is not None:
        sources.append(os.fspath(model))
    for option, path in existing.items():
        if any(_same(path, source) for source in sources):
            raise ParameterError(
                f"{option} {path}: this is the input file; writing would destroy it. Give another name."
            )


def refuse_all_columns(keep: str) -> None:
    """An error for --keep all where --out has columns of the file itself, which would be written twice."""
    if keep == "all":
        raise ParameterError(
            "--keep all: --out has the chosen columns, beside identifiers and labels; the file itself has all."
        )


def _same(path: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two paths lead to the same file, by links of any kind, or would if it existed."""
    if os.path.exists(path) and os.path.exists(other):
        return os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)
