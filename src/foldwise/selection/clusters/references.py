"""References: rows like the data, but without clusters.

"box" is uniform in a box along the principal axes (Tibshirani, Walther and Hastie 2001). "radial" keeps the covariance and how
far each row is from the mean in units of it, and draws the directions anew: it has the data's long axes and heavy tails.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foldwise.data.block import Floats
from foldwise.selection.clusters.rows import Rows
from foldwise.selection.clusters.sweep import Sweep
from foldwise.stats.signs import signed

REFERENCES = {"box": 6, "radial": 5}  # how many of each
_ROWS, _ROWS_PER_CLUSTER = 1_000, 30


def reference_names(kind: str) -> list[str]:
    """What the references of a kind are called."""
    return [f"{kind} {number}" for number in range(REFERENCES[kind])]


def reference_size(sweep: Sweep) -> int:
    """How many rows a reference has at the most."""
    return max(_ROWS, _ROWS_PER_CLUSTER * sweep.ks[-1])


def reference_rows(rows: Rows, kind: str, number: int, seed: int) -> Rows:
    """One reference, with as many rows."""
    rng = np.random.default_rng([seed, 9, sorted(REFERENCES).index(kind), number])
    middle = np.average(rows.x, axis=0, weights=rows.weights)
    x = rows.x - middle
    root = np.sqrt(rows.weight)[:, None]
    _, singular, axes = np.linalg.svd(x * root, full_matrices=False)
    some = singular > 1e-10 * max(float(singular[0]), 1e-300)
    singular, axes = singular[some], signed(axes[some])
    along: Floats = x @ axes.T
    if not len(singular):
        return rows
    if kind == "box":
        drawn = rng.uniform(along.min(axis=0), along.max(axis=0), along.shape)
    else:
        far = np.linalg.norm(along / singular, axis=1)
        drawn = rng.standard_normal(along.shape)
        drawn *= (far / np.linalg.norm(drawn, axis=1))[:, None] * singular
    return replace(rows, x=drawn @ axes)
