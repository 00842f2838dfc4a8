"""k-means on a file that need not fit in memory: time relative to reading it and to the same rows in memory.

Then resident memory, and whether a killed fit resumes from its checkpoint with bit-identical results.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data, faiss_worker
from benchmarks.common import show
from benchmarks.kmeans_peers import installed

COLUMNS, K, STEPS = 64, 20, 10
TIME_BAR, MEMORY_BAR = 1.3, 400

# Each measurement is a fresh process: its peak resident memory (VmHWM) is then its own.
_READ = """
import os, threading
size = os.path.getsize(path)
def part(start, stop):
    buffer = memoryview(bytearray(2 << 20))
    with open(path, "rb", buffering=0) as file:
        for _ in range(steps):
            file.seek(start)
            left = stop - start
            while left > 0:
                left -= file.readinto(buffer[:min(left, len(buffer))])
def work():
    cuts = [size * i // THREADS for i in range(THREADS + 1)]
    threads = [threading.Thread(target=part, args=cut) for cut in zip(cuts, cuts[1:])]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""
_OURS = """
import foldwise as fw
fw.KMeans
rows = ROWS
def work():
    global centres, labels, resumed_at
    given = dict(init=start, n_init=1, tol=0, max_iter=steps, n_threads=2, checkpoint=checkpoint)
    model = fw.KMeans(len(start), **given).fit(rows)
    centres, labels = model.cluster_centers_, model.labels_
    resumed_at = getattr(getattr(model, "manifest_", None), "resumed_at", None)
"""
_THEIRS = """
from MODULE import KMeans
rows = np.load(path)
def work():
    global centres, labels
    model = KMeans(len(start), init=start, n_init=1, tol=0, max_iter=steps).fit(rows)
    centres, labels = model.cluster_centers_, model.labels_
"""
_FAISS = """
import faiss
from benchmarks.faiss_worker import kmeans
faiss.omp_set_num_threads(2)
rows = np.load(path)
def work():
    global centres
    centres = kmeans(rows, start, steps)
"""
_CHILD = """
import hashlib, json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
path, start, steps, checkpoint = sys.argv[1], np.load(sys.argv[2]), int(sys.argv[3]), sys.argv[4] or None
centres = labels = resumed_at = None
{body}
began = time.perf_counter(); work(); seconds = time.perf_counter() - began
peak = next(int(line.split()[1]) / 1e3 for line in open("/proc/self/status") if line.startswith("VmHWM"))
hashes = [hashlib.sha256(np.ascontiguousarray(a)).hexdigest() for a in (centres, labels) if a is not None]
centres = None if centres is None else np.asarray(centres, dtype=float).tolist()
print(json.dumps(dict(seconds=seconds, peak=peak, hashes=hashes, centres=centres, resumed_at=resumed_at)))
"""
# Every step waits, so that the parent has time to kill in the middle of the fit.
_SLOW = """
from foldwise.fold import events
quick = work
def work():
    with events.listening(lambda event: time.sleep(0.3) if isinstance(event, events.Step) else None):
        quick()
"""
FILE, MEMORY = _OURS.replace("ROWS", "path"), _OURS.replace("ROWS", "np.load(path)")


class Job:
    """The file, the start, and how to run a child on them."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.path, self.start = folder / "rows.npy", folder / "start.npy"
        out = np.lib.format.open_memmap(self.path, mode="w+", dtype=np.float32, shape=(rows, COLUMNS))
        for number, first in enumerate(range(0, rows, 500_000)):
            part = out[first : first + 500_000]
            part[:] = data.blobs(len(part), COLUMNS, K, number)
        np.save(self.start, data.some_rows(np.asarray(out[:100_000]), K))
        out.flush()

    def command(self, body: str, checkpoint: Path | None = None) -> list[str]:
        """What starts a child; its folder is the repository, for the benchmarks' own modules."""
        where = [str(self.path), str(self.start), str(STEPS), str(checkpoint or "")]
        return [sys.executable, "-c", _CHILD.format(body=body), *where]

    def run(self, body: str, checkpoint: Path | None = None, core_type: str | None = None) -> dict[str, Any]:
        """What the child measured."""
        done = subprocess.run(
            self.command(body, checkpoint), env=environment(core_type), check=False, capture_output=True, text=True
        )
        if done.returncode:
            raise ChildProcessError(done.stderr)
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return result


def environment(core_type: str | None = None) -> dict[str, str]:
    env = {"FOLDWISE_THREADS": "2", "OMP_NUM_THREADS": "2", **os.environ}
    return {**env, "OPENBLAS_CORETYPE": core_type} if core_type else env


def best_of(job: Job, bodies: dict[str, str], rounds: int) -> dict[str, dict[str, Any]]:
    """The fastest run of each, with the highest peak; they take turns."""
    best: dict[str, dict[str, Any]] = {}
    for _ in range(rounds):
        for name, body in bodies.items():
            now, before = job.run(body), best.get(name)
            if before is not None:
                now["peak"] = max(now["peak"], before["peak"])
                now["seconds"] = min(now["seconds"], before["seconds"])
            best[name] = now
            time.sleep(0.2)
    return best


def kill_and_resume(job: Job, whole: dict[str, Any], checkpoint: Path) -> str:
    """Kill a fit without warning once it has saved something, go on, and compare with the fit that nobody disturbed."""
    child = subprocess.Popen(
        job.command(FILE + _SLOW, checkpoint),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    began = time.monotonic()
    while not checkpoint.exists() and child.poll() is None and time.monotonic() < began + 300:
        time.sleep(0.01)
    child.kill()
    said, error = child.communicate()
    if said or not checkpoint.exists():
        return f"FAILED: the fit was not stopped in the middle\n{error}"
    killed_after = time.monotonic() - began
    again = job.run(FILE, checkpoint)
    same = ["the same" if a == b else "DIFFERENT" for a, b in zip(again["hashes"], whole["hashes"], strict=True)]
    return (
        f"killed (-9) after {killed_after:.1f} s, went on at step {again['resumed_at']} of {STEPS} "
        f"for {again['seconds']:.1f} s: centres {same[0]}, labels {same[1]} as those of the undisturbed fit (sha256)"
    )


def peers(job: Job) -> dict[str, dict[str, Any]]:
    """Others with all rows in memory, once each."""
    found = {"scikit-learn": job.run(_THEIRS.replace("MODULE", "sklearn.cluster"))}
    if installed("sklearnex"):
        found["oneDAL"] = job.run(
            "import daal4py; daal4py.daalinit(2)" + _THEIRS.replace("MODULE", "sklearnex.cluster")
        )
    if installed("faiss") and (worker := faiss_worker.hire()) is not None:
        worker.close()
        found[f"faiss {worker.core_type}"] = job.run(_FAISS, core_type=worker.core_type)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows")
    given = parser.parse_args()
    rows = int(os.environ.get("FOLDWISE_BENCH_ROWS", 8_000_000)) // (20 if given.quick else 1)
    title = f"k-means of a file, {rows:,} x {COLUMNS} float32, k={K}, {STEPS} steps"
    with tempfile.TemporaryDirectory() as name:
        need, free = rows * COLUMNS * 4, shutil.disk_usage(name).free
        if free < 1.2 * need:
            print(f"\n{title}\nskipped: {name} has {free / 1e9:.1f} GB free, and {need / 1e9:.1f} GB are to be written")
            return 0
        job = Job(Path(name), rows)
        reading = {f"reading {STEPS} times, {n} thread(s)": _READ.replace("THREADS", str(n)) for n in (1, 2)}
        found = best_of(job, {**reading, "ours, file": FILE, "ours, in memory": MEMORY}, rounds=3)
        found |= peers(job)
        read = min(reading, key=lambda which: found[which]["seconds"])
        base = max(found[read]["seconds"], found["ours, in memory"]["seconds"])
        sample = np.load(job.path, mmap_mode="r")[:: max(1, rows // 200_000)].copy()
        reached = data.inertia(sample, np.array(found["ours, file"]["centres"]))
        lines = []
        for which, each in found.items():
            seconds = each["seconds"]
            apart = data.inertia(sample, np.array(each["centres"])) / reached - 1 if each["centres"] else None
            cells = [f"{seconds:.2f}", f"{seconds / base:.2f}", f"{each['peak']:.0f}"]
            lines.append([which, *cells, "" if apart is None else f"{apart:+.0e}"])
        show(title, ["job", "seconds", "to the longer", "resident MB", "inertia, to ours of the file - 1"], lines)
        ratio, peak = found["ours, file"]["seconds"] / base, found["ours, file"]["peak"]
        print(
            f"the longer of {read} and ours in memory: {base:.2f} s; the file takes {ratio:.2f} of it (bar {TIME_BAR})"
        )
        print(f"resident while fitting the file: {peak:.0f} MB (bar {MEMORY_BAR})")
        verdict = kill_and_resume(job, found["ours, file"], Path(name) / "fit.checkpoint")
        print(verdict)
    return int("FAILED" in verdict or "DIFFERENT" in verdict)


if __name__ == "__main__":
    sys.exit(main())
