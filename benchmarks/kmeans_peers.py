"""Other k-means implementations: the same start, the same number of steps, tol=0, two threads."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks import faiss_worker

LLOYD, ELKAN, ONEDAL, FAISS = "scikit-learn lloyd", "scikit-learn elkan", "oneDAL", "faiss"
SUPER = "superkmeans"  # works on rotated rows cut short, from a start of its own: shown, never the one to beat
_ELKAN_BYTES = 2e9  # of its lower bounds, one for each row and centre


class Found(NamedTuple):
    """What a contestant ended with; `steps` as it counts them itself."""

    centres: np.ndarray
    steps: int


Run = Callable[[], Found]


def peers(
    x: np.ndarray, start: np.ndarray, max_iter: int, worker: faiss_worker.Worker | None, steps: Callable[[], int]
) -> dict[str, Run]:
    """The peers that are installed. faiss has no test of convergence: `steps` tells it how many are enough."""
    from sklearn.cluster import KMeans

    n, k = len(x), len(start)

    def theirs(kind: Any, algorithm: str) -> Run:
        def run() -> Found:
            model = kind(k, init=start, n_init=1, max_iter=max_iter, tol=0, algorithm=algorithm).fit(x)
            return Found(model.cluster_centers_, model.n_iter_)

        return run

    found = {LLOYD: theirs(KMeans, "lloyd")}
    if n * k * x.itemsize <= _ELKAN_BYTES:
        found[ELKAN] = theirs(KMeans, "elkan")
    if installed("sklearnex"):
        found[ONEDAL] = _accelerated(theirs(_onedal(), "lloyd"))
    if installed("faiss"):
        import faiss

        faiss.omp_set_num_threads(2)
        found[FAISS] = lambda: Found(faiss_worker.kmeans(x, start, steps()), steps())
    if worker is not None:
        worker.load(x, start)

        def elsewhere() -> Found:
            worker.fit(steps())
            return Found(np.empty(0), steps())  # its centres are fetched when the clock has stopped

        found[faiss_name(worker)] = elsewhere
    return found


def superkmeans(x: np.ndarray, k: int, steps: int) -> Run:
    """All rows, all steps, no quantising; what it prunes by is approximate."""
    from superkmeans import SuperKMeans

    def run() -> Found:
        model = SuperKMeans(
            k, x.shape[1], hierarchical=False, iters=steps, sampling_fraction=1.0, max_points_per_cluster=len(x),
            n_threads=2, early_termination=False, tol=0.0,
        )  # fmt: skip
        return Found(np.asarray(model.train(x)), steps)

    return run


def faiss_name(worker: faiss_worker.Worker) -> str:
    """faiss in the worker is a peer of its own."""
    return f"{FAISS} {worker.core_type}"


def faiss_kernels() -> str:
    """Which kernels the OpenBLAS of faiss chose by itself in this process."""
    from threadpoolctl import threadpool_info

    libraries = (one for one in threadpool_info() if one["internal_api"] == "openblas" and "faiss" in one["filepath"])
    return next((one["architecture"] for one in libraries), "an unknown processor")


def installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _onedal() -> Any:
    import daal4py
    from sklearnex.cluster import KMeans

    daal4py.daalinit(2)
    return KMeans


def _accelerated(run: Run) -> Run:
    """The same, but an error if oneDAL left the work to scikit-learn: then its time would be no time of oneDAL."""
    logger = logging.getLogger("sklearnex")
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    def checked() -> Found:
        said.clear()
        level, handlers = logger.level, logger.handlers
        logger.handlers = [Listener()]  # instead of its own, which prints
        logger.setLevel(logging.INFO)
        try:
            found = run()
        finally:
            logger.handlers = handlers
            logger.setLevel(level)
        if not any("running accelerated version" in line for line in said):
            raise RuntimeError(f"oneDAL did not run: {said}")
        return found

    return checked
