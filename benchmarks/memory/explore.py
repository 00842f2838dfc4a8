"""`foldwise explore` of a Parquet file of 10 million rows: resident memory, and time beside one fit of `foldwise cluster`.

`python -m benchmarks.memory.explore [--rows N] [--keep FOLDER]`; the file is made once, and kept with --keep.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.common import machine, show

COLUMNS, GROUPS = 20, 8
MEMORY_BAR, TIME_BAR = 2048, 4.0  # MB, and times the fit


def make(path: Path, rows: int) -> None:
    """Rows of overlapping groups."""
    rng = np.random.default_rng(1)
    centres = 2.0 * rng.standard_normal((GROUPS, COLUMNS))
    names = [f"m{j}" for j in range(COLUMNS)]
    with pq.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in names])) as writer:
        for start in range(0, rows, 500_000):
            member = rng.integers(GROUPS, size=min(500_000, rows - start))
            x = centres[member] + rng.standard_normal((len(member), COLUMNS))
            writer.write_table(pa.table({name: x[:, j] for j, name in enumerate(names)}))


def measured(arguments: list[str], folder: str) -> tuple[float, float]:
    """Seconds and peak resident megabytes of a command in a process of its own."""
    started = time.perf_counter()
    code = "import resource, sys; from foldwise.cli import main; code = main(sys.argv[1:])\n"
    code += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr); sys.exit(code)"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=folder, check=True
    )
    return time.perf_counter() - started, int(done.stderr.split()[-1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        path = (given.keep or Path(folder)) / f"rows-{given.rows}.parquet"
        if not path.exists():
            make(path, given.rows)
        # The median of three fits, one before and two after, so that a slow moment of the machine hits both.
        fit = ["cluster", str(path), "-k", "10", "--search", "breathing"]
        fits = [measured(fit, folder)]
        seconds, memory = measured(["explore", str(path), "--out", "report.html"], folder)
        fits += [measured(fit, folder), measured(fit, folder)]
        page = os.path.getsize(Path(folder) / "report.html") / 1e6
    usual = sorted(one for one, _ in fits)[1]
    rows = [
        ["cluster -k 10 --search breathing", f"{usual:.0f}", f"{max(one for _, one in fits):.0f}", ""],
        ["explore", f"{seconds:.0f}", f"{memory:.0f}", f"{page:.2f}"],
    ]
    show(f"{given.rows:,} rows, {COLUMNS} columns, Parquet", ["command", "seconds", "resident MB", "page MB"], rows)
    print(f"explore / fit: {seconds / usual:.2f} (bar {TIME_BAR}), resident {memory:.0f} MB (bar {MEMORY_BAR})")


if __name__ == "__main__":
    main()
