"""The best subset of columns: branch and bound against enumeration, stopped and resumed anywhere."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldwise.kernels import _core

ALL = 10**9


def explained(scatter: np.ndarray, columns: tuple[int, ...]) -> float:
    chosen = list(columns)
    part = np.linalg.lstsq(scatter[np.ix_(chosen, chosen)], scatter[chosen], rcond=1e-10)[0]
    return float(np.trace(scatter[:, chosen] @ part))


def scatter_of(d: int, seed: int, rank: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((40, rank)) @ rng.standard_normal((rank, d))
    found = np.cov(x.T).reshape(d, d)
    return np.ascontiguousarray((found + found.T) / (2 * np.trace(found)))


def search(scatter, k, nodes, best=-1.0, chosen=0, most=ALL):
    floor = np.ascontiguousarray(1e-10 * np.diagonal(scatter))
    return _core.best_subset(scatter, floor, k, best, chosen, 1e-12, np.array(nodes, dtype=np.uint64), most)


def columns_of(subset: int, d: int) -> tuple[int, ...]:
    return tuple(j for j in range(d) if subset >> j & 1)


@given(st.integers(1, 9), st.integers(0, 10_000), st.data())
def test_enumeration(d, seed, data):
    k, rank = data.draw(st.integers(1, d)), data.draw(st.integers(1, d))
    scatter = scatter_of(d, seed, rank)
    best, subset, compared, visited, left = search(scatter, k, [[0, 2**d - 1]])
    subsets = list(itertools.combinations(range(d), k))
    assert best == pytest.approx(max(explained(scatter, one) for one in subsets), abs=1e-9)
    assert explained(scatter, columns_of(subset, d)) == pytest.approx(best, abs=1e-9)
    assert len(columns_of(subset, d)) == k
    assert 1 <= compared <= len(subsets)
    assert visited >= compared
    assert left == []


@given(st.integers(4, 9), st.integers(0, 10_000), st.integers(1, 5))
def test_stopped_and_resumed(d, seed, most):
    """A few nodes at a time visit the same tree in the same order."""
    scatter, k = scatter_of(d, seed, d), d // 2
    whole = search(scatter, k, [[0, 2**d - 1]])
    best, subset, nodes, compared, visited = -1.0, 0, [[0, 2**d - 1]], 0, 0
    while nodes:
        best, subset, some, many, left = search(scatter, k, nodes, best, subset, most)
        compared, visited = compared + some, visited + many
        nodes = np.array(left, dtype=np.uint64).reshape(-1, 2).tolist()
    assert (best, subset, compared, visited, []) == whole


def test_the_bounds_save_most_of_the_work():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 4)) @ rng.standard_normal((4, 20)) + 0.3 * rng.standard_normal((300, 20))
    scatter = np.corrcoef(x.T) / 20
    best, subset, compared, _, _ = search(np.ascontiguousarray((scatter + scatter.T) / 2), 6, [[0, 2**20 - 1]])
    assert compared < 0.05 * 38_760
    assert len(columns_of(subset, 20)) == 6
    assert 0 < best < 1


def test_a_subset_that_is_known_to_be_best_is_kept():
    scatter = scatter_of(6, 1, 6)
    best, subset, *_ = search(scatter, 3, [[0, 63]])
    again, same, compared, _, _ = search(scatter, 3, [[0, 63]], best, subset)
    assert (again, same) == (best, subset)
    assert compared <= 20


def test_columns_that_are_chosen_or_out_stay_so():
    scatter = scatter_of(7, 2, 7)
    _, subset, *_ = search(scatter, 3, [[0b1, 0b1111010]])
    assert subset & 0b1  # chosen
    assert not subset & 0b100  # neither chosen nor open
