"""Time and quality of greedy k-means++ seeding: ours, scikit-learn's (also greedy), faiss's (not greedy).

Quality is measured by the potential (sum of squared distances to the nearest seed) and the inertia after ten of
scikit-learn's Lloyd steps from the seeds; both are means over several random seeds. Two threads, interleaved, best time.
"""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import argparse
import sys
import warnings
from collections.abc import Callable

import numpy as np

import foldwise as fw
from benchmarks import data
from benchmarks.common import show, timed
from benchmarks.kmeans_peers import installed

SPEED_BAR, QUALITY_BAR = 15, 1.01
OTHER = "scikit-learn greedy"

Seeder = Callable[[np.ndarray, int, int], np.ndarray]


def our_seeds(x: np.ndarray, k: int, seed: int) -> np.ndarray:
    """What a fit does before its first step, the pass that finds the range of the data included."""
    from foldwise.data.cache import cached
    from foldwise.fold.passes import Passes
    from foldwise.models.kmeans.fit_data import KMeansData
    from foldwise.models.kmeans.seeding import plusplus

    return plusplus(KMeansData(Passes(cached(fw.scan(x)), n_threads=2)), k, np.random.default_rng(seed))


def their_seeds(x: np.ndarray, k: int, seed: int) -> np.ndarray:
    from sklearn.cluster import kmeans_plusplus

    return np.asarray(kmeans_plusplus(x, k, random_state=seed)[0])


def faiss_seeds(x: np.ndarray, k: int, seed: int) -> np.ndarray:
    import faiss

    faiss.omp_set_num_threads(2)
    seeds = np.empty((k, x.shape[1]), np.float32)
    maker = faiss.ClusteringInitialization(x.shape[1], k)
    maker.method, maker.seed = faiss.ClusteringInitMethod_KMEANS_PLUS_PLUS, seed
    maker.init_centroids(len(x), faiss.swig_ptr(x), faiss.swig_ptr(seeds))
    return seeds


def after_ten_steps(x: np.ndarray, seeds: np.ndarray) -> float:
    """The same steps for everybody's seeds."""
    from sklearn.cluster import KMeans

    model = KMeans(len(seeds), init=np.asarray(seeds, x.dtype), n_init=1, max_iter=10, tol=0).fit(x)
    return data.inertia(x, model.cluster_centers_)


def measure(x: np.ndarray, k: int, runs: dict[str, tuple[Seeder, int]]) -> dict[str, np.ndarray]:
    """For each contestant a row of seconds, potential and inertia for each of its seeds; they take turns."""
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in runs}
    for seed in range(max(count for _, count in runs.values())):
        for name, (run, count) in runs.items():
            if seed < count:
                seeds: list[np.ndarray] = []
                seconds = timed(lambda run=run, seed=seed, seeds=seeds: seeds.append(run(x, k, seed)))
                found[name].append((seconds, data.inertia(x, seeds[0]), after_ten_steps(x, seeds[0])))
    return {name: np.array(each) for name, each in found.items()}


def lines(title: str, found: dict[str, np.ndarray]) -> list[list[str]]:
    """One line for each contestant; ratios are to scikit-learn, with the standard error of its own mean."""
    base = found[OTHER]
    rows = []
    for name, each in found.items():
        cells = [f"{title}: {name}", f"{each[:, 0].min() * 1e3:.0f}"]
        speed = base[:, 0].min() / each[:, 0].min()
        cells += [f"{speed:.1f}", f"{SPEED_BAR}" if name == "ours" else ""]
        for column in (1, 2):
            ratio = each[:, column].mean() / base[:, column].mean()
            error = each[:, column].std(ddof=1) / np.sqrt(len(each)) / each[:, column].mean() if len(each) > 1 else 0.0
            cells.append(f"{ratio:.4f} ± {error:.4f}")
        rows.append([*cells, f"{QUALITY_BAR:g}" if name == "ours" else "", str(len(each))])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows, two seeds")
    parser.add_argument("--full", action="store_true", help="ten seeds for everybody, also where scikit-learn is slow")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    # Where scikit-learn takes half a minute for one seed, three must do.
    for title, n, d, k, few in (
        ("500k x 16, k=100", 500_000, 16, 100, 10),
        ("100k x 128, k=1000", 100_000, 128, 1000, 3),
    ):
        print(title, file=sys.stderr, flush=True)
        x = data.blobs(n // 20 if given.quick else n, d, k)
        many = 2 if given.quick else 10
        few = many if given.full else min(many, few)
        runs: dict[str, tuple[Seeder, int]] = {"ours": (our_seeds, many), OTHER: (their_seeds, few)}
        if installed("faiss"):
            runs["faiss, not greedy"] = (faiss_seeds, few)
        rows += lines(title, measure(x, k, runs))
    head = [
        "data: seeds by",
        "ms",
        "times faster",
        "bar",
        "potential, to scikit-learn's",
        "after 10 steps",
        "bar",
        "seeds",
    ]
    show("k-means++ seeding" + (", a twentieth of the rows" if given.quick else ""), head, rows)


if __name__ == "__main__":
    main()
