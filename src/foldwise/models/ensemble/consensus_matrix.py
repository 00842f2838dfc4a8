"""The consensus matrix M of several clusterings, as an operator: how often two rows are in the same cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from foldwise.data.block import Floats
from foldwise.errors import DataError, ParameterError
from foldwise.models.ensemble.clusterings import Clusterings, read_clusterings
from foldwise.reportable import Reportable

_MOST_DENSE = 20_000  # rows: 3.2 GB
_MOST_MULTIPLIED = 50_000  # rows with missing labels, whose products take n^2 steps
_AT_ONCE = 1 << 23  # entries computed at a time


class Coassociation(Reportable, LinearOperator):  # type: ignore[misc]
    """M(i, j): the share of clusterings in which rows i and j are in the same cluster, of those in which both have a label.

    For soft clusterings, the mean of sum_l P(l | i) P(l | j). It is an operator, as of `scipy.sparse.linalg`: `M @ v` never
    forms the n x n matrix and takes n x T steps (n x n, in little memory, if labels are missing). `M[i, j]` gives entries, with
    whole numbers, slices or arrays; `toarray()` the matrix, if it is not too large. Entries are exact in every case.

    `diagonal`: "one" has M(i, i) = 1 throughout; "formula" has sum_l P(l | i)^2 for soft clusterings, which is less where a row
    belongs to several clusters. Of rows without any label it is 0.
    """

    def __init__(self, clusterings: Clusterings, diagonal: str = "one") -> None:
        if diagonal not in ("one", "formula"):
            raise ParameterError(f"diagonal must be 'one' or 'formula', but is {diagonal!r}.")
        n = clusterings.n_rows
        super().__init__(np.dtype(np.float64), (n, n))
        self.clusterings, self.diagonal_kind = clusterings, diagonal
        self._rows = clusterings.memberships(scaled=False)
        self._present = clusterings.presence().astype(np.float64)

    @property
    def n_clusterings(self) -> int:
        """How many clusterings there are."""
        return self.clusterings.count

    def diagonal(self) -> Floats:
        """M(i, i) of every row."""
        some = self._present.any(axis=1)
        if self.diagonal_kind == "one" or not self.clusterings.soft:
            return np.asarray(some, dtype=np.float64)
        squares = np.einsum("ij,ij->i", self._rows, self._rows)
        return np.asarray(squares / np.maximum(self._present.sum(axis=1), 1.0))

    def entries(self, first: NDArray[np.intp], second: NDArray[np.intp]) -> Floats:
        """M for these rows and these columns."""
        together = self._rows[first] @ self._rows[second].T
        together = together.toarray() if hasattr(together, "toarray") else together
        both = self._present[first] @ self._present[second].T
        found = np.divide(together, both, out=np.zeros(both.shape), where=both > 0)
        if self.diagonal_kind == "one" and self.clusterings.soft:
            same = first[:, None] == second
            if same.any():
                found[same] = np.broadcast_to(self.diagonal()[first][:, None], found.shape)[same]
        return np.asarray(found)

    def __getitem__(self, key: Any) -> Any:
        """M[i, j], or M[i] for whole rows; also with slices and arrays of row numbers."""
        row, column = key if isinstance(key, tuple) else (key, slice(None))
        chosen = [np.arange(self.shape[0])[one] for one in (row, column)]
        found = self.entries(*(np.atleast_1d(one) for one in chosen))
        if chosen[0].ndim == chosen[1].ndim == 0:
            return float(found[0, 0])
        if chosen[1].ndim == 0:
            found = found[:, 0]
        return found[0] if chosen[0].ndim == 0 else found

    def toarray(self) -> Floats:
        """The whole matrix."""
        n = self.shape[0]
        if n > _MOST_DENSE:
            raise DataError(
                f"the matrix of {n:,} rows would take {8e-9 * n * n:,.0f} GB",
                advice="Use M @ v, M[rows, columns] of some rows, or fw.ClusterEnsemble, which does without it",
            )
        everything = np.arange(n)
        return self.entries(everything, everything)

    def _matmat(self, other: NDArray[Any]) -> Floats:
        given, other = self.clusterings, np.asarray(other, dtype=np.float64)
        if given.complete:
            product = np.asarray(self._rows @ (self._rows.T @ other)) / given.count
            if given.soft and self.diagonal_kind == "one":
                formula = np.einsum("ij,ij->i", self._rows, self._rows) / given.count
                product += (1.0 - formula)[:, None] * other
            return product
        n = self.shape[0]
        if n > _MOST_MULTIPLIED:
            raise DataError(
                f"with missing labels, a product of the matrix of {n:,} rows takes {n:,} x {n:,} steps",
                advice="Merge equal rows first, or take a sample of the rows",
            )
        step, everything = max(_AT_ONCE // n, 1), np.arange(n)
        parts = [self.entries(everything[at : at + step], everything) @ other for at in range(0, n, step)]
        return np.concatenate(parts)

    def _matvec(self, other: NDArray[Any]) -> Floats:
        return self._matmat(np.reshape(other, (-1, 1)))[:, 0]

    def _adjoint(self) -> Coassociation:
        return self

    def _transpose(self) -> Coassociation:
        return self


def coassociation(labels: Any, *, soft: bool = False, diagonal: str = "one") -> Coassociation:
    """The consensus matrix of ready-made clusterings, as an operator that never holds n x n numbers.

    Parameters
    ----------
    labels : a matrix with a row for each instance and a column for each clustering: an array, a data frame, or a file of such
        columns. Clusters need not correspond, nor be as many, in different columns; -1 and NaN are missing labels. With
        `soft`, a list of matrices of probabilities (instances x clusters), one for each clustering.
    soft : whether `labels` are probabilities.
    diagonal : "one", or "formula" for sum_l P(l | i)^2 (see `Coassociation`).

    >>> import foldwise as fw
    >>> M = fw.coassociation([[1, 2], [1, 1], [2, 1]])
    >>> M[0, 1], M.toarray()
    (0.5, array([[1. , 0.5, 0. ],
           [0.5, 1. , 0.5],
           [0. , 0.5, 1. ]]))
    """
    return Coassociation(read_clusterings(labels, soft=soft), diagonal)
