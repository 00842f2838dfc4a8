"""PCA of 1,000,000 x 50 float32 rows with 5 % of the cells missing: seconds a pass and memory, from memory and a file."""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import foldwise as fw
from benchmarks.common import show
from benchmarks.speed.pca import extra_memory

ROWS, COLUMNS, SHARE = 1_000_000, 50, 0.05


def data() -> np.ndarray:
    """Rows with ten latent dimensions and noise."""
    rng = np.random.default_rng(0)
    loadings = rng.standard_normal((10, COLUMNS), dtype=np.float32)
    x = rng.standard_normal((ROWS, COLUMNS), dtype=np.float32)
    for start in range(0, ROWS, 100_000):
        part = x[start : start + 100_000]
        part += rng.standard_normal((len(part), 10), dtype=np.float32) @ loadings
        part[rng.random(part.shape) < SHARE] = np.nan
    return x


def main() -> None:
    warnings.simplefilter("ignore")
    x = data()
    complete = np.nan_to_num(x)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.npy"
        np.save(file, x)
        cases: list[tuple[str, dict[str, Any], Any]] = [
            ("complete, n_components=None", {}, complete),
            ("missing='model', None", {"missing": "model"}, x),
            ("missing='model', 10", {"missing": "model", "n_components": 10}, x),
            ("missing='model', 'held-out'", {"missing": "model", "n_components": "held-out"}, x),
            ("missing='model', None, .npy", {"missing": "model"}, str(file)),
        ]
        for name, options, given in cases:
            took: list[float] = []
            model = fw.PCA(**options)

            def run(model: fw.PCA = model, given: Any = given, took: list[float] = took) -> None:
                began = time.perf_counter()
                model.fit(given)
                took.append(time.perf_counter() - began)

            memory = extra_memory(run)
            passes = model.manifest_.passes
            rows.append(
                [
                    name,
                    f"{took[0]:.2f}",
                    str(passes),
                    f"{took[0] / passes:.2f}",
                    f"{memory:.0f}",
                    str(model.n_components_),
                ]
            )
        began = time.perf_counter()
        memory = extra_memory(lambda: model.transform(x))
        rows.append(["transform", f"{time.perf_counter() - began:.2f}", "1", "", f"{memory:.0f}", ""])
    head = ["1,000,000 x 50 float32, 5 % missing", "seconds", "passes", "a pass", "extra MB", "components"]
    show("PCA with missing cells", head, rows)


if __name__ == "__main__":
    main()
