"""The laws of the records of one column: an identity, merging associates, any split is the whole, weights repeat."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldwise.data.block import DenseBlock
from foldwise.stats.term_sums import BinWeights, TermSums
from foldwise.stats.univariate import OUTSIDE, Univariate
from foldwise.testing import check_statistic

PARTS = frozenset({"logs", "log squares", "complement", "inverse", "counts"})
EDGES = np.array([0.5, 1.0, 2.0, 1e8])


@dataclass(frozen=True)
class Case:
    x: np.ndarray
    w: np.ndarray | None

    def block(self, start: int = 0, stop: int | None = None) -> DenseBlock:
        w = None if self.w is None else self.w[start:stop]
        return DenseBlock(self.x[start:stop].reshape(-1, 1), start, w)


@st.composite
def cases(draw: st.DrawFn, *, weighted: bool | None = None) -> Case:
    """Positive values, shares, counts, values of both signs, at offsets and scales."""
    n, rng = draw(st.integers(1, 60)), np.random.default_rng(draw(st.integers(0, 10_000)))
    kind = draw(
        st.sampled_from(
            ["gamma", "near", "share", "narrow share", "counts", "large counts", "normal", "zeros", "huge", "tiny"]
        )
    )
    x = {
        "gamma": lambda: rng.gamma(1.5, 2.0, n),
        "near": lambda: 1e8 + rng.standard_normal(n),
        "share": lambda: rng.beta(0.7, 0.9, n).clip(1e-9, 1 - 1e-9),
        "narrow share": lambda: 0.3 + 1e-7 * rng.standard_normal(n),
        "counts": lambda: rng.poisson(2.0, n) * 1.0,
        "large counts": lambda: rng.poisson(1e15, n) * 1.0,
        "normal": lambda: rng.standard_normal(n),
        "zeros": lambda: np.zeros(n),
        "huge": lambda: 1e300 * rng.gamma(2.0, 1.0, n),
        "tiny": lambda: 1e-300 * rng.gamma(2.0, 1.0, n),
    }[kind]()
    if weighted or (weighted is None and draw(st.booleans())):
        w = rng.integers(0, 4, n).astype(np.float64)
        w[draw(st.integers(0, n - 1))] = 2.0  # something must count
        return Case(x, w)
    return Case(x, None)


def make(block: DenseBlock) -> Univariate:
    return Univariate.of(block, PARTS)


def parts(v: Univariate) -> dict[str, Any]:
    """What a record means, free of the pivot that a split may choose."""
    told: dict[str, Any] = {"weight": v.weight, "mean": np.ldexp(v.mean, v.exponent), "low": v.low, "high": v.high}
    told["deviation"] = np.ldexp(np.sqrt(v.squares), v.exponent)
    for name, logs in (("logs", v.logs), ("complement", v.complement)):
        if logs is not None:
            told |= {f"{name} mean": logs.mean, f"{name} gap": logs.gap, f"{name} spread": np.sqrt(logs.squares)}
            if name == "complement":
                del told["complement spread"]  # nobody needs it, so there is none
    if v.inverse is not None:
        told["inverse"] = np.ldexp(v.inverse, v.exponent)
    if v.rests is not None and v.divergence is not None:
        told |= {"rests": v.rests, "divergence mean": v.divergence / v.weight}
    return told


def assert_same(a: Univariate, b: Univariate, case: Case) -> None:
    first, second = parts(a), parts(b)
    assert first.keys() == second.keys()
    size = float(np.abs(case.x).max())
    for name, value in first.items():
        # Spread and gaps keep their digits however large the mean is: that is the point of these records.
        within = 1e-14 * size if name == "mean" else 1e-13 if name.endswith("mean") else 0.0
        np.testing.assert_allclose(value, second[name], rtol=2e-9, atol=within + 1e-300, err_msg=name)
    if a.counts is not None or b.counts is not None:
        np.testing.assert_array_equal(a.counts, b.counts)


@given(case=cases())
def test_empty_is_the_identity(case: Case) -> None:
    value = make(case.block())
    for merged in (value.merge(Univariate.empty()), Univariate.empty().merge(value)):
        assert merged is value
    assert Univariate.empty().merge(Univariate.empty()).weight == 0.0


@given(case=cases(), cuts=st.lists(st.floats(0, 1), max_size=6))
def test_any_split_equals_the_whole(case: Case, cuts: list[float]) -> None:
    n = len(case.x)
    total = Univariate.empty()
    for start, stop in pairwise([0, *sorted(int(c * n) for c in cuts), n]):
        total = total.merge(make(case.block(start, stop)))
    whole = make(case.block())
    assert_same(total, whole, case)
    assert total.rows == whole.rows
    np.testing.assert_array_equal(total.first_rows, whole.first_rows)
    np.testing.assert_array_equal(total.first_values, whole.first_values)


@given(case=cases(), cut=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_merge_associates(case: Case, cut: tuple[float, float]) -> None:
    n = len(case.x)
    i, j = sorted(int(c * n) for c in cut)
    a, b, c = make(case.block(0, i)), make(case.block(i, j)), make(case.block(j, n))
    assert_same(a.merge(b).merge(c), a.merge(b.merge(c)), case)


@given(case=cases(weighted=True))
def test_weights_are_repetition(case: Case) -> None:
    assert case.w is not None
    again = np.repeat(case.x, case.w.astype(int))
    assert_same(make(case.block()), make(DenseBlock(again.reshape(-1, 1))), case)


@given(case=cases(), seed=st.integers(0, 1000))
def test_order_does_not_matter(case: Case, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(case.x))
    turned = Case(case.x[order], None if case.w is None else case.w[order])
    assert_same(make(turned.block()), make(case.block()), case)


@given(case=cases())
def test_sums_of_logarithms_without_their_squares(case: Case) -> None:
    """They take another way, by products."""
    usual, short = make(case.block()), Univariate.of(case.block(), PARTS - {"log squares"})
    assert (usual.logs is None) == (short.logs is None)
    if usual.logs is not None and short.logs is not None:
        assert np.isnan(short.logs.squares)
        assert short.logs.mean == pytest.approx(usual.logs.mean, rel=1e-13, abs=1e-14)
        assert short.logs.gap == pytest.approx(usual.logs.gap, rel=1e-11, abs=1e-13)


@given(case=cases())
def test_it_is_what_extended_precision_says(case: Case) -> None:
    v = make(case.block())
    x = case.x.astype(np.longdouble)
    w = np.ones(len(x), dtype=np.longdouble) if case.w is None else case.w.astype(np.longdouble)
    mean = (w * x).sum() / w.sum()
    assert float(np.ldexp(v.mean, v.exponent)) == pytest.approx(float(mean), rel=1e-14, abs=1e-17)
    spread = np.sqrt((w * ((x - mean) / (abs(mean) + 1)) ** 2).sum()) * (abs(mean) + 1)
    if float(abs(mean)) > 1e-200:
        assert float(np.ldexp(np.sqrt(v.squares), v.exponent)) == pytest.approx(float(spread), rel=1e-12)
    if v.logs is not None:
        u = x / mean
        # In longdouble a gap of 1e-16 has some three digits left; ours is compared where that is enough.
        gap = float((w * (u - 1 - np.log(u))).sum())
        assert v.logs.gap == pytest.approx(gap, rel=1e-9, abs=1e-17 * len(x))


def test_the_first_value_of_each_kind_is_found() -> None:
    x = np.array([0.5, 2.5, -1.0, 0.0, 1.0, 0.25])
    w = np.array([1.0, 0.0, 1.0, 1.0, 1.0, 1.0])  # 2.5 does not count
    v = Univariate.of(DenseBlock(x.reshape(-1, 1), 100, w), PARTS)
    assert dict(zip(OUTSIDE, v.first_rows.tolist(), strict=True)) == {
        "negative": 102,
        "zero": 103,
        "one": 104,
        "above one": -1,
        "fraction": 100,
    }
    assert v.first("negative") == (102, -1.0)
    assert v.first("above one") is None


@given(case=cases(), cut=st.floats(0, 1))
def test_totals_and_tallies(case: Case, cut: float) -> None:
    def terms(x: np.ndarray) -> list[np.ndarray]:
        return [np.sin(x), np.cbrt(x)]

    i = int(cut * len(case.x))
    for of, empty in (
        (lambda block: TermSums.of(block, terms, 2), TermSums.empty(2)),
        (lambda block: BinWeights.of(block, EDGES), BinWeights.empty(len(EDGES))),
    ):
        whole, split = of(case.block()), of(case.block(0, i)).merge(of(case.block(i)))
        name = "value" if isinstance(whole, TermSums) else "weights"
        size = float(np.abs(getattr(whole, name)).max()) + len(case.x)
        np.testing.assert_allclose(getattr(split, name), getattr(whole, name), atol=1e-13 * size)
        for same in (whole.merge(empty), empty.merge(whole)):
            np.testing.assert_array_equal(getattr(same, name), getattr(whole, name))
    w = 1.0 if case.w is None else case.w
    np.testing.assert_allclose(
        TermSums.of(case.block(), terms, 2).value[0], (np.sin(case.x) * w).sum(), atol=1e-13 * len(case.x) * 4
    )
    tally = BinWeights.of(case.block(), EDGES).weights
    assert tally[0] == ((case.x < 0.5) * w).sum()
    assert tally[-1] == ((case.x >= 1e8) * w).sum()


def test_shipped_checks_pass() -> None:
    x = np.random.default_rng(0).gamma(2.0, 3.0, (200, 1))
    check_statistic(make, x, summary=lambda v: list(parts(v).values()) if v.weight else [0.0])
    check_statistic(lambda block: BinWeights.of(block, EDGES), x)


def test_small_terms_are_not_lost_beside_large_ones() -> None:
    """A merge keeps what rounding leaves out: 2^53 and a thousand ones."""
    total = TermSums(np.array([[2.0**53], [0.0]]))
    for _ in range(1000):
        total = total.merge(TermSums(np.array([[1.0], [0.0]])))
    total = total.merge(TermSums(np.array([[-(2.0**53)], [0.0]])))
    assert total.value[0] == 1000.0


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_gaps_and_spreads_have_all_their_digits(offset: float) -> None:
    mp = pytest.importorskip("mpmath")
    x = np.abs(offset + np.random.default_rng(3).standard_normal(400)) + 0.1
    block = [make(DenseBlock(part.reshape(-1, 1))) for part in np.array_split(x, 5)]
    v = block[0].merge(block[1]).merge(block[2].merge(block[3]).merge(block[4]))
    assert v.logs is not None
    assert v.inverse is not None
    with mp.workdps(60):
        exact = [mp.mpf(float(one)) for one in x]
        mean = mp.fsum(exact) / len(exact)
        logs = [mp.log(one) for one in exact]
        middle = mp.fsum(logs) / len(logs)
        gap = len(exact) * (mp.log(mean) - middle)
        squares = mp.fsum((one - middle) ** 2 for one in logs)
        inverse = mp.fsum((one - mean) ** 2 / one for one in exact)
        for found, true in ((v.logs.gap, gap), (v.logs.squares, squares), (v.inverse, inverse)):
            assert abs(mp.mpf(found) - true) < 1e-13 * true
