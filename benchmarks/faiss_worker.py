"""faiss in a separate process, with explicitly chosen OpenBLAS kernels.

The OpenBLAS inside the faiss-cpu wheel is old (0.3.15). On a processor that it does not recognise, it falls back on
kernels several times slower, and faiss would appear slower than it is. OPENBLAS_CORETYPE helps, but only if set before
the library is loaded: hence a long-lived process that reads rows from files and commands line by line.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

# The best first. On a machine without AVX-512 the first dies of an illegal instruction.
CORE_TYPES = ("SKYLAKEX", "ZEN", "HASWELL")


def kmeans(x: np.ndarray, start: np.ndarray, steps: int) -> np.ndarray:
    """Centres after `steps` steps from `start`, on all rows. faiss gives no labels here: that pass is spared to it."""
    import faiss

    model = faiss.Kmeans(
        x.shape[1], len(start), niter=steps, nredo=1, spherical=False, min_points_per_centroid=1,
        max_points_per_centroid=len(x),
    )  # fmt: skip
    model.train(x, init_centroids=start)
    return np.asarray(model.centroids)


class Worker:
    """The other end of the pipe; `core_type` is what it runs with."""

    def __init__(self, core_type: str) -> None:
        self.core_type = core_type
        self._folder = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.faiss_worker", self._folder.name],
            env={**os.environ, "OPENBLAS_CORETYPE": core_type, "KEEP_CORETYPE": "1"},
            cwd=Path(__file__).resolve().parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def load(self, x: np.ndarray, start: np.ndarray) -> None:
        """Hand over rows and start, before the clock runs."""
        for name, array in (("rows", x), ("start", start)):
            np.save(Path(self._folder.name) / f"{name}.npy", array)
        self._order("load")

    def fit(self, steps: int) -> None:
        """Run and wait until it is done."""
        self._order(f"fit {steps}")

    def centres(self) -> np.ndarray:
        """What the last fit found."""
        self._order("centres")
        return np.load(Path(self._folder.name) / "centres.npy")

    def close(self) -> None:
        """End the process, which may have ended by itself."""
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()
        self._folder.cleanup()

    def _order(self, line: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it ended: nobody answers either
            print(line, file=self._process.stdin, flush=True)
        if self._process.stdout.readline().strip() != "done":
            raise ChildProcessError(f"faiss with OPENBLAS_CORETYPE={self.core_type} died at {line!r}")


def hire() -> Worker | None:
    """A worker with the best kernels that run here, or None if there are none (or no faiss)."""
    x = np.random.default_rng(0).standard_normal((5000, 64), dtype=np.float32)
    for core_type in CORE_TYPES:
        worker = Worker(core_type)
        try:
            worker.load(x, x[:100])
            worker.fit(2)
        except ChildProcessError:
            worker.close()
            continue
        return worker
    return None


def main(folder: Path) -> None:
    import faiss

    faiss.omp_set_num_threads(2)
    held: dict[str, Any] = {}
    for line in sys.stdin:
        order, *numbers = line.split()
        if order == "load":
            held = {name: np.load(folder / f"{name}.npy") for name in ("rows", "start")}
        elif order == "fit":
            held["centres"] = kmeans(held["rows"], held["start"], int(numbers[0]))
        else:
            np.save(folder / "centres.npy", held["centres"])
        print("done", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
