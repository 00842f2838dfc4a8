"""The numbers of clusters: by size, the largest first, whatever the order of the rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.kernels.targets import Labels

_DIGITS = 9


def by_size(
    members: Labels, weights: Floats, k: int, rows: Block | None = None, norms: Floats | None = None
) -> NDArray[np.intp]:
    """Clusters from the largest to the smallest; equal ones by their least row, which does not depend on the rows' order.

    Without `rows`, equal ones are ordered by the squared lengths of their means, the longest first; then by their first row.
    """
    counted = np.flatnonzero(weights > 0)
    first = np.full(k, len(members))
    np.minimum.at(first, members[counted], counted)
    totals = _rounded(np.asarray(np.bincount(members, weights, minlength=k), dtype=np.float64))
    place = np.zeros(k, dtype=np.intp)
    if rows is not None:
        for total in np.unique(totals):
            tied = np.flatnonzero((totals == total) & (first < len(members)))
            if len(tied) > 1:
                place[tied] = _by_least_row(tied, members, counted, rows)
    lengths = np.zeros(k) if norms is None or rows is not None else _rounded(norms)
    return np.lexsort((first, place, -lengths, -totals))


def _by_least_row(tied: NDArray[np.intp], members: Labels, counted: NDArray[np.intp], rows: Block) -> NDArray[np.intp]:
    """The places of some clusters by their least rows: column by column, or of sparse rows by one number for each."""
    own = [counted[members[counted] == cluster] for cluster in tied]
    if rows.sparse:
        # Each row's own sum over its values, in their order: the same wherever the row stands.
        values = np.asarray(rows.unchecked @ np.random.default_rng(0).standard_normal(rows.n_columns))
        return _ranks(np.array([[values[each].min()] for each in own]))
    table = rows.unchecked
    return _ranks(np.array([table[_least(table, each)] for each in own]))


def _least(table: NDArray[np.floating], which: NDArray[np.intp]) -> int:
    """The number of the least of some rows, in lexicographic order."""
    for column in range(table.shape[1]):
        if len(which) == 1:
            break
        values = table[which, column]
        which = which[values == values.min()]
    return int(which[0])


def _ranks(keys: Floats) -> NDArray[np.intp]:
    """The rank of each key in lexicographic order; equal keys have equal ranks."""
    return np.asarray(np.unique(keys, axis=0, return_inverse=True)[1].ravel(), dtype=np.intp)


def _rounded(values: Floats) -> Floats:
    """Without the digits that the order of additions may change."""
    with np.errstate(divide="ignore"):
        size = np.floor(np.log10(np.abs(values)))
    scale = 10.0 ** (_DIGITS - np.where(np.isfinite(size), size, 0.0))
    return np.asarray(np.round(values * scale) / scale)
