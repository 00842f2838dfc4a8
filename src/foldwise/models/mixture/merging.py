"""Components merged into clusters, two at a time, so that rows are in the least doubt (Baudry and others 2010)."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from foldwise.data.block import Block, Floats
from foldwise.data.cache import cached
from foldwise.errors import ParameterError
from foldwise.fold.passes import Passes
from foldwise.models.labelled_matrix import LabelledMatrix
from foldwise.models.mixture.predict import Posterior
from foldwise.models.parameters import is_whole
from foldwise.models.session import open_passes
from foldwise.stats.array_sum import ArraySum

_CLEAR = 0.01  # of the most there could be: with less entropy no row to speak of is in doubt, and nothing is merged


@dataclass(frozen=True)
class Merging:
    """The way from all components to one cluster: `pairs[i]` were merged when there were `numbers[i]` clusters.

    A pair names two lists of components. `entropies[i]` is how much doubt there is among `numbers[i]` clusters, summed up over
    the rows: 0 if all are sure, weight times log(number) if none knows anything. `merged_weight[i]` is the weight of the rows
    concerned by all merges down to that number.
    """

    numbers: tuple[int, ...]
    entropies: tuple[float, ...]
    merged_weight: tuple[float, ...]
    pairs: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    chosen: int
    rule: str

    @property
    def table(self) -> LabelledMatrix:
        """One line for each number of clusters."""
        values = np.column_stack([self.entropies, self.merged_weight])
        return LabelledMatrix(values, tuple(str(n) for n in self.numbers), ("entropy", "weight merged"))

    def groups(self, n_clusters: int) -> list[tuple[int, ...]]:
        """Which components make up each of that many clusters, in the order of their first ones."""
        found: set[tuple[int, ...]] = {(i,) for i in range(self.numbers[0])}
        for left, right in self.pairs[: self.numbers[0] - n_clusters]:
            found -= {left, right}
            found.add(tuple(sorted(left + right)))
        return sorted(found)


def merged(model: Any, X: Any, n_clusters: int | None, sample_weight: Any, engine: Any) -> Any:
    """A copy of the model with clusters, and how they came to be."""
    check_is_fitted(model, "weights_")
    k = len(model.weights_)
    if n_clusters is not None and (not is_whole(n_clusters) or not 1 <= n_clusters <= k):
        raise ParameterError(
            f"n_clusters={n_clusters!r}: components can be merged into 1 to {k} clusters, a whole number."
        )
    plain = copy.copy(model)
    plain.__dict__.pop("clusters_", None)
    source = plain.open_rows(X, sample_weight)
    with open_passes(source, engine=engine, n_threads=model.n_threads) as passes:
        way = _way(passes.over(cached(plain.as_compared(passes.source))), plain.posterior(source.dtype), n_clusters)
    plain.merging_ = way
    plain.clusters_ = _clusters(plain, way.groups(way.chosen))
    return plain


def _way(passes: Passes, posterior: Posterior, n_clusters: int | None) -> Merging:
    groups: list[tuple[int, ...]] = [(i,) for i in range(posterior.n_clusters)]
    numbers, entropies, weights, pairs = [len(groups)], [], [0.0], []
    while True:
        found = _Overlap.found(passes, posterior, groups)
        entropies.append(found.entropy)
        if len(groups) == 1:
            break
        i, j = found.best()
        pairs.append((groups[i], groups[j]))
        weights.append(weights[-1] + found.members[i] + found.members[j])
        both = tuple(sorted(groups[i] + groups[j]))
        groups = sorted([*(g for n, g in enumerate(groups) if n not in (i, j)), both])
        numbers.append(len(groups))
    rule = "given"
    if n_clusters is None:
        n_clusters, rule = _bend(np.array(numbers), np.array(entropies), np.array(weights), found.weight)
    return Merging(
        tuple(numbers), tuple(entropies), tuple(float(w) for w in weights), tuple(pairs), int(n_clusters), rule
    )


def _clusters(model: Any, groups: list[tuple[int, ...]]) -> Any:
    """The cluster of each component; clusters are numbered by weight."""
    size = [sum(model.weights_[c] for c in group) for group in groups]
    place = {group: n for n, group in enumerate(sorted(groups, key=lambda g: (-size[groups.index(g)], g)))}
    return np.array([next(place[g] for g in groups if c in g) for c in range(len(model.weights_))], dtype=np.int32)


@dataclass(frozen=True)
class _Overlap:
    """What one pass over the rows found for some clusters."""

    entropy: float
    gains: Floats  # by how much the entropy falls if two are merged
    members: Floats  # weights of the rows that each has
    weight: float

    @classmethod
    def found(cls, passes: Passes, posterior: Posterior, groups: list[tuple[int, ...]]) -> _Overlap:
        """By one pass."""
        k = len(groups)
        found = passes.fold(partial(_sums, posterior, groups)).value
        pairs, own = found[: k * k].reshape(k, k), found[k * k : k * k + k]
        gains = pairs - own[:, None] - own
        return cls(max(float(-own.sum()), 0.0), gains, found[k * k + k : -1], float(found[-1]))

    def best(self) -> tuple[int, int]:
        """The pair whose merging leaves the least doubt; the first of equals."""
        k = len(self.gains)
        upper = np.where(np.triu(np.ones((k, k), dtype=bool), 1), self.gains, -np.inf)
        i, j = divmod(int(np.argmax(upper)), k)
        return i, j


def _sums(posterior: Posterior, groups: list[tuple[int, ...]], block: Block) -> ArraySum:
    """Over a block: x log x of the probabilities of pairs and of single clusters, members, weight."""
    each, k = np.exp(posterior.logs(block)[1]), len(groups)
    shares = np.stack([each[:, list(group)].sum(axis=1) for group in groups], axis=1)
    w = np.ones(block.n_rows) if block.weights is None else block.weights
    pairs = np.zeros((k, k))
    for i in range(k - 1):
        pairs[i, i + 1 :] = w @ _xlogx(shares[:, i : i + 1] + shares[:, i + 1 :])
    members = np.bincount(shares.argmax(axis=1), w, minlength=k)
    return ArraySum(np.concatenate([pairs.ravel(), w @ _xlogx(shares), members, [w.sum()]]))


def _xlogx(values: Floats) -> Floats:
    return values * np.log(np.where(values > 0, values, 1.0))


def _bend(numbers: Any, entropies: Floats, weights: Floats, total: float) -> tuple[int, str]:
    """Where two straight lines fit the entropies, over the weight merged so far, best."""
    k = int(numbers[0])
    if k < 3 or entropies[0] <= _CLEAR * total * np.log(k):
        return k, "hardly a row is in doubt" if k >= 3 else "too few components for a bend"
    errors = {}
    for place in range(1, k - 1):
        errors[place] = _misfit(weights[: place + 1], entropies[: place + 1]) + _misfit(
            weights[place:], entropies[place:]
        )
    best = min(errors, key=lambda place: (errors[place], place))
    return int(numbers[best]), "bend of the entropy"


def _misfit(x: Floats, y: Floats) -> float:
    """The squared distance of points from their best straight line."""
    x, y = x - x.mean(), y - y.mean()
    square = float(x @ x)
    slope = float(x @ y) / square if square > 0 else 0.0
    left = y - slope * x
    return float(left @ left)
