"""Many small and middling data sets: those of ../shared/data with numbers in them, and made ones of awkward shapes.

Half of them are held out: `is_held_out` goes by the name, so nobody chooses.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks import data

_NOISE = 0.02


class Set(NamedTuple):
    """A data set: how to get its rows (float64), and the numbers of clusters to look for."""

    name: str
    load: Callable[[], np.ndarray]
    ks: tuple[int, ...]

    @property
    def held_out(self) -> bool:
        """Whether the set was put aside while the searches were designed."""
        return bool(zlib.crc32(self.name.encode()) & 1)


def all_sets() -> Iterator[Set]:
    """Every set whose files are there."""
    for one in (*_planes(), *_tables(), *_others(), *_made()):
        try:
            one.load()
        except FileNotFoundError:
            continue
        yield one


# ---------------------------------------------------------------- of the shared data

_PLANES = {
    "a1": 20,
    "a2": 35,
    "a3": 50,
    "s1": 15,
    "s2": 15,
    "s3": 15,
    "s4": 15,
    "unbalance": 8,
    "r15": 15,
    "d31": 31,
    "aggregation": 7,
    "spiral": 3,
    "flame": 2,
    "jain": 2,
    "atom": 2,
    "chainlink": 2,
    "hepta": 7,
    "lsun": 3,
    "tetra": 4,
    "target": 6,
    "twodiamonds": 2,
    "engytime": 2,
    "wingnut": 2,
    "birch1": 100,
    "birch2": 100,
}


def _planes() -> Iterator[Set]:
    for name, k in _PLANES.items():
        ks = (k,) if k > 30 else tuple(sorted({k, 5, 12, 25}))
        yield Set(name, partial(_plane, name), ks)
    for name in ("donut1", "donut2", "donut3", "mouse"):
        yield Set(name, partial(_csv, f"benchmark2d/{name}.csv"), (3, 10, 20))


def _plane(name: str) -> np.ndarray:
    return data.plane(name)[0]


_TABLES = ("iris", "faithful", "usarrests", "precip", "rivers", "swiss", "mtcars", "eurodist", "decathlon", "fgl_glass")
_TABLES += ("galaxies", "geyser", "crabs", "quine", "ruspini", "banknote", "diabetes", "groundbeef", "cassini", "wine")
_UCI = ("glass", "ionosphere", "wdbc", "ecoli")


def _tables() -> Iterator[Set]:
    for name in _TABLES:
        yield Set(name, partial(_csv, f"tables/{name}.csv"), (2, 3, 5, 8, 12))
        yield Set(f"{name} scaled", partial(_scaled, partial(_csv, f"tables/{name}.csv")), (3, 6, 10))
    for name in _UCI:
        yield Set(name, partial(_text, f"uci/{name}.data.gz"), (2, 6, 15))
        yield Set(f"{name} scaled", partial(_scaled, partial(_text, f"uci/{name}.data.gz")), (3, 8, 20))
    yield Set("oilflow", partial(_oil_flow), (3, 10, 30))


def _others() -> Iterator[Set]:
    yield Set("optdigits", partial(_optdigits), (10, 30))
    yield Set("genes", partial(_genes), (5, 20))
    yield Set("faces in 30 components", partial(_faces), (10, 40))
    yield Set("embeddings in 20 components", partial(_posts), (20, 60))


def _csv(path: str) -> np.ndarray:
    """The columns of numbers."""
    table = np.genfromtxt(data.SHARED / path, delimiter=",", skip_header=1, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    numbers = table[:, np.isfinite(table).all(axis=0)]
    if not numbers.shape[1]:
        raise ValueError(f"{path} has no complete column of numbers")
    return np.ascontiguousarray(numbers)


def _text(path: str) -> np.ndarray:
    with gzip.open(data.SHARED / path) as file:
        return np.loadtxt(file)


def _oil_flow() -> np.ndarray:
    return np.loadtxt(data.SHARED / "tables" / "oilflow_DataTrn.txt")


def _optdigits() -> np.ndarray:
    with gzip.open(data.SHARED / "digits" / "optdigits_8x8.csv.gz") as file:
        return np.loadtxt(file, delimiter=",")[:, :64]


def _genes() -> np.ndarray:
    with gzip.open(data.SHARED / "genes" / "golub_3051x38.csv.gz", "rt") as file:
        table = np.genfromtxt(file, delimiter=",", skip_header=1)
    return np.ascontiguousarray(table[:, np.isfinite(table).all(axis=0)])


def _faces() -> np.ndarray:
    with np.load(data.SHARED / "faces" / "olivetti_64x64.npz") as file:
        return _components(file["images"].reshape(400, -1).astype(np.float64), 30)


def _posts() -> np.ndarray:
    return _components(data.embeddings().astype(np.float64), 20)


def _components(x: np.ndarray, count: int) -> np.ndarray:
    x = x - x.mean(axis=0)
    left, values, _ = np.linalg.svd(x, full_matrices=False)
    return np.ascontiguousarray(left[:, :count] * values[:count])


def _scaled(load: Callable[[], np.ndarray]) -> np.ndarray:
    x = load()
    deviation = x.std(axis=0)
    return (x - x.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


# ---------------------------------------------------------------- made


def _made() -> Iterator[Set]:
    for seed, (n, d, k) in enumerate(
        [
            (100, 2, 3),
            (300, 1, 4),
            (500, 5, 8),
            (1000, 10, 20),
            (2000, 2, 40),
            (5000, 3, 10),
            (400, 20, 6),
            (3000, 8, 30),
        ]
    ):
        yield Set(f"blobs {n} x {d}", partial(_blobs, n, d, k, seed), (k, k // 2 + 1, 2 * k))
        yield Set(f"unequal blobs {n} x {d}", partial(_unequal, n, d, k, seed), (k, 2 * k))
    for n, d in [(150, 1), (400, 2), (1000, 3), (800, 10), (4000, 2)]:
        yield Set(f"uniform {n} x {d}", partial(_uniform, n, d), (4, 9, 20))
        yield Set(f"heavy tails {n} x {d}", partial(_heavy, n, d), (3, 8, 20))
    for n in (300, 1500):
        yield Set(f"rings {n}", partial(_rings, n), (3, 8, 15, 30))
        yield Set(f"zigzag {n}", partial(_zigzag, n), (3, 8, 15, 30))
        yield Set(f"spirals {n}", partial(_spirals, n), (2, 6, 20))
        yield Set(f"grid {n}", partial(_grid, n), (4, 7, 16, 25))
        yield Set(f"moons {n}", partial(_moons, n), (2, 5, 16))
    yield Set("whole numbers", lambda: np.floor(3 * _blobs(600, 2, 5, 9)), (3, 5, 10))
    yield Set("one far outlier", lambda: np.vstack([_blobs(500, 2, 6, 10), [[1e6, -1e6]]]), (3, 7, 12))
    yield Set("collinear", lambda: _blobs(500, 1, 6, 11) @ np.ones((1, 4)), (3, 6, 12))


def _blobs(n: int, d: int, k: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, n, d, k])
    return rng.normal(size=(k, d))[rng.integers(k, size=n)] * 4 + rng.normal(size=(n, d))


def _unequal(n: int, d: int, k: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, n, d, k, 1])
    member = rng.choice(k, size=n, p=rng.dirichlet(np.full(k, 0.5)))
    width = rng.lognormal(0, 1, size=k)
    return rng.normal(size=(k, d))[member] * 4 + rng.normal(size=(n, d)) * width[member, None]


def _uniform(n: int, d: int) -> np.ndarray:
    return np.random.default_rng([n, d]).random((n, d))


def _heavy(n: int, d: int) -> np.ndarray:
    return np.random.default_rng([n, d, 2]).standard_t(2.0, size=(n, d))


def _rings(n: int) -> np.ndarray:
    rng = np.random.default_rng([n, 3])
    radius, angle = rng.choice([1.0, 2.0, 3.0], size=n), rng.uniform(0, 2 * np.pi, size=n)
    return radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]) + _NOISE * rng.normal(size=(n, 2))


def _zigzag(n: int) -> np.ndarray:
    rng = np.random.default_rng([n, 4])
    t = rng.uniform(0, 6, size=n)
    return np.column_stack([t, np.abs(t % 2 - 1)]) + _NOISE * rng.normal(size=(n, 2))


def _spirals(n: int) -> np.ndarray:
    rng = np.random.default_rng([n, 5])
    t, arm = rng.uniform(1, 9, size=n), rng.integers(2, size=n) * np.pi
    return t[:, None] * np.column_stack([np.cos(t + arm), np.sin(t + arm)]) + 5 * _NOISE * rng.normal(size=(n, 2))


def _grid(n: int) -> np.ndarray:
    side = int(np.sqrt(n))
    return np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2).astype(np.float64)


def _moons(n: int) -> np.ndarray:
    rng = np.random.default_rng([n, 6])
    t, lower = rng.uniform(0, np.pi, size=n), rng.integers(2, size=n)
    x, y = np.where(lower, 1 - np.cos(t), np.cos(t)), np.where(lower, 0.5 - np.sin(t), np.sin(t))
    return np.column_stack([x, y]) + 3 * _NOISE * rng.normal(size=(n, 2))
