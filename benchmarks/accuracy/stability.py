"""Stability: clusters that are there against clusters forced on noise, and whether the confidence of rows is calibrated.

The first table has the Jaccard of clusters, plain and corrected: forced on noise (bar: corrected below 0.6) or planted in it
(bar: both above 0.85). Each line is over several tables; the worst cluster of all is shown.

The second has the share of rows that keep their cluster in fits to fresh tables from the same population, by confidence.
"""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

import foldwise as fw
from benchmarks.common import machine, show

Rows = np.ndarray
NOISE, PLANTED = 0.6, 0.85  # bars
APART = 6.0  # standard deviations between planted clusters
BACKGROUND = 0.05  # the share of rows that is spread over the whole range


def noise(kind: str, n: int, d: int, rng: np.random.Generator) -> Rows:
    """Rows without clusters."""
    normal = rng.standard_normal((n, d))
    match kind:
        case "uniform cube":
            return rng.random((n, d))
        case "uniform ball":
            return normal / np.linalg.norm(normal, axis=1)[:, None] * rng.random(n)[:, None] ** (1 / d)
        case "long Gaussian":
            return normal * np.append(5.0, np.ones(d - 1)) @ np.linalg.qr(rng.standard_normal((d, d)))[0]
        case "long box":
            return rng.random((n, d)) * np.append(4.0, np.ones(d - 1))
        case "skewed (gamma 2)":
            return rng.gamma(2.0, 1.0, (n, d))
        case "heavy tails (t, 3)":
            return normal / np.sqrt(rng.chisquare(3, n) / 3)[:, None]
    return normal


def planted(kind: str, n: int, d: int, k: int, rng: np.random.Generator) -> Rows:
    """k clusters at least APART standard deviations from each other, and some rows spread over their range."""
    side = APART * max(1.5, (3.0 * k) ** (1 / d))
    while True:
        centres = rng.random((k, d)) * side
        gaps = np.linalg.norm(centres[:, None] - centres, axis=2) + 1e9 * np.eye(k)
        if gaps.min() >= APART:
            break
    match kind:
        case "skewed":
            inside = (rng.gamma(2.0, 1.0, (n, d)) - 2.0) / np.sqrt(2.0)
        case "heavy tails (t, 5)":
            inside = rng.standard_normal((n, d)) / np.sqrt(rng.chisquare(5, n) / 3)[:, None]
        case "long":
            inside = rng.standard_normal((n, d)) * np.append(1.0, np.full(d - 1, 0.4))
        case _:
            inside = rng.standard_normal((n, d))
    sizes = np.arange(1, k + 1) if kind == "unequal sizes" else np.ones(k)
    x = centres[rng.choice(k, n, p=sizes / sizes.sum())] + inside
    spread = int(BACKGROUND * n)
    x[:spread] = x.min(axis=0) + (x.max(axis=0) - x.min(axis=0)) * rng.random((spread, d))
    return x


def stable(
    name: str, made: Callable[[np.random.Generator], Rows], k: int, seeds: int, above: float | None
) -> list[str]:
    """Several tables of one kind."""
    plain, corrected = [], []
    for seed in range(seeds):
        x = made(np.random.default_rng([seed, k]))
        found = fw.stability(fw.KMeans(k, search="breathing"), x, n_repeats=50, random_state=seed)
        plain.append(found.jaccard)
        corrected.append(found.corrected)
    p, c = np.concatenate(plain), np.concatenate(corrected)
    passed = np.mean(c < NOISE) if above is None else np.mean(c > above)
    worst = c.max() if above is None else c.min()
    missed = "" if passed == 1.0 and (above is None or p.min() > above) else "MISSED"
    bar = f"< {NOISE:g}" if above is None else f"> {above:g}"
    figures = [f"{value:.2f}" for value in (p.min(), p.mean(), p.max(), c.mean(), worst)]
    return [name, str(k), *figures, bar, f"{passed:.0%}", missed]


# ---------------------------------------------------------------- calibration


def keeps(labels: np.ndarray, others: np.ndarray, k: int) -> np.ndarray:
    """Which rows keep their cluster, by a matching that is not ours."""
    table = np.array([[np.sum((labels == i) & (others == j)) for j in range(k)] for i in range(k)])
    first, second = linear_sum_assignment(-table)
    place = np.zeros(k, dtype=int)
    place[second] = first
    return place[others] == labels


