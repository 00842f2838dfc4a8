"""What the defaults of KernelKMeans find: on all labelled sets, and on rings, moons etc. for 20 seeds each.

First a table of published and made sets (benchmarks/labelled.py) in two halves, of which one was held out while the defaults
were designed: adjusted Rand indices of the defaults, of init="k-means++", of k-means and of scikit-learn's spectral clustering
(up to 1500 rows), and how often the defaults are more than 0.3 below k-means. Then the share of seeds with an index above 0.95,
compared with k-means, a textbook kernel k-means (ten starts from random labels, gamma 1 / columns, the lowest sum kept),
scikit-learn's Nystroem features with its k-means, and its spectral clustering (defaults, and with neighbours).

`python -m benchmarks.accuracy.kernel_kmeans sets` prints the first table alone, `seeds 5` the second one for five seeds.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn import cluster, datasets, kernel_approximation
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

import foldwise as fw
from benchmarks import labelled
from benchmarks.common import show
from benchmarks.data import missing

SEEDS, RIGHT = 20, 0.95
BELOW = 0.3
SPECTRAL = 1500  # rows, at most, for scikit-learn's spectral clustering


def textbook(x: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Kernel k-means with the whole matrix, as a lecture has it."""
    matrix, rng = rbf_kernel(x), np.random.default_rng(seed)
    best, least = np.zeros(len(x), dtype=int), np.inf
    for _ in range(10):
        labels = rng.integers(k, size=len(x))
        for _ in range(300):
            sides = np.eye(k)[labels]
            weight = np.maximum(sides.sum(axis=0), 1)
            sums = matrix @ sides / weight
            apart = np.diagonal(matrix)[:, None] - 2 * sums + (sides * sums).sum(axis=0) / weight
            new = apart.argmin(axis=1)
            if np.array_equal(new, labels):
                break
            labels = new
        cost = apart[np.arange(len(x)), labels].sum()
        if cost < least:
            best, least = labels, cost
    return best


def with_noise(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two rings among rows from anywhere, which are nobody's."""
    x, y = datasets.make_circles(500, factor=0.5, noise=0.05, random_state=seed)
    stray = np.random.default_rng(seed).uniform(-1.3, 1.3, (25, 2))
    return np.concatenate([x, stray]), np.concatenate([y, np.full(25, -1)])


def rings(n: int, noise: float, factor: float = 0.5) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
    return lambda seed: datasets.make_circles(n, factor=factor, noise=noise, random_state=seed)


def moons(n: int, noise: float) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
    return lambda seed: datasets.make_moons(n, noise=noise, random_state=seed)


def scaled(make: Callable[[int], tuple[np.ndarray, np.ndarray]]) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
    return lambda seed: (make(seed)[0] * 1000 + 1e6, make(seed)[1])


def iris(seed: int) -> tuple[np.ndarray, np.ndarray]:
    x, y = datasets.load_iris(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(x))
    return x[order], y[order]


CASES: dict[str, tuple[int, Callable[[int], tuple[np.ndarray, np.ndarray]]]] = {
    "rings, 500 rows": (2, rings(500, 0.05)),
    "rings, 150 rows": (2, rings(150, 0.05)),
    "rings, thick": (2, rings(500, 0.08)),
    "rings, apart": (2, rings(500, 0.1, 0.3)),
    "rings and strays": (2, with_noise),
    "rings, times 1000": (2, scaled(rings(500, 0.05))),
    "moons, 500 rows": (2, moons(500, 0.05)),
    "moons, 150 rows": (2, moons(150, 0.05)),
    "moons, thick": (2, moons(500, 0.1)),
    "blobs": (4, lambda seed: datasets.make_blobs(500, centers=4, cluster_std=0.7, random_state=seed)),
    "iris": (3, iris),
}

CONTESTANTS: dict[str, Callable[[np.ndarray, int, int], np.ndarray]] = {
    "ours": lambda x, k, seed: fw.KernelKMeans(k, random_state=seed).fit_predict(x),
    "normalize": lambda x, k, seed: fw.KernelKMeans(k, normalize=True, random_state=seed).fit_predict(x),
    "nystroem": lambda x, k, seed: fw.KernelKMeans(k, approximation="nystroem", random_state=seed).fit_predict(x),
    "random f.": lambda x, k, seed: fw.KernelKMeans(k, approximation="random-features", random_state=seed).fit_predict(
        x
    ),
    "k-means": lambda x, k, seed: fw.KMeans(k, random_state=seed).fit_predict(x),
    "textbook": textbook,
    "sk nystroem": lambda x, k, seed: cluster.KMeans(k, n_init=10, random_state=seed).fit_predict(
        kernel_approximation.Nystroem(n_components=min(100, len(x)), random_state=seed).fit_transform(x)
    ),
    "sk spectral": lambda x, k, seed: cluster.SpectralClustering(k, random_state=seed).fit_predict(x),
    "sk spectral, nn": lambda x, k, seed: cluster.SpectralClustering(
        k, affinity="nearest_neighbors", random_state=seed
    ).fit_predict(x),
}


# ---------------------------------------------------------------- all labelled sets

METHODS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "ours": lambda x, k: fw.KernelKMeans(k).fit_predict(x),
    "k-means++": lambda x, k: fw.KernelKMeans(k, init="k-means++").fit_predict(x),
    "k-means": lambda x, k: fw.KMeans(k, n_init=5).fit_predict(x),
    "sk spectral": lambda x, k: cluster.SpectralClustering(
        k, affinity="nearest_neighbors", random_state=0, assign_labels="cluster_qr"
    ).fit_predict(x),
}


