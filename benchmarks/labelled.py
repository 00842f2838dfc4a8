"""Sets with known groups: published ones from ../shared/data, and made ones of many shapes, in two halves by their names.

A method is designed on one half (`is_held_out` is False) and judged on the other, which nobody looks at while designing.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn import datasets

from benchmarks.data import SHARED

Rows = tuple[np.ndarray, np.ndarray]
MOST = 5000  # rows: larger sets are thinned out evenly


class Labelled(NamedTuple):
    """A set: its name, what kind of groups it has, and how to load its rows and their groups (-1 is noise)."""

    name: str
    kind: str
    load: Callable[[], Rows]

    @property
    def is_held_out(self) -> bool:
        """Whether it belongs to the half that is not designed on."""
        return hashlib.sha256(self.name.encode()).digest()[0] % 2 == 1


# ---------------------------------------------------------------- published


def _gagolewski(folder: str, name: str) -> Rows:
    with (
        gzip.open(SHARED / folder / f"{name}.data.gz") as rows,
        gzip.open(SHARED / folder / f"{name}.labels0.gz") as labels,
    ):
        return _thinned(np.loadtxt(rows), np.loadtxt(labels, dtype=np.int64) - 1)


def _table(name: str, group: str, leave_out: tuple[str, ...] = ()) -> Rows:
    with open(SHARED / name, newline="") as file:
        lines = [line for line in csv.DictReader(file, skipinitialspace=True) if any(line.values())]
    columns = [column for column in lines[0] if column != group and column not in leave_out]
    x = np.array([[float(line[column]) for column in columns] for line in lines])
    names = np.array([line[group] for line in lines])
    y = np.unique(names, return_inverse=True)[1]
    return x, np.where(names == "Noise", -1, y)


def _scaled(load: Callable[[], Rows]) -> Rows:
    x, y = load()
    return (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0), y


def _thinned(x: np.ndarray, y: np.ndarray) -> Rows:
    step = -(-len(x) // MOST)
    return x[::step], y[::step]


_CURVED = ("atom", "chainlink", "jain", "spiral", "donut1", "donut2", "donut3", "target")
_TABLES = {
    "iris": ("Species", ()),
    "wine": ("class", ()),
    "banknote": ("Status", ()),
    "diabetes": ("class", ()),
    "fgl_glass": ("type", ()),
    "cassini": ("class", ()),
    "crabs": ("sp", ("sex", "index")),
}


def published() -> Iterator[Labelled]:
    """All labelled sets of the folder; tables also with columns scaled to unit deviation."""
    for folder in ("benchmark2d", "uci"):
        for path in sorted((SHARED / folder).glob("*.data.gz")):
            name = path.name.removesuffix(".data.gz")
            yield Labelled(name, "curved" if name in _CURVED else folder, partial(_gagolewski, folder, name))
    for name in ("donut1", "donut2", "donut3", "mouse"):
        load = partial(_table, f"benchmark2d/{name}.csv", "class")
        yield Labelled(name, "curved" if name in _CURVED else "benchmark2d", load)
    for name, (group, leave_out) in _TABLES.items():
        load = partial(_table, f"tables/{name}.csv", group, leave_out)
        yield Labelled(name, "tables", load)
        yield Labelled(f"{name}, scaled", "tables", partial(_scaled, load))


# ---------------------------------------------------------------- made


def _blobs(k: int, d: int, spread: float, seed: int) -> Rows:
    """Gaussian groups with unit deviation, centres normal with deviation `spread`, 60 rows each at least."""
    rng = np.random.default_rng([seed, k, d])
    y = rng.integers(k, size=max(300, 60 * k))
    return rng.standard_normal((len(y), d)) + rng.standard_normal((k, d))[y] * spread, y


def _two(d: int, deviation: float, tails: bool, seed: int) -> Rows:
    """Two groups of 512 rows, 100 apart in each column: normal, or with most rows near the centre and long tails."""
    rng = np.random.default_rng([seed, d, int(deviation), int(tails)])
    y = np.repeat([0, 1], 512)
    noise = rng.standard_normal((1024, d))
    if tails:
        noise *= np.abs(rng.standard_normal((1024, 1))) * np.sqrt(d) / np.linalg.norm(noise, axis=1, keepdims=True)
    return noise * deviation + 100.0 * y[:, None], y


def _line(k: int, deviation: float, seed: int) -> Rows:
    """Groups along one column, 10 apart."""
    rng = np.random.default_rng([seed, k])
    y = rng.integers(k, size=150 * k)
    return (rng.standard_normal(len(y)) * deviation + 10.0 * y)[:, None], y


def _unbalanced(k: int, d: int, seed: int) -> Rows:
    rng = np.random.default_rng([seed, k, d, 7])
    sizes = np.array([600 // 2**i + 20 for i in range(k)])
    y = np.repeat(np.arange(k), sizes)
    return rng.standard_normal((len(y), d)) + (rng.permutation(k)[:, None] * 8.0 * np.ones(d) / np.sqrt(d))[y], y


def _stretched(k: int, d: int, seed: int) -> Rows:
    """Blobs under one linear map: ellipses."""
    x, y = _blobs(k, d, 6.0, seed)
    return x @ np.random.default_rng([seed, 5]).standard_normal((d, d)), y


def _unequal(k: int, d: int, seed: int) -> Rows:
    """Blobs with deviations from 0.3 to 2."""
    rng = np.random.default_rng([seed, k, d, 9])
    y = rng.integers(k, size=100 * k)
    return rng.standard_normal((len(y), d)) * np.linspace(0.3, 2, k)[y][:, None] + rng.normal(0, 8, (k, d))[y], y


def _rings(n: int, noise: float, factor: float, strays: int, seed: int) -> Rows:
    x, y = datasets.make_circles(n, factor=factor, noise=noise, random_state=seed)
    far = np.random.default_rng(seed).uniform(-1.3, 1.3, (strays, 2))
    return np.concatenate([x, far]), np.concatenate([y, np.full(strays, -1)])


def _many_rings(k: int, seed: int) -> Rows:
    rng = np.random.default_rng([seed, k])
    y = np.repeat(np.arange(k), [150 * (i + 1) for i in range(k)])
    turn = rng.uniform(0, 2 * np.pi, len(y))
    return (y + 1.0 + rng.normal(0, 0.08, len(y)))[:, None] * np.column_stack([np.cos(turn), np.sin(turn)]), y


def _spirals(k: int, n: int, noise: float, seed: int) -> Rows:
    rng = np.random.default_rng([seed, k, n])
    y = np.repeat(np.arange(k), n)
    t = rng.uniform(0.3, 1.5, len(y))
    turn = t * 2 * np.pi + 2 * np.pi * y / k
    x = np.column_stack([t * np.cos(turn), t * np.sin(turn)])
    return x + rng.normal(0, noise, x.shape), y


def _moons(n: int, noise: float, seed: int) -> Rows:
    return datasets.make_moons(n, noise=noise, random_state=seed)


def _ring_and_blob(seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    turn = rng.uniform(0, 2 * np.pi, 300)
    ring = (4 + rng.normal(0, 0.2, 300))[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    return np.concatenate([ring, rng.standard_normal((200, 2)) * 0.6]), np.repeat([0, 1], [300, 200])


def _scattered(k: int, seed: int) -> Rows:
    """Blobs among rows from anywhere, which are nobody's."""
    x, y = _blobs(k, 2, 6.0, seed)
    stray = np.random.default_rng(seed).uniform(x.min(axis=0), x.max(axis=0), (len(x) // 10, 2))
    return np.concatenate([x, stray]), np.concatenate([y, np.full(len(stray), -1)])


def made() -> Iterator[Labelled]:
    """Blobs of many kinds, groups on a line, rings, spirals, moons."""

    def set_(kind: str, what: Callable[..., Rows], *given: float) -> Iterator[Labelled]:
        for seed in (0, 1):
            name = f"{what.__name__.strip('_').replace('_', ' ')} {' '.join(f'{each:g}' for each in given)} seed {seed}"
            yield Labelled(name, kind, partial(what, *given, seed))

    for k in range(2, 11):
        for d in (1, 2, 5, 20):
            yield from set_("blobs", _blobs, k, d, {1: 20.0, 2: 6.0}.get(d, 3.0))
    for d in (1, 2, 4, 8, 16, 64):
        for deviation in (10, 20, 30, 50):
            for tails in (0, 1):
                yield from set_("two", _two, d, deviation, tails)
    for k in (2, 3, 5, 8):
        for deviation in (0.5, 1.5, 2.5):
            yield from set_("line", _line, k, deviation)
    for k in (2, 3, 5):
        for d in (1, 2, 6):
            yield from set_("unbalanced", _unbalanced, k, d)
            yield from set_("unequal", _unequal, k, d)
        for d in (2, 6):
            yield from set_("stretched", _stretched, k, d)
    for k in (3, 6):
        yield from set_("scattered", _scattered, k)
    for n in (150, 500, 1500):
        for noise in (0.03, 0.06):
            for factor in (0.3, 0.5):
                yield from set_("curved", _rings, n, noise, factor, 0)
            yield from set_("curved", _moons, n, noise)
    yield from set_("curved", _rings, 500, 0.05, 0.5, 25)
    for k in (2, 3, 4):
        yield from set_("curved", _many_rings, k)
        yield from set_("curved", _spirals, k, 200, 0.02)
        yield from set_("curved", _spirals, k, 600, 0.03)
        yield from set_("curved", _spirals, k, 300, 0.01)
    yield from set_("curved", _ring_and_blob)
