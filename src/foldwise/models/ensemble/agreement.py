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

    A row of weight w is w rows, which are together always. NaN where there is no other row.
    """
    count = rows.clusterings.count
    sums, weights = rows.sums(labels, k)
    own = np.maximum(labels, 0)
    together = rows.times(np.ascontiguousarray(sums.T))[np.arange(rows.n), own] / count
    if rows.clusterings.soft:
        memberships = rows.clusterings.memberships()
        itself = np.einsum("ij,ij->i", memberships, memberships) / count
    else:
        itself = count / np.maximum(rows.clusterings.presence().sum(axis=1), 1)
    others = weights[own] - 1.0
    items = np.full(rows.n, np.nan)
    np.divide(together - itself, others, out=items, where=(others > 0) & (labels >= 0))
    inside = np.bincount(own[labels >= 0], (rows.weights * itself)[labels >= 0], k)
    pairs = np.einsum("kl,kl->k", sums, sums) / count - inside
    clusters = np.full(k, np.nan)
    np.divide(pairs, weights * (weights - 1.0), out=clusters, where=weights > 1.0)
    return Agreement(np.minimum(items, 1.0), np.minimum(clusters, 1.0), sums, weights)


def pair_distribution(rows: LabelRows, seed: int = 0) -> Floats:
    """The share of pairs of rows with M at most each of `LEVELS`; of pairs of 2,000 distinct label rows if there are more."""
    part = rows.sample(_MOST_PAIRED, seed)
    matrix = Coassociation(part.clusterings).toarray()
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
