"""Damaged files of every kind and random command lines, many of them: how many were refused, read, or went wrong.

The cases are those of tests/fuzz/fuzzing.py; every batch has its own seed and process, so that a crash or a hang is counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from benchmarks.common import show

FUZZING = Path(__file__).parents[2] / "tests" / "fuzz" / "fuzzing.py"
KINDS = ("csv", "tsv", "jsonl", "npy", "parquet", "csv.gz", "sql", "model", "checkpoint", "command")
_BATCH = 200
_SECONDS = 600


def batch(kind: str, seed: int) -> tuple[Counter[str], list[str]]:
    command = [sys.executable, str(FUZZING), kind, str(_BATCH), str(seed)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Counter({"WRONG: hangs": 1}), [f"{kind}, seed {seed}: no end after {_SECONDS} s"]
    if done.returncode:
        return Counter({"WRONG: crash": 1}), [
            f"{kind}, seed {seed}: exit code {done.returncode}\n{done.stderr[-1000:]}"
        ]
    found = json.loads(done.stdout.splitlines()[-1])
    return Counter(found["outcomes"]), found["wrong"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=5, help=f"of {_BATCH} cases, for each kind")
    parser.add_argument("--seed", type=int, default=1000, help="of the first batch")
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(KINDS)}; all if none is given")
    given = parser.parse_args()
    rows, cases = [], []
    for kind in given.kinds or KINDS:
        outcomes: Counter[str] = Counter()
        for number in range(given.batches):
            print(kind, number, file=sys.stderr, flush=True)
            found, wrong = batch(kind, given.seed + number)
            outcomes += found
            cases += wrong
        bad = sum(count for name, count in outcomes.items() if name.startswith("WRONG"))
        fine = sum(outcomes[name] for name in ("read", "done", "the same"))
        rows.append([kind, str(outcomes.total()), str(outcomes["refused"]), str(fine), str(bad)])
    for case in cases[:10]:
        print(case, end="\n\n")
    show("Damaged input", ["kind", "cases", "refused", "read, done or the same", "wrong"], rows, left=(0,))


if __name__ == "__main__":
    main()
