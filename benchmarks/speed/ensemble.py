"""The consensus of 20 clusterings of 10 clusters each, up to a million rows: seconds, memory, and seconds per row.

Two threads. "alike": clusterings that agree but for 1 % of the labels; "random": labels that have nothing to do with each
other, so that nearly all label rows are distinct. Each size runs in a process of its own; its peak memory includes the labels.
Bars: 1,000,000 rows in under 60 s and 2 GB; and time per row must not grow with the rows by more than 20 %.
SciPy's linkage of the dense matrix, where it fits into memory, beside it.
"""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import json
import resource
import subprocess
import sys
import time

import numpy as np

from benchmarks.common import machine, show

_COUNT, _CLUSTERS = 20, 10
_SECONDS, _GB, _GROWTH = 60.0, 2.0, 1.2


def labels_of(kind: str, n: int) -> np.ndarray:
    """n rows of labels."""
    rng = np.random.default_rng(n)
    if kind == "random":
        return rng.integers(0, _CLUSTERS, (n, _COUNT), dtype=np.int32)
    truth = rng.integers(0, _CLUSTERS, n)
    found = np.empty((n, _COUNT), dtype=np.int32)
    for t in range(_COUNT):
        found[:, t] = np.where(rng.random(n) < 0.01, rng.integers(0, _CLUSTERS, n), rng.permutation(_CLUSTERS)[truth])
    return found


def once(kind: str, n: int, way: str) -> dict[str, float]:
    """One run in this process."""
    labels = labels_of(kind, n)
    if way == "dense":
        from benchmarks.accuracy.ensemble import linked

        start = time.perf_counter()
        linked(np.mean([labels[:, [t]] == labels[:, t] for t in range(_COUNT)], axis=0), _CLUSTERS)
    else:
        import foldwise as fw

        fw.ClusterEnsemble(2, consensus=way).fit_labels(labels[:100])  # imports
        start = time.perf_counter()
        fw.ClusterEnsemble(_CLUSTERS, consensus=way).fit_labels(labels)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}


def main() -> int:
    if len(sys.argv) == 4:
        print(json.dumps(once(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
        return 0
    print(machine(), flush=True)
    rows, good = [], True
    plan = {
        "kmeans": (100_000, 300_000, 1_000_000),
        "spectral": (100_000, 300_000, 1_000_000),
        "average": (100_000, 1_000_000),
    }
    for kind in ("alike", "random"):
        for way, sizes in {**plan, "dense": (2_000,)}.items():
            first = None
            for n in sizes:
                command = [sys.executable, "-m", "benchmarks.speed.ensemble", kind, str(n), way]
                done = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                each = done["seconds"] / n * 1e6
                first = each if first is None else first
                if way != "dense":
                    good &= each <= _GROWTH * first and done["seconds"] < _SECONDS and done["gb"] < _GB
                name = "SciPy, dense average" if way == "dense" else way
                rows.append([kind, name, f"{n:,}", f"{done['seconds']:.2f}", f"{each:.1f}", f"{done['gb']:.2f}"])
    head = ["labels", "consensus", "rows", "seconds", "microseconds per row", "peak GB"]
    show(f"Consensus of {_COUNT} clusterings of {_CLUSTERS} clusters", head, rows, left=(0, 1))
    print(
        f"\nunder {_SECONDS:g} s and {_GB:g} GB, and time per row never more than {_GROWTH:g} times that of 100,000: {good}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
