"""Whole fits as people call them, against scikit-learn: `KMeans(k)`, `GaussianMixture(k)` and `PCA(10)`, nothing else given.

Both classes keep their defaults, so ours may make several starts where theirs makes one. The bar: no row slower, none worse.

The tables were chosen before any of them was timed, from every folder of ../shared/data and by shape alone: from 150 to 872,000
rows, from 2 to 4,096 columns, measurements, tables with categories (as indicators), pixels, embeddings, genes and points in the
plane. The second ten (`--held-out`) were put aside until the first were done. `k` is the number of groups that the source of
the table names, and 8 (KMeans' default) where it names none, 16 for colours. Nothing is standardised: neither package does so
by default. GaussianMixture is left out where one covariance of each component and row is too much for either: rows x k x
columns^2 above 1e11. Where a fit of float32 rows ends in an error, a second row has the same in float64. Each row is printed
as it is done; if one fails, the others go on, and the end says which.

Times are the best of several rounds of fits that take turns, on two threads. scikit-learn runs with random_state 0 to 4, of
which the medians of time and quality are shown. A row that has taken `--seconds` (20) ends with the pair that is being fitted:
slow rows have one round, or fewer seeds; the column "fits" says how many seeds and rounds each row has had. Ours is fixed
unless a seed is given (medians of five equal fits); with `--seeds` it gets 0 to 4 as well. Quality is computed here in float64
from the parameters of each fitted model: the inertia of the centres, the mean log-likelihood of a row, the share of variance
that the components explain. The likelihood of flat components is without bound and a matter of the ridge, which differs (1e-6
in any units there; here 1e-10 of each column's variance): marked *, both models then give their responsibilities to one M-step
with the ridge of scikit-learn, and the likelihood of that is compared.
"""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")

import argparse
import gc
import math
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import foldwise as fw
from benchmarks import data, mixed
from benchmarks.common import machine, show

SEEDS = range(5)
MODELS = ("KMeans", "GaussianMixture", "PCA")
_TOO_MUCH = 1e11  # rows x components x columns^2
_SECONDS = 0.1  # of the fits of each, at least, unless there have been `_MOST`
_MOST = 10
_LONG = 20.0  # seconds of fits after which a row ends, whatever it has
_FLOOR = 1e-6  # scikit-learn's reg_covar
_ROUNDING = 16 * float(
    np.finfo(np.float64).eps
)  # for each column: correlations have no eigenvalues below that can be told
_SAME = {"KMeans": 1e-6, "GaussianMixture": 1e-4, "PCA": 1e-7}  # relative; for mixtures, in log-likelihood a row


class Table(NamedTuple):
    """A line's data, and how many groups to look for."""

    name: str
    load: Callable[[], np.ndarray]
    k: int


def _indicators(name: str) -> np.ndarray:
    """Complete rows of a table with categories: numbers as they are, a column of 0 and 1 for each category."""
    import pandas as pd

    frame, categories = mixed.complete(name)
    return np.ascontiguousarray(pd.get_dummies(frame, columns=list(categories)).to_numpy(np.float64))


def _pixels(name: str) -> np.ndarray:
    from PIL import Image

    with Image.open(data.SHARED / "images" / name) as image:
        return np.asarray(image.convert("RGB"), dtype=np.float64).reshape(-1, 3) / 255


def _faces() -> np.ndarray:
    with np.load(data.SHARED / "faces" / "olivetti_64x64.npz") as file:
        return file["images"].reshape(400, -1).astype(np.float32) / 255


def _numbers(path: str, delimiter: str | None = ",", header: int = 1) -> np.ndarray:
    """The complete columns of numbers of a text file."""
    table = np.genfromtxt(data.SHARED / path, delimiter=delimiter, skip_header=header, dtype=np.float64)
    return np.ascontiguousarray(table[:, np.isfinite(table).all(axis=0)])


def _optdigits() -> np.ndarray:
    return np.ascontiguousarray(_numbers("digits/optdigits_8x8.csv.gz", header=0)[:, :64])


