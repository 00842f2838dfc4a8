"""Sets for choosing the number of clusters: Gaussian groups of many sizes and shapes, published sets, and noise.

Half of the sets with clusters are held out, by a hash of their names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks import data

KINDS = ("equal", "sizes", "spreads", "shapes", "all")
NOISE = ("cube", "ball", "round", "long", "skewed", "heavy")


class Known(NamedTuple):
    """A set with a known number of clusters, and the largest number to try."""

    name: str
    k: int
    load: Callable[[], np.ndarray]
    most: int = 20

    @property
    def held_out(self) -> bool:
        """Whether the set was put aside while the votes were designed."""
        return bool(hashlib.sha256(self.name.encode()).digest()[0] & 1)


def gaussian_groups(k: int, d: int, kind: str, apart: float, seed: int) -> np.ndarray:
    """Groups whose nearest pair is `apart`, in units of the mean of both deviations along the line between them.

    Groups differ by kind in size (down to a quarter of the mean), spread (0.5 to 2) and shape (deviations of 0.4 to 1.6 along
    axes of their own). There are 150 rows a group 4 apart, and 60 if they are farther.
    """
    rng = np.random.default_rng([k, d, KINDS.index(kind), int(10 * apart), seed])
    n = max(300, (150 if apart <= 4 else 60) * k)
    sizes = rng.dirichlet(np.full(k, 2.0)) if kind in ("sizes", "all") else np.full(k, 1 / k)
    sizes = np.maximum(sizes, 0.25 / k)
    counts = np.maximum(rng.multinomial(n, sizes / sizes.sum()), 10)
    maps = []
    for _ in range(k):
        own = np.eye(d)
        if kind in ("shapes", "all"):
            own = np.linalg.qr(rng.standard_normal((d, d)))[0] * np.exp(rng.uniform(np.log(0.4), np.log(1.6), d))
        maps.append(own * (np.exp(rng.uniform(np.log(0.5), np.log(2))) if kind in ("spreads", "all") else 1.0))
    centres = rng.standard_normal((k, d))

    def gap(a: int, b: int) -> float:
        way = centres[b] - centres[a]
        length = np.linalg.norm(way)
        return float(2 * length / sum(np.linalg.norm(maps[one].T @ (way / length)) for one in (a, b)))

    centres *= apart / min(gap(a, b) for a in range(k) for b in range(a))
    rows = [centres[j] + rng.standard_normal((counts[j], d)) @ maps[j].T for j in range(k)]
    return rng.permutation(np.concatenate(rows))


def made() -> Iterator[Known]:
    """125 sets of 2 to 12 clusters in 2 to 50 columns."""
    number = 0
    for k in (2, 3, 5, 8, 12):
        for d in (2, 5, 10, 20, 50):
            for kind in KINDS:
                apart = (4.0, 5.0, 6.0)[number % 3]
                number += 1
                yield Known(f"{kind}, k={k}, d={d}, {apart:g} apart", k, partial(gaussian_groups, k, d, kind, apart, 0))


def published() -> Iterator[Known]:
    """S, A, R15, D31 and Birch, with as many more clusters to try as there are."""
    known = {f"s{i}": 15 for i in (1, 2, 3, 4)} | {"a1": 20, "a2": 35, "a3": 50, "r15": 15, "d31": 31}
    known |= {"birch1": 100, "birch2": 100}
    for name, k in known.items():
        yield Known(
            name, k, lambda name=name: data.plane(name)[0], {15: 25, 20: 30, 31: 40, 35: 45, 50: 60, 100: 110}[k]
        )


def noise(kind: str, n: int, d: int, seed: int) -> np.ndarray:
    """Rows without clusters."""
    rng = np.random.default_rng([seed, n, d, NOISE.index(kind)])
    normal = rng.standard_normal((n, d))
    if kind == "cube":
        return rng.random((n, d))
    if kind == "ball":
        return normal / np.linalg.norm(normal, axis=1, keepdims=True) * rng.random((n, 1)) ** (1 / d)
    if kind == "long":
        return normal * np.concatenate([[5.0], np.ones(d - 1)])
    if kind == "skewed":
        return rng.gamma(2.0, size=(n, d))
    if kind == "heavy":
        return normal / np.sqrt(rng.chisquare(3, (n, 1)) / 3)
    return normal


def touching(n: int, d: int, seed: int) -> np.ndarray:
    """Two normal groups of equal size, four standard deviations apart."""
    rng = np.random.default_rng([seed, n, d, 99])
    x = rng.standard_normal((n, d))
    x[::2, 0] += 4.0
    return x
