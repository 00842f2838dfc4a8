"""Time of a PCA, relative to the fastest other library: one run, interleaved, best of several, two threads.

`python -m benchmarks.speed.pca top` prints only the tables of the leading components, `all` only that of all components;
followed by beginnings of names, only those rows.
"""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import argparse
import gzip
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import foldwise as fw
from benchmarks.common import long_race, machine, race, selected, show
from benchmarks.data import SHARED, digits, missing

RIGHT = 2e-6  # whose variances are off by no more, relatively, is compared with; if nobody's are, the fastest of all is


def peers(x: np.ndarray, k: int | None = None) -> dict[str, Callable[[], object]]:
    from sklearn.decomposition import PCA
    from sklearnex.decomposition import PCA as OneDalPCA

    found: dict[str, Callable[[], object]] = {}
    for name, kind in (("scikit-learn", PCA), ("oneDAL", OneDalPCA)):
        for solver in ("covariance_eigh", "auto") if k is None else ("covariance_eigh", "randomized"):
            found[f"{name} {solver}"] = lambda kind=kind, solver=solver: kind(
                n_components=k, svd_solver=solver, random_state=0
            ).fit(x)
    return found


def factors(n: int, d: int, n_factors: int, top: float) -> np.ndarray:
    """Factors whose variances fall like 1, 1/2, 1/3, ..., as those of images and texts do, and noise of variance one."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, d), dtype=np.float32)
    loadings = np.linalg.qr(rng.standard_normal((d, n_factors)))[0] * (top / np.sqrt(np.arange(1, n_factors + 1)))
    for start in range(0, n, 20_000):
        part = x[start : start + 20_000]
        part += rng.standard_normal((len(part), n_factors), dtype=np.float32) @ loadings.T.astype(np.float32)
    return x


def noise(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, d), dtype=np.float32)


def newsgroups() -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    with gzip.open(SHARED / "text" / "20news_train.jsonl.gz") as file:
        return TfidfVectorizer().fit_transform([json.loads(each)["text"] for each in file])


def reference(x: Any, k: int) -> np.ndarray:
    """The k largest variances in float64, to all digits that matter here, by none of our own code."""
    from scipy.linalg import eigh
    from scipy.sparse.linalg import LinearOperator, eigsh

    (n, d), mean = x.shape, np.asarray(x.mean(axis=0, dtype=np.float64)).ravel()
    if not isinstance(x, np.ndarray):
        wide = x.astype(np.float64)

        def times(v: np.ndarray) -> np.ndarray:
            codes = wide @ v.ravel() - mean @ v.ravel()
            return (wide.T @ codes - mean * codes.sum()) / (n - 1)

        operator = LinearOperator((d, d), matvec=times, dtype=np.float64)
        return np.sort(eigsh(operator, k, ncv=3 * k, tol=0, return_eigenvectors=False))[::-1]
    total = np.zeros((d, d))
    for start in range(0, n, 20_000_000 // d):
        part = x[start : start + 20_000_000 // d] - mean
        total += part.T @ part
    total /= n - 1
    if d > 3000:  # LAPACK would take minutes
        return np.sort(eigsh(total, k, ncv=3 * k, tol=0, return_eigenvectors=False))[::-1]
    return eigh(total, eigvals_only=True, subset_by_index=[d - k, d - 1])[::-1]


def verdict(times: dict[str, float], off: dict[str, float]) -> str:
    """How ours compares with the fastest of all others that is right; if none is, with the fastest and the nearest to it."""
    others = [who for who in times if who != "ours"]
    right = [who for who in others if off[who] < RIGHT]

    def ratio(who: str) -> str:
        return f"{times[who] / times['ours']:.2f} times as fast as {who}"

    fastest = min(right or others, key=lambda who: times[who])
    if right:
        return f"{ratio(fastest)}, the fastest of all others that is right to {RIGHT:g}"
    nearest = min(others, key=lambda who: off[who])
    return f"{ratio(fastest)}, the fastest of all others, and {ratio(nearest)}, the most accurate; none is right to {RIGHT:g}"


def top(wanted: list[str]) -> None:
    """The leading components of each table, or of those whose names contain a word that is wanted."""
    cases: list[tuple[str, Callable[[], Any], int, float]] = [
        ("200k x 784", lambda: factors(200_000, 784, 40, 6.0), 10, 2.0),
        ("50k x 2000", lambda: factors(50_000, 2000, 60, 6.0), 20, 3.5),
        ("20k x 10000", lambda: factors(20_000, 10_000, 100, 12.0), 50, 5.0),
        ("MNIST 70k x 784", lambda: digits("train", "t10k"), 50, 1.0),
        ("20 newsgroups, sparse", newsgroups, 100, 2.0),
        ("noise 200k x 784", lambda: noise(200_000, 784), 10, 0.8),
        ("noise 50k x 2000", lambda: noise(50_000, 2000), 20, 0.8),
    ]
    chosen = selected([case[0] for case in cases], wanted)
    for name, make, k, bar in cases:
        if name not in chosen:
            continue
        print(name, file=sys.stderr, flush=True)
        try:
            compare(name, make(), k, bar)
        except FileNotFoundError as error:
            print(f"\n{name}: {missing(error)}")


def contestants(x: Any, k: int) -> dict[str, Callable[[], Any]]:
    """Every solver that makes sense for these rows, and ours."""
    from sklearn.decomposition import PCA
    from sklearnex.decomposition import PCA as OneDalPCA

    sparse, many = not isinstance(x, np.ndarray), x.shape[1] > 3000
    models: dict[str, Callable[[], Any]] = {"ours": lambda: fw.PCA(k).fit(x)}
    if not many:
        models["ours, covariance_eigh"] = lambda: fw.PCA(k, svd_solver="covariance_eigh").fit(x)
    for who, kind in (("scikit-learn", PCA),) if sparse else (("scikit-learn", PCA), ("oneDAL", OneDalPCA)):
        for solver in (
            ("arpack",) if sparse else ("arpack", "randomized") if many else ("covariance_eigh", "arpack", "randomized")
        ):
            models[f"{who} {solver}"] = lambda kind=kind, solver=solver: kind(k, svd_solver=solver, random_state=0).fit(
                x
            )
    return models


def compare(name: str, x: Any, k: int, bar: float) -> None:
    """Times, how far off the variances are, and what our models certify."""
    fitted: dict[str, Any] = {}

    def keeping(who: str, fit: Callable[[], Any]) -> Callable[[], object]:
        return lambda: fitted.__setitem__(who, fit())

    runs = {who: keeping(who, fit) for who, fit in contestants(x, k).items()}
    times = long_race(runs, rounds=5, seconds=60.0, hopeless=2.0)  # ARPACK takes long, and the first round of all is slower
    truth = reference(x, k)
    best = {who: min(each) for who, each in times.items()}
    off = {who: float(np.abs(model.explained_variance_ / truth - 1).max()) for who, model in fitted.items()}
    rows = []
    for who, model in fitted.items():
        row = [who, f"{best[who]:.3f}", f"{best[who] / best['ours']:.2f}", f"{off[who]:.0e}", "", ""]
        if hasattr(model, "manifest_"):
            certified = float((model.variance_errors_ / model.explained_variance_).max())
            row[4:] = f"{certified:.0e}", f"{model.manifest_.algorithm}, {model.manifest_.passes} passes"
        rows.append(row)
    show(
        f"{name}, top {k}: {verdict(best, off)} (bar {bar:g})",
        ["who", "seconds", "ours = 1", "variances off by", "certified", "solver"],
        rows,
        left=(0, 5),
    )


def memory_of_fits() -> None:
    """Of fits that once took half a gigabyte, each in a process of its own: memory that was freed would be used again."""
    code = (
        "import sys; from benchmarks.speed.pca import *; x, k = factors(50_000, 2000, 60, 6.0), eval(sys.argv[1]); "
        "print(extra_memory(lambda: fw.PCA(k).fit(x)))"
    )
    rows = []
    for what, k in (("top 20", 20), ("all components", None)):
        done = subprocess.run([sys.executable, "-c", code, str(k)], check=True, capture_output=True, text=True)
        rows.append([what, f"{float(done.stdout):.0f}"])
    show("Extra memory of a fit, 50k x 2000 float32 (bar 150 MB)", ["fit", "MB"], rows)


def extra_memory(run: Callable[[], object]) -> float:
    """How far resident memory rises above where it was, in MB, by the system's own high-water mark (Linux).

    A thread that looks now and then misses what LAPACK takes, since SciPy calls it without releasing the interpreter.
    """

    def kilobytes(what: str) -> int:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(what))

    fw.PCA().fit(np.eye(5))  # what is imported at the first fit is not the fit's memory
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the mark starts again from here
    before = kilobytes("VmRSS")
    run()
    return (kilobytes("VmHWM") - before) * 1.024e-3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", nargs="?", choices=["top", "all"], help="only the leading, or only all components")
    parser.add_argument("names", nargs="*", help="only data sets whose names contain one of these, such as '50k x' or MNIST")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(machine())
    if given.table != "all":
        top(given.names)
    if given.table == "top":
        return
    if given.table is None:
        memory_of_fits()
    rng = np.random.default_rng(0)
    cases: list[tuple[str, int, int, Any, int | None, float]] = [
        ("1M x 50 float32", 1_000_000, 50, np.float32, None, 0.5),
        ("1M x 50 float64", 1_000_000, 50, np.float64, None, 1.0),
        ("200k x 784 float32", 200_000, 784, np.float32, None, 0.8),
        ("200k x 784 float64", 200_000, 784, np.float64, None, 1.0),
    ]
    rows = []
    chosen = selected([case[0] for case in cases], given.names)
    for name, n, d, dtype, k, bar in cases:
        if name not in chosen:
            continue
        print(name, file=sys.stderr, flush=True)
        x = rng.standard_normal((n, d), dtype=np.float32).astype(dtype, copy=False)
        memory = extra_memory(lambda x=x: fw.PCA().fit(x))
        times = race({"ours": lambda x=x: fw.PCA().fit(x), **peers(x, k)})
        rows.append(line(name, times, bar, f"{memory:.0f}"))
        if (n, d, dtype) == (200_000, 784, np.float32):
            both = race({"top": lambda x=x: fw.PCA(10).fit(x), "all": lambda x=x: fw.PCA().fit(x)})
            ratio = both["top"] / both["all"]
            rows.append(
                ["  the same, top 10, to all of ours", f"{both['top'] * 1e3:.0f}", "ours, all", f"{ratio:.2f}", "1", ""]
            )
        del x
    small = rng.standard_normal((150, 4))
    from sklearn.decomposition import PCA

    def often(make: Callable[[], Any]) -> Callable[[], object]:
        return lambda: [make().fit(small) for _ in range(200)]

    times = race({"ours": often(lambda: fw.PCA(2)), "scikit-learn": often(lambda: PCA(2))}, rounds=9)
    rows.append(line("150 x 4 (200 fits)", times, 1.0, ""))
    show(
        "PCA, all components unless said",
        ["data", "ours, ms", "fastest other", "ours / other", "bar", "extra MB"],
        rows,
        left=(0, 2),
    )


def line(name: str, times: dict[str, float], bar: float, memory: str) -> list[str]:
    other = min((who for who in times if who != "ours"), key=lambda who: times[who])
    ratio = times["ours"] / times[other]
    return [name, f"{times['ours'] * 1e3:.1f}", f"{other} {times[other] * 1e3:.1f}", f"{ratio:.2f}", f"{bar:g}", memory]


if __name__ == "__main__":
    main()
