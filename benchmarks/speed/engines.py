"""K-means over a file by threads of this process and by Dask workers, one thread each: the price of the seam.

`python -m benchmarks.speed.engines` writes a float32 .npy file (20M x 16 unless it is said otherwise) to a temporary folder,
clusters it with k = 20 in ten steps from given centres, interleaved, and prints the best of several rounds.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import foldwise as fw
from foldwise import kernels


def write(path: Path, rows: int, columns: int) -> np.ndarray:
    """Rows around twenty centres, written block by block; the centres to start from."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=4.0, size=(20, columns)).astype(np.float32)
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, columns))
    for start in range(0, rows, 1_000_000):
        part = out[start : start + 1_000_000]
        part[:] = centres[rng.integers(20, size=len(part))] + rng.normal(scale=3.0, size=part.shape)
    out.flush()
    return np.array(out[:20])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    from distributed import Client, LocalCluster

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        start = write(path, given.rows, given.columns)

        def fit(engine: object) -> tuple[float, str]:
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = fw.KMeans(20, init=start, n_init=1, max_iter=10, tol=0, algorithm="lloyd").fit(
                    path, engine=engine
                )
            seconds = time.perf_counter() - began
            return seconds, hashlib.sha256(model.cluster_centers_.tobytes() + model.labels_.tobytes()).hexdigest()[:12]

        cluster = LocalCluster(
            n_workers=given.workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        )
        with cluster, Client(cluster) as client:
            engines = {
                f"threads, {given.workers}": fw.engine("threads", given.workers),
                f"Dask, {given.workers} x 1": client,
            }
            best: dict[str, float] = {}
            hashes = set()
            for _ in range(given.rounds):
                for name, engine in engines.items():
                    seconds, digest = fit(engine)
                    best[name] = min(best.get(name, np.inf), seconds)
                    hashes.add(digest)
        print(f"{given.rows:,} x {given.columns} float32 .npy, k = 20, 10 steps, {kernels.instruction_set()}")
        for name, seconds in best.items():
            print(f"{name:<14} {seconds:7.2f} s")
        threads, dask = best.values()
        print(f"Dask / threads {dask / threads:7.2f}   the same bits: {'yes' if len(hashes) == 1 else 'NO'}")


if __name__ == "__main__":
    main()
