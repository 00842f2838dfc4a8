"""Time of k-means, as the ratio of the fastest other library to ours: interleaved, best of several, two threads.

All use the same float32 rows, the same start (random rows) and tol=0, and take the same number of steps, or continue until
no label changes. faiss has no convergence test, so it then takes the number of steps that scikit-learn needed. It also
skips the last pass, which computes the labels in the others.
"""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import foldwise as fw
from benchmarks import data, faiss_worker
from benchmarks.common import long_race, race, selected, show, timed
from benchmarks.kmeans_peers import (
    ELKAN,
    FAISS,
    LLOYD,
    ONEDAL,
    SUPER,
    Found,
    Run,
    faiss_kernels,
    faiss_name,
    installed,
    peers,
    superkmeans,
)

_TO_THE_END = 1000  # steps: more than any of them needs
_SMALL = "150 x 4 iris, k=3, 100 fits"


class Case(NamedTuple):
    """One line of the table."""

    name: str
    rows: Callable[[], np.ndarray]
    k: int
    max_iter: int
    bar: float
    seconds: float = 20.0  # for all rounds of all contestants

    @property
    def title(self) -> str:
        """What the table calls it."""
        steps = "to the end" if self.max_iter == _TO_THE_END else f"{self.max_iter} steps"
        return f"{self.name}, k={self.k}, {steps}"


def blobs(name: str, n: int, d: int, k: int, bar: float, steps: int = 20, seconds: float = 20.0) -> Case:
    return Case(f"{name} x {d}", partial(data.blobs, n, d, k), k, steps, bar, seconds)


CASES = (
    blobs("1M", 1_000_000, 2, 10, 5),
    blobs("1M", 1_000_000, 8, 50, 5),
    blobs("500k", 500_000, 16, 100, 5),
    blobs("1M", 1_000_000, 32, 20, 4),
    blobs("200k", 200_000, 64, 256, 3.5),
    Case("70k x 784 digits", partial(data.digits, "train", "t10k"), 10, 20, 3, 60),
    blobs("100k", 100_000, 128, 1000, 2.7, seconds=75),
    blobs("50k", 50_000, 768, 1000, 2, steps=8, seconds=60),  # 8: a step takes a second, and all steps are alike
    # Without any groups bounds help least.
    Case("500k x 16 noise", partial(data.blobs, 500_000, 16, 1, spread=0.0), 100, 20, 0),
    Case("100k x 128 noise", partial(data.blobs, 100_000, 128, 1, spread=0.0), 1000, 20, 0, 60),
    Case("60k x 784 digits", partial(data.digits, "train"), 10, _TO_THE_END, 3, 45),
    Case("60k x 784 digits", partial(data.digits, "train"), 200, _TO_THE_END, 3, 60),
    Case("11k x 384 texts", data.embeddings, 20, _TO_THE_END, 3),
    Case("11k x 384 texts", data.embeddings, 500, _TO_THE_END, 3),
    blobs("1M", 1_000_000, 16, 100, 3, steps=_TO_THE_END, seconds=60),
    blobs("100k", 100_000, 128, 1000, 3, steps=_TO_THE_END, seconds=90),
)


