"""The classical silhouette: ours from all pairs and from a sample, scikit-learn's, and the inertia curve against single starts.

Two threads, interleaved, best time. The values must agree.
"""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import argparse
import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_samples

import foldwise as fw
from benchmarks import data
from benchmarks.common import machine, race, show

BAR = 1.0  # times scikit-learn's speed


def pairs(n: int, d: int, k: int, rounds: int) -> list[str]:
    """All pairs of n rows, and the squared silhouette of the same."""
    x = data.blobs(n, d, k).astype(np.float64)
    labels = fw.KMeans(k).fit_predict(x)
    ours, theirs = fw.silhouette(x, labels, values=True).values, silhouette_samples(x, labels)
    times = race(
        {
            "ours": lambda: fw.silhouette(x, labels, values=True),
            "scikit-learn": lambda: silhouette_samples(x, labels),
            "sample": lambda: fw.silhouette(x, labels, sample_size=2000),
            "squared": lambda: fw.squared_silhouette(x, labels),
        },
        rounds,
    )
    assert ours is not None
    return [
        f"{n:,} x {d}, k={k}",
        *(f"{times[name] * 1e3:.0f}" for name in ("ours", "scikit-learn")),
        f"{times['scikit-learn'] / times['ours']:.1f}",
        f"{BAR:g}",
        f"{np.abs(ours - theirs).max():.0e}",
        *(f"{times[name] * 1e3:.0f}" for name in ("sample", "squared")),
    ]


def curve(name: str, x: np.ndarray, rounds: int) -> list[str]:
    """1 to 20 clusters: the curve, silhouettes included, against twenty single starts of scikit-learn."""
    numbers = range(1, 21)
    single = np.array([KMeans(k, n_init=1, random_state=0).fit(x).inertia_ for k in numbers])
    ratio = fw.inertia_curve(x, numbers).inertias / single
    times = race(
        {
            "ours": lambda: fw.inertia_curve(x, numbers),
            "scikit-learn": lambda: [KMeans(k, n_init=1, random_state=0).fit(x) for k in numbers],
        },
        rounds,
    )
    return [
        f"{name}, {len(x):,} x {x.shape[1]}",
        *(f"{times[who]:.2f}" for who in ("ours", "scikit-learn")),
        f"{times['scikit-learn'] / times['ours']:.1f}",
        f"{BAR:g}",
        f"{ratio.mean():.4f}",
        f"{ratio.max():.4f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the rows, two rounds")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    less, rounds = (5, 2) if given.quick else (1, 5)
    print(machine())
    head = [
        "all pairs",
        "ours, ms",
        "scikit-learn",
        "times faster",
        "bar",
        "largest difference",
        "2000 rows",
        "squared",
    ]
    sizes = [(10_000, 2, 5), (10_000, 8, 10), (10_000, 50, 10), (10_000, 784, 10), (10_000, 8, 100)]
    show("The silhouette", head, [pairs(n // less, d, k, rounds) for n, d, k in sizes])
    rng, n = np.random.default_rng(0), 60_000 // less
    tables = {
        "normal noise": rng.standard_normal((n, 8)),
        "uniform noise": rng.random((n, 8)),
        "grid of groups": rng.standard_normal((n, 8)) + 4 * rng.integers(0, 3, (n, 8)),
        "15 groups": rng.standard_normal((n, 8)) + 3 * rng.standard_normal((15, 8))[rng.integers(0, 15, n)],
    }
    head = ["k = 1 to 20", "curve, s", "twenty starts", "times faster", "bar", "mean inertia ratio", "worst"]
    show("inertia_curve", head, [curve(name, x, min(rounds, 3)) for name, x in tables.items()])


if __name__ == "__main__":
    main()
