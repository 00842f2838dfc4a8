"""Several clusterings of the same rows: hard labels or soft memberships, side by side, with missing labels allowed."""

from __future__ import annotations

import numbers
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from foldwise.data.block import Floats
from foldwise.data.missing import allow_missing
from foldwise.data.scan import is_table, scan
from foldwise.errors import DataError

_SUM_TO_ONE = 1e-3  # how far the probabilities of a row may be from it, as they are often rounded
_MOST_MERGED = 1 << 26  # values of soft memberships: beyond, looking for equal rows costs more than it saves


@dataclass(frozen=True)
class Clusterings:
    """T clusterings of n rows. `values` are labels (n x T, numbered from 0 in each clustering, -1 if missing) or, if `soft`,
    probabilities (n x L, those of all clusterings side by side; a clustering in which a row is missing has zeros).

    `sizes` has the number of clusters of each clustering; L is their sum.
    """

    values: NDArray[Any]
    sizes: tuple[int, ...]
    soft: bool = False

    @property
    def n_rows(self) -> int:
        """How many rows were clustered."""
        return len(self.values)

    @property
    def count(self) -> int:
        """T, the number of clusterings."""
        return len(self.sizes)

    @property
    def total(self) -> int:
        """L, the number of clusters of all clusterings."""
        return sum(self.sizes)

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """Where the clusters of each clustering begin among all L."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.intp)

    def presence(self, values: NDArray[Any] | None = None) -> NDArray[np.bool_]:
        """In which clusterings each row (of these values) has a label."""
        values = self.values if values is None else values
        if not self.soft:
            return np.asarray(values >= 0)
        return np.asarray(np.add.reduceat(values, self.starts, axis=1) > 0)

    @cached_property
    def complete(self) -> bool:
        """Whether no label is missing."""
        return bool(self.presence().all())

    def some(self, which: Any) -> Clusterings:
        """Some of the rows."""
        return replace(self, values=np.ascontiguousarray(self.values[which]))

    def memberships(self, values: NDArray[Any] | None = None, *, scaled: bool = True) -> Any:
        """B for all rows or for these values: a CSR matrix of zeros and ones, or an array if soft.

        If `scaled`, the row of an instance that is present in p < T clusterings is multiplied by T / p, so that the inner
        product of two rows, divided by T, is the share of clusterings that agree: exactly if at least one of the two is present
        in all, and otherwise what is expected of clusterings that are missing at random.
        """
        values = self.values if values is None else values
        present = self.presence(values)
        filled = bool(present.all())
        factor = self.count / np.maximum(present.sum(axis=1), 1) if scaled and not filled else np.ones(len(values))
        if self.soft:
            return values if filled or not scaled else values * factor[:, None]
        cells = values.astype(np.int32) + self.starts.astype(np.int32)
        ends = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int32)
        weights = np.broadcast_to(factor[:, None], values.shape)[present]
        return sp.csr_array((weights, cells[present], ends), shape=(len(values), self.total))


def read_clusterings(labels: Any, *, soft: bool = False) -> Clusterings:
    """Clusterings as they are given: a matrix of labels (a column for each clustering), a file of such columns, or matrices of
    probabilities (rows x clusters, one for each clustering)."""
    return _soft(labels) if soft else _hard(labels)


def _hard(labels: Any) -> Clusterings:
    where, names = None, None
    if (isinstance(labels, (str, os.PathLike)) and is_table(labels)) or hasattr(labels, "pieces"):
        labels, where, names = _from_source(labels)
    table = np.asarray(labels.to_numpy() if hasattr(labels, "to_numpy") else labels)
    if table.ndim == 1 and (table.dtype != object or hasattr(labels, "to_numpy")):  # else lists of different lengths
        table = table[:, None]
    if table.ndim != 2 or 0 in table.shape:
        raise DataError(
            f"labels have the shape {table.shape}, but a row for each instance and a column for each clustering are needed",
            advice="Use numpy.column_stack([labels_1, labels_2, ...])",
        )
    columns = [_codes(table[:, t], t if names is None else names[t], where) for t in range(table.shape[1])]
    sizes = tuple(int(column.max(initial=-1)) + 1 for column in columns)
    return Clusterings(np.column_stack(columns), tuple(max(size, 1) for size in sizes))


def _from_source(labels: Any) -> tuple[NDArray[Any], str, tuple[str, ...] | None]:
    source = allow_missing(scan(labels, columns=None))
    if source.left_out:
        raise DataError(
            f"labels must be numbers, but these columns are not: {', '.join(source.left_out[:5])}",
            where=source.where,
            advice="Leave them out with fw.scan(..., columns=[...]), or number their clusters",
        )
    return np.concatenate([piece.load().dense() for piece in source.pieces()]), source.where, source.names


def _codes(column: NDArray[Any], name: Any, where: str | None) -> NDArray[np.int32]:
    """Labels of any kind as numbers from 0 in their order; -1, NaN, None, NA and empty texts are missing."""
    missing = np.zeros(len(column), dtype=bool)
    if column.dtype.kind not in "biuf":
        column = column.astype(object)
        missing = np.array([_absent(one) for one in column], dtype=bool)
        column, missing = _as_numbers(column, missing)
    if column.dtype.kind in "if":
        missing = missing | (column == -1)
        wrong = ~missing & (column < 0)
        if column.dtype.kind == "f":
            missing = missing | np.isnan(column)
            wrong |= np.isinf(column) | ~missing & (np.trunc(column) != column)
        if wrong.any():
            raise DataError(
                f"{column[int(np.argmax(wrong))]} is not a label",
                where=where,
                row=int(np.argmax(wrong)),
                column=name,
                advice="Labels are whole numbers, or -1 or NaN if missing; give probabilities as matrices with soft=True",
            )
    codes = np.full(len(column), -1, dtype=np.int32)
    if not missing.all():
        codes[~missing] = np.unique(column[~missing], return_inverse=True)[1]
    return codes


def _absent(one: Any) -> bool:
    different = one != one  # NaN is, and the NA of data frames is neither different nor the same
    return one is None or not isinstance(different, (bool, np.bool_)) or bool(different) or one == ""


def _as_numbers(column: NDArray[Any], missing: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Objects as numbers if they all are, else as texts, in which 1 and 1.0 are the same."""
    number = np.array([isinstance(one, (numbers.Real, np.bool_)) for one in column], dtype=bool) & ~missing
    if (number | missing).all():
        whole = all(isinstance(one, numbers.Integral) for one in column[~missing])
        try:
            return np.where(missing, -1, column).astype(np.int64 if whole else np.float64), missing
        except OverflowError:  # whole numbers of more than 64 bits
            pass
    missing = missing | np.array([known and one == -1 for known, one in zip(number, column, strict=True)], dtype=bool)
    texts = [
        str(int(one)) if known and one == one // 1 else str(one) for known, one in zip(number, column, strict=True)
    ]
    return np.array(texts, dtype=object), missing