def run_case(case: Case, x: np.ndarray, worker: faiss_worker.Worker | None, rounds: int) -> list[dict[str, str]]:
    """The cells of the case's line by column, and of one for superkmeans where it takes part."""
    start = data.some_rows(x, case.k)
    found: dict[str, Found] = {}

    def ours() -> Found:
        model = fw.KMeans(case.k, init=start, n_init=1, tol=0, max_iter=case.max_iter, n_threads=2).fit(x)
        return Found(np.asarray(model.cluster_centers_), model.n_iter_)

    def kept(name: str, run: Run) -> Callable[[], None]:
        def turn() -> None:
            found[name] = run()

        return turn

    # scikit-learn comes before faiss, which asks how many steps it took.
    runs = {"ours": ours, **peers(x, start, case.max_iter, worker, lambda: found[LLOYD].steps)}
    times = long_race({name: kept(name, run) for name, run in runs.items()}, rounds, seconds=case.seconds)
    if installed(SUPER) and x.shape[1] >= 128 and case.max_iter != _TO_THE_END:
        times[SUPER] = [timed(kept(SUPER, superkmeans(x, case.k, case.max_iter)))]  # no contestant: once is enough
    best = {name: min(each) for name, each in times.items()}
    other = min((name for name in best if name not in ("ours", SUPER)), key=lambda name: best[name])
    if worker is not None and other == faiss_name(worker):
        found[other] = Found(worker.centres(), found[other].steps)
    reached = data.inertia(x, found["ours"].centres)

    def against(name: str) -> dict[str, str]:
        return {
            "other / ours": f"{best[name] / best['ours']:.2f}",
            "inertia apart": f"{reached / data.inertia(x, found[name].centres) - 1:+.0e}",
            "rounds": str(len(times[name])),
        }

    dropped = {name: "" if len(times[name]) == len(times["ours"]) else "*" for name in times}
    line = {name: f"{best[name] * 1e3:.0f}{dropped[name]}" for name in best}
    line |= {
        "data": case.title,
        "ours": f"{best['ours'] * 1e3:.1f}",
        "fastest other": other,
        "bar": f"{case.bar:g}" if case.bar else "none",
        "steps, ours / other": f"{found['ours'].steps} / {found[other].steps}",
    }
    lines = [line | against(other)]
    if SUPER in times:
        lines.append(
            {"data": f"  {SUPER} (approximate, own start)", "fastest other": f"{best[SUPER] * 1e3:.0f}"}
            | against(SUPER)
        )
    return lines


def small_case(rounds: int) -> dict[str, str]:
    """A hundred fits of a small table: here it counts what a fit costs before it computes anything."""
    from sklearn.cluster import KMeans

    x = data.iris()

    def fit(kind: Any) -> Any:
        return kind(3, n_init=1, random_state=0).fit(x)

    times = race(
        {"ours": lambda: [fit(fw.KMeans) for _ in range(100)], LLOYD: lambda: [fit(KMeans) for _ in range(100)]}, rounds
    )
    return {
        "data": _SMALL,
        "ours": f"{times['ours'] * 1e3:.1f}",
        LLOYD: f"{times[LLOYD] * 1e3:.1f}",
        "fastest other": LLOYD,
        "other / ours": f"{times[LLOYD] / times['ours']:.2f}",
        "bar": "1",
        "inertia apart": f"{fit(fw.KMeans).inertia_ / fit(KMeans).inertia_ - 1:+.0e}",
        "rounds": str(rounds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows")
    parser.add_argument("--rounds", type=int, default=5, help="at most; fewer where they take too long")
    parser.add_argument("words", nargs="*", help="only cases whose name contains one of these")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    worker = faiss_worker.hire() if installed("faiss") else None
    lines = []
    chosen = selected([*(case.title for case in CASES), _SMALL], given.words)
    for title, case in [*((case.title, case) for case in CASES), (_SMALL, None)]:
        if title not in chosen:
            continue
        print(title, file=sys.stderr, flush=True)
        try:
            if case is None:
                lines.append(small_case(given.rounds))
            else:
                x = case.rows()
                if given.quick:
                    x = x[: len(x) // 20].copy()
                lines += run_case(case, x, worker, given.rounds)
        except FileNotFoundError as error:
            lines.append({"data": f"{title}: {data.missing(error)}"})
    head = ["data", "ours", LLOYD, ELKAN, ONEDAL, FAISS, *([faiss_name(worker)] if worker else [])]
    head += ["fastest other", "other / ours", "bar", "inertia apart", "steps, ours / other", "rounds"]
    show(
        "k-means from the same start, milliseconds" + (", a twentieth of the rows" if given.quick else ""),
        head,
        [[line.get(column, "") for column in head] for line in lines],
        left=(0, head.index("fastest other")),
    )
    print("* over 3 times slower than the fastest other in the first round, and not run again")
    print("inertia apart: ours / that of the fastest other - 1, both computed anew in float64 from the centres")
    if worker is not None:
        if worker.core_type != faiss_worker.CORE_TYPES[0]:
            print(f"{faiss_name(worker)}: OPENBLAS_CORETYPE={worker.core_type}; SKYLAKEX does not run on this machine")
        print(f"{faiss_name(worker)}: faiss with its OpenBLAS told to use the kernels of that processor, which are faster here")
        print(f"{FAISS}: OpenBLAS chose its kernels by itself, for {faiss_kernels()}")
        worker.close()


if __name__ == "__main__":
    main()
