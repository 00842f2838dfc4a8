"""Labels of any kind as numbers from 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.errors import DataError, ParameterError

_MOST_GAPS = 4  # times as many possible numbers as rows, up to which labels are looked up in a table instead of sorted


def numbered(labels: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """The number of each label among the distinct ones in rising order, and these.

    >>> numbers, names = numbered(np.array(["b", "a", "b"]))
    >>> numbers.tolist(), names.tolist()
    ([1, 0, 1], ['a', 'b'])
    """
    if labels.dtype.kind in "iu" and len(labels):
        least, most = int(labels.min()), int(labels.max())
        if most - least < _MOST_GAPS * len(labels) + 1024:
            wide = (
                labels if labels.dtype.itemsize == 8 else labels.astype(np.int64)
            )  # a narrow difference may wrap around
            shifted = (wide - wide.dtype.type(least)).astype(np.int32)
            present = np.flatnonzero(np.bincount(shifted))
            if len(present) <= most - least:
                place = np.zeros(most - least + 1, dtype=np.int32)
                place[present] = np.arange(len(present), dtype=np.int32)
                shifted = place[shifted]
            # In the labels' own type: numbers beyond 2^63 have no place in int64.
            return shifted, (present.astype(wide.dtype) + wide.dtype.type(least)).astype(labels.dtype)
    try:
        found, numbers = np.unique(labels, return_inverse=True)
    except TypeError:
        raise DataError(
            "labels of different types cannot be told apart in a fixed order",
            advice="Make them all text, or all numbers",
        ) from None
    return numbers.astype(np.int32), found


def one_per_row(labels: Any, name: str = "labels") -> NDArray[Any]:
    """Labels as an array with one entry per row."""
    given = np.asarray(labels)
    if given.ndim != 1:
        raise ParameterError(f"{name} of shape {given.shape}: pass one label per row.")
    return given


def is_missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels are NaN, None, NaT or pandas.NA."""
    if labels.dtype.kind == "f":
        return np.asarray(np.isnan(labels))
    if labels.dtype.kind in "mM":
        return np.asarray(np.isnat(labels))
    if labels.dtype.kind == "O":
        return np.array([means_missing(one) for one in labels], dtype=bool)
    return np.zeros(len(labels), dtype=bool)


def means_missing(one: Any) -> bool:
    """Whether a label is None, or not equal to itself, as NaN.

    >>> means_missing(float("nan")), means_missing("")
    (True, False)
    """
    try:
        return one is None or bool(one != one)
    except TypeError:  # pandas.NA does not even say that
        return True


def not_ignored(labels: NDArray[Any], ignore: Any) -> NDArray[np.bool_]:
    """Which labels are not `ignore` (NaN: not missing); missing ones are refused otherwise."""
    missing = is_missing(labels)
    if ignore is not None and means_missing(ignore):
        return ~missing
    if missing.any():
        raise DataError(
            "a label is missing",
            row=int(np.argmax(missing)),
            advice='Leave such rows out with ignore=float("nan")',
        )
    return np.ones(len(labels), dtype=bool) if ignore is None else np.asarray(labels != ignore)
