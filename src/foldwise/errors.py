"""Errors and warnings. Every message says what went wrong, where, and what to do about it."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from types import FrameType


class FoldwiseError(Exception):
    """Base class of every error that Foldwise raises deliberately."""


class DataError(FoldwiseError, ValueError):
    """The data cannot be used as given.

    `where` (a file or kind of container), `row` (counted from 0, as in NumPy) and `column` (a name or number) are also
    attributes, so that programs can act on them without parsing the message.
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
    """A file changed after it was opened, so two passes over it would not see the same rows."""


class MissingFileError(DataError, FileNotFoundError):
    """The file does not exist."""


class DataTypeError(DataError, TypeError):
    """A value has a type that cannot be converted to a number, such as a dict in an object array."""


class UnavailableError(DataError, AttributeError):
    """An attribute cannot be worked out from the rows so far; `hasattr` is then False."""


class ParameterError(FoldwiseError, ValueError):
    """A parameter has an invalid value."""


class StoreError(FoldwiseError, ValueError):
    """A saved model or checkpoint cannot be written, read or used."""


class OutputError(StoreError, OSError):
    """A file cannot be written: a full disk, a folder without permission, a folder of that name. What was there is kept."""

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_output, (str(self), self.errno)


def _rebuild_output(message: str, number: int | None) -> OutputError:
    error = OutputError(message)
    error.errno = number
    return error


class EngineError(FoldwiseError, RuntimeError):
    """An engine cannot run the passes: no scheduler at the address, a closed client, a lost worker."""


class MissingDependencyError(FoldwiseError, ImportError):
    """An optional dependency is not installed; the message names the extra to install."""


class FoldwiseWarning(UserWarning):
    """Base class of every warning that Foldwise issues."""


class LeftOutWarning(FoldwiseWarning):
    """Non-numeric columns of a table were left out; name the columns to use to silence this warning."""


class ReadingWarning(FoldwiseWarning):
    """While a file was read, rows far down turned out not to be like those before; it says what was done about them."""


class NotFinishedWarning(FoldwiseWarning):
    """A fit stopped before it converged (iteration limit, time budget or Ctrl-C); its `outcome_` says which."""


class UncheckedFileWarning(FoldwiseWarning):
    """A saved file has no digest, since an older version wrote it, so that damage to it would not be noticed."""


_HERE = os.path.dirname(__file__) + os.sep
# What may stand between a line of the user and ours: wrappers of methods, context managers, and threads that work for a fit.
_BETWEEN = {"sklearn", "joblib", "contextlib", "functools", "threading", "concurrent", "importlib"}


def warn(message: str, category: type[Warning] = FoldwiseWarning) -> None:
    """Warn, and point at the line outside Foldwise that led here, however deep below it we are.

    A line in a thread that works for a fit was called by no line of the user: then it is that of the main thread.
    """
    frame = _outside(sys._getframe(1)) or _outside(sys._current_frames().get(threading.main_thread().ident or 0))
    if frame is None:
        warnings.warn(message, category, stacklevel=2)
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    module = frame.f_globals.get("__name__") or "<string>"
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, module, registry)


def _outside(frame: FrameType | None) -> FrameType | None:
    """The first of a frame and its callers that is neither ours nor a wrapper's."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if not frame.f_code.co_filename.startswith(_HERE) and package not in _BETWEEN:
            return frame
        frame = frame.f_back
    return None
