"""Commands killed at random moments: the files they were to replace stay whole, and the next run leaves nothing behind."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import foldwise as fw
from benchmarks.common import show

_ROWS, _COLUMNS = 400_000, 12


@dataclass(frozen=True)
class Command:
    """A command that takes a number of components or clusters, and what it writes."""

    words: tuple[str, ...]
    out: str
    report: str | None = None

    def line(self, source: Path, folder: Path, number: int) -> list[str]:
        """The command for a process."""
        line = [sys.executable, "-m", "foldwise", self.words[0], str(source), *self.words[1:], "-k", str(number)]
        line += ["--out", str(folder / self.out), "--model", str(folder / "model.fw")]
        return line if self.report is None else [*line, "--report", str(folder / self.report)]


_COMMANDS = (
    Command(("pca",), "scores.csv", "report.html"),
    Command(("pca",), "scores.npy"),
    Command(("cluster", "--search", "none"), "clusters.parquet"),
)


@dataclass
class Tally:
    """What the kills of one command did; `hit` counts those after which something was lying about."""

    what: str
    kills: int = 0
    hit: int = 0
    missing: int = 0
    damaged: int = 0
    leftovers: int = 0


def _model(path: Path) -> bytes:
    model = fw.load(path)
    return bytes((model.components_ if isinstance(model, fw.PCA) else model.cluster_centers_).tobytes())


def _rows(path: Path) -> bytes:
    source = fw.scan(path) if path.suffix != ".npy" else fw.scan(np.load(path))
    return b"".join(np.ascontiguousarray(piece.load().dense()).tobytes() for piece in source.pieces())


def _page(path: Path) -> bytes:
    return path.read_bytes().rstrip()[-7:]  # pages tell the time; a whole one ends with </html>


def _reader(path: Path) -> Callable[[Path], bytes]:
    return {".fw": _model, ".html": _page}.get(path.suffix, _rows)


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: _reader(path)(path) for path in folder.iterdir()}


def _killed(line: list[str], environment: dict[str, str], seconds: float, ready: Callable[[], bool]) -> bool:
    """Run a command and kill it some time after it is `ready`; False if it had ended by then."""
    with subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        while not ready() and child.poll() is None:
            time.sleep(0.001)
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            os.kill(child.pid, signal.SIGKILL)
            return True
    return False


def _tallied(command: Command, source: Path, home: Path, count: int, rng: np.random.Generator) -> Tally:
    folder, scratch = home / "results", home / "scratch"
    folder.mkdir(parents=True)
    scratch.mkdir()
    environment = os.environ | {"FOLDWISE_SCRATCH": str(scratch)}
    model = folder / "model.fw"

    def run(number: int) -> tuple[float, float]:
        """How long a whole run takes, and how much of that after the model, which is written first."""
        began = time.time()
        subprocess.run(command.line(source, folder, number), env=environment, stdout=subprocess.DEVNULL, check=True)
        return time.time() - began, time.time() - model.stat().st_mtime

    tally = Tally(" ".join([*command.words, command.out]))
    run(3)
    new = _contents(folder)
    whole, writing = run(2)
    old = _contents(folder)  # what every kill finds
    names = set(old)

    def lying() -> bool:
        return any(path.name not in names for path in folder.iterdir()) or any(scratch.iterdir())

    while tally.kills < count:
        line, before = command.line(source, folder, 3), model.stat().st_ino
        if tally.kills % 2:  # while rows are written, which takes a small part of the time
            done = _killed(
                line,
                environment,
                rng.uniform(0.0, writing / 3),
                lambda before=before: model.stat().st_ino != before and lying(),
            )
        else:
            done = _killed(line, environment, rng.uniform(0.2, 1.0) * whole, lambda: True)
        if not done:
            run(2)
            continue
        tally.kills += 1
        tally.hit += lying()
        for name in names:
            path = folder / name
            if not path.exists():
                tally.missing += 1
                continue
            try:
                tally.damaged += _reader(path)(path) not in (old[name], new[name])
            except Exception:
                tally.damaged += 1
        run(2)
        tally.leftovers += len({path.name for path in folder.iterdir()} - names) + len(list(scratch.iterdir()))
    return tally


def kills(count: int = 20, seed: int = 0) -> list[Tally]:
    """Kill `count` runs, shared out among the commands."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "rows.npy"
        np.save(source, rng.standard_normal((_ROWS, _COLUMNS)) * np.linspace(3, 1, _COLUMNS))
        shares = [len(part) for part in np.array_split(np.arange(count), len(_COMMANDS))]
        return [
            _tallied(command, source, Path(name) / str(number), share, rng)
            for number, (command, share) in enumerate(zip(_COMMANDS, shares, strict=True))
        ]


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--count", type=int, default=20, help="how many runs to kill")
    asked.add_argument("--seed", type=int, default=0)
    given = asked.parse_args()
    found = kills(given.count, given.seed)
    show(
        "Killed at random moments (bar: no old file damaged or missing, no leftover after the next run)",
        ["command", "kills", "left something", "missing files", "damaged files", "leftovers after the next run"],
        [[one.what, *map(str, (one.kills, one.hit, one.missing, one.damaged, one.leftovers))] for one in found],
        left=(0,),
    )
    return int(any(one.missing + one.damaged + one.leftovers for one in found))


if __name__ == "__main__":
    sys.exit(main())
