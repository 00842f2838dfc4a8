"""The laws of every statistic: an identity, merging associates, any split is the whole, weights repeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldwise.data.block import DenseBlock, SparseBlock
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.moments import Moments
from foldwise.stats.qr_factor import QRFactor
from foldwise.stats.scatter_product import ProductAndColumns, ProductAndForm, ScatterProduct

EPS = np.finfo(np.float64).eps
KINDS = ["moments", "columns", "triangle", "product", "form", "product and columns"]


@dataclass(frozen=True)
class Case:
    """Rows, perhaps weights, and the sizes that rounding errors are measured by."""

    x: np.ndarray
    weights: np.ndarray | None
    offset: float
    spread: float

    def block(self, start: int = 0, stop: int | None = None) -> DenseBlock:
        w = None if self.weights is None else self.weights[start:stop]
        return DenseBlock(self.x[start:stop], start, w)


def of(kind: str, case: Case) -> Callable[[Any], Any]:
    if "product" in kind or kind == "form":
        d = case.x.shape[1]
        basis = np.random.default_rng(5).standard_normal((d, 2))
        centre = np.vstack([np.full(d, case.offset + 0.25 * case.spread), np.zeros(d)])
        made = {"product": ScatterProduct, "form": ProductAndForm}.get(kind, ProductAndColumns)
        return lambda block: made.of(block, basis=basis, centre=centre, factor=np.linspace(0.5, 1.0, d))
    return {"moments": Moments, "columns": ColumnMoments, "triangle": QRFactor}[kind].of


def empty(kind: str, d: int) -> Any:
    if kind == "product":
        return ScatterProduct(np.zeros((d, 2)))
    if kind == "product and columns":
        return ProductAndColumns(np.zeros((d, 2)), ColumnMoments.empty(d))
    if kind == "form":
        return ProductAndForm(np.zeros((d, 2)), np.zeros((2, 2)))
    return {"moments": Moments, "columns": ColumnMoments, "triangle": QRFactor}[kind].empty(d)


def parts(value: Any) -> dict[str, Any]:
    """What a statistic means, free of the signs that a QR factor may choose."""
    match value:
        case ScatterProduct():
            return {"square": value.value}
        case ProductAndForm():
            return {"square": np.vstack([value.value, value.form])}
        case ProductAndColumns(product, columns):
            return {**parts(columns), "square": np.vstack([product.T, columns.squares])}
        case Moments():
            square = np.triu(value.scatter)
        case ColumnMoments():
            square = value.squares
        case QRFactor():
            square = np.triu(value.factor.T @ value.factor)
    return {"weight": value.weight, "rows": value.rows, "mean": value.mean, "square": square}


def assert_same(a: Any, b: Any, case: Case) -> None:
    n = max(1.0, len(case.x) if case.weights is None else float(case.weights.sum()))
    first, second = parts(a), parts(b)
    if "rows" in first:
        assert first["weight"] == pytest.approx(second["weight"], rel=1e-14)
        assert first["rows"] == second["rows"]
        np.testing.assert_allclose(
            first["mean"], second["mean"], rtol=0, atol=16 * EPS * (case.offset + 8 * case.spread)
        )
    # The square of a size is off by its own rounding, and by that of means which stand at the offset.
    within = 100 * n * case.spread * (EPS * case.offset + EPS * case.spread)
    np.testing.assert_allclose(first["square"], second["square"], rtol=0, atol=within)


@st.composite
def cases(draw: st.DrawFn, *, least: int = 0, weighted: bool | None = None, dtype: Any = np.float64) -> Case:
    n, d = draw(st.integers(least, 40)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    offset, spread = draw(st.sampled_from([0.0, 1e3, 1e8])), draw(st.sampled_from([1e-3, 1.0, 1e4]))
    x = (offset + spread * rng.standard_normal((n, d))).astype(dtype)
    if weighted or (weighted is None and draw(st.booleans())):
        return Case(x, rng.integers(0, 4, n).astype(np.float64), offset, spread)
    return Case(x, None, offset, spread)


@pytest.mark.parametrize("kind", KINDS)
@given(case=cases())
def test_empty_is_the_identity(kind: str, case: Case) -> None:
    value, nothing = of(kind, case)(case.block()), empty(kind, case.x.shape[1])
    for merged in (value.merge(nothing), nothing.merge(value)):
        for name, part in parts(merged).items():
            np.testing.assert_array_equal(part, parts(value)[name])


@pytest.mark.parametrize("kind", KINDS)
@given(case=cases(), cut=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_merge_associates(kind: str, case: Case, cut: tuple[float, float]) -> None:
    make, n = of(kind, case), len(case.x)
    i, j = sorted(int(c * n) for c in cut)
    a, b, c = make(case.block(0, i)), make(case.block(i, j)), make(case.block(j, n))
    assert_same(a.merge(b).merge(c), a.merge(b.merge(c)), case)


@pytest.mark.parametrize("kind", KINDS)
@given(case=cases(), cuts=st.lists(st.floats(0, 1), max_size=6))
def test_any_split_equals_the_whole(kind: str, case: Case, cuts: list[float]) -> None:
    make, n = of(kind, case), len(case.x)
    places = [0, *sorted(int(c * n) for c in cuts), n]
    total = empty(kind, case.x.shape[1])
    for start, stop in pairwise(places):
        total = total.merge(make(case.block(start, stop)))
    assert_same(total, make(case.block()), case)


@pytest.mark.parametrize("kind", KINDS)
@given(case=cases(least=1, weighted=True))
def test_weights_are_repetition(kind: str, case: Case) -> None:
    make = of(kind, case)
    times = case.weights.astype(int)
    weighted, repeated = parts(make(case.block())), parts(make(DenseBlock(np.repeat(case.x, times, axis=0))))
    if "rows" in weighted:  # the number of rows counts rows, and only those with weight
        assert weighted.pop("rows") == np.count_nonzero(times)
        assert repeated.pop("rows") == times.sum()
        assert weighted.pop("weight") == repeated.pop("weight")
        if times.any():
            within = 16 * EPS * (case.offset + 8 * case.spread)
            np.testing.assert_allclose(weighted["mean"], repeated["mean"], rtol=0, atol=within)
    within = 100 * (1 + times.sum()) * case.spread * EPS * (case.offset + case.spread)
    np.testing.assert_allclose(weighted["square"], repeated["square"], rtol=0, atol=within)


@pytest.mark.parametrize("kind", KINDS)
@given(case=cases(least=1), seed=st.integers(0, 1000))
def test_order_of_rows_does_not_matter(kind: str, case: Case, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(case.x))
    make = of(kind, case)
    weights = None if case.weights is None else case.weights[order]
    assert_same(make(DenseBlock(np.ascontiguousarray(case.x[order]), 0, weights)), make(case.block()), case)


@pytest.mark.parametrize("kind", ["moments", "columns", "triangle"])
@given(case=cases(least=1), seed=st.integers(0, 1000))
def test_order_of_columns_goes_through(kind: str, case: Case, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(case.x.shape[1])
    make = of(kind, case)
    turned = parts(make(DenseBlock(np.ascontiguousarray(case.x[:, order]), 0, case.weights)))
    plain = parts(make(case.block()))
    np.testing.assert_allclose(turned["mean"], plain["mean"][order], rtol=4 * EPS)
    square = plain["square"]
    if square.ndim == 2:
        full = square + np.triu(square, 1).T
        square = np.triu(full[np.ix_(order, order)])
    else:
        square = square[order]
    n = 1 + (len(case.x) if case.weights is None else case.weights.sum())
    within = 100 * n * case.spread * EPS * (case.offset + case.spread)
    np.testing.assert_allclose(turned["square"], square, rtol=0, atol=within)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "form"])  # whose products are in float32
@given(case=cases(least=1, dtype=np.float32))
def test_float32_rows_are_summed_in_float64(kind: str, case: Case) -> None:
    make = of(kind, case)
    wide = DenseBlock(case.x.astype(np.float64), 0, case.weights)
    narrow = parts(make(case.block()))
    if "product" in kind:  # here the centred rows are rounded to float32, and only the sums are wide
        size = np.abs(case.x.astype(np.float64) - case.offset).max() + 1
        within = 1e-5 * len(case.x) * 4 * size**2
        np.testing.assert_allclose(narrow["square"], parts(make(wide))["square"], rtol=0, atol=within)
    else:
        assert_same(make(case.block()), make(wide), case)


@pytest.mark.parametrize("kind", KINDS)
@given(case=cases(least=1), keep=st.floats(0.1, 1.0))
def test_sparse_rows_give_what_dense_rows_give(kind: str, case: Case, keep: float) -> None:
    import scipy.sparse as sp

    holes = np.where(np.random.default_rng(1).random(case.x.shape) < keep, case.x, 0.0)
    make = of(kind, case)
    sparse = make(SparseBlock(sp.csr_array(holes), 0, case.weights))
    # With zeros among them, the values spread as wide as they lie from zero.
    wide = Case(holes, case.weights, case.offset, case.offset + case.spread)
    assert_same(sparse, make(DenseBlock(holes, 0, case.weights)), wide)


@given(case=cases(least=2))
def test_all_statistics_agree_on_the_spread_of_columns(case: Case) -> None:
    block = case.block()
    columns, moments, triangle = ColumnMoments.of(block), Moments.of(block), QRFactor.of(block)
    n = 1 + (len(case.x) if case.weights is None else case.weights.sum())
    within = 100 * n * case.spread * EPS * (case.offset + case.spread)
    np.testing.assert_allclose(moments.squares, columns.squares, rtol=0, atol=within)
    np.testing.assert_allclose((triangle.factor**2).sum(axis=0), columns.squares, rtol=0, atol=within)
