"""The laws of what is observed of columns with missing cells: an identity, any split is the whole, weights repeat."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldwise.data.block import DenseBlock
from foldwise.stats.observed import ObservedColumns


def _rows(seed: int, n: int, offset: float, share: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, 3)) + offset
    rows[rng.random(rows.shape) < share] = np.nan
    return rows


def _same(a: ObservedColumns, b: ObservedColumns, offset: float) -> None:
    np.testing.assert_allclose(a.weight, b.weight)
    np.testing.assert_allclose(a.mean, b.mean, rtol=0, atol=1e-15 * offset + 1e-13)
    np.testing.assert_allclose(a.squares, b.squares, rtol=1e-9 + 1e-14 * offset, atol=1e-12 + 1e-15 * offset)
    assert (a.rows, a.incomplete, a.blank) == (b.rows, b.incomplete, b.blank)
    np.testing.assert_array_equal(a.missing, b.missing)


@given(
    st.integers(0, 1000),
    st.integers(1, 40),
    st.sampled_from([0.0, 1e3, 1e8]),
    st.sampled_from([0.0, 0.3, 0.9, 1.0]),
    st.data(),
)
def test_any_split_is_the_whole(seed: int, n: int, offset: float, share: float, data: st.DataObject) -> None:
    rows = _rows(seed, n, offset, share)
    at = data.draw(st.integers(0, n))
    weights = np.random.default_rng(seed + 1).integers(0, 3, n).astype(float) if data.draw(st.booleans()) else None
    parts = [
        ObservedColumns.of(DenseBlock(rows[a:b], a, None if weights is None else weights[a:b]))
        for a, b in ((0, at), (at, n))
    ]
    whole = ObservedColumns.of(DenseBlock(rows, 0, weights))
    _same(parts[0].merge(parts[1]), whole, offset)
    _same(ObservedColumns.empty(3).merge(whole), whole, offset)
    _same(whole.merge(ObservedColumns.empty(3)), whole, offset)


@given(st.integers(0, 1000), st.integers(1, 30))
def test_weights_repeat_and_the_counts_are_of_rows(seed: int, n: int) -> None:
    rows, weights = _rows(seed, n, 10.0, 0.3), np.random.default_rng(seed).integers(0, 4, n)
    weighted = ObservedColumns.of(DenseBlock(rows, 0, weights.astype(float)))
    repeated = ObservedColumns.of(DenseBlock(np.repeat(rows, weights, axis=0)))
    np.testing.assert_allclose(weighted.weight, repeated.weight)
    np.testing.assert_allclose(weighted.mean, repeated.mean, rtol=1e-13)
    np.testing.assert_allclose(weighted.squares, repeated.squares, rtol=1e-9, atol=1e-12)
    assert weighted.rows == np.count_nonzero(weights)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_case_by_hand(dtype: type) -> None:
    nan = np.nan
    rows = np.array([[1.0, 4.0], [nan, 6.0], [3.0, nan], [nan, nan]], dtype=dtype)
    found = ObservedColumns.of(DenseBlock(rows))
    assert found.weight.tolist() == [2.0, 2.0]
    assert found.mean.tolist() == [2.0, 5.0]
    assert found.squares.tolist() == [2.0, 2.0]
    assert (found.rows, found.cells, found.columns, found.incomplete, found.blank) == (4, 4, 2, 3, 1)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_columns_offsets_and_far_values(share: float, dtype: type) -> None:
    """A constant column has no spread at all, and one far value takes no digits from other columns or from itself."""
    rng = np.random.default_rng(0)
    rows = (rng.standard_normal((3000, 4)) + 1000).astype(dtype)
    rows[:, 0] = 3.3
    rows[5, 2] = 1e9
    rows[rng.random(rows.shape) < share] = np.nan
    weights = rng.random(3000)
    found = ObservedColumns.of(DenseBlock(rows, 0, weights))
    assert found.squares[0] == 0.0
    for j in range(4):
        here = ~np.isnan(rows[:, j])
        cells, w = rows[here, j].astype(np.longdouble), weights[here].astype(np.longdouble)
        mean = (w @ cells) / w.sum()
        np.testing.assert_allclose(found.mean[j], float(mean), rtol=1e-12)
        np.testing.assert_allclose(found.squares[j], float(w @ (cells - mean) ** 2), rtol=1e-9, atol=1e-25)
