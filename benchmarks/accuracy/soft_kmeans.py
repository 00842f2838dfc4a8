"""The k-means optimum reached by annealing, on published data sets whose best solution is known to be hard to find.

Inertias are given relative to the lowest found by any method; methods are interleaved on each data set.
"""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

import foldwise as fw
from benchmarks.common import show, timed

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "benchmark2d"
SETS = {"s1": 15, "s2": 15, "s3": 15, "s4": 15, "a1": 20, "a2": 35, "a3": 50, "unbalance": 8, "d31": 31, "r15": 15}
SEEDS = range(5)


def main() -> None:
    warnings.simplefilter("ignore")
    if not DATA.is_dir():
        print("the published data sets (../shared/data beside the repository) are not here")
        return
    lines = []
    for name, k in SETS.items():
        with gzip.open(DATA / f"{name}.data.gz") as file:
            x = np.loadtxt(file)
        found: dict[str, list[float]] = {
            "annealed": [],
            "breathing": [],
            "ours, one start": [],
            "scikit-learn, ten": [],
        }
        seconds = dict.fromkeys(found, 0.0)
        for seed in SEEDS:
            models = {
                "annealed": fw.SoftKMeans(k, random_state=seed),
                "breathing": fw.KMeans(k, search="breathing", random_state=seed),
                "ours, one start": fw.KMeans(k, random_state=seed),
                "scikit-learn, ten": KMeans(k, n_init=10, random_state=seed),
            }
            for who, model in models.items():
                seconds[who] += timed(lambda model=model, x=x: model.fit(x)) / len(SEEDS)
                found[who].append(float(model.inertia_))
        best = min(min(each) for each in found.values())
        cells = [
            f"{np.mean(each) / best:.3f} ({max(each) / best:.3f}, {seconds[who]:.2f} s)" for who, each in found.items()
        ]
        lines.append([f"{name}, k={k}", *cells])
    show("Inertia over the lowest found: mean (worst, seconds) of five seeds", ["set", *found], lines)


if __name__ == "__main__":
    main()
