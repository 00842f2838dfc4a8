"""Scores of a clustering: ours and scikit-learn's, on rows in memory. Two threads, interleaved, best time; values agree."""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import metrics

import foldwise as fw
from benchmarks import data
from benchmarks.common import machine, race, show

BAR = 1.0  # times scikit-learn's speed
OF_ROWS = {
    "calinski_harabasz": (fw.calinski_harabasz, metrics.calinski_harabasz_score),
    "davies_bouldin": (fw.davies_bouldin, metrics.davies_bouldin_score),
}
OF_LABELS = {
    "adjusted_rand": (fw.adjusted_rand, metrics.adjusted_rand_score),
    "normalized_mutual_info": (fw.normalized_mutual_info, metrics.normalized_mutual_info_score),
    "v_measure": (fw.v_measure, metrics.v_measure_score),
}


def line(name: str, what: str, ours: Callable[..., Any], theirs: Callable[..., Any], *given: Any) -> list[str]:
    """One score of one table."""
    times = race({"ours": lambda: ours(*given), "scikit-learn": lambda: theirs(*given)}, 3)
    return [
        name,
        what,
        *(f"{times[who] * 1e3:.0f}" for who in ("ours", "scikit-learn")),
        f"{times['scikit-learn'] / times['ours']:.1f}",
        f"{BAR:g}",
        f"{abs(ours(*given) / theirs(*given) - 1):.0e}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    n = 100_000 if given.quick else 1_000_000
    print(machine())
    found = []
    for d, k in ((8, 10), (50, 20)):
        x = data.blobs(n, d, k).astype(np.float64)
        labels = fw.MiniBatchKMeans(k).fit_predict(x)
        for name, (ours, theirs) in OF_ROWS.items():
            found.append(line(name, f"{n:,} x {d}, k={k}", ours, theirs, x, labels))
    rng = np.random.default_rng(0)
    for k in (10, 1000):
        truth = rng.integers(0, k, n)
        labels = np.where(rng.random(n) < 0.8, truth, rng.integers(0, k, n))
        for name, (ours, theirs) in OF_LABELS.items():
            found.append(line(name, f"{n:,} labels, k={k}", ours, theirs, truth, labels))
    head = ["score", "of", "ours, ms", "scikit-learn", "times faster", "bar", "relative difference"]
    show("Scores", head, found)


if __name__ == "__main__":
    main()
