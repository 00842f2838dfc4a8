"""FAMD of a Parquet file of 1M rows x 20 mixed columns out of core, and of rows that prince can take: time and memory.

The file holds ten numbers and ten categories of 3 to 8 levels as codes. prince, which needs the table and its indicators in
memory, gets the same rows as a frame of words; "in memory" is ours from that frame's codes, without a file.
"""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.common import show

ROWS = int(os.environ.get("FOLDWISE_BENCH_ROWS", 1_000_000))
SIZES = [3 + j % 6 for j in range(10)]
_COMPARED = (20_000, 100_000)

# Each measurement is a fresh process: its peak resident memory (VmHWM) is then its own.
_CHILD = """
import json, sys, time
import numpy as np
path, rows, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
sizes = {sizes}
if what.startswith("prince"):
    import duckdb, pandas as pd, prince
    frame = duckdb.connect().sql(f"select * from '{{path}}' limit {{rows}}").df()
    words = [name for name in frame.columns if name.startswith("k")]
    frame = frame.astype({{name: str for name in words}})
    engine = "scipy" if what == "prince exact" else "sklearn"
    def work():
        return np.asarray(prince.FAMD(n_components=5, engine=engine).fit(frame).eigenvalues_[:5])
else:
    import foldwise as fw
    from foldwise.prepare.encode import expanded, find_levels
    def levels(j):
        return find_levels(f"k{{j}}", {{str(float(c)): 1.0 for c in range(sizes[j])}})
    columns = [None] * 10 + [levels(j) for j in range(10)]
    if what == "memory":
        import duckdb
        codes = duckdb.connect().sql(f"select * from '{{path}}' limit {{rows}}").df().to_numpy()
        def source():
            return expanded(fw.scan(codes), columns)
    else:
        def source():
            return expanded(fw.scan(f"select * from '{{path}}' limit {{rows}}" if rows else path), columns)
    if what == "kmeans":
        def work():
            return np.array([fw.KMeans(8, max_iter=20, tol=0.0).fit(source()).inertia_])
        import warnings; warnings.simplefilter("ignore")
    else:
        def work():
            return fw.PCA(5).fit(source()).explained_variance_
before = next(int(line.split()[1]) / 1e3 for line in open("/proc/self/status") if line.startswith("VmRSS"))
times = []
for _ in range({rounds}):
    start = time.perf_counter(); found = work(); times.append(time.perf_counter() - start)
peak = next(int(line.split()[1]) / 1e3 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([min(times), before, peak, found.tolist()]))
"""


def measure(path: Path, rows: int, what: str) -> tuple[float, float, float, list[float]]:
    """Seconds, megabytes before and at the peak, and the eigenvalues."""
    code = _CHILD.format(sizes=SIZES, rounds=1 if what == "kmeans" else 3)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(rows), what], check=True, stdout=subprocess.PIPE, text=True
    )
    seconds, before, peak, found = json.loads(done.stdout.splitlines()[-1])
    return seconds, before, peak, found


def write(path: Path) -> None:
    import duckdb

    common = "random() as u, random() as v"
    numbers = [f"{'u' if j % 2 else 'v'} * {j + 1} + random() as n{j}" for j in range(10)]
    words = [
        f"floor({size} * (0.5 * {'u' if j % 3 else 'v'} + 0.4999999 * random()))::double as k{j}"
        for j, size in enumerate(SIZES)
    ]
    duckdb.connect().execute(
        f"copy (select {', '.join(numbers + words)} from (select {common} from range({ROWS}))) to '{path}' (format parquet)"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "mixed.parquet"
        write(path)
        rows = []
        for n in _COMPARED:
            kinds = {
                "prince": "prince",
                "prince exact": "prince, exact",
                "file": "ours, file",
                "memory": "ours, memory",
            }
            found = {what: measure(path, n, what) for what in kinds}
            for what, label in kinds.items():
                seconds, before, peak, _ = found[what]
                ratio = f"{seconds / found['prince'][0]:.3f}"
                rows.append([f"FAMD {n:,}", label, f"{seconds:.2f}", ratio, f"{before:.0f}", f"{peak:.0f}"])
            off = [max(abs(np.subtract(found[what][3], found["memory"][3]))) for what in ("prince", "prince exact")]
            print(
                f"{n:,} rows: prince's eigenvalues differ by {off[0]:.0e} (default solver), {off[1]:.0e} (exact solver)"
            )
        for what, label in (("file", "FAMD"), ("kmeans", "20 steps of k-means, 8 clusters")):
            seconds, before, peak, _ = measure(path, 0, what)
            rows.append([f"{label} {ROWS:,}", "ours, file", f"{seconds:.2f}", "", f"{before:.0f}", f"{peak:.0f}"])
        head = ["what", "", "seconds", "of prince", "MB before", "MB at peak"]
        show("10 numbers, 10 categories of 3 to 8 levels (5 components)", head, rows, left=(0, 1))


if __name__ == "__main__":
    main()
