"""Each kernel against plain NumPy for small, odd shapes; test_isa.py runs this under every instruction set.

Vectors of 16, 32 and 64 bytes hold 2 to 16 values and panels 4 to 48 rows, so that these shapes end before, at and behind
the end of each. Wide vectors once had the labels of 16 rows out of 24, and weights that reached one column in eight.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from foldwise import kernels
from foldwise.kernels import _core, reference
from foldwise.kernels.mixture import Components
from foldwise.kernels.sparse import SparseTargets
from foldwise.kernels.targets import CentreGroups, DenseTargets, Grid, Moved, rescaling_around

ROWS = (1, 2, 3, 7, 8, 9, 17, 23, 24, 25, 47, 48, 49, 97)
COLUMNS = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 25, 49)
SHAPES = [(n, d) for n in ROWS for d in COLUMNS]
WEIGHTS = ("none", "first is zero", "last is zero", "all differ")


def some_rows(n: int, d: int, dtype: Any) -> NDArray[Any]:
    return (np.random.default_rng((n, d)).standard_normal((n, d)) * 1e-3 + 0.01).astype(dtype)


def some_weights(n: int, kind: str) -> NDArray[np.float64] | None:
    weights = np.random.default_rng(n).permutation(n) / n + 0.5
    if kind == "none":
        return None
    if n > 1 and kind != "all differ":
        weights[0 if kind.startswith("first") else -1] = 0.0
    return weights


@pytest.mark.parametrize("kind", WEIGHTS)
def test_moments(check_scatter: Any, check_columns: Any, dtype: Any, kind: str) -> None:
    for n, d in SHAPES:
        x, weights = some_rows(n, d, dtype), some_weights(n, kind)
        check_columns(x, weights)
        check_scatter(x, weights)


def test_merged_moments() -> None:
    for d in COLUMNS:
        left, right = (kernels.scatter(some_rows(n, d, np.float64), None) for n in (20, 31))
        given = left[1], left[2], left[0], right[1], right[2], right[0]
        (centre, scatter), (true_centre, true_scatter) = kernels.merge_moments(*given), reference.merge_moments(*given)
        np.testing.assert_allclose(centre.sum(axis=0), true_centre.sum(axis=0), rtol=1e-14)
        np.testing.assert_allclose(scatter, true_scatter, rtol=1e-12, atol=1e-18)


def test_elementwise(dtype: Any) -> None:
    for n, d in SHAPES:
        x, centre = some_rows(n, d, dtype), np.linspace(-1, 1, d)
        for scale in (None, np.linspace(0.5, 2, d)):
            assert np.array_equal(kernels.centred(x, centre, scale), reference.centred(x, centre, scale))
        for found, true in zip(kernels.extent(x), reference.extent(x), strict=True):
            assert np.array_equal(found, true)
        x[-1] = 0
        (unit, without), (true_unit, true_without) = kernels.unit_rows(x), reference.unit_rows(x)
        np.testing.assert_allclose(unit, true_unit, rtol=2 * np.finfo(dtype).eps)
        assert without == true_without == 1
        assert kernels.finite(x) == -1
        x[n // 2, d // 2] = np.nan
        assert kernels.finite(x) == reference.finite(x)


def test_similarity() -> None:
    for n in range(1, 70):
        x = -np.random.default_rng(n).exponential(100, n)
        x[n // 2] = 1e-17
        true = reference.similarity(x)
        kernels.similarity(x)
        np.testing.assert_allclose(x, true, rtol=4e-16)


@pytest.mark.parametrize("k", [1, 2, 5, 8, 9, 17, 65])
def test_dense_targets(dtype: Any, k: int) -> None:
    for n, d in SHAPES:
        x, points = some_rows(n, d, dtype), some_rows(k, d, dtype) * dtype(0.9)
        frame = rescaling_around(np.concatenate([x, points]))
        groups = CentreGroups(
            np.arange(k, dtype=np.int32)[::-1].copy(), np.array([(k + 1) // 2, k][k == 1 :], np.int32)
        )
        targets, grouped = DenseTargets(points, frame), DenseTargets(points, frame, groups)
        gap = (x[:, None].astype(np.float64) - points) * frame.scale
        squares = (gap**2).sum(axis=2)
        truth = reference.nearest(x, points)
        where = f"{n} rows, {d} columns"

        labels, changes = np.full(n, -1, np.int32), (np.empty(n, np.int32), np.empty(n, np.int32))
        assert targets.nearest(x, labels, None, None, changes)[0] == n, where
        np.testing.assert_array_equal(labels, truth, err_msg=where)
        np.testing.assert_array_equal(changes[0], np.arange(n), err_msg=where)
        np.testing.assert_array_equal(changes[1], np.full(n, -1), err_msg=where)

        near, following = np.empty(n, dtype), np.empty(n, dtype)
        again = np.full(n, -1, np.int32)
        grouped.nearest(x, again, near, following)
        np.testing.assert_array_equal(again, truth, err_msg=where)
        digits = 200 * float(np.finfo(dtype).eps)
        np.testing.assert_allclose(near, squares.min(axis=1), rtol=1e-3, atol=digits, err_msg=where)
        if k > 1:
            np.testing.assert_allclose(following, np.sort(squares)[:, 1], rtol=1e-3, atol=digits, err_msg=where)

        for each in (targets, grouped):
            number = 1 if each is targets else len(groups.ends)
            bounds = np.empty(n, dtype), np.empty(n, dtype), np.empty((n, number), dtype)
            moved = Moved.of(np.zeros(k), np.zeros(number), 0.0, d, np.dtype(dtype))
            bounded = np.zeros(n, np.int32)
            for fresh in (True, False):
                each.nearest_bounded(x, bounded, bounds, moved, fresh=fresh)
                np.testing.assert_array_equal(bounded, truth, err_msg=where)
            assert np.all(bounds[0] >= np.sqrt(squares.min(axis=1)) - digits), where


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("k", [1, 3, 9])
def test_sums_over_clusters(dtype: Any, kind: str, k: int) -> None:
    for n, d in SHAPES:
        x, weights = some_rows(n, d, dtype), some_weights(n, kind)
        w = np.ones(n) if weights is None else weights / 2  # of at most 1, as sums need them
        points = some_rows(k, d, dtype) * dtype(0.9)
        frame, grid = rescaling_around(np.concatenate([x, points])), Grid.of(n)
        targets, slots = DenseTargets(points, frame), np.arange(k, dtype=np.int32)
        labels = np.random.default_rng(n).integers(k, size=n).astype(np.int32)
        where = f"{n} rows, {d} columns"

        sums = np.zeros((k, d)), np.zeros((k, d)), np.zeros((2, k))
        targets.move_rows(x, None if weights is None else w, 1.0, None, labels, slots, grid, sums)
        y, member = frame.apply(x), labels[:, None] == np.arange(k)
        true = (member * w[:, None]).T @ y
        np.testing.assert_allclose(sums[0] + sums[1], true, rtol=1e-12, atol=1e-14 * n, err_msg=where)
        np.testing.assert_allclose(sums[2].sum(axis=0), w @ member, rtol=1e-14, atol=1e-15, err_msg=where)

        total = sums[2].sum(axis=0)
        new, figures = np.empty_like(points), np.empty((4, k))
        _core.update_centres(sums[0], sums[1], total, frame.pivot, frame.scale, points, new, False, figures)
        some, old = total > 0, frame.apply(points)
        means = np.where(some[:, None], true / np.where(some, total, 1)[:, None], old)
        digits = 1e-6 if dtype == np.float32 else 1e-13
        np.testing.assert_allclose(frame.apply(new), means, rtol=0, atol=digits, err_msg=where)
        np.testing.assert_allclose(figures[1][some], ((old - means) ** 2).sum(axis=1)[some], rtol=1e-9, err_msg=where)

        moved = np.flatnonzero(np.arange(n) % 3 == 0).astype(np.int32)
        after = labels.copy()
        after[moved] = (after[moved] + 1) % k
        changes = moved, np.ascontiguousarray(labels[moved])
        targets.move_rows(x, None if weights is None else w, 1.0, changes, after, slots, grid, sums)
        anew = np.zeros((k, d)), np.zeros((k, d)), np.zeros((2, k))
        targets.move_rows(x, None if weights is None else w, 1.0, None, after, slots, grid, anew)
        for found, plain in zip(sums, anew, strict=True):
            np.testing.assert_array_equal(found, plain, err_msg=where)

        each = np.empty(n)
        gap = y[:, None] - old
        squares = (gap**2).sum(axis=2)
        own = squares[np.arange(n), labels]
        found = targets.residuals(x, None if weights is None else w, labels, each)
        np.testing.assert_allclose(each, own, rtol=1e-9, err_msg=where)
        np.testing.assert_allclose(found, (w * own) @ member, rtol=1e-9, atol=1e-18, err_msg=where)

        closest, taken = np.full(n, np.finfo(dtype).max, dtype), (k + 1) // 2
        potential_now, potential = targets.update_closest(x, None if weights is None else w, taken, closest)
        near = squares[:, :taken].min(axis=1)
        digits = 200 * float(np.finfo(dtype).eps)
        np.testing.assert_allclose(closest, near, rtol=0.02, atol=digits, err_msg=where)
        assert potential_now == pytest.approx(w @ near, rel=1e-3, abs=digits * n), where
        with_each = w @ np.minimum(near[:, None], squares[:, taken:])
        np.testing.assert_allclose(potential, with_each, rtol=1e-3, atol=digits * n, err_msg=where)


@pytest.mark.parametrize("k", [1, 2, 7, 8, 9, 17, 65])
def test_sparse_targets(dtype: Any, k: int) -> None:
    for n, d in SHAPES:
        rng = np.random.default_rng((n, d, k))
        x = sp.csr_array((rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)).astype(dtype))
        points = (rng.standard_normal((k, d)) * (rng.random((k, d)) < 0.6)).astype(dtype)
        rows = x.toarray().astype(np.float64)
        frame = rescaling_around(np.concatenate([rows.astype(dtype), points]), sparse=True)
        targets, labels = SparseTargets(points, frame), np.full(n, -1, np.int32)
        targets.nearest(x, labels)
        where = f"{n} rows, {d} columns"
        np.testing.assert_array_equal(labels, reference.nearest(rows, points), err_msg=where)

        true = np.sqrt(((rows[:, None] - points) ** 2).sum(axis=2))
        digits = 1e-6 if dtype == np.float32 else 1e-9
        np.testing.assert_allclose(targets.distances(x), true, rtol=digits, err_msg=where)
        squares = (true * frame.scale) ** 2
        member = labels[:, None] == np.arange(k)
        expected = squares[np.arange(n), labels] @ member
        np.testing.assert_allclose(targets.residuals(x, None, labels), expected, rtol=1e-9, err_msg=where)

        sums = np.zeros((k, d)), np.zeros((k, d)), np.zeros((2, k))
        targets.move_rows(x, None, 1.0, None, labels, np.arange(k, dtype=np.int32), Grid.of(n), sums)
        np.testing.assert_allclose(sums[0] + sums[1], member.T @ (rows * frame.scale), atol=1e-14 * n, err_msg=where)
        np.testing.assert_array_equal(sums[2].sum(axis=0), member.sum(axis=0), err_msg=where)

        closest, taken = np.full(n, np.finfo(dtype).max, dtype), (k + 1) // 2
        now, potential = targets.update_closest(x, None, taken, closest)
        near = squares[:, :taken].min(axis=1)
        np.testing.assert_allclose(closest, near, rtol=1e-3, atol=1e-5, err_msg=where)
        assert now == pytest.approx(near.sum(), rel=1e-3), where
        with_each = np.minimum(near[:, None], squares[:, taken:]).sum(axis=0)
        np.testing.assert_allclose(potential, with_each, rtol=1e-3, err_msg=where)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_mixtures(dtype: Any, kind: Any, weights: str) -> None:
    for n in (*ROWS, 191, 192, 193):
        for d, k in ((1, 1), (2, 3), (3, 8), (5, 9), (8, 2), (9, 17), (17, 3), (25, 2)):
            rng = np.random.default_rng((n, d, k))
            x, w = rng.standard_normal((n, d)).astype(dtype), some_weights(n, weights)
            means, log_weights = rng.standard_normal((k, d)), np.log(rng.dirichlet(np.ones(k)))
            triangles = np.triu(rng.standard_normal((k, d, d)) * 0.1 + np.eye(d))
            whiten = {
                "full": triangles,
                "tied": triangles[0],
                "diag": rng.random((k, d)) + 0.5,
                "spherical": rng.random(k) + 0.5,
            }[kind]
            shapes = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "none": None}
            where = f"{n} rows, {d} columns, {k} components"
            for squares, shape in shapes.items():
                components = Components(
                    kind,
                    log_weights,
                    means,
                    np.ascontiguousarray(whiten),
                    np.zeros(d),
                    np.dtype(dtype),
                    scatter=squares,  # type: ignore[arg-type]
                )
                counts, shift, scatter = np.zeros(k), np.zeros((k, d)), None if shape is None else np.zeros(shape)
                found = (components.step(x, w, counts, shift, scatter), counts, shift, scatter)
                true = reference.mixture_step(x, w, kind, log_weights, means, whiten, squares)
                digits = (1e-5 if components.narrow else 1e-12) * (n + 10) * d
                for mine, other in zip(found, true, strict=True):
                    if mine is not None:
                        np.testing.assert_allclose(mine, other, rtol=0, atol=digits, err_msg=where)
            total, each = np.empty(n), np.empty((n, k))
            components.logs(x, total, each)
            true_total, true_each = reference.mixture_logs(x, kind, log_weights, means, whiten)
            np.testing.assert_allclose(total, true_total, rtol=1e-11, atol=1e-11, err_msg=where)
            np.testing.assert_allclose(each, true_each, rtol=1e-11, atol=1e-11, err_msg=where)
