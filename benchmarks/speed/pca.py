"""Time of a PCA, relative to the fastest other library: one run, interleaved, best of five, two threads."""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import foldwise as fw
from benchmarks.common import race, show


def peers(x: np.ndarray, k: int | None = None) -> dict[str, Callable[[], object]]:
    from sklearn.decomposition import PCA
    from sklearnex.decomposition import PCA as OneDalPCA

    found: dict[str, Callable[[], object]] = {}
    for name, kind in (("scikit-learn", PCA), ("oneDAL", OneDalPCA)):
        for solver in ("covariance_eigh", "auto") if k is None else ("covariance_eigh", "randomized"):
            found[f"{name} {solver}"] = lambda kind=kind, solver=solver: kind(
                n_components=k, svd_solver=solver, random_state=0
            ).fit(x)
    return found


def extra_memory(run: Callable[[], object]) -> float:
    """How far resident memory rises above where it was, in MB, sampled while `run` works."""
    page, high, stop = os.sysconf("SC_PAGE_SIZE"), 0, threading.Event()

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * page

    def watch() -> None:
        nonlocal high
        while not stop.is_set():
            high = max(high, resident())
            time.sleep(0.001)

    fw.PCA().fit(np.eye(5))  # what is imported at the first fit is not the fit's memory
    before = resident()
    watcher = threading.Thread(target=watch)
    watcher.start()
    run()
    stop.set()
    watcher.join()
    return (high - before) / 1e6


def main() -> None:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    cases: list[tuple[str, int, int, Any, int | None, float]] = [
        ("1M x 50 float32", 1_000_000, 50, np.float32, None, 0.5),
        ("1M x 50 float64", 1_000_000, 50, np.float64, None, 1.0),
        ("200k x 784 float32", 200_000, 784, np.float32, None, 0.8),
        ("200k x 784 float64", 200_000, 784, np.float64, None, 1.0),
    ]
    rows = []
    for name, n, d, dtype, k, bar in cases:
        x = rng.standard_normal((n, d), dtype=np.float32).astype(dtype, copy=False)
        memory = extra_memory(lambda x=x: fw.PCA().fit(x))
        times = race({"ours": lambda x=x: fw.PCA().fit(x), **peers(x, k)})
        rows.append(line(name, times, bar, f"{memory:.0f}"))
        if (n, d, dtype) == (200_000, 784, np.float32):
            top = race({"top": lambda x=x: fw.PCA(10).fit(x), "all": lambda x=x: fw.PCA().fit(x)})
            ratio = top["top"] / top["all"]
            rows.append(
                ["  the same, top 10, to all of ours", f"{top['top'] * 1e3:.0f}", "ours, all", f"{ratio:.2f}", "1", ""]
            )
        del x
    small = rng.standard_normal((150, 4))
    from sklearn.decomposition import PCA

    def often(make: Callable[[], Any]) -> Callable[[], object]:
        return lambda: [make().fit(small) for _ in range(200)]

    times = race({"ours": often(lambda: fw.PCA(2)), "scikit-learn": often(lambda: PCA(2))}, rounds=9)
    rows.append(line("150 x 4 (200 fits)", times, 1.0, ""))
    show(
        "PCA, all components unless said",
        ["data", "ours, ms", "fastest other", "ours / other", "bar", "extra MB"],
        rows,
        left=(0, 2),
    )


def line(name: str, times: dict[str, float], bar: float, memory: str) -> list[str]:
    other = min((who for who in times if who != "ours"), key=lambda who: times[who])
    ratio = times["ours"] / times[other]
    return [name, f"{times['ours'] * 1e3:.1f}", f"{other} {times[other] * 1e3:.1f}", f"{ratio:.2f}", f"{bar:g}", memory]


if __name__ == "__main__":
    main()
