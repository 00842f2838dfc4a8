"""How often is the number of clusters right? Known numbers, noise, and two groups that touch, beside scikit-learn's criteria.

    python -m benchmarks.accuracy.choose_clusters [sets] [--half design|held-out] [--no-peers]
    python -m benchmarks.accuracy.choose_clusters noise [--seeds 50] [--rows 200,2000,20000] [--criteria dip|all]

"sets" compares `fw.choose_clusters` with scikit-learn: k-means (3 starts) judged by silhouette or Calinski-Harabasz, the gap
statistic alone (uniform in a box along the principal axes, the rule of Tibshirani, Walther and Hastie), and GaussianMixture
(full covariances) by BIC. Half of the sets, by a hash of their names, was not looked at while the votes were designed.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from benchmarks.gaussian_sets import NOISE, made, noise, published, touching

SETS = [*made(), *published()]


def chosen(x: np.ndarray, most: int, criteria: object = None) -> tuple[int, float]:
    import foldwise as fw

    start = time.perf_counter()
    found = fw.choose_clusters(x, range(1, most + 1), criteria, n_threads=1)
    return found.n_clusters, time.perf_counter() - start


def peers(x: np.ndarray, most: int) -> dict[str, int]:
    """scikit-learn's criteria, at most 5,000 rows, for the same numbers."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import calinski_harabasz_score, silhouette_score
    from sklearn.mixture import GaussianMixture

    rng = np.random.default_rng(0)
    x = x if len(x) <= 5000 else x[rng.choice(len(x), 5000, replace=False)]
    ks = range(2, most + 1)
    fits = {k: KMeans(k, n_init=3, random_state=0).fit(x) for k in range(1, most + 1)}
    silhouettes = [silhouette_score(x, fits[k].labels_, sample_size=min(len(x), 2000), random_state=0) for k in ks]
    ratios = [calinski_harabasz_score(x, fits[k].labels_) for k in ks]
    bic, least, worse = {}, np.inf, 0
    for k in range(1, most + 1):
        bic[k] = GaussianMixture(k, random_state=0).fit(x).bic(x)
        worse = 0 if bic[k] < least else worse + 1
        least = min(least, bic[k])
        if worse > 5:
            break
    return {
        "silhouette": ks[int(np.argmax(silhouettes))],
        "calinski-harabasz": ks[int(np.argmax(ratios))],
        "gap": _gap(x, {k: fits[k].inertia_ for k in fits}, rng),
        "bic": min(bic, key=lambda k: bic[k]),
    }


def _gap(x: np.ndarray, inertias: dict[int, float], rng: np.random.Generator, repeats: int = 5) -> int:
    from sklearn.cluster import KMeans

    x = x - x.mean(axis=0)
    axes = np.linalg.svd(x, full_matrices=False)[2]
    along = x @ axes.T
    logs = np.array(
        [
            [np.log(KMeans(k, n_init=1, random_state=0).fit(box).inertia_) for k in inertias]
            for box in (rng.uniform(along.min(axis=0), along.max(axis=0), along.shape) for _ in range(repeats))
        ]
    )
    gap = logs.mean(axis=0) - np.log(list(inertias.values()))
    error = logs.std(axis=0) * np.sqrt(1 + 1 / repeats)
    flat = np.flatnonzero(gap[:-1] >= gap[1:] - error[1:])
    return list(inertias)[int(flat[0]) if len(flat) else -1]


def _of_set(number: int, with_peers: bool) -> tuple[int, dict[str, int], float]:
    warnings.simplefilter("ignore")
    one = SETS[number]
    x = one.load()
    found, seconds = chosen(x, one.most)
    others = peers(x, one.most) if with_peers and one.most <= 60 else {}
    return number, {"votes": found, **others}, seconds


def _of_noise(kind: str, n: int, d: int, seed: int, criteria: str) -> tuple[str, int, int, int]:
    warnings.simplefilter("ignore")
    x = touching(n, d, seed) if kind == "touching" else noise(kind, n, d, seed)
    return kind, n, d, chosen(x, 20, None if criteria == "all" else criteria.split(","))[0]


def sets(half: str | None, with_peers: bool, processes: int) -> None:
    wanted = [i for i, one in enumerate(SETS) if half is None or one.held_out == (half == "held-out")]
    right: dict[tuple[str, str], list[bool]] = defaultdict(list)
    with ProcessPoolExecutor(processes) as pool:
        jobs = [pool.submit(_of_set, i, with_peers) for i in wanted]
        for job in jobs:
            number, found, _ = job.result()
            one = SETS[number]
            group = "published" if one in SETS[125:] else "made"
            where = "held out" if one.held_out else "design"
            for name, k in found.items():
                right[f"{group}, {where}", name].append(k == one.k)
            print(
                f"{one.name:32} {where:9} true {one.k:3}  " + "  ".join(f"{a} {b}" for a, b in found.items()),
                flush=True,
            )
    names = ("votes", "silhouette", "calinski-harabasz", "gap", "bic")
    print(f"\n{'right':24}{'sets':>6}" + "".join(f"{name:>20}" for name in names))
    for group in sorted({group for group, _ in right}):
        shares = [right.get((group, name), []) for name in names]
        print(
            f"{group:24}{len(shares[0]):6}"
            + "".join(f"{np.mean(one):20.0%}" if one else f"{'-':>20}" for one in shares)
        )


def without(seeds: int, rows: list[int], criteria: str, processes: int) -> None:
    found: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    with ProcessPoolExecutor(processes) as pool:
        jobs = [
            pool.submit(_of_noise, kind, n, d, seed, criteria)
            for n in rows
            for d in (2, 10, 50)
            for kind in (*NOISE, "touching")
            for seed in range(seeds)
        ]
        for job in jobs:
            kind, n, d, k = job.result()
            found[kind, n, d].append(k)
            if len(found[kind, n, d]) == seeds:
                wanted = 2 if kind == "touching" else 1
                others = sorted(set(found[kind, n, d]) - {wanted})
                share = np.mean(np.array(found[kind, n, d]) == wanted)
                print(f"{kind:9} {n:6} x {d:2}   says {wanted}: {share:4.0%}   also {others}", flush=True)


if __name__ == "__main__":
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # one core for each process
        os.environ.setdefault(name, "1")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["sets", "noise"], nargs="?", default="sets")
    parser.add_argument("--half", choices=["design", "held-out"])
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--rows", default="200,2000,20000")
    parser.add_argument("--criteria", default="dip")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    if given.what == "sets":
        sets(given.half, not given.no_peers, given.processes)
    else:
        without(given.seeds, [int(one) for one in given.rows.split(",")], given.criteria, given.processes)
