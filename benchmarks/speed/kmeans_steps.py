"""One step of k-means as a share of what the machine can do: its FMA peak, or reading the rows once where that takes longer.

A step is the whole of it: packing the centres, assignment of every row, exact sums, new centres. The rows are float32 noise
without groups, of which many move in every step. "first" adds all rows to the sums, and follows a pass that reads the rows, as
in a fit; "later" is a step after some others, without the help of bounds.
"""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")

import argparse
import time

import numpy as np

from benchmarks.common import machine, show
from benchmarks.limits import Limits, Meter
from foldwise import kernels
from foldwise.data.block import Block
from foldwise.data.cache import cached
from foldwise.data.scan import scan
from foldwise.fold.passes import Passes
from foldwise.models.kmeans import lloyd
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.fit_data import KMeansData

COLUMNS = (8, 16, 32, 64, 128, 256, 784)
CLUSTERS = (10, 20, 50, 100, 256, 1000)
_BYTES = 160 << 20
_FLOPS = 60e9  # of a step; fewer rows where it would take more, since it does not read fast then
_BAR = 0.6


def rows_for(d: int, k: int) -> int:
    """Rows well beyond the caches, but no more than a step of about half a second."""
    rows = min(_BYTES // (4 * d), int(_FLOPS / (2 * d * k)))
    return max(rows, (64 << 20) // (4 * d) if k <= 100 else 20_000)


def _read(block: Block) -> int:
    return kernels.finite(block.unchecked)


class Steps:
    """The steps of one shape, which can be taken again and again."""

    def __init__(self, d: int, k: int) -> None:
        self.n, self.d, self.k = rows_for(d, k), d, k
        rng = np.random.default_rng(d * 1000 + k)
        x = rng.standard_normal((self.n, d), dtype=np.float32)
        self.start = x[rng.choice(self.n, k, replace=False)].copy()
        self.data: KMeansData | None = KMeansData(Passes(cached(scan(x)), n_threads=2))
        self.first = self.later = float("inf")

    def run(self, later: int) -> None:
        """A first step and some later ones; keeps the best times."""
        assert self.data is not None
        assignment, centres = Assignment(self.data, bounds="off"), self.start
        self.data.passes.each(_read)
        for number in range(1 + later):
            began = time.perf_counter()
            done = lloyd.step(assignment, centres)
            seconds = time.perf_counter() - began
            centres = done.centres
            if number == 0:
                self.first = min(self.first, seconds)
            elif number > 2:
                self.later = min(self.later, seconds)

    def line(self, limits: Limits) -> list[str]:
        """The cells of the table."""
        least, binds = limits.seconds(2.0 * self.n * self.d * self.k, 4.0 * self.n * self.d)
        shares = least / self.first, least / self.later
        return [
            str(self.d), str(self.k), f"{self.n:,}", f"{least * 1e3:.1f}", binds, f"{self.first * 1e3:.1f}",
            f"{self.later * 1e3:.1f}", *(f"{share:.0%}" + ("" if share >= _BAR else " *") for share in shares),
        ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, nargs="*", default=COLUMNS)
    parser.add_argument("--clusters", type=int, nargs="*", default=CLUSTERS)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    meter, lines = Meter(), []
    for d in given.columns:
        for k in given.clusters:
            steps = Steps(d, k)
            for _ in range(given.rounds):
                meter.measure()
                steps.run(later=6)
            steps.data = None  # the rows are no longer needed
            lines.append(steps)
    limits = meter.best
    head = ["columns", "clusters", "rows", "limit, ms", "binds", "first, ms", "later, ms", "first, share", "later, share"]
    print(machine())
    show(str(limits), head, [steps.line(limits) for steps in lines], left=(4,))
    print("limit: reading the rows once, or multiplying them with all centres in float32, whichever takes longer (binds)")
    print("shares above 100 %: rows are compared as 16-bit integers, and later steps may read such a copy of the rows")
    print(f"* below {_BAR:.0%} of the limit, which is what we ask of every step")


if __name__ == "__main__":
    main()
