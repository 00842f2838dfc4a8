"""An autoencoder of files that need not fit in memory: seconds per epoch and resident memory.

The network's own memory (torch is some 200 MB by itself) is measured by a fit of a thousand rows, in a process of its own.
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

ROWS, COLUMNS = int(os.environ.get("FOLDWISE_BENCH_ROWS", 2_000_000)), 100

# Each measurement is a fresh process: its peak resident memory (VmHWM) is then its own.
_CHILD = """
import json, sys, time
import foldwise as fw
start = time.perf_counter()
model = fw.Autoencoder(8, max_iter=1, n_threads=2).fit(sys.argv[1])
seconds = time.perf_counter() - start
peak = next(int(line.split()[1]) / 1e3 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([seconds, peak, model.outcome_.steps, model.held_out_error_ / model.pca_error_]))
"""


def measure(path: Path) -> list[float]:
    done = subprocess.run([sys.executable, "-c", _CHILD, str(path)], check=True, capture_output=True, text=True)
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def write(folder: Path) -> dict[str, Path]:
    """Rows along a bent sheet, as .npy and Parquet, and a thousand of them."""
    import duckdb

    paths = {name: folder / name for name in ("small.npy", "rows.npy", "rows.parquet")}
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((12, COLUMNS), dtype=np.float32)
    out = np.lib.format.open_memmap(paths["rows.npy"], mode="w+", dtype=np.float32, shape=(ROWS, COLUMNS))
    for start in range(0, ROWS, 100_000):
        part = out[start : start + 100_000]
        t = rng.standard_normal((len(part), 6), dtype=np.float32)
        part[:] = np.hstack([t, t * t]) @ mixing + 0.1 * rng.standard_normal(part.shape, dtype=np.float32)
    np.save(paths["small.npy"], out[:1000])
    out.flush()
    del out
    names = ", ".join(f"(random() * 6 - 3)::float as c{j}" for j in range(COLUMNS))
    duckdb.connect().execute(f"copy (select {names} from range({ROWS})) to '{paths['rows.parquet']}' (format parquet)")
    return paths


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        rows = []
        for kind, path in write(Path(name)).items():
            seconds, peak, rounds, ratio = measure(path)
            size = path.stat().st_size / 1e6
            rows.append(
                [kind, f"{size:,.0f} MB", f"{rounds:.0f}", f"{seconds:.1f} s", f"{peak:,.0f} MB", f"{ratio:.3f}"]
            )
    head = ["file", "size", "rounds", "one epoch, PCA included", "peak resident memory", "held-out error / PCA's"]
    show(f"autoencoder, one epoch: {ROWS:,} x {COLUMNS} float32", head, rows)


if __name__ == "__main__":
    main()
