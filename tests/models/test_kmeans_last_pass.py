"""The last pass of a fit finds labels, sizes and inertias at once, with the bits of the passes it replaces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import foldwise as fw
from foldwise.data.block_grid import rows_per_block
from foldwise.data.cache import cached
from foldwise.data.scan import scan
from foldwise.errors import NotFinishedWarning
from foldwise.fold.passes import Passes
from foldwise.models.kmeans import lloyd
from foldwise.models.kmeans.assignment import Assignment
from foldwise.models.kmeans.bounds import Bounds
from foldwise.models.kmeans.fit_data import KMeansData
from foldwise.models.kmeans.label_order import ordered

D, K = 24, 7


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def rows(request: pytest.FixtureRequest) -> NDArray[Any]:
    """Some blocks, the last one ragged."""
    n = 3 * rows_per_block(D, np.dtype(request.param)) + 77
    return (np.random.default_rng(5).standard_normal((n, D)) + 10).astype(request.param)


def assignment_of(x: Any, weights: Any = None, *, n_threads: int = 2, bounds: str = "off") -> Assignment:
    return Assignment(KMeansData(Passes(cached(scan(x, weights=weights)), n_threads=n_threads)), bounds=bounds)


def centres_of(x: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(x[:: len(x) // K][:K])


def equal_parts(one: Assignment, other: Assignment, centres: NDArray[Any]) -> None:
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.cluster_weights, other.cluster_weights)
    np.testing.assert_array_equal(one.residuals(centres), other.residuals(centres))
    for part, again in zip(one.sums.parts, other.sums.parts, strict=True):
        np.testing.assert_array_equal(part, again)


@pytest.mark.parametrize("bounds", ["off", "on"])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_equals_an_ordinary_pass(rows: NDArray[Any], bounds: str, n_threads: int) -> None:
    plain, last = assignment_of(rows), assignment_of(rows, n_threads=n_threads, bounds=bounds)
    centres = centres_of(rows)
    for one in (plain, last):  # a blank start, and labels that change
        new = lloyd.step(one, centres).centres
    plain.assign(new)
    last.assign_last(new)
    equal_parts(last, plain, new)


def test_inertias_need_no_pass_and_sums_take_one(rows: NDArray[Any]) -> None:
    last, centres = assignment_of(rows), centres_of(rows)
    passes = last.data.passes.counter
    last.assign_last(centres)
    before = passes.passes
    last.residuals(centres)
    assert last.cluster_weights.sum() == len(rows)
    assert passes.passes == before
    assert last.sums is last.sums
    assert passes.passes == before + 1
    last.residuals(centres[::-1].copy())  # at other centres
    assert passes.passes == before + 2


def test_a_step_after_the_last_pass(rows: NDArray[Any]) -> None:
    """Whoever goes on gets the same as if the last pass had been an ordinary one."""
    plain, last, centres = assignment_of(rows), assignment_of(rows), centres_of(rows)
    plain.assign(centres)
    last.assign_last(centres)
    np.testing.assert_array_equal(last.means(centres), plain.means(centres))
    last.assign_last(centres)
    one, other = lloyd.step(last, centres), lloyd.step(plain, centres)
    np.testing.assert_array_equal(one.centres, other.centres)
    assert (one.after_e, one.after_m, one.shift) == (other.after_e, other.after_m, other.shift)
    equal_parts(last, plain, centres)


def test_renumbering_carries_the_inertias_along(rows: NDArray[Any]) -> None:
    last, centres = assignment_of(rows), centres_of(rows)
    last.assign_last(centres)
    before, passes = last.residuals(centres), last.data.passes.counter.passes
    new = ordered(last, centres)
    order = [int(np.flatnonzero((centres == centre).all(axis=1))[0]) for centre in new]
    assert order != list(range(K))
    assert (np.diff(last.cluster_weights) <= 0).all()
    np.testing.assert_array_equal(last.residuals(new), before[order])
    assert last.data.passes.counter.passes == passes
    np.testing.assert_array_equal(last.labels, assignment_of(rows).data.passes.rows(Nearest(new)))


class Nearest:
    """The labels of a block's rows, by brute force."""

    def __init__(self, centres: NDArray[Any]) -> None:
        self.centres = centres.astype(np.float64)

    def __call__(self, block: Any) -> NDArray[Any]:
        gaps = [np.square(block.dense() - centre).sum(axis=1) for centre in self.centres]
        return np.asarray(np.argmin(gaps, axis=0))


def test_renumbering_with_exact_ties_assigns_again() -> None:
    """The row at 5 is as far from 0 as from 10: it belongs to the cluster with the lower number, which is the larger one."""
    x = np.array([[0.0], [10.0], [10.0], [10.0], [5.0]])
    assignment, centres = assignment_of(x), np.array([[0.0], [10.0]])
    assignment.assign_last(centres)
    assert assignment.exact_ties == 1
    assert assignment.labels.tolist() == [0, 1, 1, 1, 0]
    assert ordered(assignment, centres).ravel().tolist() == [10, 0]
    assert assignment.labels.tolist() == [1, 0, 0, 0, 0]