def scores(one: labelled.Labelled) -> dict[str, float]:
    """The adjusted Rand index of each method, and the seconds of ours."""
    x, y = one.load()
    k, found = len(np.unique(y[y >= 0])), {}
    for name, method in METHODS.items():
        if name == "sk spectral" and len(x) > SPECTRAL:
            continue
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels = method(x, k)
        if name == "ours":
            found["seconds"] = time.perf_counter() - began
        found[name] = adjusted_rand_score(y[y >= 0], labels[y >= 0])
    return found


def all_sets() -> None:
    """One table for each half, and the counts of both."""
    found: dict[labelled.Labelled, dict[str, float]] = {}
    try:
        for one in (*labelled.published(), *labelled.made()):
            found[one] = scores(one)
    except FileNotFoundError as error:
        print(missing(error))
    counts = []
    for half in (False, True):
        here = {one: each for one, each in found.items() if one.is_held_out == half}
        lines = [
            [one.name, one.kind, *(f"{each[name]:.2f}" if name in each else "-" for name in METHODS)]
            for one, each in here.items()
        ]
        title = "held-out half" if half else "half that was designed on"
        show(f"{title}: adjusted Rand index", ["set", "kind", *METHODS], lines, left=(0, 1))
        for kinds in ("all", "curved", "others"):
            some = [e for one, e in here.items() if kinds == "all" or (one.kind == "curved") == (kinds == "curved")]
            if some:
                below = {
                    name: sum(each["k-means"] - each[name] > BELOW for each in some) for name in ("ours", "k-means++")
                }
                right = {name: sum(each.get(name, 0.0) >= RIGHT for each in some) for name in METHODS}
                means = [f"{np.mean([each[name] for each in some]):.3f}" for name in ("ours", "k-means++", "k-means")]
                line = [title, kinds, str(len(some)), *(str(count) for count in below.values()), *means]
                counts.append([*line, *(str(count) for count in right.values())])
    head = ["half", "sets", "number", f"ours > {BELOW} below k-means", f"k-means++ > {BELOW} below"]
    head += ["mean of ours", "of k-means++", "of k-means", *(f"{name} >= {RIGHT}" for name in METHODS)]
    show("both halves", head, counts, left=(0, 1))


def by_seeds(seeds: int) -> None:
    lines = []
    for name, (k, make) in CASES.items():
        line = [name]
        for label in CONTESTANTS.values():
            found_scores = []
            for seed in range(seeds):
                x, y = make(seed)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = label(x, k, seed)
                found_scores.append(adjusted_rand_score(y[y >= 0], found[y >= 0]))
            line.append(f"{np.mean(np.array(found_scores) > RIGHT):.0%} {np.mean(found_scores):.2f}")
        lines.append(line)
        show(f"{name}: share right, mean adjusted Rand index", ["data", *CONTESTANTS], [line])
    show(f"share of {seeds} seeds with an index above {RIGHT}, and the mean index", ["data", *CONTESTANTS], lines)


def main() -> int:
    what, *more = sys.argv[1:] or ["both"]
    if what in ("both", "sets"):
        all_sets()
    if what in ("both", "seeds"):
        by_seeds(int(more[0]) if more else SEEDS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
