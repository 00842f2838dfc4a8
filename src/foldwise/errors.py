"""What can go wrong, said so that the reader knows what, where and what to do about it."""

from __future__ import annotations


class FoldwiseError(Exception):
    """Base of every error that Foldwise raises on purpose."""


class DataError(FoldwiseError, ValueError):
    """The data cannot be used as they are.

    `where` (a file or kind of container), `row` (counted from 0, as NumPy does) and `column` (a name or number) are kept as
    attributes so that programs can act on them; the message says all of it to people.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        row: int | None = None,
        column: str | int | None = None,
        advice: str | None = None,
    ) -> None:
        self.what, self.where, self.row, self.column, self.advice = what, where, row, column, advice
        place = []
        if where:
            place.append(where)
        if row is not None:
            place.append(f"row {row} (counting from 0)")
        if column is not None:
            place.append(f"column {column!r}")
        message = f"{', '.join(place)}: {what}" if place else what
        super().__init__(f"{message}. {advice}" if advice else message)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.where, self.row, self.column, self.advice)


def _rebuild(
    kind: type[DataError], what: str, where: str | None, row: int | None, column: str | int | None, advice: str | None
) -> DataError:
    return kind(what, where=where, row=row, column=column, advice=advice)


class SourceChangedError(DataError):
    """A file is not what it was when it was opened, so two passes over it would not see the same rows."""


class MissingFileError(DataError, FileNotFoundError):
    """There is no such file."""


class DataTypeError(DataError, TypeError):
    """A value is of a kind that cannot be a number, such as a dict in an array of objects."""


class ParameterError(FoldwiseError, ValueError):
    """A parameter has a value that cannot be meant."""


class StoreError(FoldwiseError, ValueError):
    """A saved model or checkpoint cannot be written, read or used here."""


class MissingDependencyError(FoldwiseError, ImportError):
    """An optional package is needed for what was asked; the message names the extra to install."""


class FoldwiseWarning(UserWarning):
    """Base of every warning that Foldwise gives."""


class LeftOutWarning(FoldwiseWarning):
    """Columns that are not numbers were left out of a table; name the wanted ones to silence it."""


class NotFinishedWarning(FoldwiseWarning):
    """A fit stopped before it converged (cap on iterations, time budget or Ctrl-C); its `outcome_` says which."""