FIRST = (
    Table("iris", data.iris, 3),
    Table("wine", lambda: np.ascontiguousarray(_numbers("tables/wine.csv")[:, :13]), 3),
    Table("penguins, with categories", partial(_indicators, "penguins"), 3),
    Table("wdbc", partial(_numbers, "uci/wdbc.data.gz", None, 0), 2),
    Table("optdigits", _optdigits, 10),
    Table("taxis, with categories", partial(_indicators, "taxis"), 8),
    Table("birch1", lambda: data.plane("birch1")[0], 100),
    Table("china, pixels", partial(_pixels, "china.jpg"), 16),
    Table("20 newsgroups, embeddings", data.embeddings, 20),
    Table("MNIST, 10,000 of them", partial(data.digits, "t10k"), 10),
)
HELD_OUT = (
    Table("faithful", partial(_numbers, "tables/faithful.csv"), 2),
    Table("ecoli", partial(_numbers, "uci/ecoli.data.gz", None, 0), 8),
    Table("ionosphere", partial(_numbers, "uci/ionosphere.data.gz", None, 0), 2),
    Table("oilflow", partial(_numbers, "tables/oilflow_DataTrn.txt", None, 0), 3),
    Table("titanic, with categories", partial(_indicators, "titanic"), 8),
    Table("genes", partial(_numbers, "genes/golub_3051x38.csv.gz"), 8),
    Table("a3", lambda: data.plane("a3")[0], 50),
    Table("hubble, pixels", partial(_pixels, "hubble_deep_field.jpg"), 16),
    Table("MNIST", partial(data.digits, "train"), 10),
    Table("faces", _faces, 40),
)


# ---------------------------------------------------------------- quality, from the parameters alone


def quality(kind: str, x: np.ndarray, model: Any) -> float:
    """What the model reached, in float64."""
    if kind == "KMeans":
        return data.inertia(x, model.cluster_centers_)
    if kind == "PCA":
        return _explained(x, model.components_)
    return float(_log_densities(x, model.weights_, model.means_, model.covariances_)[0].mean())


def _explained(x: np.ndarray, components: np.ndarray) -> float:
    """The share of the variance along the directions, made orthonormal anew."""
    wide = x.astype(np.float64)
    wide -= wide.mean(axis=0)
    basis = np.linalg.qr(components.astype(np.float64).T)[0]
    return float(np.square(wide @ basis).sum() / np.square(wide).sum())


def _log_densities(x: np.ndarray, weights: Any, means: Any, covariances: Any) -> tuple[np.ndarray, np.ndarray]:
    """The log density of each row, and the logs of its shares.

    By eigenvalues of correlations with one floor for both contestants: a Cholesky factor may fail where they are rounding.
    """
    from scipy.special import logsumexp

    each = np.empty((len(x), len(weights)))
    for j, (weight, mean, covariance) in enumerate(zip(weights, means, covariances, strict=True)):
        mean, covariance = np.asarray(mean, np.float64), np.asarray(covariance, np.float64)
        size = np.sqrt(np.diagonal(covariance))  # correlations are better conditioned
        values, vectors = np.linalg.eigh(covariance / size / size[:, None])
        values = np.maximum(values, _ROUNDING * len(mean))
        z = ((x.astype(np.float64) - mean) / size) @ (vectors / np.sqrt(values))
        determinant = np.log(values).sum() / 2 + np.log(size).sum()
        each[:, j] = (
            math.log(weight) - np.square(z).sum(axis=1) / 2 - determinant - len(mean) / 2 * math.log(2 * math.pi)
        )
    total = logsumexp(each, axis=1)
    return total, each - total[:, None]


def is_flat(model: Any) -> bool:
    """Whether some component is as narrow as scikit-learn's ridge in some direction."""
    return bool(np.linalg.eigvalsh(np.asarray(model.covariances_, np.float64)).min() < 2 * _FLOOR)


