"""What all benchmarks share: races in which the contestants take turns, and tables."""

from __future__ import annotations

import gc
import importlib.metadata as metadata
import os
import platform
import time
from collections.abc import Callable, Mapping

from foldwise import kernels
from foldwise.report.tables import table


def race(contestants: Mapping[str, Callable[[], object]], rounds: int = 5) -> dict[str, float]:
    """The best time of each over `rounds`, in seconds; they take turns, so that a slow moment of the machine hits all."""
    best = dict.fromkeys(contestants, float("inf"))
    for run in contestants.values():
        run()  # warm-up: imports, thread pools, page faults
    for _ in range(rounds):
        for name, run in contestants.items():
            gc.collect()
            time.sleep(0.3)  # threads of the one before may still be spinning
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def machine() -> str:
    """The machine and the versions that figures belong to."""
    names = ("numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "faiss-cpu", "duckdb")
    versions = []
    for name in names:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            versions.append(f"{name} not installed")
    cores = len(os.sched_getaffinity(0))
    return f"{platform.machine()}, {cores} cores, kernels: {kernels.instruction_set()}\n{', '.join(versions)}"


def show(title: str, head: list[str], rows: list[list[str]], *, left: tuple[int, ...] = (0,)) -> None:
    """Print a table under its title."""
    print(f"\n{title}\n{table(head, rows, left=left)}", flush=True)
