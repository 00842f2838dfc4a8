"""`foldwise look`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from foldwise.cli.options import FILE_OPTIONS, File, FileOptions

AS = Annotated[list[str] | None, Parameter(name="--as", help=
    "What a column is, as in --as zip=category: number, category, boolean, identifier, date or text.")]  # fmt: skip


def look(
    file: File, /, *, as_: AS = None, json: bool = False, values: bool = False, options: FileOptions = FILE_OPTIONS
) -> int:
    """Show what a table holds, column by column: kinds, missing cells, ranges, levels, and what to watch out for.

    Parameters
    ----------
    json
        Print the same as JSON: rows, columns and warnings, or the error.
    values
        With --json: every cell of each column as it was understood.
    """
    import foldwise as fw
    from foldwise.cli.open_input import kinds_asked
    from foldwise.cli.output import as_json, show
    from foldwise.cli.words import as_options
    from foldwise.errors import FoldwiseError, ParameterError
    from foldwise.report.look_images import MixedImageLook

    if values and not json:
        raise ParameterError("--values: the cells are part of the JSON; give --json too.")
    try:
        found = fw.look(file, as_=kinds_asked(as_ or []), reading=options.reading())
        text = as_json(found.as_dict(values=values)) if json else f"{found}\n"
        if not json and isinstance(
            found, MixedImageLook
        ):  # which says what to ask for; cells of tables stay as they are
            text = as_options(text)
    except FoldwiseError as error:
        if not json:
            raise
        show(as_json({"error": str(error)}))
        return 2
    failure = show(text)
    if failure is not None:
        raise failure
    return 0
