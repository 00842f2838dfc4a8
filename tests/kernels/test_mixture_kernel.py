"""Steps of EM over blocks of rows: what the twin says in extended precision, at any offset, however rows are cut."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from foldwise.kernels import reference
from foldwise.kernels.mixture import Components, Floats

KINDS = ("full", "tied", "diag", "spherical")
SCATTERS = ("full", "tied", "diag", "none")


class Gaussians(NamedTuple):
    """Components as the kernel takes them, and the standard deviation of each column over all of them."""

    kind: Any
    log_weights: Floats
    means: Floats
    whiten: Floats
    sigma: Floats

    def components(self, pivot: Any, dtype: Any, scatter: Any = "none", *, narrow: bool = True) -> Components:
        middle = np.broadcast_to(np.asarray(pivot, dtype), self.means.shape[1:]).astype(np.float64)
        return Components(
            self.kind,
            self.log_weights,
            self.means,
            self.whiten,
            middle,
            np.dtype(dtype),
            scatter=scatter,
            narrow=narrow,
        )


class Sums(NamedTuple):
    likelihood: float
    counts: Floats
    shift: Floats
    scatter: Floats | None


def gaussians(kind: str, k: int, d: int, seed: int, *, apart: float = 1.0, offset: float = 0.0) -> Gaussians:
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((k, d)) * apart + offset
    axes = rng.standard_normal((k, d, d)) / math.sqrt(d) * 0.6 + np.eye(d) * rng.uniform(0.5, 2, (k, 1, 1))
    covariances = axes @ axes.swapaxes(1, 2) + 0.05 * np.eye(d)
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    if kind == "full":
        whiten = np.stack([np.linalg.inv(np.linalg.cholesky(each)).T for each in covariances])
        logs = np.log(np.diagonal(whiten, axis1=1, axis2=2)).sum(axis=1)
    elif kind == "tied":
        whiten = np.linalg.inv(np.linalg.cholesky(covariances.mean(axis=0))).T
        logs = np.full(k, np.log(np.diag(whiten)).sum())
    elif kind == "diag":
        whiten = 1 / np.sqrt(variances)
        logs = np.log(whiten).sum(axis=1)
    else:
        whiten = 1 / np.sqrt(variances.mean(axis=1))
        logs = d * np.log(whiten)
    logs = logs + np.log(rng.dirichlet(np.full(k, 5.0))) - d / 2 * math.log(2 * math.pi)
    sigma = np.sqrt(variances.max(axis=0)) + apart
    return Gaussians(kind, logs, means, np.ascontiguousarray(whiten), sigma)


def rows_of(g: Gaussians, n: int, dtype: Any, seed: int) -> NDArray[Any]:
    rng = np.random.default_rng((seed, 1))
    k, d = g.means.shape
    return (g.means[rng.integers(k, size=n)] + rng.standard_normal((n, d))).astype(dtype)


def zeros(scatter: str, k: int, d: int) -> tuple[Floats, Floats, Floats | None]:
    shapes = {"full": (k, d, d), "tied": (d, d), "diag": (k, d)}
    return np.zeros(k), np.zeros((k, d)), np.zeros(shapes[scatter]) if scatter != "none" else None


def step(components: Components, x: NDArray[Any], weights: Floats | None = None) -> Sums:
    out = zeros(components.scatter, *components.means.shape)
    return Sums(components.step(x, weights, *out), *out)


def truth(g: Gaussians, x: NDArray[Any], weights: Floats | None, scatter: str) -> Sums:
    return Sums(
        *reference.mixture_step(x, weights, g.kind, g.log_weights, g.means, g.whiten, scatter, work=np.longdouble)
    )


def assert_close(found: Sums, true: Sums, g: Gaussians, total: float, digits: float, scatter: str = "full") -> None:
    """Sums are compared in units of the total weight and of the columns' standard deviations."""
    d = g.means.shape[1]
    assert abs(found.likelihood - true.likelihood) <= digits * (abs(true.likelihood) + d * total)
    assert np.abs(found.counts - true.counts).max() <= digits * total
    assert (np.abs(found.shift - true.shift) / g.sigma).max() <= digits * total
    if true.scatter is not None:
        assert found.scatter is not None
        unit = g.sigma**2 if scatter == "diag" else np.outer(g.sigma, g.sigma)
        assert (np.abs(found.scatter - true.scatter) / unit).max() <= 4 * digits * total