@pytest.mark.parametrize("kind", ["plain", "weighted", "sparse", "missing"])
def test_whole_fits_agree_with_themselves(rows: NDArray[Any], kind: str) -> None:
    weights = np.random.default_rng(1).integers(0, 3, len(rows)) + 0.5 if kind == "weighted" else None
    x: Any = rows
    if kind == "sparse":
        x = sp.csr_array(np.where(rows > 10.5, rows, 0).astype(rows.dtype))
    if kind == "missing":
        x = rows.copy()
        x[::7, 3] = np.nan
        x[11] = np.nan
    options: dict[str, Any] = {"missing": "model"} if kind == "missing" else {}
    for max_iter in (1, 3):
        with pytest.warns(NotFinishedWarning):
            km = fw.KMeans(K, random_state=0, n_init=1, max_iter=max_iter, tol=0, **options).fit(x, sample_weight=weights)
        np.testing.assert_array_equal(km.predict(x), km.labels_)
        dense = x.toarray() if kind == "sparse" else x
        gaps = np.square(dense.astype(np.float64) - km.cluster_centers_.astype(np.float64)[km.labels_])
        each = np.where(km.labels_ >= 0, np.nansum(gaps, axis=1), 0) * (1 if weights is None else weights)
        counted = np.ones(len(rows)) if weights is None else weights
        for cluster in range(K):
            mine = km.labels_ == cluster
            assert np.isclose(km.cluster_weights_[cluster], counted[mine].sum(), rtol=1e-12)
            assert np.isclose(km.cluster_inertias_[cluster], each[mine].sum(), rtol=1e-10)
        assert np.isclose(km.inertia_, each.sum(), rtol=1e-10)


def test_a_cluster_dropped_after_the_last_pass() -> None:
    """Sums that were never formed cannot be made up for rows in no cluster: all rows are assigned anew."""
    x = np.random.default_rng(0).standard_normal((60_000, 20)).astype(np.float32)
    data = KMeansData(Passes(cached(scan(x)), n_threads=2))
    assignment = Assignment(data)
    assignment.assign_last(x[:5].copy())
    assignment.relabel([0, 1, 2, 3, -1], 4)
    assert not assignment.sums.weights.any()
    assignment.assign(x[:4].copy())
    assert assignment.sums.weights.sum() == len(x)


def test_a_last_pass_starts_no_bounds_but_uses_those_there_are() -> None:
    x = np.random.default_rng(1).standard_normal((20_000, 300)).astype(np.float32)
    centres, rescaling = x[:40].copy(), assignment_of(x).data.rescaling
    bounds = Bounds("auto", *x.shape, x.dtype, sparse=False)
    bounds.learn(len(x), 0, len(x))  # no row moved: bounds are of use from here on
    assert bounds.prepare(centres, rescaling, last=True) is None
    first = bounds.prepare(centres, rescaling)
    last = bounds.prepare(centres, rescaling, last=True)
    assert first is not None
    assert last is not None
    assert (first[1].fresh, last[1].fresh) == (True, False)


def test_labels_are_handed_over_without_a_copy(rows: NDArray[Any]) -> None:
    last, centres = assignment_of(rows), centres_of(rows)
    last.assign_last(centres)
    labels = last.labels
    one = last.hand_over_labels()
    np.testing.assert_array_equal(one, labels)
    assert one.base is None
    last.assign_last(centres[::-1].copy())  # into an array of its own
    np.testing.assert_array_equal(one, labels)
    np.testing.assert_array_equal(last.labels, K - 1 - labels)


def test_labels_in_several_arrays_are_handed_over_as_one(rows: NDArray[Any]) -> None:
    """Rows of a table whose blocks are not adjacent in memory."""
    last, centres = assignment_of(np.asfortranarray(rows)), centres_of(rows)
    last.assign_last(centres)
    labels = last.labels
    np.testing.assert_array_equal(last.hand_over_labels(), labels)


def test_ctrl_c_twice_at_the_end_of_a_second_fit_leaves_the_first(
    rows: NDArray[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels of a model never change under it: each `_set` has labels of its own."""
    model = fw.KMeans(K, init=centres_of(rows), n_init=1).fit(rows)
    warn, raised = type(model)._warn_of_range, []

    def interrupted(self: Any, scaled: float) -> None:
        raised.append(self.labels_)
        if len(raised) == 1:
            raise KeyboardInterrupt
        warn(self, scaled)

    monkeypatch.setattr(type(model), "_warn_of_range", interrupted)
    with pytest.warns(NotFinishedWarning):
        model.fit(rows)
    assert raised[0] is not raised[1]
    np.testing.assert_array_equal(model.predict(rows), model.labels_)