def with_common_ridge(x: np.ndarray, model: Any) -> float:
    """The mean log-likelihood after an M-step from the model's responsibilities, with scikit-learn's ridge."""
    shares = np.exp(_log_densities(x, model.weights_, model.means_, model.covariances_)[1])
    counts = shares.sum(axis=0) + 1e-9
    means, covariances = [], []
    for j, count in enumerate(counts):
        mean = shares[:, j] @ x / count
        away = (x - mean) * np.sqrt(shares[:, j])[:, None]
        means.append(mean)
        covariances.append(away.T @ away / count + _FLOOR * np.eye(x.shape[1]))
    return float(_log_densities(x, counts / counts.sum(), means, covariances)[0].mean())


# ---------------------------------------------------------------- fits


def _theirs(kind: str, k: int, seed: int) -> Any:
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA
    from sklearn.mixture import GaussianMixture

    classes = {"KMeans": KMeans, "GaussianMixture": GaussianMixture, "PCA": PCA}
    return classes[kind](k, random_state=seed)


def _ours(kind: str, k: int, seed: int | None) -> Any:
    return getattr(fw, kind)(k) if seed is None else getattr(fw, kind)(k, random_state=seed)


class Fits:
    """One contestant with one seed: the best time, and the model."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make, self.best, self.spent, self.model = make, math.inf, 0.0, None
        self.failed = False

    def fit(self, x: np.ndarray) -> None:
        """Once more."""
        model = self.make()
        gc.collect()  # before each, since it leaves the caches cold
        time.sleep(0.03)  # threads of the one before may still be spinning
        start = time.perf_counter()
        try:
            model.fit(x)
        except ValueError:  # scikit-learn on covariances that have none of its Cholesky factors
            self.failed = True
        taken = time.perf_counter() - start
        self.best, self.spent, self.model = min(self.best, taken), self.spent + taken, model


def race(
    kind: str, x: np.ndarray, k: int, rounds: int, seeds: bool, seconds: float
) -> tuple[list[Fits], list[Fits], int]:
    """Five of ours and five of theirs, which alternate, so that each finds the caches as the other left them; and the rounds.

    A round that `seconds` cut short leaves the seeds that it reached, or counts as none where there was one before.
    """
    ours = [Fits(partial(_ours, kind, k, seed if seeds else None)) for seed in SEEDS]
    theirs = [Fits(partial(_theirs, kind, k, seed)) for seed in SEEDS]
    for number in range(_MOST):
        for seen, (one, other) in enumerate(zip(ours, theirs, strict=True), 1):
            one.fit(x)
            other.fit(x)
            if one.failed or other.failed:
                return [one], [other], 1
            if sum(each.spent for each in (*ours, *theirs)) > seconds and seen < len(ours):
                return (ours, theirs, number) if number else (ours[:seen], theirs[:seen], 1)
        least = min(each.spent for each in (*ours, *theirs))
        enough = number + 1 >= rounds and least > _SECONDS
        if enough or sum(each.spent for each in (*ours, *theirs)) > seconds:
            break
    return ours, theirs, number + 1


def line(table: Table, kind: str, x: np.ndarray, given: argparse.Namespace) -> list[str] | None:
    """A line of the table, or None if the fit is too much for either."""
    n, d = x.shape
    k = min(10, n, d) if kind == "PCA" else table.k
    title = [table.name, f"{n:,} x {d}", kind, str(k)]
    if kind == "GaussianMixture" and float(n) * k * d * d > _TOO_MUCH:
        return None
    ours, theirs, rounds = race(kind, x, k, given.rounds, given.seeds, given.seconds)
    fits = f"{len(ours)} x {rounds}"
    if ours[0].failed or theirs[0].failed:
        times = [f"{one.best * 1e3:.4g}" + " fails" * one.failed for one in (ours[0], theirs[0])]
        return [*title, fits, *times, *[""] * 6]
    mark, judge = "", partial(quality, kind, x)
    if kind == "GaussianMixture" and any(is_flat(one.model) for one in (*ours, *theirs)):
        mark, judge = "*", partial(with_common_ridge, x)
    our_time, their_time = (float(np.median([one.best for one in each])) for each in (ours, theirs))
    our_best, their_best = (float(np.median([judge(one.model) for one in each])) for each in (ours, theirs))
    better = (their_best - our_best if kind == "KMeans" else our_best - their_best) / (
        1.0 if kind == "GaussianMixture" else abs(their_best)
    )
    verdict = "equal" if abs(better) <= _SAME[kind] else "better" if better > 0 else "WORSE"
    shown = "{:.7g}" if kind == "KMeans" else "{:.4f}" if kind == "GaussianMixture" else "{:.7f}"
    figures = [f"{our_time * 1e3:.4g}", f"{their_time * 1e3:.4g}", f"{their_time / our_time:.2f}"]
    return [
        *title,
        fits,
        *figures,
        "SLOWER" if our_time > their_time else "",
        shown.format(our_best) + mark,
        shown.format(their_best) + mark,
        f"{better:+.1e}",
        verdict,
    ]


HEAD = ["data", "shape", "model", "k", "fits", "ours, ms", "scikit-learn", "theirs / ours", ""]
HEAD += ["ours", "theirs", "gain", ""]


def _ends_in_error(found: list[str]) -> bool:
    return any("fails" in cell for cell in found)


def _lines(table: Table, kind: str, x: np.ndarray, given: argparse.Namespace) -> list[list[str] | None]:
    """The line of a table and a model; and in float64, where float32 ends in an error: what its users would try next."""
    first = line(table, kind, x, given)
    if first is None or not _ends_in_error(first) or x.dtype != np.float32:
        return [first]
    return [first, line(table._replace(name=f"{table.name}, in float64"), kind, x.astype(np.float64), given)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held-out", action="store_true", help="the second ten tables")
    parser.add_argument("--rounds", type=int, default=3, help="fits of each, at least")
    parser.add_argument("--seconds", type=float, default=_LONG, help="of fits after which a row ends")
    parser.add_argument("--seeds", action="store_true", help="ours, too, with random_state 0 to 4: medians")
    parser.add_argument("--model", choices=MODELS, action="append", help="only these")
    parser.add_argument("words", nargs="*", help="only tables whose name contains one of these")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(machine())
    lines, notes, failed = [], [], []
    for table in HELD_OUT if given.held_out else FIRST:
        if given.words and not any(word in table.name for word in given.words):
            continue
        try:
            x = table.load()
        except FileNotFoundError as error:
            notes.append(f"{table.name}: {data.missing(error)}")
            continue
        for kind in given.model or MODELS:
            try:
                found = _lines(table, kind, x, given)
            except Exception as error:  # whatever it is: the rows that others have had are not lost
                failed.append(f"{table.name}: {kind} FAILED: {type(error).__name__}: {error}")
                print(failed[-1], file=sys.stderr, flush=True)
                continue
            for one in found:
                print(*(one or ()), sep="  ", file=sys.stderr, flush=True)  # at once: the whole takes minutes
                if one is None:
                    notes.append(f"{table.name}: {kind} left out (rows x components x columns^2 above {_TOO_MUCH:.0e})")
                else:
                    lines.append(one)
    title = "Default fits: milliseconds; then inertia, mean log-likelihood a row or share of variance explained"
    show(title, HEAD, lines, left=(0, 1, 2, 8, 12))
    print(f"fits: seeds x rounds; a row ends after {given.seconds:g} s of fits, whatever it has had by then")
    compared = [each for each in lines if not _ends_in_error(each)]
    slower, worse = (sum(word in each for each in compared) for word in ("SLOWER", "WORSE"))
    print(f"{slower} of {len(compared)} rows slower than scikit-learn, {worse} worse (we ask for none of either)")
    if len(compared) < len(lines):
        print(f"{len(lines) - len(compared)} without comparison: a fit ends in an error after the time shown")
    for note in (*notes, *failed):
        print(note)
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
