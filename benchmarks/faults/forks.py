"""Forks while threads fit: how many children hang, and how many find something else than the parent.

`python -m benchmarks.faults.forks [--forks 100]` keeps two threads fitting, forks, and lets every child fit, predict and read a
file. A child that has not ended after 30 seconds hangs; its stack is printed. Ends with 1 if a child hangs or is wrong.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import foldwise as fw

SECONDS, HUNG, WRONG = 30, 1, 7


def models(rows: np.ndarray, source: Any) -> dict[str, Callable[[], bytes]]:
    """Fits and predictions, each as the bytes of what it finds."""
    kmeans, pca = fw.KMeans(3, random_state=0).fit(rows), fw.PCA(2).fit(rows)
    return {
        "PCA.fit": lambda: fw.PCA(2).fit(rows).components_.tobytes(),
        "PCA.transform": lambda: pca.transform(rows).tobytes(),
        "KMeans.fit": lambda: fw.KMeans(3, random_state=0).fit(rows).cluster_centers_.tobytes(),
        "KMeans.predict": lambda: kmeans.predict(rows).tobytes(),
        "GaussianMixture.fit": lambda: fw.GaussianMixture(2, max_iter=3).fit(rows[:500, :4]).means_.tobytes(),
        "PCA.fit of a file": lambda: fw.PCA(2).fit(source).components_.tobytes(),
    }


def child(work: Callable[[], bytes], expected: bytes) -> int:
    """The exit code of a forked child that does this work."""
    number = os.fork()
    if number == 0:
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        code = WRONG
        try:
            code = 0 if work() == expected else WRONG
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--forks", type=int, default=100)
    n_forks = parser.parse_args(arguments).forks
    warnings.simplefilter("ignore")  # fits end at max_iter; Python warns of forks while there are threads
    rows = np.random.default_rng(0).normal(size=(4000, 30))
    # Short fits, which set and lift the limit of BLAS all the time: that is when a fork did harm.
    small, ended = np.random.default_rng(1).normal(size=(200, 40)), threading.Event()

    def fit(model: Any) -> None:
        while not ended.is_set():
            model.fit(small)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        np.savetxt(path, rows, delimiter=",", header=",".join(f"c{j}" for j in range(30)), comments="")
        works = models(rows, fw.scan(path))
        expected = {name: work() for name, work in works.items()}
        busy = [threading.Thread(target=fit, args=(model,)) for model in (fw.PCA(3), fw.PCA(3, svd_solver="full"))]
        for thread in busy:
            thread.start()
        began, hangs, wrong = time.perf_counter(), 0, 0
        for number in range(n_forks):
            name = list(works)[number % len(works)]
            code = child(works[name], expected[name])
            hangs += code == HUNG
            wrong += code not in (0, HUNG)
            if code:
                print(f"fork {number}, {name}: exit code {code}", flush=True)
        seconds = time.perf_counter() - began
        ended.set()
        for thread in busy:
            thread.join()
    print(f"{n_forks} forks while two threads fit, {seconds:.0f} s: hangs {hangs}, wrong answers {wrong}")
    return int(hangs + wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
