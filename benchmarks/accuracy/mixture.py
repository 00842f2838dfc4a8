"""Complete fits of mixtures compared with scikit-learn's: likelihood, time, and sensitivity to offsets.

First table: each from its own start with its own defaults but the same tol, interleaved. Second table: the largest relative
error of the variances of one Gaussian, diag, at various offsets.
"""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")

import gzip
import warnings
from pathlib import Path

import numpy as np
from sklearn.mixture import GaussianMixture

import foldwise as fw
from benchmarks.common import race, show

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def main() -> None:
    warnings.simplefilter("ignore")
    offsets()
    if not DATA.is_dir():
        print("the published data sets (../shared/data beside the repository) are not here")
        return
    digits = np.loadtxt(DATA / "digits" / "optdigits_8x8.csv.gz", delimiter=",")[:, :64]
    cases = [(name, _plane(name), k) for name, k in (("s2", 15), ("a3", 50), ("birch1", 100))]
    cases.append(("digits on 20 components", fw.PCA(20).fit_transform(digits), 10))
    lines = []
    for name, x, k in cases:
        for kind in ("full", "diag"):
            options = {"covariance_type": kind, "tol": 1e-4, "max_iter": 300, "random_state": 0}
            ours, theirs = fw.GaussianMixture(k, **options), GaussianMixture(k, **options)
            times = race(
                {"ours": lambda ours=ours, x=x: ours.fit(x), "theirs": lambda theirs=theirs, x=x: theirs.fit(x)},
                rounds=2,
            )
            lines.append(
                [
                    f"{name}, {len(x)} x {x.shape[1]}, k={k}, {kind}",
                    f"{ours.score(x):.4f}",
                    f"{theirs.score(x):.4f}",
                    f"{ours.n_iter_}",
                    f"{theirs.n_iter_}",
                    f"{times['ours']:.2f}",
                    f"{times['theirs']:.2f}",
                    f"{times['theirs'] / times['ours']:.1f}",
                ]
            )
    head = ["fit", "mean log density", "theirs", "steps", "theirs", "seconds", "theirs", "ratio"]
    show("Whole fits, own starts", head, lines)


def offsets() -> None:
    rng = np.random.default_rng(0)
    base = rng.standard_normal((5000, 3))
    lines = []
    for name, make in (("foldwise", fw.GaussianMixture), ("scikit-learn", GaussianMixture)):
        cells = []
        for dtype in (np.float32, np.float64):
            for offset in (0.0, 1e3, 1e5, 1e8):
                x = (base + offset).astype(dtype)
                true = x.astype(np.longdouble).var(axis=0)
                if not true.all():
                    cells.append("")
                    continue
                try:
                    found = np.asarray(make(1, covariance_type="diag").fit(x).covariances_[0], dtype=np.longdouble)
                    cells.append(f"{float(np.abs(found / true - 1).max()):.0e}")
                except ValueError:
                    cells.append("error")
        lines.append([name, *cells])
    head = ["", *(f"{d} {o:g}" for d in ("f32", "f64") for o in (0.0, 1e3, 1e5, 1e8))]
    show("Largest relative error of a variance, diag, at an offset", head, lines)


def _plane(name: str) -> np.ndarray:
    with gzip.open(DATA / "benchmark2d" / f"{name}.data.gz") as file:
        return np.loadtxt(file)


if __name__ == "__main__":
    main()
