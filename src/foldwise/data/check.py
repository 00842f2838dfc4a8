"""Validation of data. All checks are made here, so that each has one wording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from foldwise import kernels
from foldwise.errors import DataError, DataTypeError

MISSING_ADVICE = "missing='model' lets a model deal with missing cells, 'mean' fills them, 'drop' leaves their rows out"
_SHAPE_ADVICE = "Rows are samples, columns are features"


def two_dimensional(shape: tuple[int, ...], where: str) -> None:
    """Refuse anything that is not two-dimensional."""
    if len(shape) == 2:
        return
    if len(shape) > 2:
        raise DataError(
            f"Found array with dim {len(shape)}. A two-dimensional table is expected",
            where=where,
            advice="Pass array.reshape(len(array), -1), or images as fw.scan(array, image_size=(width, height))",
        )
    got = "1D array" if shape else "scalar array"
    raise DataError(
        f"Expected 2D array, got {got} instead (shape={shape})",
        where=where,
        advice="Reshape your data either using array.reshape(-1, 1) if your data has a single feature "
        "or array.reshape(1, -1) if it contains a single sample.",
    )


def not_empty(n_rows: int | None, n_columns: int, where: str) -> None:
    """Refuse a table with no rows or no columns."""
    if n_rows == 0:
        found = f"Found array with 0 sample(s) (shape=(0, {n_columns}))"
    elif n_columns == 0:
        found = f"Found array with 0 feature(s) (shape=({n_rows}, 0))"
    else:
        return
    raise DataError(f"{found} while a minimum of 1 is required", where=where, advice=_SHAPE_ADVICE)


def no_match(condition: str, where: str) -> NoReturn:
    """Refuse a condition that leaves nothing."""
    raise DataError(
        f"no row satisfies where={condition!r}: 0 sample(s) are left",
        where=where,
        advice="Check the condition; text is compared in single quotes, with capital letters as they are",
    )


def number_kind(dtype: np.dtype[Any], where: str) -> None:
    """Refuse non-numeric dtypes; text and objects are converted value by value later."""
    if dtype.kind == "c":
        raise DataError("Complex data not supported", where=where, advice="Pass real and imaginary parts as columns")
    if dtype.names is not None:
        raise DataError(
            "a structured array is not a table of numbers", where=where, advice="Pass pandas.DataFrame(array)"
        )
    if dtype.kind not in "biufOUST":
        raise DataError(f"values of dtype {dtype} are not numbers", where=where, advice="Convert them to numbers first")


def float_dtype(dtype: Any) -> np.dtype[np.floating] | None:
    """The requested dtype: None, float32 or float64."""
    if dtype is None:
        return None
    for possible in (np.dtype(np.float32), np.dtype(np.float64)):
        if np.dtype(dtype) == possible:
            return possible
    raise DataError(f"dtype={np.dtype(dtype)} is not supported", advice="Use float32 or float64, or leave it out")


def label(column: int, names: Sequence[str] | None, positions: Sequence[int] | None = None) -> str | int:
    """How messages refer to a column: by its name, or by its position in the data as given."""
    if names is not None:
        return names[column]
    return column if positions is None else int(positions[column])


def bad_value(value: float, dtype: np.dtype[Any], *, where: str, row: int | None, column: str | int) -> NoReturn:
    """Refuse a NaN or an infinity."""
    if np.isnan(value):
        raise DataError("Input contains NaN", where=where, row=row, column=column, advice=MISSING_ADVICE)
    raise DataError(
        f"Input contains infinity or a value too large for {dtype!r}",
        where=where,
        row=row,
        column=column,
        advice="Remove, cap or rescale such values",
    )


@dataclass(frozen=True)
class Finite:
    """Raises for a block with a NaN or an infinity, and reports its position."""

    where: str
    names: Sequence[str] | None = None
    positions: Sequence[int] | None = None

    def __call__(self, values: NDArray[Any], start: int) -> None:
        """Check the values of a block whose first row is row `start` of the data."""
        at = kernels.finite(values)
        if at >= 0:
            row, column = divmod(at, values.shape[1])
            value, name = float(values[row, column]), label(column, self.names, self.positions)
            bad_value(value, values.dtype, where=self.where, row=start + row, column=name)


def as_numbers(
    values: NDArray[Any],
    dtype: np.dtype[np.floating],
    *,
    start: int,
    where: str,
    column: Any = None,
) -> NDArray[Any]:
    """Objects or text converted to numbers, or an error naming the first value that is not one.

    `column(j)` is the name of column j of `values`.
    """
    if values.dtype.kind == "T":  # with missing values it cannot be converted directly
        values = values.astype(object)
    try:
        return values.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        for (i, j), value in np.ndenumerate(values):
            try:
                float(value)
            except (TypeError, ValueError, OverflowError) as problem:
                not_a_number(value, problem, where=where, row=start + i, column=column(j) if column else j)
        raise


def is_missing(value: object) -> bool:
    """Whether it is one of the objects that stand for a missing value."""
    return type(value).__name__ in ("NAType", "NoneType", "NaTType")


def not_a_number(
    value: object,
    problem: Exception | None,
    *,
    where: str,
    row: int | None,
    column: str | int,
    extra: str = "",
) -> NoReturn:
    """Refuse a value that is not a number."""
    if is_missing(value):
        raise DataError("Input contains NaN", where=where, row=row, column=column, advice=MISSING_ADVICE) from None
    kind = DataTypeError if isinstance(problem, TypeError) else DataError
    reason = f" ({problem})" if isinstance(problem, TypeError) else ""
    raise kind(
        f"{_short(value)} is not a number{extra}{reason}",
        where=where,
        row=row,
        column=column,
        advice="Replace it, or leave the column out with columns=",
    ) from None


def _short(value: object) -> str:
    text = repr(str(value) if isinstance(value, np.str_) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def names(found: Sequence[Any], where: str) -> tuple[str, ...] | None:
    """Column names by scikit-learn's rules: all strings or none, and no duplicates."""
    texts = [isinstance(name, str) for name in found]
    if not any(texts):
        return None
    if not all(texts):
        other = found[texts.index(False)]
        raise DataError(
            f"column names must all be text, or none of them; {other!r} is {type(other).__name__}",
            where=where,
            advice="Rename the columns, for instance frame.columns = frame.columns.astype(str)",
        )
    seen: set[str] = set()
    for name in found:
        if name in seen:
            raise DataError(f"two columns are named {name!r}", where=where, column=name, advice="Rename one of them")
        seen.add(name)
    return tuple(found)


