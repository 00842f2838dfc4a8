"""Files that need not fit in memory: time relative to reading or decoding alone, and resident memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.common import show

ROWS, COLUMNS = int(os.environ.get("FOLDWISE_BENCH_ROWS", 8_000_000)), 64

# Each measurement is a fresh process: its peak resident memory (VmHWM) is then its own.
_READ = """
def work():
    buffer = bytearray(4 << 20)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
"""
_DECODE = """
import duckdb
from foldwise.kernels.arrow import Stream
con = duckdb.connect(config={"threads": 2})
def work():
    stream = Stream(con.sql(f"select * from read_parquet('{path}')").__arrow_c_stream__())
    while stream.next() is not None:
        pass
"""
_FIT = """
import foldwise as fw
fw.PCA
def work():
    global model
    model = fw.PCA(n_threads=2).fit(path)
"""
_CHILD = """
import json, sys, time
path = sys.argv[1]
{body}
best = float("inf")
for _ in range({rounds}):
    start = time.perf_counter(); work(); best = min(best, time.perf_counter() - start)
peak = next(int(line.split()[1]) / 1e3 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([best, peak]))
"""


def measure(body: str, path: Path) -> tuple[float, float]:
    code = _CHILD.format(body=body, rounds=1)
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True)
    seconds, peak = json.loads(done.stdout.splitlines()[-1])
    return seconds, peak


def write(folder: Path) -> tuple[Path, Path]:
    """The same rows as .npy and Parquet, in page cache afterwards."""
    import duckdb

    npy, parquet = folder / "rows.npy", folder / "rows.parquet"
    rng = np.random.default_rng(0)
    out = np.lib.format.open_memmap(npy, mode="w+", dtype=np.float32, shape=(ROWS, COLUMNS))
    for start in range(0, ROWS, 500_000):
        part = out[start : start + 500_000]
        rng.standard_normal(part.shape, dtype=np.float32, out=part)
    out.flush()
    del out
    names = ", ".join(f"(random() * 6 - 3)::float as c{j}" for j in range(COLUMNS))
    duckdb.connect().execute(f"copy (select {names} from range({ROWS})) to '{parquet}' (format parquet)")
    return npy, parquet


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        npy, parquet = write(Path(name))
        best: dict[str, tuple[float, float]] = {}
        jobs = {
            "read .npy": (_READ, npy),
            "fit .npy": (_FIT, npy),
            "decode Parquet": (_DECODE, parquet),
            "fit Parquet": (_FIT, parquet),
        }
        for _ in range(3):  # taking turns
            for job, (body, path) in jobs.items():
                seconds, peak = measure(body, path)
                before = best.get(job, (float("inf"), 0.0))
                best[job] = (min(before[0], seconds), max(before[1], peak))
                time.sleep(0.2)
        rows = []
        for fit, base in (("fit .npy", "read .npy"), ("fit Parquet", "decode Parquet")):
            ratio = best[fit][0] / best[base][0]
            rows.append(
                [fit, f"{best[fit][0]:.2f}", base, f"{best[base][0]:.2f}", f"{ratio:.2f}", f"{best[fit][1]:.0f}"]
            )
        show(
            f"PCA of a file, {ROWS:,} x {COLUMNS} float32 (bars: 1.5 times; .npy below 300 MB resident)",
            ["job", "seconds", "against", "seconds", "ratio", "resident MB"],
            rows,
            left=(0, 2),
        )


if __name__ == "__main__":
    main()