@st.composite
def cases(draw: st.DrawFn) -> tuple[Gaussians, NDArray[Any], Floats | None, str]:
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    n, d, k = draw(st.integers(1, 230)), draw(st.integers(1, 20)), draw(st.integers(1, 9))
    seed = draw(st.integers(0, 2**32))
    g = gaussians(draw(st.sampled_from(KINDS)), k, d, seed, apart=draw(st.sampled_from([0.1, 1.0, 30.0])))
    x = rows_of(g, n, dtype, seed)
    weights = draw(st.sampled_from(["none", "some", "large"]))
    rng = np.random.default_rng(seed)
    w = None if weights == "none" else rng.integers(0, 3, n) * rng.random(n) * (1e6 if weights == "large" else 1.0)
    return g, x, w, draw(st.sampled_from(SCATTERS))


@settings(deadline=None, max_examples=120)
@given(cases())
def test_step_is_the_twin_in_extended_precision(case: tuple[Gaussians, NDArray[Any], Floats | None, str]) -> None:
    g, x, w, scatter = case
    components = g.components(0.0, x.dtype, scatter)
    total = float(len(x)) if w is None else float(w.sum())
    digits = 1e-6 if components.narrow else 1e-13
    assert_close(step(components, x, w), truth(g, x, w, scatter), g, total, digits, scatter)
    if components.narrow:
        wide = g.components(0.0, x.dtype, scatter, narrow=False)
        assert_close(step(wide, x, w), truth(g, x, w, scatter), g, total, 1e-13, scatter)


@settings(deadline=None, max_examples=60)
@given(cases())
def test_logs_are_the_twin_in_extended_precision(case: tuple[Gaussians, NDArray[Any], Floats | None, str]) -> None:
    g, x, _, _ = case
    total, each = np.empty(len(x)), np.empty((len(x), len(g.means)))
    g.components(0.0, x.dtype).logs(x, total, each)
    true_total, true_each = reference.mixture_logs(x, g.kind, g.log_weights, g.means, g.whiten, work=np.longdouble)
    assert np.all(np.abs(total - true_total) <= 1e-13 * (x.shape[1] + np.abs(true_total)))
    assert np.all(np.abs(each - true_each) <= 1e-13 * (x.shape[1] + np.abs(true_total[:, None]) + np.abs(true_each)))
    np.testing.assert_allclose(np.exp(each).sum(axis=1), 1, rtol=1e-12)
    alone = np.empty(len(x))
    g.components(0.0, x.dtype).logs(x, alone)
    np.testing.assert_array_equal(alone, total)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("d", "k"), [(1, 1), (3, 200), (130, 3), (257, 2)])
def test_few_and_many(dtype: Any, kind: str, d: int, k: int) -> None:
    g = gaussians(kind, k, d, 0)
    x = rows_of(g, 40, dtype, 0)
    for scatter in ("full", "diag"):
        components = g.components(0.5, dtype, scatter)
        digits = 1e-6 if components.narrow else 1e-13
        assert_close(step(components, x), truth(g, x, None, scatter), g, len(x), digits, scatter)


