"""A step of k-means with missing cells, compared with one on complete rows: python -m benchmarks.speed.kmeans_missing"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import foldwise as fw

SHARES = (0.0, 0.05, 0.15, 0.3)
STEPS = 12
TIMES = 4


def table(n: int, d: int, seed: int = 0) -> NDArray[np.float32]:
    """Rows around 20 centres that overlap, so that steps go on for a while."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((20, d)) * 0.5
    rows = centres[rng.integers(20, size=n)] + rng.standard_normal((n, d))
    return rows.astype(np.float32)


def seconds_per_step(tables: list[NDArray[Any]], start: NDArray[Any], algorithm: str) -> list[tuple[float, float]]:
    """For each table the time of one step, from fits of 2 and of `STEPS` + 2 steps, and of the longer fit.

    The tables take turns, so that a change in the speed of the machine concerns all of them.
    """
    least = np.full((len(tables), 2), np.inf)
    for _ in range(TIMES):
        for number, x in enumerate(tables):
            for which, steps in enumerate((2, STEPS + 2)):
                model = fw.KMeans(len(start), init=start, max_iter=steps, tol=0, algorithm=algorithm, missing="model")
                began = time.perf_counter()
                model.fit(x)
                least[number, which] = min(least[number, which], time.perf_counter() - began)
    return [((long - short) / STEPS, long) for short, long in least.tolist()]


def main(n: int = 1_000_000, d: int = 50, k: int = 20) -> None:
    """Print a table: milliseconds for a step, and the ratio to complete rows."""
    complete, rng = table(n, d), np.random.default_rng(1)
    start = np.ascontiguousarray(complete[:k])
    tables = [np.where(rng.random(complete.shape) < share, np.float32(np.nan), complete) for share in SHARES]
    print(f"{n:,} x {d} float32, {k} clusters; a step, and a fit of {STEPS + 2} steps with opening the data")
    for algorithm in ("lloyd", "auto"):
        found = seconds_per_step(tables, start, algorithm)
        for share, (step, fit) in zip(SHARES, found, strict=True):
            print(
                f"{algorithm:6} {share:4.0%} missing: {step * 1e3:7.1f} ms a step ({step / found[0][0]:.2f} x), "
                f"{fit:.2f} s a fit ({fit / found[0][1]:.2f} x)"
            )


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
