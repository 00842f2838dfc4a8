"""Time of one step of EM, as the ratio of scikit-learn's to ours: interleaved, best of several, two threads.

Both use the same rows and the same start. Their time per step is the difference between a fit of several iterations and a
fit of one, per extra iteration; ours is one fold of the kernel over the blocks, computing E- and M-sums together.
"""

from __future__ import annotations

import os

os.environ.setdefault("FOLDWISE_THREADS", "2")

import argparse
import math
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import foldwise as fw
from benchmarks.common import machine, show, timed
from foldwise.data.block import Block
from foldwise.fold.passes import Passes
from foldwise.kernels.mixture import Components, Kind, Scatter

SCATTER: dict[Kind, Scatter] = {"full": "full", "tied": "tied", "diag": "diag", "spherical": "diag"}
MORE = 3  # iterations of scikit-learn's longer fit beyond the first


class Case(NamedTuple):
    """One line of the table: rows, columns, components, covariances; how far apart the means are."""

    n: int
    d: int
    k: int
    kind: Kind
    apart: float
    bar: float

    @property
    def title(self) -> str:
        """What the table calls it."""
        return f"{self.n // 1000}k x {self.d}, k={self.k}, {self.kind}, means {self.apart:g} apart"


CASES = (
    Case(500_000, 16, 20, "full", 0.3, 3),
    Case(200_000, 64, 10, "full", 0.3, 3),
    Case(500_000, 16, 20, "full", 3.0, 0),
    Case(200_000, 64, 10, "full", 3.0, 0),
    Case(500_000, 16, 20, "tied", 0.3, 0),
    Case(500_000, 16, 20, "diag", 0.3, 0),
    Case(500_000, 16, 20, "spherical", 0.3, 0),
    Case(1_000_000, 2, 5, "full", 3.0, 0),
)


@dataclass(frozen=True)
class Sums:
    """What a step adds up."""

    parts: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, block: Block, components: Components) -> Sums:
        """Of a block's rows."""
        k, d = components.means.shape
        shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d)}[components.scatter]
        out = np.zeros(k), np.zeros((k, d)), np.zeros(shape)
        return cls((np.array(components.step(block.rows, block.weights, *out)), *out))

    def merge(self, other: Sums) -> Sums:
        """Of both sets of rows."""
        return Sums(tuple(left + right for left, right in zip(self.parts, other.parts, strict=True)))


class Start(NamedTuple):
    """Parameters of the mixture that the rows are drawn from."""

    means: np.ndarray
    precisions: np.ndarray  # as scikit-learn takes them
    whiten: np.ndarray

    @classmethod
    def draw(cls, case: Case, rng: np.random.Generator) -> tuple[Start, np.ndarray]:
        """The start, and the rows."""
        n, d, k = case.n, case.d, case.k
        means = rng.standard_normal((k, d)) * case.apart
        axes = np.eye(d) + rng.standard_normal((k, d, d)) * (0.7 / math.sqrt(d))
        member = rng.integers(k, size=n)
        x = rng.standard_normal((n, d))
        for j in range(k):
            x[member == j] = x[member == j] @ axes[j].T + means[j]
        covariances = axes @ axes.swapaxes(1, 2)
        if case.kind == "tied":
            covariances = covariances.mean(axis=0)
        elif case.kind != "full":
            covariances = np.diagonal(covariances, axis1=1, axis2=2)
            covariances = covariances.mean(axis=1) if case.kind == "spherical" else covariances
        if case.kind in ("full", "tied"):
            return cls(means, np.linalg.inv(covariances), _upper(covariances)), x
        return cls(means, 1 / covariances, 1 / np.sqrt(covariances)), x

    def components(self, case: Case, x: np.ndarray) -> Components:
        """The same for our kernel."""
        if case.kind in ("full", "tied"):
            logs = np.log(np.diagonal(self.whiten, axis1=-2, axis2=-1)).sum(axis=-1)
        else:
            logs = np.log(self.whiten).sum(axis=1) if case.kind == "diag" else case.d * np.log(self.whiten)
        logs = np.broadcast_to(logs, case.k) - math.log(case.k) - case.d / 2 * math.log(2 * math.pi)
        pivot = x.mean(axis=0).astype(np.float64)
        return Components(
            case.kind, np.array(logs), self.means, self.whiten, pivot, x.dtype, scatter=SCATTER[case.kind]
        )


def _upper(covariances: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.linalg.inv(np.linalg.cholesky(covariances)).swapaxes(-1, -2))


def run_case(case: Case, rounds: int) -> list[list[str]]:
    """Lines of the table, float64 and float32."""
    from sklearn.mixture import GaussianMixture

    start, rows = Start.draw(case, np.random.default_rng(0))
    lines = []
    for dtype in (np.float64, np.float32):
        x = rows.astype(dtype)
        likelihoods = {}

        def theirs(steps: int, x: np.ndarray = x, found: dict[str, float] = likelihoods) -> None:
            model = GaussianMixture(
                case.k,
                covariance_type=case.kind,
                means_init=start.means.astype(x.dtype),
                precisions_init=start.precisions.astype(x.dtype),
                weights_init=np.full(case.k, 1 / case.k, x.dtype),
                tol=0,
                max_iter=steps,
            ).fit(x)
            if steps == 1:
                found["theirs"] = float(model.lower_bound_)

        def ours(x: np.ndarray = x, found: dict[str, float] = likelihoods) -> None:
            components = start.components(case, x)
            run = Passes(fw.scan(x), n_threads=2)
            found["ours"] = float(run.fold(lambda block: Sums.of(block, components)).parts[0]) / len(x)

        runs: dict[str, Callable[[], object]] = {
            "ours": ours,
            "one": lambda: theirs(1),
            "more": lambda: theirs(1 + MORE),
        }
        best = dict.fromkeys(runs, math.inf)
        for _ in range(rounds):
            for name, run in runs.items():
                for _ in range(3 if name == "ours" else 1):
                    best[name] = min(best[name], timed(run))
        other = (best["more"] - best["one"]) / MORE
        lines.append(
            [
                case.title,
                np.dtype(dtype).name,
                f"{best['ours'] * 1e3:.0f}",
                f"{other * 1e3:.0f}",
                f"{other / best['ours']:.1f}",
                f"{case.bar:g}" if case.bar else "none",
                f"{likelihoods['ours'] - likelihoods['theirs']:+.0e}",
            ]
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("words", nargs="*", help="only cases whose name contains one of these")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(machine())
    lines = []
    for case in CASES:
        if given.words and not any(word in case.title for word in given.words):
            continue
        print(case.title, file=sys.stderr, flush=True)
        lines += run_case(case._replace(n=case.n // 20) if given.quick else case, given.rounds)
    show(
        "One step of EM, milliseconds",
        ["data", "rows as", "ours", "scikit-learn", "theirs / ours", "bar", "log-likelihood apart"],
        lines,
    )
    print("log-likelihood apart: per row at the start, ours less theirs")


if __name__ == "__main__":
    main()
