"""Moves from one mixture to another with as many components: two are merged and a third is split (Ueda and others 2000)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from foldwise.data.block import Floats
from foldwise.models.mixture.search_rows import Model, Runs, SearchRows

_SPLITS, _MERGES = 5, 4  # candidates of each
_APART = 0.8  # of a standard deviation: halves of a component are moved so far to either side
_NARROW, _WIDE = 0.3, 1.7  # of the covariance: a core and what is around it


class Move(NamedTuple):
    """Merge two components, and split another along its longest axis (0), the next (1), or into core and surroundings (-1)."""

    first: int
    second: int
    split: int
    how: int


class Posteriors:
    """Who is responsible for which row in a model, and what follows from it."""

    def __init__(self, runs: Runs, model: Model) -> None:
        self.rows, self.model = runs.rows, model
        kind, x = self.rows.covariance, self.rows.x
        whiten = kind.whiten(model.covariances)
        compared = kind.components(model.weights, model.means, whiten, np.zeros(x.shape[1]), np.dtype(np.float64))
        self.total, self.logs = np.empty(len(x)), np.empty((len(x), len(model.weights)))
        compared.logs(x, self.total, self.logs)
        self.shares = np.exp(self.logs)
        if self.rows.weights is not None:
            self.shares *= self.rows.weights[:, None]
        self.counts = np.maximum(self.shares.sum(axis=0), 1e-300)

    def moves(self, most: int) -> list[Move]:
        """The most promising ones first: components whose rows look least like them, pairs that share most rows."""
        k, d = len(self.counts), self.rows.x.shape[1]
        # The divergence of the rows of a component, as weighted points, from its density; rows counted twice are two points.
        log_density = self.logs + self.total[:, None] - np.log(self.model.weights)
        misfit = (self.shares / self.counts * (self.logs - np.log(self.counts) - log_density)).sum(axis=0)
        together = self.shares.T @ self.shares
        size = np.sqrt(np.maximum(np.diagonal(together), 1e-300))
        upper = np.triu_indices(k, 1)
        order = np.argsort(-(together / size / size[:, None])[upper], kind="stable")
        pairs = [(int(upper[0][i]), int(upper[1][i])) for i in order[: 4 * _MERGES]]
        ways = (0,) if self.rows.covariance.shared else (0, -1)
        ways = (*ways, 1) if d > 1 else ways
        ranked = []
        for split_rank, split in enumerate(np.argsort(-misfit, kind="stable")[:_SPLITS]):
            others = [pair for pair in pairs if split not in pair][:_MERGES]
            for merge_rank, (first, second) in enumerate(others):
                for way_rank, how in enumerate(ways):
                    rank = split_rank + merge_rank + way_rank
                    ranked.append((rank, way_rank, split_rank, Move(first, second, int(split), how)))
        return [move for *_, move in sorted(ranked)[:most]]

    def apply(self, runs: Runs, move: Move) -> Model:
        """The model after a move: a start for a run."""
        kind, (_, weights, means, covariances) = self.rows.covariance, self.model
        weights, means = weights.copy(), means.copy()
        matrices = np.array(kind.matrices(covariances, len(weights)))
        a, b, split, how = move
        both = weights[a] + weights[b]
        mean = (weights[a] * means[a] + weights[b] * means[b]) / both
        apart_a, apart_b = means[a] - mean, means[b] - mean
        matrices[a] = (
            weights[a] * (matrices[a] + np.outer(apart_a, apart_a))
            + weights[b] * (matrices[b] + np.outer(apart_b, apart_b))
        ) / both
        weights[a], means[a] = both, mean
        left, right = halves(self._own(split), how)
        middle = means[split].copy()
        for number, (away, matrix) in zip((split, b), (left, right), strict=True):
            means[number], matrices[number] = middle + away, matrix
        weights[split] /= 2
        weights[b] = weights[split]
        if kind.shared:
            return Model(-np.inf, weights, means, covariances)
        return runs.model(weights, means, matrices)

    def _own(self, j: int) -> Floats:
        """The covariance matrix of a component's rows, whatever shape its type allows."""
        away, share = self.rows.x - self.model.means[j], self.shares[:, j] / self.counts[j]
        return np.asarray((away * share[:, None]).T @ away)


def halves(covariance: Floats, how: int) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Two components, as moves of the mean and covariances, with about the same moments as one."""
    if how < 0:
        nowhere = np.zeros(len(covariance))
        return (nowhere, _NARROW * covariance), (nowhere, _WIDE * covariance)
    values, vectors = np.linalg.eigh(covariance)
    along = vectors[:, -1 - how] * math.sqrt(max(float(values[-1 - how]), 0.0)) * _APART
    along = along * np.sign(along[np.argmax(np.abs(along))] or 1.0)  # whichever way round the axis was found
    less = covariance - np.outer(along, along)
    return (along, less), (-along, less)


def in_two(rows: SearchRows, runs: Runs, how: int) -> Model:
    """One component for all rows, split: starts for two."""
    w = np.full(len(rows.x), 1.0 / len(rows.x)) if rows.weights is None else rows.weights / rows.weights.sum()
    mean = w @ rows.x
    (left, first), (right, second) = halves(rows.whole, how)
    return runs.model(np.full(2, 0.5), np.stack([mean + left, mean + right]), np.stack([first, second]))
