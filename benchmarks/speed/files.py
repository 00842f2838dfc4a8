"""PCA of Parquet and CSV files against DuckDB's own reading of them: seconds, and resident memory, two threads.

DuckDB reads every column in two ways: `sums` decodes all and adds up each column; `batches` fetches all as Arrow batches, which
is what a program needs that computes something itself, and what bars are measured by (of CSV, by the sums, which are faster).
Every measurement is a process of its own, in which the work is done twice; the second time counts: the first imports modules.
Resident memory is the peak of the process, of which "before" was there before anything was read.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.common import show

ROWS, COLUMNS = 8_000_000, 64
_ROUNDS = 3

_DUCKDB = """
import duckdb
from foldwise.kernels.arrow import Stream
con = duckdb.connect(config={"threads": 2})
read = f"read_parquet('{path}')" if path.endswith(".parquet") else f"read_csv('{path}')"
"""
_WORK = {
    "sums": _DUCKDB
    + """
listed = ", ".join(f"sum({name})" for name, *_ in con.sql(f"describe from {read}").fetchall())
def work():
    con.sql(f"select {listed} from {read}").fetchall()
""",
    "batches": _DUCKDB
    + """
def work():
    stream = Stream(con.sql(f"from {read}").__arrow_c_stream__())
    while stream.next() is not None:
        pass
""",
    "reading": """
import foldwise as fw
from foldwise.fold.passes import Passes
def work():
    Passes(fw.scan(path), n_threads=2).each(lambda block: None)
""",
    "fit": """
import foldwise as fw
import numpy as np
fw.PCA(2).fit(np.eye(5))
import duckdb
duckdb.connect().execute("select 1")
def work():
    fw.PCA(10, n_threads=2).fit(path)
""",
    "k-means": """
import warnings
import foldwise as fw
import numpy as np
warnings.simplefilter("ignore")
fw.KMeans(2).fit(np.eye(5))
def work():
    fw.KMeans(10, n_threads=2, max_iter=2, random_state=0).fit(path)
""",
}
_CHILD = """
import json, sys, time
path = sys.argv[1]
def peak():
    return next(int(line.split()[1]) / 1e3 for line in open("/proc/self/status") if line.startswith("VmHWM"))
{work}
before, times = peak(), []
for _ in range(2):
    start = time.perf_counter(); work(); times.append(time.perf_counter() - start)
print(json.dumps([times[-1], peak(), before]))
"""

# Name, kind of cells, options of DuckDB's COPY, share of missing cells, share of the rows, what is measured besides DuckDB
_FILES = (
    ("Parquet float32", "(random() * 6 - 3)::float", "format parquet", 0.0, 1.0, ("fit", "k-means")),
    ("  row groups of 10,240", "(random() * 6 - 3)::float", "format parquet, row_group_size 10240", 0.0, 0.5, ("fit",)),
    ("  row groups of 1M", "(random() * 6 - 3)::float", "format parquet, row_group_size 1000000", 0.0, 0.5, ("fit",)),
    ("  zstd", "(random() * 6 - 3)::float", "format parquet, compression zstd", 0.0, 0.5, ("fit",)),
    ("  uncompressed", "(random() * 6 - 3)::float", "format parquet, compression uncompressed", 0.0, 0.5, ("fit",)),
    ("  5 % missing, read only", "(random() * 6 - 3)::float", "format parquet", 0.05, 0.5, ("reading",)),
    ("Parquet float64", "random() * 6 - 3", "format parquet", 0.0, 0.5, ("fit",)),
    ("Parquet int32, 1,000 values", "(random() * 1000)::int", "format parquet", 0.0, 0.5, ("fit",)),
    ("CSV", "(random() * 6 - 3)::float", "format csv, header", 0.0, 0.125, ("fit",)),
)


def measure(job: str, path: Path) -> tuple[float, float, float]:
    code = _CHILD.format(work=_WORK[job])
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True)
    seconds, peak, before = json.loads(done.stdout.splitlines()[-1])
    return seconds, peak, before


def write(path: Path, cell: str, options: str, missing: float, rows: int) -> None:
    """A file of equally distributed numbers, in the page cache afterwards."""
    import duckdb

    cell = f"case when random() < {missing} then null else {cell} end" if missing else cell
    names = ", ".join(f"{cell} as c{j}" for j in range(COLUMNS))
    duckdb.connect().execute(f"copy (select {names} from range({rows})) to '{path}' ({options})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="of the largest file")
    parser.add_argument("words", nargs="*", help="only files whose name contains one of these, such as CSV or zstd")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the files are removed
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name, cell, options, missing, share, jobs in _FILES:
            if given.words and not any(word in name for word in given.words):
                continue
            print(name.strip(), file=sys.stderr, flush=True)
            path, rows = Path(folder) / f"x.{options.split(',')[0].split()[1]}", int(share * given.rows)
            write(path, cell, options, missing, rows)
            found: dict[str, list[tuple[float, float, float]]] = {}
            for _ in range(_ROUNDS):  # taking turns
                for job in ("sums", "batches", *jobs):
                    found.setdefault(job, []).append(measure(job, path))
            path.unlink()
            best = {job: min(times)[0] for job, times in found.items()}
            for job in jobs:
                against = "sums" if path.suffix == ".csv" else "batches"
                lines.append(
                    [
                        f"{name}, {rows / 1e6:g}M",
                        job,
                        *(f"{best[one]:.2f}" for one in ("sums", "batches", job)),
                        f"{best[job] / best['sums']:.2f}",
                        f"{best[job] / best['batches']:.2f}",
                        f"1.25 of {against}" if job == "fit" else "",
                        f"{max(peak for _, peak, _ in found[job]):.0f}",
                        f"{max(before for *_, before in found[job]):.0f}",
                    ]
                )
    show(
        f"Files of {COLUMNS} columns (bar of memory: 400 MB)",
        ["file", "ours", "sums, s", "batches, s", "ours, s", "to sums", "to batches", "bar", "peak MB", "before MB"],
        lines,
        left=(0, 1),
    )


if __name__ == "__main__":
    main()
