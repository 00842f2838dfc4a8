"""Choosing columns: what a search costs beside one pass over the rows, scikit-learn beside it, and what the bound saves.

1,000,000 x 200 float32, 20 columns forward: the bar is one pass plus 1 s. scikit-learn's SequentialFeatureSelector has the same
criterion where a linear regression predicts all columns from the chosen ones, judged on the rows that it was fitted to; the
columns must be the same. Then the exact best 8 of 25 columns, of real and made tables.
"""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import sys
from math import comb

import numpy as np
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from threadpoolctl import threadpool_limits

import foldwise as fw
from benchmarks.common import machine, race, show, timed
from benchmarks.labelled import published
from foldwise.fold import blas
from foldwise.stats.moments import Moments

_BEYOND = 1.0  # seconds beyond the pass
_ROUNDS = 8


def correlated(n: int, d: int, seed: int, dtype: type = np.float64) -> np.ndarray:
    """Rows of d columns that share d / 4 factors, with noise."""
    rng = np.random.default_rng(seed)
    k = max(d // 4, 1)
    x = rng.standard_normal((n, k), dtype=np.float32) @ rng.standard_normal((k, d), dtype=np.float32)
    x += rng.standard_normal((n, d), dtype=np.float32)
    return x.astype(dtype, copy=False)


def one_pass() -> bool:
    """The whole fit beside one pass."""
    x = correlated(1_000_000, 200, 0, np.float32)
    fitted = {}

    def fit(search: str, many: int) -> None:
        fitted[search] = fw.FeatureSelector(many, search=search).fit(x)

    def one() -> None:
        with blas.single():  # as in a fit
            fw.fold(fw.scan(x), Moments.of_wide)

    contestants = {
        "one pass": one,
        "forward": lambda: fit("forward", 20),
        "swap": lambda: fit("swap", 20),
        "backward": lambda: fit("backward", 20),
    }
    times = race(contestants, 3)
    few = {s: race({s: lambda s=s: fw.FeatureSelector(20, search=s).fit(x[:1000])}, 3)[s] for s in list(fitted)}
    rows = [["one pass over the rows (moments)", f"{times['one pass']:.2f}", "", "", ""]]
    for search, model in fitted.items():
        beyond = times[search] - times["one pass"]
        rows.append(
            [f"fit, {search}", f"{times[search]:.2f}", f"{beyond:+.2f}", f"{few[search]:.3f}", f"{model.score_:.4f}"]
        )
    head = ["", "seconds", "beyond the pass", "the same of 1,000 rows", "explained"]
    show("20 of 200 columns, 1,000,000 rows, float32", head, rows, left=(0,))
    print(f"passes: {fitted['forward'].manifest_.passes}")
    good = times["forward"] - times["one pass"] < _BEYOND
    print(f"forward costs less than {_BEYOND:g} s beyond one pass: {good}")
    return good


def weighted_r2(model: LinearRegression, x: np.ndarray, y: np.ndarray) -> float:
    """The share of the variance of all columns that is predicted."""
    return r2_score(y, model.predict(x), multioutput="variance_weighted")


def against_sklearn() -> bool:
    """The same columns, and how long each takes."""
    rows, good = [], True
    for n, d, many, searches in ((500, 15, 5, ("forward", "backward")), (2_000, 30, 5, ("forward",))):
        x = correlated(n, d, 1)
        x -= x.mean(axis=0)
        every = np.arange(n)
        for search in searches:
            found = {}

            def ours(search: str = search, many: int = many, x: np.ndarray = x, found: dict = found) -> None:
                found["ours"] = fw.FeatureSelector(many, search=search).fit(x).get_support(indices=True)

            def theirs(
                search: str = search,
                many: int = many,
                x: np.ndarray = x,
                found: dict = found,
                every: np.ndarray = every,
            ) -> None:
                selector = SequentialFeatureSelector(
                    LinearRegression(),
                    n_features_to_select=many,
                    direction=search,
                    scoring=weighted_r2,
                    cv=[(every, every)],
                )
                with threadpool_limits(1):  # two are no faster for the small table, and slower for the large one
                    found["theirs"] = selector.fit(x, x).get_support(indices=True)

            times = race({"ours": ours, "theirs": theirs}, _ROUNDS)
            same = np.array_equal(found["ours"], found["theirs"])
            good &= same
            ratio = times["theirs"] / times["ours"]
            size = f"{many} of {d}, {n:,} rows"
            rows.append(
                [size, search, f"{1e3 * times['ours']:.1f}", f"{1e3 * times['theirs']:.0f}", f"{ratio:.0f}", str(same)]
            )
    head = ["columns", "search", "ours (ms)", "scikit-learn (ms)", "ratio", "same columns"]
    show("Beside scikit-learn's SequentialFeatureSelector", head, rows, left=(0, 1))
    return good


def exhaustive() -> None:
    """The best 8 of 25 columns."""
    rng = np.random.default_rng(0)
    wdbc = next(one for one in published() if one.name == "wdbc").load()[0]
    turned = np.linalg.qr(rng.standard_normal((25, 25)))[0]
    falling = rng.standard_normal((500, 25)) * 0.8 ** np.arange(25) @ turned
    tables = {
        "wdbc, first 25 columns, scaled": wdbc[:, :25],
        "wdbc, last 25 columns, scaled": wdbc[:, 5:],
        "6 factors and noise": correlated(500, 25, 2),
        "falling spectrum, turned": falling,
        "independent columns": rng.standard_normal((500, 25)),
        "independent columns, turned": rng.standard_normal((500, 25)) @ turned,
    }
    rows = []
    for name, x in tables.items():
        times = {}
        for threads in (1, 2):
            selector = fw.FeatureSelector(8, search="exhaustive", scale="scaled" in name, n_threads=threads)
            times[threads] = timed(lambda selector=selector, x=x: selector.fit(x))
        total, compared = comb(25, 8), selector.n_compared_
        seconds = [f"{each:.2f}" for each in times.values()]
        saved = f"{100 * (1 - compared / total):.2f} %"
        figures = f"{selector.score_:.4f}", f"{selector.bound_:.4f}"
        rows.append([name, *seconds, f"{total:,}", f"{compared:,}", saved, *figures])
    head = ["8 of 25 columns", "s, 1 thread", "s, 2 threads", "subsets", "compared", "saved", "explained", "PCA bound"]
    show("The exact best subset, by branch and bound", head, rows, left=(0,))


def main() -> int:
    print(machine(), flush=True)
    exhaustive()
    good = against_sklearn()
    good &= one_pass()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