def overlapping(n: int, d: int, k: int, apart: float, rng: np.random.Generator) -> Rows:
    """Clusters of unequal sizes whose means are `apart` standard deviations from each other."""
    centres = np.zeros((k, d))
    for i in range(k):
        centres[i, i % d] += apart / np.sqrt(2) * (1 + i // d)
    sizes = np.arange(1, k + 1)
    return centres[rng.choice(k, n, p=sizes / sizes.sum())] + rng.standard_normal((n, d))


def calibration(
    name: str,
    model: Any,
    k: int,
    draw: Callable[[np.random.Generator], Rows],
    tables: int,
    method: str,
    edges: np.ndarray,
) -> list[str]:
    """Mean confidence and measured share in each bin of confidence."""
    said, measured = [], []
    for seed in range(tables):
        rng = np.random.default_rng([seed, k])
        x = draw(rng)
        found = fw.stability(model, x, method=method, correct=False, random_state=seed)
        fresh = [keeps(found.labels, clone(model).fit(draw(rng)).predict(x), k) for _ in range(20)]
        said.append(found.confidence)
        measured.append(np.mean(fresh, axis=0))
    c, m = np.concatenate(said), np.concatenate(measured)
    inside = np.digitize(c, edges) - 1
    cells = [
        f"{c[inside == i].mean():.2f} {m[inside == i].mean():.2f}" if np.sum(inside == i) >= 50 else "-"
        for i in range(len(edges) - 1)
    ]
    apart = sum(abs(float((c - m)[inside == i].sum())) for i in range(len(edges) - 1)) / len(c)
    return [name, method, *cells, f"{apart:.3f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer tables")
    parser.add_argument("--only", choices=["forced", "planted", "calibration"], help="one of the tables")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(machine())
    for name, part in (("forced", show_forced), ("planted", show_planted), ("calibration", show_calibration)):
        if given.only in (None, name):
            part(given.quick)


SIZES = [(2, 2), (2, 4), (2, 8), (10, 2), (10, 4), (10, 8), (50, 2), (50, 8)]  # columns, clusters
HEAD = ["rows", "k", "Jaccard: least", "mean", "most", "corrected: mean", "worst", "bar", "clusters that pass", ""]


def show_forced(quick: bool) -> None:
    """Clusters where there are none."""
    kinds = ["uniform cube", "uniform ball", "round Gaussian", "long Gaussian", "long box", "skewed (gamma 2)"]
    kinds += ["heavy tails (t, 3)"]
    for kind in kinds:
        lines = [stable(f"1000 x {d}", partial(noise, kind, 1000, d), k, 2 if quick else 4, None) for d, k in SIZES]
        show(f"Clusters forced on noise: {kind}", HEAD, lines)


def show_planted(quick: bool) -> None:
    """Clusters that are there."""
    kinds = ("round", "unequal sizes", "long", "skewed", "heavy tails (t, 5)")
    background = f"{APART:g} standard deviations apart, {BACKGROUND:.0%} background"
    for kind in kinds:
        lines = [
            stable(f"1000 x {d}", partial(planted, kind, 1000, d, k), k, 2 if quick else 4, PLANTED) for d, k in SIZES
        ]
        show(f"Clusters planted in noise: {kind}, {background}", HEAD, lines)


def show_calibration(quick: bool) -> None:
    """Whether rows keep their clusters as often as they are said to."""
    tables, edges = 6 if quick else 16, np.array([0.0, 0.5, 0.6, 0.7, 0.8, 0.88, 0.92, 0.97, 1.01])
    lines = []
    for n, d, k, apart in ((150, 2, 3, 4.0), (500, 2, 3, 3.0), (500, 5, 4, 3.0), (2000, 2, 3, 2.5), (1000, 10, 2, 2.0)):
        made = partial(overlapping, n, d, k, apart)
        for method in ("bootstrap", "subsample"):
            name = f"KMeans, {n} x {d}, k={k}, {apart:g} apart"
            lines.append(calibration(name, fw.KMeans(k), k, made, tables, method, edges))
    made = partial(overlapping, 600, 2, 2, 3.5)
    name = "GaussianMixture, 600 x 2, k=2, 3.5 apart"
    lines.append(calibration(name, fw.GaussianMixture(2), 2, made, tables, "bootstrap", edges))
    bins = [f"{low:g} to {min(high, 1):g}" for low, high in pairwise(edges)]
    show("Calibration: mean confidence and measured share, by confidence", ["rows", "method", *bins, "mean gap"], lines)


if __name__ == "__main__":
    main()