def _soft(matrices: Any) -> Clusterings:
    if not isinstance(matrices, Sequence) or not len(matrices):
        raise DataError(
            "soft clusterings are a list of matrices, one for each clustering",
            advice="Pass [P_1, P_2, ...] with a row for each instance and a column for each cluster",
        )
    parts: list[Floats] = []
    for t, given in enumerate(matrices):
        part = np.array(given, dtype=np.float64)
        if part.ndim != 2 or 0 in part.shape or len(part) != len(parts[0] if parts else part):
            rows = f" and {len(parts[0])} rows" if parts else ""
            raise DataError(
                f"matrix {t} of probabilities has the shape {part.shape}, but two dimensions{rows} are needed"
            )
        missing = np.isnan(part).all(axis=1)
        part[missing] = 0.0
        wrong = ~missing & ~((part >= 0).all(axis=1) & (np.abs(part.sum(axis=1) - 1.0) <= _SUM_TO_ONE))
        if wrong.any():
            raise DataError(
                f"matrix {t} of probabilities has a row that is negative or does not sum to 1",
                row=int(np.argmax(wrong)),
                advice="A row may be NaN throughout, which means that it is missing",
            )
        parts.append(part)
    return Clusterings(np.column_stack(parts), tuple(part.shape[1] for part in parts), soft=True)


# ---------------------------------------------------------------- equal rows


def distinct_rows(given: Clusterings, weights: Floats | None = None) -> tuple[Clusterings, Floats, NDArray[np.intp]]:
    """The distinct rows in the order of their values, their weights, and the number of each row's own."""
    if given.soft and given.values.size > _MOST_MERGED:
        ones = np.ones(given.n_rows) if weights is None else weights
        return given, ones, np.arange(given.n_rows)
    first, inverse = _unique_rows(given)
    counted = np.bincount(inverse, weights, minlength=len(first)).astype(np.float64)
    return given.some(first), counted, inverse


def _unique_rows(given: Clusterings) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first of each kind of row, and the kind of each row."""
    if given.soft:
        _, first, inverse = np.unique(given.values, axis=0, return_index=True, return_inverse=True)
        return first, inverse.ravel()
    words = _packed(given)
    order = np.argsort(words[0], kind="stable") if len(words) == 1 else np.lexsort(words[::-1])
    new = np.zeros(given.n_rows, dtype=bool)
    new[:1] = True
    for word in words:
        ordered = word[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    inverse = np.empty(given.n_rows, dtype=np.intp)
    inverse[order] = np.cumsum(new) - 1
    return order[new], inverse


def _packed(given: Clusterings) -> list[NDArray[np.uint64]]:
    """Each row as a few whole numbers that sort as it does: sorting them is many times faster than sorting rows."""
    words: list[NDArray[np.uint64]] = []
    room = 0.0
    for t, size in enumerate(given.sizes):
        bits = float(np.log2(size + 2))
        if room < bits:
            words.append(np.zeros(given.n_rows, dtype=np.uint64))
            room = 63.0
        words[-1] *= np.uint64(size + 1)
        words[-1] += (given.values[:, t] + 1).astype(np.uint64)
        room -= bits
    return words
