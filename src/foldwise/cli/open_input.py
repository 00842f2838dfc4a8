"""From a file and the options that say how to read it to a source of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foldwise.cli.options import FileOptions, Input, column_list, scan_quietly, split
from foldwise.errors import DataError, ParameterError

if TYPE_CHECKING:
    from foldwise.data.reading import Reading


def open_input(file: str | list[str], given: Input) -> Any:
    """A table with a recipe; arrays and images as they are."""
    from foldwise import prepare
    from foldwise.data.array_files import is_array_file

    if is_array_file(file, given.table):
        _refuse_for_arrays(given)
        chosen = column_list(given.columns, file)
        return scan_quietly(file, columns=chosen, where=given.where, weights=given.weights, reading=given.reading())
    return prepare(file, **preparing(given))


def preparing(given: Input) -> dict[str, Any]:
    """The options as `fw.prepare` takes them."""
    return {
        "columns": None if given.columns is None else split(given.columns),
        "exclude": split(given.exclude or []),
        "ids": split(given.id_ or []),
        "labels": split(given.label or []),
        "as_": kinds_asked(given.as_ or []),
        "categories": given.categories,
        "whole": given.whole,
        "where": given.where,
        "weights": given.weights,
        "reading": given.reading(),
    }


def open_column(file: str, column: str | None, where: str | None, weights: str | None, options: FileOptions) -> Any:
    """One column, by its name or, in an array, its position; the only column of numbers if none is given."""
    from foldwise import prepare
    from foldwise.data.array_files import is_array_file
    from foldwise.data.single_column import scan_column

    if is_array_file(file, options.table):
        if where is not None or weights is not None:
            return scan_quietly(
                file, columns=None if column is None else [_place(column)], where=where, weights=weights
            )
        return scan_column(file, column=None if column is None else _place(column))
    chosen: dict[str, Any] = {} if column is None else {"columns": [column], "as_": {column: "number"}}
    return prepare(file, where=where, weights=weights, reading=options.reading(), **chosen)


def _place(column: str) -> str | int:
    return int(column) if column.isdigit() else column


def open_new_rows(model: Any, file: str, where: str | None, reading: Reading) -> Any:
    """The rows that a saved model is applied to, prepared as those of its fit."""
    from foldwise.data.array_files import is_array_file
    from foldwise.models.base import check_columns, warn_of_unseen

    recipe, needed = getattr(model, "recipe_", None), getattr(model, "columns_needed", None)
    if recipe is not None and not is_array_file(file, reading.table):
        source = recipe.only(needed).open(file, where=where, reading=reading if reading.given else None)
        warn_of_unseen(source)
        return source
    names = getattr(model, "feature_names_in_", None) if needed is None else needed
    try:
        source = scan_quietly(file, columns=None if names is None else list(names), where=where, reading=reading)
    except DataError as error:
        raise _as_in_the_fit(error, model, reading) from error
    if needed is None:
        check_columns(model, source)
    return source


def _as_in_the_fit(error: DataError, model: Any, reading: Reading) -> DataError:
    """An error on images that differ, whose advice is the size and the kind of the images that the model knows."""
    shape: tuple[int, ...] | None = getattr(model, "image_shape_", None)
    if shape is None or not (error.advice or "").startswith(("image_size=", "grey=")):
        return error
    size = f"{shape[1]}x{shape[0]}"
    ways = [f"image_size='{size}'"] if reading.image_size != (shape[1], shape[0]) else []
    ways += ["grey=True"] if len(shape) == 2 and not reading.grey else []
    kind = "grey" if len(shape) == 2 else "with colours"
    advice = f"The model was fitted to images of {shape[1]} x {shape[0]}, {kind}"
    return DataError(error.what, where=error.where, advice=f"{advice}: use {' and '.join(ways)}" if ways else advice)


def _refuse_for_arrays(given: Input) -> None:
    about = {"--exclude": given.exclude, "--id": given.id_, "--label": given.label, "--as": given.as_}
    if used := [option for option, value in about.items() if value]:
        raise ParameterError(
            f"{', '.join(used)}: the columns of arrays and images have no names. Use --columns with positions."
        )


def kinds_asked(texts: list[str]) -> dict[str, str]:
    """`--as` as `fw.prepare` takes it.

    >>> kinds_asked(["zip=category, when=month"])
    {'zip': 'category', 'when': 'month'}
    """
    found = {}
    for text in split(texts):
        name, equals, kind = text.rpartition("=")
        if not equals or not name or not kind:
            raise ParameterError(f"--as {text}: give the column and what it is, as in --as zip=category.")
        found[name.strip()] = kind.strip()
    return found