def weights(given: Any, where: str, n_rows: int | None) -> NDArray[np.float64]:
    """Weights as float64: one per row (or one number for all), finite, non-negative and not all zero."""
    if isinstance(given, np.ma.MaskedArray) and np.ma.getmaskarray(given).any():
        row = int(np.argmax(np.ma.getmaskarray(given).ravel()))
        raise DataError(
            "this weight is masked", where=where, row=row, advice="Fill it: weights.filled(0) leaves the row out"
        )
    try:
        values = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise DataError(f"the weights are not numbers ({problem})", where=where) from None
    if isinstance(given, (int, float, np.number)) and n_rows is not None:
        values = np.full(n_rows, values.item())
    if values.ndim != 1:
        raise DataError(f"there must be one weight per row; the shape of the weights is {values.shape}", where=where)
    if n_rows is not None and len(values) != n_rows:
        weight_count(len(values), n_rows, where)
    weight_values(values, 0, where)
    if not values.any():
        raise DataError("all weights are zero", where=where, advice="At least one row must have a positive weight")
    return values


def weight_count(n_weights: int, n_rows: int, where: str) -> NoReturn:
    """Refuse weights whose number differs from the number of rows."""
    raise DataError(
        f"{n_weights} weights were given for {n_rows} rows",
        where=where,
        advice="Pass one weight for each row that is read (after where=)",
    )


def weight_values(values: NDArray[np.float64], start: int, where: str, column: str | None = None) -> None:
    """Refuse weights that are negative, NaN or infinite."""
    good = np.isfinite(values) & (values >= 0)
    if not good.all():
        row = int(np.argmin(good))
        raise DataError(
            f"the weight {values[row]} is not a finite number of at least 0",
            where=where,
            row=start + row,
            column=column,
            advice="A weight is the number of times its row counts",
        )
