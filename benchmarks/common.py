"""Shared by all benchmarks: interleaved timings, and tables."""

from __future__ import annotations

import gc
import importlib.metadata as metadata
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from threadpoolctl import threadpool_info

from foldwise import kernels
from foldwise.report.text import align


def race(contestants: Mapping[str, Callable[[], object]], rounds: int = 5) -> dict[str, float]:
    """The best time of each over `rounds`, in seconds; they take turns, so that a slow moment of the machine hits all."""
    best = dict.fromkeys(contestants, float("inf"))
    for run in contestants.values():
        run()  # warm-up: imports, thread pools, page faults
    for _ in range(rounds):
        for name, run in contestants.items():
            best[name] = min(best[name], timed(run))
    return best


def long_race(
    contestants: Mapping[str, Callable[[], object]], rounds: int = 5, *, seconds: float = 30.0, hopeless: float = 3.0
) -> dict[str, list[float]]:
    """The times of each turn, for runs too long to throw any away: the warm-up is the first turn and counts.

    After it, whoever took over a second and over `hopeless` times the fastest other than "ours" does not run again. No
    round begins that would not end within `seconds`.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    running = list(contestants)
    began = time.perf_counter()
    for number in range(rounds):
        for name in running:
            times[name].append(timed(contestants[name]))
        if number == 0:
            fastest = min((each[0] for name, each in times.items() if name != "ours"), default=float("inf"))
            limit = max(1.0, hopeless * fastest)
            running = [name for name in running if name == "ours" or times[name][0] <= limit]
        expected = sum(times[name][-1] for name in running)
        if time.perf_counter() + expected > began + seconds:
            break
    return times


def timed(run: Callable[[], object]) -> float:
    """How long one run takes, in seconds."""
    gc.collect()
    time.sleep(0.3)  # threads of the one before may still be spinning
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def selected(names: Sequence[str], words: Sequence[str]) -> list[str]:
    """The names that contain one of the words; all if there are none. Says so if no name does."""
    found = [name for name in names if not words or any(word in name for word in words)]
    if not found:
        print(f"no case contains {' or '.join(map(repr, words))}; there are: {'; '.join(names)}", file=sys.stderr)
    return found


def machine() -> str:
    """The machine and the versions that figures belong to."""
    names = ("numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "faiss-cpu", "superkmeans", "duckdb", "torch")
    versions = []
    for name in names:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            versions.append(f"{name} not installed")
    cores = len(os.sched_getaffinity(0))
    openblas = sorted({str(each["architecture"]) for each in threadpool_info() if each["internal_api"] == "openblas"})
    kinds = f"kernels: {kernels.instruction_set()}, those of OpenBLAS: {', '.join(openblas) or 'none'}"
    return f"{platform.machine()}, {cores} cores, {kinds}\n{', '.join(versions)}"


def show(title: str, head: list[str], rows: list[list[str]], *, left: tuple[int, ...] = (0,)) -> None:
    """Print a table under its title; "bar" in it is explained."""
    print(f"\n{title}\n{align(head, rows, left=left)}", flush=True)
    if "bar" in head or "bar " in title:
        print("bar: what we ask of ourselves, fixed before measuring; ratios of ours to others are to be at most that,")
        print("     those of others to ours at least that", flush=True)
