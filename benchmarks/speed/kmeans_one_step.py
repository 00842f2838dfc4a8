"""What a fit of k-means does once: a whole fit of one step against the time of a step.

Such a fit checks and sums up the columns (opening), takes one step, and assigns every row once more to the new centres, with
sizes and inertias. The rows are float32 noise without groups, of which many move in every step; bounds are off. "fit" is
`KMeans(k, init=centres, n_init=1, max_iter=1, tol=0).fit(x)`; "step" is a tenth of what max_iter=11 takes longer:
later steps add only the rows that move, and with few centres they read a copy of the rows that is half as large.
"first" is the first step alone, which adds every row to the sums, and "assign" an assignment in which no row moves. "around" is
what is left of the fit without these two, in times of reading the rows once on all threads.
"""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np

from benchmarks.common import machine, show
from foldwise import KMeans, kernels
from foldwise.data.block import Block
from foldwise.data.cache import cached
from foldwise.data.scan import scan
from foldwise.errors import NotFinishedWarning
from foldwise.fold.passes import Passes
from foldwise.models.kmeans import lloyd
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.fit_data import KMeansData

COLUMNS = (8, 16, 32, 64, 128, 256, 784)
CLUSTERS = (10, 20, 50, 100, 256, 1000)
_BYTES = 160 << 20
_FLOPS = 40e9  # of a step; fewer rows where it would take more
_BAR = 3.0


def rows_for(d: int, k: int) -> int:
    """About 160 MB, or fewer where a step would take half a second."""
    return max(20_000, min(_BYTES // (4 * d), int(_FLOPS / (2 * d * k))))


def _read(block: Block) -> int:
    return kernels.finite(block.unchecked)


class OneStep:
    """The fits of one shape, timed in turns."""

    def __init__(self, d: int, k: int) -> None:
        self.n, self.d, self.k = rows_for(d, k), d, k
        rng = np.random.default_rng(d * 1000 + k)
        self.x = rng.standard_normal((self.n, d), dtype=np.float32)
        self.start = self.x[rng.choice(self.n, k, replace=False)].copy()
        self.best: dict[str, float] = {}

    def run(self) -> None:
        """One turn; the best times are kept."""
        passes = Passes(cached(scan(self.x)))
        self._time("opening", lambda: self._open(passes))
        self._time("read", lambda: passes.each(_read))
        self._time("fit", lambda: self._fit(1))
        self._time("eleven", lambda: self._fit(11))
        assignment = Assignment(KMeansData(passes), bounds="off")
        new: list[lloyd.LloydStep] = []
        self._time("first", lambda: new.append(lloyd.step(assignment, self.start)))
        assignment.assign(new[0].centres)
        self._time("assign", lambda: assignment.assign(new[0].centres))

    def line(self) -> list[str]:
        """The cells of the table."""
        best, step = self.best, (self.best["eleven"] - self.best["fit"]) / 10
        ratio = best["fit"] / step
        around = (best["fit"] - best["first"] - best["assign"]) / best["read"]
        times = [f"{best[name] * 1e3:.1f}" for name in ("read", "opening", "first", "assign", "fit")]
        cells = [str(self.d), str(self.k), f"{self.n:,}", *times, f"{step * 1e3:.1f}", f"{around:.2f}"]
        first = best["fit"] / best["first"]
        return [*cells, *(f"{each:.2f}" + ("" if each <= _BAR else " *") for each in (first, ratio))]

    def _open(self, passes: Passes) -> None:
        KMeansData(passes)

    def _fit(self, steps: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotFinishedWarning)
            KMeans(self.k, init=self.start, n_init=1, max_iter=steps, tol=0, algorithm="lloyd").fit(self.x)

    def _time(self, name: str, run: Callable[[], object]) -> None:
        began = time.perf_counter()
        run()
        self.best[name] = min(self.best.get(name, float("inf")), time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, nargs="*", default=COLUMNS)
    parser.add_argument("--clusters", type=int, nargs="*", default=CLUSTERS)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    lines = []
    for d in given.columns:
        for k in given.clusters:
            shape = OneStep(d, k)
            for _ in range(given.rounds):
                shape.run()
            lines.append(shape.line())
    head = ["columns", "clusters", "rows", "read, ms", "opening", "first", "assign", "fit, ms", "step, ms", "around, reads"]
    print(machine())
    show("A fit of one step, and one more step", [*head, "fit / first", "fit / step"], lines, left=())
    print(f"* above the bar of {_BAR:.0f} steps")


if __name__ == "__main__":
    main()
