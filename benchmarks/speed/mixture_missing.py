"""Mixtures of rows with missing cells: seconds per step of EM against complete rows, and memory of whole fits from a file.

A million rows of 50 columns, 5 % of the cells missing at random: nearly every incomplete row has a pattern of its own. A step
is one fold of the kernel over blocks in memory; complete rows, incomplete rows and the three types take turns. Fits read the
rows from an .npy file, in a process of their own, which reports its largest resident size.
"""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")

import argparse
import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

import foldwise as fw
from benchmarks.common import machine, race, show
from foldwise.data.missing import allow_missing
from foldwise.fold.passes import Passes
from foldwise.models.mixture.covariance import COVARIANCE_TYPES
from foldwise.stats.responsibility_sums import ResponsibilitySums

D, K = 50, 5
TYPES = ("diag", "full", "tied")

CHILD = """
import json, sys, warnings
import foldwise as fw
path, kind, steps = sys.argv[1:]
warnings.simplefilter("ignore")
def most():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
fw.GaussianMixture
before = most()
gm = fw.GaussianMixture(5, covariance_type=kind, missing="model", max_iter=int(steps), tol=0).fit(path)
after = most()
print(json.dumps([before / 1024, after / 1024, gm.manifest_.seconds, gm.manifest_.passes, gm.n_iter_]))
"""


def draw(n: int, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Complete rows, the same with missing cells, means and covariance matrices."""
    rng = np.random.default_rng(0)
    means = rng.standard_normal((K, D))
    axes = np.eye(D) + rng.standard_normal((K, D, D)) * (0.7 / np.sqrt(D))
    member = rng.integers(K, size=n)
    x = rng.standard_normal((n, D))
    for j in range(K):
        x[member == j] = x[member == j] @ axes[j].T + means[j]
    gappy = x.copy()
    for start in range(0, n, 100_000):  # not all random numbers at once
        part = gappy[start : start + 100_000]
        part[rng.random(part.shape) < share] = np.nan
    return x, gappy, means, axes @ axes.swapaxes(1, 2)


def step_times(n: int, share: float, rounds: int) -> list[list[str]]:
    """Lines of the table of steps."""
    x, gappy, means, matrices = draw(n, share)
    lines, weights = [], np.full(K, 1 / K)
    for name in TYPES:
        kind = COVARIANCE_TYPES[name].of_columns(D, None)
        whiten = kind.whiten(kind.of_matrices(matrices, weights))

        def fold(rows: np.ndarray, *, gaps: bool) -> ResponsibilitySums:
            made = kind.components(weights, means, whiten, np.zeros(D), rows.dtype, scatter=kind.scatter, gaps=gaps)  # noqa: B023
            return Passes(allow_missing(fw.scan(rows)), n_threads=2).fold(
                partial(ResponsibilitySums.of, components=made)
            )

        best = race({"complete": partial(fold, x, gaps=False), "gaps": partial(fold, gappy, gaps=True)}, rounds)
        lines.append([name, f"{best['complete']:.2f}", f"{best['gaps']:.2f}", f"{best['gaps'] / best['complete']:.1f}"])
    np.save(Path(tempfile.gettempdir()) / "mixture_missing.npy", gappy)
    return lines


def fits(path: Path, steps: int) -> list[list[str]]:
    """Lines of the table of fits."""
    lines = []
    for name in TYPES[:2]:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(path), name, str(steps)], check=True, capture_output=True, text=True
        )
        before, after, seconds, passes, taken = json.loads(done.stdout)
        lines.append([name, f"{taken}", f"{passes}", f"{seconds:.1f}", f"{before:.0f}", f"{after:.0f}"])
    return lines


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--missing", type=float, default=0.05)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    given = parser.parse_args()
    print(machine())
    what = f"{given.rows:,} x {D}, {given.missing:.0%} of the cells missing, k={K}"
    steps = step_times(given.rows, given.missing, given.rounds)
    show(f"Seconds per step of EM, two threads: {what}", ["type", "complete", "with gaps", "ratio"], steps)
    path = Path(tempfile.gettempdir()) / "mixture_missing.npy"
    size = path.stat().st_size / 2**20
    head = ["type", "steps", "passes", "seconds", "MB before", "MB at most"]
    show(f"Fits from a file of {size:.0f} MB, starts included", head, fits(path, given.steps))
    path.unlink()


if __name__ == "__main__":
    main()
