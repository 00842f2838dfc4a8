"""A minute of damaged files and random command lines; `python -m benchmarks.faults.fuzz` goes on for as long as one likes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FUZZING = Path(__file__).with_name("fuzzing.py")
KINDS = ("csv", "tsv", "jsonl", "npy", "parquet", "csv.gz", "sql", "model", "checkpoint", "command")


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_refused_or_harmless(kind: str) -> None:
    """In a process of its own: a crash or a hang is a failure too."""
    command = [sys.executable, str(FUZZING), kind, "80", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert not found["wrong"], "\n\n".join(found["wrong"])
    assert sum(found["outcomes"].values()) >= 80
