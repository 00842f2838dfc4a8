"""Reading a CSV of 10 million rows with missing tokens in three of five columns, against DuckDB's own read of the same file.

DuckDB is told everything (types, tokens, no sniffing) and adds the columns up; we find out everything, prepare the table, and
make blocks of all its rows. `look` counts, measures and tells columns apart in all rows. Times of the processor (user + system)
are less noisy than the clock on a shared machine; both are printed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

import foldwise as fw
from benchmarks.common import show
from foldwise.data.block import Block
from foldwise.data.missing import allow_missing
from foldwise.fold.passes import Passes

TOKENS = ("NA", "?", "n/a")


def write(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    with open(path, "w") as file:
        file.write("a,b,c,d,e\n")
        for start in range(0, rows, 100_000):
            x = rng.normal(50, 12, (min(100_000, rows - start), 5))
            cells = np.char.mod("%.4f", x).astype(object)
            for j, token in enumerate(TOKENS):
                cells[rng.random(len(x)) < 0.03, j] = token
            file.write("\n".join(map(",".join, cells)) + "\n")


def duckdb_read(path: Path) -> None:
    import duckdb

    columns = ", ".join(f"'{name}': 'DOUBLE'" for name in "abcde")
    nulls = ", ".join(f"'{token}'" for token in ("", *TOKENS))
    with duckdb.connect(config={"threads": 2}) as connection:
        read = (
            f"read_csv('{path}', auto_detect=false, header=true, delim=',', columns={{{columns}}}, nullstr=[{nulls}])"
        )
        connection.sql(f"SELECT sum(a), sum(b), sum(c), sum(d), sum(e) FROM {read}").fetchall()


def ours(path: Path) -> None:
    missing = Passes(allow_missing(fw.prepare(path))).each(_missing)
    assert sum(missing) > 0


def _missing(block: Block) -> int:
    return int(np.isnan(block.unchecked[:, 0]).sum())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokens.csv"
        write(path, options.rows)
        runs = {"DuckDB's own read": duckdb_read, "prepare, and one pass": ours, "look": lambda p: str(fw.look(p))}
        best = {name: [np.inf, np.inf] for name in runs}
        for _ in range(options.rounds):
            for name, run in runs.items():
                clock, cpu = time.perf_counter(), sum(os.times()[:2])
                run(path)
                best[name] = [
                    min(best[name][0], time.perf_counter() - clock),
                    min(best[name][1], sum(os.times()[:2]) - cpu),
                ]
        base = best["DuckDB's own read"]
        rows = [
            [name, f"{clock:.2f}", f"{clock / base[0]:.2f}", f"{cpu:.2f}", f"{cpu / base[1]:.2f}"]
            for name, (clock, cpu) in best.items()
        ]
        size = path.stat().st_size / 1e6
    show(f"{options.rows:,} rows x 5, {size:.0f} MB", ["", "seconds", "ratio", "of the processor", "ratio"], rows)


if __name__ == "__main__":
    main()
