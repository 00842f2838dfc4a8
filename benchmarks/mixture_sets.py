"""The sets that mixtures are compared on: all of shared data that has numbers, and made ones; half are held out.

Which half a set is in follows from its name alone. The search of GaussianMixture was designed on the design half.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.data import SHARED, digits, embeddings, plane

_ROWS = 10_000  # larger published sets are thinned to about this many rows: ten starts elsewhere take minutes


class MixtureSet(NamedTuple):
    """Rows, and how many components to look for."""

    name: str
    load: Callable[[], tuple[np.ndarray, int]]

    @property
    def held_out(self) -> bool:
        """Half of the sets, by a hash of their names."""
        return hashlib.sha256(self.name.encode()).digest()[0] % 2 == 1


def all_sets() -> Iterator[MixtureSet]:
    """Every set once, in a fixed order."""
    for name in _PLANE:
        yield MixtureSet(name, partial(_plane, name))
    for name, k in (("mouse", 4), ("donut1", 2), ("donut2", 2), ("donut3", 3)):
        yield MixtureSet(name, partial(_loose, name, k))
    for name in ("ecoli", "glass", "ionosphere", "wdbc"):
        yield MixtureSet(name, partial(_uci, name))
    for name, k in _TABLES.items():
        yield MixtureSet(name, partial(_table, "tables", name, k))
    for name, k in _MIXED.items():
        yield MixtureSet(name, partial(_table, "tables-mixed", name, k))
    yield MixtureSet("oilflow", lambda: (np.loadtxt(SHARED / "tables" / "oilflow_DataTrn.txt"), 3))
    for d in (2, 5, 10, 20):
        yield MixtureSet(f"optdigits, {d} directions", partial(_reduced, "optdigits", d, 10))
    for d, k in ((5, 10), (10, 10), (10, 25), (30, 10)):
        yield MixtureSet(f"mnist, {d} directions, k={k}", partial(_reduced, "mnist", d, k))
    for name, d, k in (("faces", 4, 5), ("genes", 4, 6), ("news", 5, 20), ("news", 20, 10)):
        yield MixtureSet(f"{name}, {d} directions", partial(_reduced, name, d, k))
    for name in ("china.jpg", "flower.jpg", "astronaut.png", "hubble_deep_field.jpg"):
        for k in (5, 16):
            yield MixtureSet(f"{name}, k={k}", partial(_pixels, name, k))
    for name, make in _MADE.items():
        yield MixtureSet(name, make)


# ---------------------------------------------------------------- published

_PLANE = (
    *("a1", "a2", "a3", "aggregation", "atom", "birch1", "birch2", "chainlink", "d31", "engytime", "flame", "hepta"),
    *("jain", "lsun", "r15", "s1", "s2", "s3", "s4", "spiral", "target", "tetra", "twodiamonds", "unbalance"),
    "wingnut",
)
_TABLES = {
    "banknote": 2,
    "cassini": 3,
    "crabs": 4,
    "decathlon": 2,
    "diabetes": 3,
    "faithful": 2,
    "fgl_glass": 6,
    "galaxies": 4,
    "geyser": 3,
    "groundbeef": 2,
    "iris": 3,
    "mtcars": 2,
    "precip": 2,
    "quine": 2,
    "rivers": 3,
    "ruspini": 4,
    "swiss": 2,
    "usarrests": 3,
    "wine": 3,
}
_MIXED = {"mpg": 3, "penguins": 3, "planets": 3, "taxis": 5, "tips": 3}


def _plane(name: str) -> tuple[np.ndarray, int]:
    x, k = plane(name)
    return x[:: max(1, len(x) // _ROWS)].copy(), k


def _uci(name: str) -> tuple[np.ndarray, int]:
    folder = SHARED / "uci"
    with gzip.open(folder / f"{name}.data.gz") as rows, gzip.open(folder / f"{name}.labels0.gz") as labels:
        groups = np.unique(np.loadtxt(labels, dtype=np.int64))
        return _varying(np.loadtxt(rows)), int((groups > 0).sum())


def _loose(name: str, k: int) -> tuple[np.ndarray, int]:
    found = []
    with open(SHARED / "benchmark2d" / f"{name}.csv") as file:
        for line in file:
            cells = line.replace(",", " ").split()
            try:
                found.append([float(cells[0]), float(cells[1])])
            except (ValueError, IndexError):  # a header or a comment
                continue
    return np.array(found), k


def _table(folder: str, name: str, k: int) -> tuple[np.ndarray, int]:
    """The columns that are numbers, rows without gaps; labels written as numbers are left out by name."""
    with open(SHARED / folder / f"{name}.csv", newline="") as file:
        head, *lines = list(csv.reader(file))
    columns = []
    for j, title in enumerate(head):
        if title.strip().lower() in ("", "class", "index", "year", "model_year", "rownames", "status"):
            continue
        try:
            column = [float(line[j]) if line[j] not in ("", "NA") else np.nan for line in lines]
        except ValueError:
            continue
        columns.append(column)
    x = np.array(columns).T
    if folder == "tables-mixed":
        x = x[:, np.isnan(x).mean(axis=0) < 0.5]
    return _varying(x[~np.isnan(x).any(axis=1)]), k


def _varying(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x[:, x.max(axis=0) > x.min(axis=0)])


def _reduced(name: str, d: int, k: int) -> tuple[np.ndarray, int]:
    """The principal directions."""
    if name == "optdigits":
        with gzip.open(SHARED / "digits" / "optdigits_8x8.csv.gz", "rt") as file:
            x = np.loadtxt(file, delimiter=",", skiprows=1)[:, :64]
    elif name == "mnist":
        x = digits("t10k")[::2].astype(np.float64)
    elif name == "faces":
        with np.load(SHARED / "faces" / "olivetti_64x64.npz") as file:
            x = file["images"].reshape(400, -1).astype(np.float64)
    elif name == "genes":
        with gzip.open(SHARED / "genes" / "golub_3051x38.csv.gz", "rt") as file:
            lines = list(csv.reader(file))[1:]
        x = np.array([line[-38:] for line in lines], dtype=np.float64)
    else:
        x = embeddings()[::2].astype(np.float64)
    x = x - x.mean(axis=0)
    _, directions = np.linalg.eigh(x.T @ x)
    return np.ascontiguousarray(x @ directions[:, ::-1][:, :d]), k


def _pixels(name: str, k: int) -> tuple[np.ndarray, int]:
    from PIL import Image

    x = np.asarray(Image.open(SHARED / "images" / name).convert("RGB"), dtype=np.float64).reshape(-1, 3)
    x = x[:: len(x) // _ROWS]
    return x + np.random.default_rng(0).random(x.shape), k  # whole numbers are atoms: a component may sit on one


# ---------------------------------------------------------------- made


def _two(d: int, spread: float, heavy: bool) -> tuple[np.ndarray, int]:
    """Two round groups of different width; with heavy tails they have a dense hub each."""
    rng = np.random.default_rng([d, int(spread * 10)])
    n = 2048
    member = rng.integers(2, size=n)
    x = rng.standard_normal((n, d)) * np.where(member == 0, 1.0, spread)[:, None]
    if heavy:
        x *= np.abs(rng.standard_normal((n, 1)))
    x += member[:, None] * (3.0 / np.sqrt(d)) * 2
    return x, 2


def _overlapping(d: int, k: int, apart: float, n: int) -> tuple[np.ndarray, int]:
    """Ellipsoids of all directions and unequal weights, nearer to each other or further apart."""
    rng = np.random.default_rng([d, k, int(10 * apart)])
    weights = rng.dirichlet(np.full(k, 3.0))
    member = rng.choice(k, size=n, p=weights)
    x = np.empty((n, d))
    for j in range(k):
        turn = np.linalg.qr(rng.standard_normal((d, d)))[0] * np.exp(rng.normal(0, 0.6, d))
        here = member == j
        x[here] = rng.standard_normal((int(here.sum()), d)) @ turn.T + apart * rng.standard_normal(d)
    return x, k


def _skewed(d: int, k: int, n: int) -> tuple[np.ndarray, int]:
    """Groups with long tails to one side, columns in units that differ by thousands."""
    rng = np.random.default_rng([d, k, 5])
    centres = rng.uniform(0, 6, (k, d))
    x = centres[rng.integers(k, size=n)] + rng.exponential(1.0, (n, d))
    return x * 10.0 ** rng.integers(-1, 4, d), k


def _letters() -> tuple[np.ndarray, int]:
    """Six shapes made of bars, a wave through them and noise over all: like the chameleon sets."""
    rng = np.random.default_rng(58)
    bars = [
        *((20, 60, 20, 140, 12), (20, 60, 90, 60, 12), (20, 140, 90, 140, 12), (60, 100, 90, 100, 12)),
        *((130, 60, 130, 140, 12), (130, 60, 190, 60, 12), (130, 100, 180, 100, 12), (130, 140, 190, 140, 12)),
        *((230, 60, 230, 140, 12), (290, 60, 290, 140, 12), (230, 60, 290, 60, 12), (230, 140, 290, 140, 12)),
        *((330, 60, 330, 140, 12), (330, 140, 380, 140, 12), (380, 100, 380, 140, 12), (330, 100, 390, 60, 12)),
        *((430, 60, 430, 140, 12), (430, 60, 490, 60, 12), (490, 60, 490, 95, 12), (455, 95, 490, 95, 12)),
        *((530, 60, 530, 140, 12), (530, 140, 590, 140, 12), (530, 100, 580, 100, 12), (530, 60, 590, 60, 12)),
    ]
    parts = []
    for x0, y0, x1, y1, width in bars:
        n = int(3.3 * np.hypot(x1 - x0, y1 - y0))
        t = rng.random(n)[:, None]
        parts.append(np.array([x0, y0]) * (1 - t) + np.array([x1, y1]) * t + rng.uniform(-0.5, 0.5, (n, 2)) * width)
    t = rng.uniform(0, 620, 700)
    parts.append(np.column_stack([t, 100 + 60 * np.sin(t / 30)]) + rng.normal(0, 1.5, (700, 2)))
    parts.append(rng.uniform([0, 0], [620, 200], (800, 2)))
    return np.concatenate(parts), 6


def _rings(k: int) -> tuple[np.ndarray, int]:
    rng = np.random.default_rng([k, 7])
    turn, radius = rng.uniform(0, 2 * np.pi, 3000), rng.choice([1.0, 2.0, 3.5], 3000)
    x = np.column_stack([np.cos(turn), np.sin(turn)]) * radius[:, None] + rng.normal(0, 0.12, (3000, 2))
    return x, k


def _zigzag(k: int) -> tuple[np.ndarray, int]:
    rng = np.random.default_rng([k, 8])
    t = rng.uniform(0, 6, 2500)
    return np.column_stack([t, np.abs((t % 2) - 1) * 3]) + rng.normal(0, 0.08, (2500, 2)), k


def _grid() -> tuple[np.ndarray, int]:
    rng = np.random.default_rng(9)
    centres = np.stack(np.meshgrid(np.arange(5), np.arange(5)), -1).reshape(-1, 2)
    return centres[rng.integers(25, size=4000)] + rng.normal(0, 0.17, (4000, 2)), 25


def _within_another() -> tuple[np.ndarray, int]:
    """Narrow groups inside of broad ones, all about one point."""
    rng = np.random.default_rng(10)
    parts = [rng.standard_normal((800, 3)) * s for s in (0.1, 1.0, 8.0)]
    return np.concatenate(parts), 3


def _crossed(d: int) -> tuple[np.ndarray, int]:
    """Three needles through one point."""
    rng = np.random.default_rng([d, 11])
    parts = []
    for j in range(3):
        turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
        parts.append((rng.standard_normal((500, d)) * np.r_[5.0, np.full(d - 1, 0.3)]) @ turn.T + j * 0.1)
    return np.concatenate(parts), 3


def _noise(d: int, k: int) -> tuple[np.ndarray, int]:
    return np.random.default_rng([d, k, 12]).random((1500, d)), k


def _tails(d: int, k: int) -> tuple[np.ndarray, int]:
    rng = np.random.default_rng([d, k, 13])
    centres = rng.normal(0, 6, (k, d))
    return centres[rng.integers(k, size=2000)] + rng.standard_t(3, (2000, d)), k


_MADE: dict[str, Callable[[], tuple[np.ndarray, int]]] = {
    **{f"hubs, {d} columns, {s}": partial(_two, d, s, True) for d in (2, 8, 32, 64) for s in (1.0, 2.0)},
    **{f"two groups, {d} columns, {s}": partial(_two, d, s, False) for d in (4, 32) for s in (1.0, 1.5)},
    **{
        f"ellipsoids, {d} columns, k={k}, {apart} apart": partial(_overlapping, d, k, apart, n)
        for d, k, apart, n in (
            *((2, 5, 2.0, 1000), (2, 10, 3.0, 3000), (3, 6, 1.5, 2000), (5, 8, 2.0, 4000), (5, 15, 3.0, 6000)),
            *((10, 5, 1.0, 3000), (10, 10, 1.5, 5000), (20, 5, 1.0, 4000), (20, 20, 2.0, 8000), (40, 4, 0.8, 4000)),
        )
    },
    **{
        f"skewed, {d} columns, k={k}": partial(_skewed, d, k, n)
        for d, k, n in ((2, 4, 800), (4, 6, 3000), (8, 3, 2000))
    },
    "letters": _letters,
    **{f"rings, k={k}": partial(_rings, k) for k in (3, 12)},
    **{f"zigzag, k={k}": partial(_zigzag, k) for k in (4, 6)},
    "grid of 25": _grid,
    "one within another": _within_another,
    **{f"crossed needles, {d} columns": partial(_crossed, d) for d in (2, 6)},
    **{f"noise, {d} columns, k={k}": partial(_noise, d, k) for d, k in ((2, 4), (6, 3))},
    **{f"long tails, {d} columns, k={k}": partial(_tails, d, k) for d, k in ((2, 3), (4, 8))},
}
