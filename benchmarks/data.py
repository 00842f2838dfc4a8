"""Data used by several benchmarks, and the common measure for all k-means results.

Real data are expected beside the repository, in ../shared/data; a missing file raises FileNotFoundError.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def blobs(n: int, d: int, k: int, part: int = 0, spread: float = 1.0) -> np.ndarray:
    """Rows of `k` Gaussian blobs, float32, unit noise; centres are normal with standard deviation `spread` in each column.

    With a spread of 1 half of the variance is between blobs: in a few columns they overlap, in many they do not. 0 is no
    blobs at all. Another `part` is other rows of the same blobs.
    """
    centres = np.random.default_rng(0).standard_normal((k, d), dtype=np.float32) * np.float32(spread)
    rng = np.random.default_rng((1, part))
    x = rng.standard_normal((n, d), dtype=np.float32)
    member = rng.integers(k, size=n)
    for start in range(0, n, 100_000):
        x[start : start + 100_000] += centres[member[start : start + 100_000]]
    return x


def some_rows(x: np.ndarray, k: int, seed: int = 0) -> np.ndarray:
    """`k` different rows, the start that every contestant gets."""
    return x[np.sort(np.random.default_rng(seed).choice(len(x), k, replace=False))].copy()


def digits(*parts: str) -> np.ndarray:
    """MNIST images as float32 rows of 784: "train" (60,000), "t10k" (10,000) or both."""
    found = []
    for part in parts:
        with gzip.open(SHARED / "digits" / f"mnist-{part}-images-idx3-ubyte.gz") as file:
            found.append(np.frombuffer(file.read(), dtype=np.uint8, offset=16).reshape(-1, 784))
    return np.concatenate(found).astype(np.float32)


def embeddings() -> np.ndarray:
    """11,314 newsgroup posts as float32 rows of 384, unit length."""
    with np.load(SHARED / "text" / "20news_train_minilm384.npz") as file:
        return file["embedding"].astype(np.float32)


def iris() -> np.ndarray:
    """150 x 4, float64."""
    with open(SHARED / "tables" / "iris.csv") as file:
        return np.loadtxt(file, delimiter=",", skiprows=1, usecols=range(4))


def plane(name: str) -> tuple[np.ndarray, int]:
    """A published set of points in the plane, float64, and how many groups its reference has."""
    folder = SHARED / "benchmark2d"
    with gzip.open(folder / f"{name}.data.gz") as rows, gzip.open(folder / f"{name}.labels0.gz") as labels:
        groups = np.unique(np.loadtxt(labels, dtype=np.int64))
        return np.loadtxt(rows), int((groups > 0).sum())  # group 0 is noise


def missing(error: FileNotFoundError) -> str:
    """What a table says of a file that is not there."""
    path = Path(error.filename or "a file")
    return f"skipped: ../{path.relative_to(SHARED.parents[1]) if path.is_relative_to(SHARED) else path} is missing"


def inertia(x: np.ndarray, centres: np.ndarray) -> float:
    """The sum of squared distances to the nearest centre: differences in float64, whatever the contestant computed."""
    centres = np.asarray(centres)
    narrow = np.ascontiguousarray(centres, dtype=x.dtype)
    wide, half = centres.astype(np.float64), (narrow * narrow).sum(axis=1) / 2
    step = max(1, 4_000_000 // max(centres.shape))
    parts = []
    for start in range(0, len(x), step):
        part = x[start : start + step]
        nearest = np.argmin(half - part @ narrow.T, axis=1)
        away = part - wide[nearest]
        parts.append(float(np.einsum("ij,ij->", away, away)))
    return float(np.sum(parts))
