"""K-means for every number of clusters, shared by all criteria, and the parallel work that they are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from foldwise.data.block import Floats
from foldwise.models.kmeans import KMeans
from foldwise.selection.clusters.rows import Rows, uninterrupted

State: TypeAlias = dict[str, NDArray[Any]]
Labels: TypeAlias = NDArray[np.intp]

_THOROUGH = 1 << 23  # rows x columns x clusters up to which the clusters that are judged are searched for
_OFTEN = 1 << 18  # the same for the many fits to parts of the rows and to references


@dataclass(frozen=True)
class Task:
    """A piece of work whose results are arrays by name; pieces do not depend on each other beyond the sweep's own fits."""

    name: str
    run: Callable[[], Mapping[str, Any]]


@dataclass(frozen=True)
class Sweep:
    """The rows, the numbers of clusters (rising, from 1), the seed, and what has been computed so far."""

    rows: Rows
    ks: tuple[int, ...]
    seed: int
    state: State
    _cache: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def several(self) -> tuple[int, ...]:
        """The numbers above 1."""
        return tuple(k for k in self.ks if k > 1)

    def centres(self, k: int) -> Floats:
        """The best centres of k clusters."""
        return np.asarray(self.state[f"centres {k}"])

    def labels(self, k: int) -> Labels:
        """The cluster of each row."""
        return np.asarray(self.remember(f"labels {k}", lambda: nearest(self.rows.x, self.centres(k))))

    def remember(self, name: str, make: Callable[[], Any]) -> Any:
        """What several tasks need, made once; two that make it at the same time make the same."""
        if name not in self._cache:
            self._cache[name] = make()
        return self._cache[name]

    def log_inertia(self, k: int) -> float:
        """The logarithm of the inertia of k clusters."""
        return log_inertia(self.rows, self.centres(k))

    @cached_property
    def fits(self) -> list[Task]:
        """The fits to all rows, one for each number."""
        return [Task(f"centres {k}", lambda k=k: {f"centres {k}": self._fit(k)}) for k in self.ks]  # type: ignore[misc]

    def _fit(self, k: int) -> Floats:
        search = "breathing" if self.rows.x.size * k <= _THOROUGH else "none"
        found = fitted(self.rows, k, self.seed, search)
        return found if search == "breathing" else better(self.rows, found, fitted(self.rows, k, self.seed + 1, search))

    def quick(self, rows: Rows, k: int, *seed: int) -> Floats:
        """Centres of parts of the rows, or of references: a start or two, and a brief search where that is fast."""
        number = int(np.random.default_rng([self.seed, *seed]).integers(1 << 31))
        if rows.x.size * k <= _OFTEN:
            return fitted(rows, k, number, "auto")
        return better(rows, fitted(rows, k, number, "none"), fitted(rows, k, number + 1, "none"))


def fitted(rows: Rows, k: int, seed: int, search: str) -> Floats:
    """The centres of one fit."""
    if k == 1:
        return np.asarray(np.average(rows.x, axis=0, weights=rows.weights)[None])
    return _centres(KMeans(k, search=search, random_state=seed, n_threads=1), rows)


def refitted(rows: Rows, centres: Floats) -> Floats:
    """The centres that these rows lead to from given ones, cluster by cluster."""
    return _centres(KMeans(len(centres), init=centres, n_init=1, search="none", n_threads=1), rows)


def _centres(model: KMeans, rows: Rows) -> Floats:
    model.fit(rows.x, sample_weight=rows.weights)
    uninterrupted(model)
    return np.asarray(model.cluster_centers_)


def better(rows: Rows, one: Floats, other: Floats) -> Floats:
    """Those of two sets of centres with the lower inertia."""
    return other if inertia(rows, other) < inertia(rows, one) else one


def squared_distances(x: Floats, centres: Floats) -> Floats:
    """From each row to each centre, by differences: products would cancel where groups are far from the mean."""
    return np.asarray(cdist(x, centres, "sqeuclidean"))


def nearest(x: Floats, centres: Floats) -> Labels:
    """The nearest centre of each row."""
    return np.asarray(squared_distances(x, centres).argmin(axis=1))


def inertia(rows: Rows, centres: Floats) -> float:
    """The weighted sum of squared distances to the nearest centre."""
    return float(squared_distances(rows.x, centres).min(axis=1) @ rows.weight)


def log_inertia(rows: Rows, centres: Floats) -> float:
    """Its logarithm, for rows that need not differ."""
    return float(np.log(max(inertia(rows, centres), 1e-300)))


def contingency(one: Labels, other: Labels, k: int, weights: Floats) -> Floats:
    """The weight of the rows in each pair of clusters."""
    return np.asarray(np.bincount(one * k + other, weights, minlength=k * k).reshape(k, k), dtype=np.float64)
