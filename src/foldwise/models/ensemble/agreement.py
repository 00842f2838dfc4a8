"""How far the clusterings of an ensemble agree: on each row, on each cluster, and over all pairs of rows (CDF and PAC)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foldwise.data.block import Floats
from foldwise.kernels.targets import Labels
from foldwise.models.ensemble.consensus_matrix import Coassociation
from foldwise.models.ensemble.label_rows import LabelRows

LEVELS = np.linspace(0.0, 1.0, 101)  # at which the distribution of M is kept
AMBIGUOUS = (0.1, 0.9)
_MOST_PAIRED = 2000  # rows whose pairs are all looked at


@dataclass(frozen=True)
class Agreement:
    """Item consensus (of distinct label rows) and cluster consensus, with the sums they follow from."""

    items: Floats
    clusters: Floats
    sums: Floats
    weights: Floats


def agreement_of(rows: LabelRows, labels: Labels, k: int) -> Agreement:
    """The mean co-association of each row with the other rows of its cluster, and of each cluster over its pairs of rows.

    A row of weight w is w rows, which are together always (if soft, as often as sum_l P(l)^2). NaN where there is no other row.
    With missing labels and more than 2,000 distinct label rows, M of two rows is estimated from the products of rows that are
    scaled (see `Clusterings.memberships`): as if labels were missing at random.
    """
    sums, weights = rows.sums(labels, k)
    own, counted = np.maximum(labels, 0), np.where(labels >= 0, rows.weights, 0.0)
    together, itself = _exactly(rows, own, counted, k) if _few_and_missing(rows) else _by_sums(rows, own, sums)
    others = weights[own] - 1.0
    items = np.full(rows.n, np.nan)
    np.divide(together - itself, others, out=items, where=(others > 0) & (labels >= 0))
    pairs = np.bincount(own, counted * (together - itself), k)
    clusters = np.full(k, np.nan)
    np.divide(pairs, weights * (weights - 1.0), out=clusters, where=weights > 1.0)
    return Agreement(np.minimum(items, 1.0), np.minimum(clusters, 1.0), sums, weights)


def _few_and_missing(rows: LabelRows) -> bool:
    return rows.n <= _MOST_PAIRED and not rows.clusterings.complete


def _exactly(rows: LabelRows, own: Labels, counted: Floats, k: int) -> tuple[Floats, Floats]:
    """The sum of M of each row over its cluster, with itself once for all its weight; and M of the row with itself."""
    matrix = Coassociation(rows.clusterings, "formula")
    members = np.zeros((rows.n, k))
    members[np.arange(rows.n), own] = counted
    return (matrix @ members)[np.arange(rows.n), own], matrix.diagonal()


def _by_sums(rows: LabelRows, own: Labels, sums: Floats) -> tuple[Floats, Floats]:
    """The same from the sums of the rows of B in the clusters."""
    count = rows.clusterings.count
    together = rows.times(np.ascontiguousarray(sums.T))[np.arange(rows.n), own] / count
    if rows.clusterings.soft:
        memberships = rows.clusterings.memberships()
        return together, np.einsum("ij,ij->i", memberships, memberships) / count
    return together, count / np.maximum(rows.clusterings.presence().sum(axis=1), 1)


def pair_distribution(rows: LabelRows, seed: int = 0) -> Floats:
    """The share of pairs of rows with M at most each of `LEVELS`; of 2,000 rows if more label rows are distinct."""
    part = rows.sample(_MOST_PAIRED, seed)
    matrix = Coassociation(part.clusterings, "formula").toarray()  # equal rows are pairs of different ones
    pairs = np.outer(part.weights, part.weights)
    np.fill_diagonal(pairs, np.maximum(part.weights * (part.weights - 1.0), 0.0))
    return distribution(matrix, pairs)


def distribution(matrix: Floats, pairs: Floats | None = None) -> Floats:
    """The share of the entries of M that are at most each of `LEVELS`."""
    # Values are shares of T: rounding must not carry one over a level.
    level = np.ceil(matrix.ravel() * (len(LEVELS) - 1) - 1e-9).astype(np.intp)
    found = np.bincount(np.clip(level, 0, len(LEVELS) - 1), None if pairs is None else pairs.ravel(), len(LEVELS))
    return np.asarray(np.cumsum(found) / max(float(found.sum()), 1e-300))


def pac_of(cdf: Floats) -> float:
    """The proportion of ambiguous clustering: the share of pairs that are together in more than 10 % and less than 90 %.

    >>> round(pac_of(distribution(np.array([0.0, 0.1, 0.5, 0.9, 1.0]))), 3)
    0.2
    """
    low, high = (round(level * (len(LEVELS) - 1)) for level in AMBIGUOUS)
    return float(cdf[high - 1] - cdf[low])
