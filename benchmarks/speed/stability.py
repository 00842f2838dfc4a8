"""Stability of 10 clusters, from 10^4 to 10^6 rows: seconds for 20 repeats and the tables without clusters, and peak memory."""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import argparse
import resource
import time

import numpy as np

import foldwise as fw
from benchmarks.common import machine, show


def line(n: int, d: int, k: int, correct: bool) -> list[str]:
    """One table: a fit, and its stability."""
    rng = np.random.default_rng(0)
    x = (20 * rng.random((k, d))[rng.integers(0, k, n)] + rng.standard_normal((n, d))).astype(np.float32)
    began = time.perf_counter()
    model = fw.KMeans(k).fit(x)
    fitted = time.perf_counter()
    found = fw.stability(model, x, n_repeats=20, correct=correct)
    ended = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return [
        f"{n:,} x {d}, k={k}",
        "yes" if correct else "no",
        f"{fitted - began:.2f}",
        f"{ended - fitted:.2f}",
        f"{(ended - fitted) / found.n_repeats / n * 1e9:.0f}",
        f"{found.drawn:,.0f}",
        f"{found.jaccard.min():.3f}",
        f"{peak:.2f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 10^5 rows")
    given = parser.parse_args()
    print(machine())
    head = [
        "rows",
        "corrected",
        "one fit, s",
        "stability, s",
        "ns per row and repeat",
        "drawn",
        "least Jaccard",
        "peak, GB",
    ]
    sizes = (10_000, 100_000) if given.quick else (10_000, 100_000, 1_000_000)
    show("Stability", head, [line(n, 8, 10, correct) for n in sizes for correct in (False, True)])


if __name__ == "__main__":
    main()
