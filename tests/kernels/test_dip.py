"""The dip: against its definition as a linear program, and its laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from foldwise.kernels import _core


def by_definition(x: np.ndarray, weights: np.ndarray) -> float:
    """The least largest distance to a continuous function that is convex up to one of the values and concave beyond."""
    u, place = np.unique(x, return_inverse=True)
    share = np.bincount(place, weights) / weights.sum()
    above = np.cumsum(share)
    below, n = above - share, len(u)
    best = 1.0
    for mode in range(n):
        unit, rows, limits = np.eye(n + 1), [], []
        for i in range(n):
            rows += [unit[i] - unit[n], -unit[i] - unit[n]]
            limits += [below[i], -above[i]]
        for i in range(n - 1):
            rows.append(unit[i] - unit[i + 1])
            limits.append(0.0)
        for i in range(1, n - 1):
            bend = (unit[i] - unit[i - 1]) / (u[i] - u[i - 1]) - (unit[i + 1] - unit[i]) / (u[i + 1] - u[i])
            if i != mode:
                rows.append(bend if i < mode else -bend)
                limits.append(0.0)
        found = linprog(unit[n], A_ub=np.array(rows), b_ub=np.array(limits), bounds=[(0, 1)] * (n + 1), method="highs")
        if found.status == 0:
            best = min(best, float(found.fun))
    return best


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=3, max_size=9), st.integers(0, 2**32 - 1), st.booleans())
def test_definition(values, seed, weighted):
    rng = np.random.default_rng(seed)
    x = np.sort(np.array(values, dtype=np.float64) + (rng.random(len(values)) if seed % 2 else 0.0))
    if len(np.unique(x)) < 2:
        return
    weights = rng.integers(1, 4, len(x)).astype(np.float64) if weighted else None
    expected = by_definition(x, np.ones(len(x)) if weights is None else weights)
    assert _core.dip(x, weights) == pytest.approx(expected, abs=1e-8)


def test_by_hand():
    assert _core.dip(np.array([0.0, 1.0]), None) == 0.25  # two steps of a half, each followed to within a quarter
    assert _core.dip(np.arange(10.0), None) == pytest.approx(0.05)  # evenly spaced: half a step
    two = np.concatenate([np.linspace(0, 1, 50), np.linspace(99, 100, 50)])
    assert 0.23 < _core.dip(two, None) < 0.25
    assert _core.dip(np.full(5, 3.0), None) == 0.0


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 60), st.integers(0, 2**32 - 1))
def test_laws(n, seed):
    rng = np.random.default_rng(seed)
    x, weights = np.sort(rng.standard_normal(n)), rng.integers(0, 4, n).astype(np.float64)
    found = _core.dip(x, None)
    assert 1 / (2 * n) - 1e-15 <= found <= 0.25
    assert _core.dip(np.ascontiguousarray(-x[::-1]), None) == pytest.approx(found, abs=1e-13)  # mirrored
    assert _core.dip(x * 4.0 + 3.0, None) == pytest.approx(found, abs=1e-12)  # units do not matter
    repeated = np.repeat(x, weights.astype(int))
    assert _core.dip(x, weights) == (_core.dip(repeated, None) if len(repeated) else 0.0)