def test_worked_by_hand(dtype: Any) -> None:
    # Two unit normals at -1 and 1 and one row halfway: each has half of it, at distance 1.
    g = Gaussians("full", np.full(2, math.log(0.5)), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)), np.ones(1))
    found = step(g.components(0.0, dtype, "full"), np.zeros((1, 1), dtype))
    assert found.likelihood == pytest.approx(-0.5, abs=1e-15)
    np.testing.assert_array_equal(found.counts, [0.5, 0.5])
    np.testing.assert_allclose(found.shift, [[0.5], [-0.5]], rtol=1e-7)
    np.testing.assert_allclose(found.scatter, [[[0.5]], [[0.5]]], rtol=2e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_variances_at_an_offset(dtype: Any, kind: str) -> None:
    offset, digits = (1e5, 1e-6) if dtype == np.float32 else (1e8, 1e-9)
    g = gaussians(kind, 3, 5, 1, apart=4.0, offset=offset)
    x = rows_of(g, 20_000, dtype, 2)
    scatter = "diag"
    # The pivot need not be good, only near.
    found = step(g.components(offset + 2.5, dtype, scatter), x)
    true = truth(g, x, None, scatter)
    assert found.scatter is not None
    assert true.scatter is not None
    mean, true_mean = found.shift / found.counts[:, None], true.shift / true.counts[:, None]
    variance = found.scatter / found.counts[:, None] - mean**2
    np.testing.assert_allclose(
        variance, (true.scatter / true.counts[:, None] - true_mean**2).astype(float), rtol=digits
    )
    np.testing.assert_allclose(mean, true_mean.astype(float), atol=digits)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_mean_repetition(dtype: Any, kind: str) -> None:
    g = gaussians(kind, 4, 6, 3)
    x = rows_of(g, 500, dtype, 3)
    times = np.random.default_rng(4).integers(0, 4, len(x))
    components = g.components(0.0, dtype, "full")
    weighted, repeated = step(components, x, times.astype(np.float64)), step(components, np.repeat(x, times, axis=0))
    digits = 1e-6 if components.narrow else 1e-13
    assert_close(weighted, repeated, g, float(times.sum()), digits)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_weight_zero_do_not_matter(dtype: Any, kind: str) -> None:
    g = gaussians(kind, 4, 6, 3)
    x = rows_of(g, 500, dtype, 3)
    w = np.where(np.arange(len(x)) % 3 == 0, 0.0, 2.0)
    spoilt = np.where(w[:, None] == 0, np.finfo(dtype).max, x)
    spoilt[::6] *= -1
    components = g.components(0.0, dtype, "full")
    found, true = step(components, spoilt, w), step(components, np.where(w[:, None] == 0, 0, x).astype(dtype), w)
    assert found.likelihood == true.likelihood
    for left, right in zip(found[1:], true[1:], strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_added_to_and_blocks_add_up(dtype: Any, kind: str) -> None:
    g = gaussians(kind, 5, 9, 5)
    x = rows_of(g, 1000, dtype, 5)
    for scatter in SCATTERS:
        components = g.components(0.0, dtype, scatter)
        out = zeros(scatter, *g.means.shape)
        likelihood = 0.0
        for part in np.split(x, [1, 200, 777]):
            likelihood += components.step(part, None, *out)
        digits = 1e-6 if components.narrow else 1e-13
        assert_close(Sums(likelihood, *out), step(components, x), g, len(x), digits, scatter)
        if components.scatter in ("full", "tied") and out[2] is not None:
            np.testing.assert_array_equal(out[2], np.swapaxes(out[2], -1, -2))


def test_bits_do_not_depend_on_who_else_computes(dtype: Any) -> None:
    g = gaussians("full", 7, 19, 6)
    parts = np.array_split(rows_of(g, 4000, dtype, 6), 9)
    components = g.components(0.0, dtype, "full")
    alone = [step(components, part) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda part: step(components, part), parts))
    for one, other in zip(alone, together, strict=True):
        for left, right in zip(one, other, strict=True):
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("kind", KINDS)
def test_a_density_does_not_depend_on_the_rows_beside(dtype: Any, kind: str) -> None:
    g = gaussians(kind, 7, 11, 7)
    x = rows_of(g, 300, dtype, 7)
    components = g.components(0.0, dtype)
    total, each = np.empty(300), np.empty((300, 7))
    components.logs(x, total, each)
    for i in (0, 1, 100, 191, 192, 299):
        one, shares = np.empty(1), np.empty((1, 7))
        components.logs(x[i : i + 1], one, shares)
        assert one[0] == total[i]
        np.testing.assert_array_equal(shares[0], each[i])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("far", [50.0, 1e4, 1e15, 1e37])
def test_far_rows(dtype: Any, kind: str, far: float) -> None:
    g = gaussians(kind, 4, 6, 8)
    x = rows_of(g, 400, dtype, 8)
    x[::7] += np.random.default_rng(8).choice([-far, far], (len(x[::7]), 6)).astype(dtype)
    near = np.arange(400) % 7 != 0
    components = g.components(0.0, dtype, "full")
    digits = 1e-6 if components.narrow else 1e-12
    # In two parts: beside sums of squares of such rows nothing is left of the others.
    w = np.where(near, 1.0, 0.0)
    assert_close(step(components, x, w), truth(g, x, w, "full"), g, w.sum(), digits)
    found, true = step(components, x, 1 - w), truth(g, x, 1 - w, "full")
    assert found.likelihood == pytest.approx(float(true.likelihood), rel=1e-13)
    assert found.counts.sum() == pytest.approx((1 - w).sum(), rel=1e-14)
    assert found.scatter is not None
    assert np.isfinite(found.scatter).all()
    if far < 1e6:  # the difference between two components is known; further out it is rounded away
        assert_close(found, true, g._replace(sigma=g.sigma + far), (1 - w).sum(), 1e-10)
    total, each = np.empty(400), np.empty((400, 4))
    g.components(0.0, dtype).logs(x, total, each)
    assert np.isfinite(total).all()
    np.testing.assert_allclose(np.exp(each).sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_beyond_all_squares_belong_to_all_alike(kind: str) -> None:
    g = gaussians(kind, 4, 3, 9)
    x = np.full((5, 3), 1e200)
    x[1] *= [1, -1, 1]
    total, each = np.empty(5), np.empty((5, 4))
    components = g.components(0.0, np.float64)
    components.logs(x, total, each)
    assert np.isfinite(total).all()
    np.testing.assert_allclose(np.exp(each), 0.25, rtol=1e-12)
    found = step(components, x)
    np.testing.assert_allclose(found.counts, 1.25, rtol=1e-12)


def test_a_component_without_weight_gets_nothing(dtype: Any) -> None:
    g = gaussians("full", 3, 4, 10)
    logs = g.log_weights.copy()
    logs[1] = -math.inf
    g = g._replace(log_weights=logs)
    x = rows_of(g, 200, dtype, 10)
    found = step(g.components(0.0, dtype, "full"), x)
    assert found.scatter is not None
    assert found.counts[1] == 0
    assert not found.shift[1].any()
    assert not found.scatter[1].any()
    assert math.isfinite(found.likelihood)
    assert found.counts.sum() == pytest.approx(len(x))


def test_small_shares_in_a_component_are_not_lost() -> None:
    # Nobody is near the second component: its sums are tiny, and right nevertheless.
    g = Gaussians("spherical", np.zeros(2), np.array([[0.0], [30.0]]), np.ones(2), np.ones(1))
    x = np.random.default_rng(0).standard_normal((500, 1))
    found, true = step(g.components(0.0, np.float64, "diag"), x), truth(g, x, None, "diag")
    assert 0 < found.counts[1] < 1e-100
    assert found.scatter is not None
    assert true.scatter is not None
    np.testing.assert_allclose(found.counts, true.counts.astype(float), rtol=1e-12)
    np.testing.assert_allclose(found.shift, true.shift.astype(float), rtol=1e-12)
    np.testing.assert_allclose(found.scatter, true.scatter.astype(float), rtol=1e-12)


def test_exponentials_are_good_to_a_few_units_in_the_last_place() -> None:
    # One row, two components: the counts are 1 / (1 + e^-t) and e^-t / (1 + e^-t), the log density log(1 + e^-t).
    x = np.zeros((1, 1))
    for t in np.concatenate([np.linspace(0, 2, 301), np.linspace(2, 700, 500)]):
        logs = np.array([0.0, -t])
        g = Gaussians("spherical", logs, np.zeros((2, 1)), np.ones(2), np.ones(1))
        found = step(g.components(0.0, np.float64), x)
        e = np.exp(-np.longdouble(t))
        assert abs(found.counts[1] / (e / (1 + e)) - 1) < 6e-16
        assert abs(found.counts[0] / (1 / (1 + e)) - 1) < 6e-16
        assert abs(found.likelihood - np.log1p(e)) < 3e-16
    for k in (2, 3, 7, 100, 300):  # all alike: log k
        g = Gaussians("spherical", np.zeros(k), np.zeros((k, 1)), np.ones(k), np.ones(1))
        assert step(g.components(0.0, np.float64), x).likelihood == pytest.approx(math.log(k), rel=3e-16)


def test_float32_is_used_where_it_is_good_enough() -> None:
    for kind in KINDS:
        g = gaussians(kind, 3, 8, 11)
        assert g.components(0.0, np.float32).narrow
        assert not g.components(0.0, np.float32, narrow=False).narrow
        assert not g.components(0.0, np.float64).narrow
        assert not gaussians(kind, 3, 65, 11).components(0.0, np.float32).narrow
        tiny = g._replace(whiten=g.whiten * 1e20)
        assert not tiny.components(0.0, np.float32).narrow
    # Two columns that are nearly the same; and, whitened apart, means that are far from the pivot.
    for rho, good in ((0.5, True), (0.9999999, False)):
        whiten = np.linalg.inv(np.linalg.cholesky([[1.0, rho], [rho, 1.0]])).T
        g = Gaussians("full", np.zeros(1), np.zeros((1, 2)), np.ascontiguousarray(whiten[None]), np.ones(2))
        assert g.components(0.0, np.float32).narrow is good
        tied = g._replace(kind="tied", whiten=np.ascontiguousarray(whiten))
        assert tied.components(0.0, np.float32).narrow is good
        assert not tied.components(100.0, np.float32).narrow


@pytest.mark.parametrize("kind", KINDS)
def test_components_far_from_the_pivot_in_float32(kind: str) -> None:
    # Rows near zero have more digits than are left of them after a shift by the pivot.
    g = gaussians(kind, 2, 3, 15)
    g = g._replace(means=g.means + np.array([[0.0], [2e4]]))
    x = rows_of(g, 2000, np.float32, 15)
    components = g.components(1e4, np.float32, "full")
    assert not components.narrow
    assert_close(step(components, x), truth(g, x, None, "full"), g, len(x), 1e-9)


@pytest.mark.parametrize("kind", ["full", "tied"])
def test_nearly_dependent_columns_in_float32(kind: str) -> None:
    rng = np.random.default_rng(12)
    axes = np.array([[1.0, 0.0, 0.0], [1.0, 1e-4, 0.0], [0.5, 0.0, 1.0]])
    x = (rng.standard_normal((3000, 3)) @ axes.T).astype(np.float32)
    whiten = np.linalg.inv(np.linalg.cholesky(axes @ axes.T)).T
    both = np.stack([whiten, whiten]) if kind == "full" else whiten
    g = Gaussians(
        kind, np.zeros(2), np.array([[0.1, 0.1, 0.0], [0.0, 0.0, 0.1]]), np.ascontiguousarray(both), np.ones(3)
    )
    assert_close(step(g.components(0.0, np.float32, "full"), x), truth(g, x, None, "full"), g, len(x), 1e-9)


def test_no_rows(dtype: Any) -> None:
    g = gaussians("full", 2, 3, 13)
    found = step(g.components(0.0, dtype, "full"), np.empty((0, 3), dtype))
    assert found.likelihood == 0
    assert found.scatter is not None
    assert not found.counts.any()
    assert not found.scatter.any()
    g.components(0.0, dtype).logs(np.empty((0, 3), dtype), np.empty(0), np.empty((0, 2)))


def test_wrong_arrays_are_refused(dtype: Any) -> None:
    g = gaussians("full", 2, 3, 14)
    components = g.components(0.0, dtype, "full")
    other = np.float64 if dtype == np.float32 else np.float32
    x, (counts, shift, scatter) = np.zeros((5, 3), dtype), zeros("full", 2, 3)
    for wrong in (x.astype(other), np.asfortranarray(x), np.zeros((5, 6), dtype)[:, ::2], x[0]):
        with pytest.raises(TypeError):
            components.step(wrong, None, counts, shift, scatter)
        with pytest.raises(TypeError):
            components.logs(wrong, np.empty(5))
    with pytest.raises(ValueError, match="as many columns"):
        components.step(np.zeros((5, 4), dtype), None, counts, shift, scatter)
    with pytest.raises(ValueError, match="one entry per row"):
        components.step(x, np.ones(4), counts, shift, scatter)
    with pytest.raises(ValueError, match="counts"):
        components.step(x, None, np.zeros(3), shift, scatter)
    with pytest.raises(ValueError, match="shift"):
        components.step(x, None, counts, np.zeros((2, 2)), scatter)
    for spread in (None, np.zeros((2, 3))):
        with pytest.raises(ValueError, match="scatter"):
            components.step(x, None, counts, shift, spread)
    with pytest.raises(ValueError, match="one entry per row"):
        components.logs(x, np.empty(4))
    with pytest.raises(ValueError, match="rows by components"):
        components.logs(x, np.empty(5), np.empty((5, 3)))
    with pytest.raises(ValueError, match="whiten"):
        g._replace(kind="diag").components(0.0, dtype)
    with pytest.raises(ValueError, match="a weight per component"):
        g._replace(log_weights=np.zeros(3)).components(0.0, dtype)
