"""A column that need not fit in memory: time and resident memory of a fit, compared with SciPy's on values in memory.

FOLDWISE_BENCH_ROWS sets the number of values in the file (default: a hundred million).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.common import show

ROWS = int(os.environ.get("FOLDWISE_BENCH_ROWS", 100_000_000))
FEWER = min(ROWS, 20_000_000)  # as many as SciPy is given: it needs them, and their logarithms, in memory

_READ = """
def work():
    buffer = bytearray(4 << 20)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return {}
"""
_OURS = """
import foldwise as fw
fw.fit_distribution([1.0, 2.0], FAMILY)
def work():
    return fw.fit_distribution(path, FAMILY, n_threads=2).parameters
"""
_SCIPY = """
import numpy as np
from scipy import stats
def work():
    shape, _, scale = stats.gamma.fit(np.load(path, mmap_mode="r")[:FEWER], floc=0)
    return {"shape": shape, "rate": 1 / scale}
"""
_CHILD = """
import json, sys, time
path = sys.argv[1]
def resident(name):
    return next(int(line.split()[1]) / 1e3 for line in open("/proc/self/status") if line.startswith(name))
{body}
before = resident("VmRSS")
start = time.perf_counter(); found = work(); seconds = time.perf_counter() - start
print(json.dumps([seconds, before, resident("VmHWM"), found]))
"""


def measure(body: str, path: Path) -> tuple[float, float, float, dict[str, float]]:
    """Seconds, resident memory before and at its peak (MB), and the parameters, in a process of its own."""
    code = _CHILD.format(body=body)
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True)
    seconds, before, peak, found = json.loads(done.stdout.splitlines()[-1])
    return seconds, before, peak, found


def write(path: Path) -> None:
    """Gamma values, a piece at a time."""
    rng = np.random.default_rng(0)
    header = {"descr": "<f8", "fortran_order": False, "shape": (ROWS,)}
    with open(path, "wb") as file:
        np.lib.format.write_array_header_2_0(file, header)
        for start in range(0, ROWS, 1_000_000):
            file.write(rng.gamma(2.5, 3.0, min(1_000_000, ROWS - start)).tobytes())


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values.npy"
        write(path)
        jobs = {
            "read the file": (_READ, ROWS),
            "ours, gamma": (_OURS.replace("FAMILY", '"gamma"'), ROWS),
            "ours, weibull (Newton over the file)": (_OURS.replace("FAMILY", '"weibull"'), ROWS),
            "SciPy, gamma": (_SCIPY.replace("FEWER", str(FEWER)), FEWER),
        }
        rows = []
        for job, (body, count) in jobs.items():
            seconds, before, peak, found = measure(body, path)
            told = ", ".join(f"{name} {value:.9f}" for name, value in found.items())
            rate = f"{seconds / count * 1e9:.1f}"
            rows.append([job, f"{count:,}", f"{seconds:.2f}", rate, f"{before:.0f}", f"{peak:.0f}", told])
        show(
            f"A .npy file of {ROWS:,} float64 values ({ROWS * 8 / 1e6:,.0f} MB)",
            ["job", "values", "seconds", "ns a value", "MB before", "MB at most", "found"],
            rows,
            left=(0, 6),
        )


if __name__ == "__main__":
    main()
