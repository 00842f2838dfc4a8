"""How mixtures go through the core: tasks that can be sent, steps that change nothing, one way in and out of units."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.data.block import DenseBlock
from foldwise.errors import DataError, NotFinishedWarning, StoreError
from foldwise.fold import multistart
from foldwise.fold.local import LocalBlocks
from foldwise.models.mixture import MixtureStart
from foldwise.models.mixture.covariance import COVARIANCE_TYPES, complexity, simpler_types
from foldwise.models.mixture.predict import densities, probabilities, sums
from foldwise.models.units import Units, in_range
from foldwise.stats.extent import Extent

TYPES = list(COVARIANCE_TYPES)


def rows(n: int = 240, d: int = 3, dtype: Any = np.float64) -> np.ndarray:
    rng = np.random.default_rng(1)
    shift = np.array([0.0, 6.0, 12.0])[rng.integers(3, size=n), None]
    return (shift + rng.standard_normal((n, d)) * np.linspace(0.5, 2.0, d)).astype(dtype)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every task goes through pickle before it meets a block, as it would on the way to another machine."""
    names: list[str] = []
    visit = LocalBlocks.visit

    def through_pickle(self: LocalBlocks, task: Any, take: Any, progress: Any = None) -> None:
        if getattr(task, "__name__", "") == "started":  # what `rows` puts around a task to place its result
            task.__closure__[0].cell_contents = pickle.loads(pickle.dumps(task.__closure__[0].cell_contents))
        elif "kmeans" not in getattr(task, "__module__", ""):
            task = pickle.loads(pickle.dumps(task))
        names.append(repr(task)[:40])
        visit(self, task, take, progress)

    monkeypatch.setattr(LocalBlocks, "visit", through_pickle)
    return names


@pytest.mark.parametrize("init", ["random", "k-means++"])
@pytest.mark.parametrize("kind", TYPES)
def test_a_fit_whose_tasks_travel_is_the_same(kind: str, init: str, request: pytest.FixtureRequest) -> None:
    x = rows()
    model = fw.GaussianMixture(3, covariance_type=kind, init_params=init, means_init=x[:3]).fit(x)
    here = (model.means_, model.predict(x), model.predict_proba(x), model.score_samples(x), model.bic(x))
    merged = model.merge(x, 2).clusters_
    names = request.getfixturevalue("sent")
    again = fw.GaussianMixture(3, covariance_type=kind, init_params=init, means_init=x[:3]).fit(x)
    there = (again.means_, again.predict(x), again.predict_proba(x), again.score_samples(x), again.bic(x))
    for one, other in zip(here, there, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(again.merge(x, 2).clusters_, merged)
    assert len(names) > 8


def test_what_a_model_says_of_rows_can_be_sent() -> None:
    x = rows(dtype=np.float32)
    gm, block = fw.GaussianMixture(3).fit(x), DenseBlock(x)
    for task in (densities, probabilities):
        sent = pickle.loads(pickle.dumps(partial(task, gm.posterior(x.dtype))))
        np.testing.assert_array_equal(sent(block), partial(task, gm.posterior(x.dtype))(block))
    told = pickle.loads(pickle.dumps(gm.row_output(fw.scan(x)).of))(block)
    np.testing.assert_array_equal(told["cluster"], gm.predict(x))
    assert isinstance(sums(gm.posterior(x.dtype), block).value, np.ndarray)
    soft = fw.SoftKMeans(3, beta=0.5).fit(x)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(soft)).predict_proba(x), soft.predict_proba(x))


def test_components_pack_again_when_they_are_unpickled() -> None:
    x = rows(dtype=np.float32)
    packed = fw.GaussianMixture(2).fit(x).posterior(x.dtype).components
    again = pickle.loads(pickle.dumps(packed))
    assert (again.kind, again.scatter, again.narrow) == (packed.kind, packed.scatter, packed.narrow)
    one, other = np.empty(len(x)), np.empty(len(x))
    packed.logs(x, one)
    again.logs(x, other)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.filterwarnings("ignore")
def test_a_step_changes_nothing_but_makes_a_new_state(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps from one state are the same whenever they are taken, also after steps elsewhere that lowered the ridge."""
    seen: list[tuple[Any, dict[str, Any], Any]] = []
    step = multistart._Whole.step

    def watched(self: Any, state: Any) -> Any:
        before = {name: np.array(array) for name, array in state.items()}
        found = step(self, state)
        for name, array in before.items():
            np.testing.assert_array_equal(state[name], array)
        seen.append((self, before, found))
        return found

    monkeypatch.setattr(multistart._Whole, "step", watched)
    narrow = np.concatenate([1e-4 * rows(200), 50.0 + 1e-4 * rows(200), [[1e3, 0.0, 0.0]]])
    fw.GaussianMixture(3, covariance_type=kind, init_params="random", n_init=2, tol=1e-6, max_iter=60).fit(narrow)
    for whole, before, (after, figures) in (seen[0], seen[len(seen) // 2]):
        again, figures_again = step(whole, before)
        assert figures == figures_again
        for name, array in after.items():
            np.testing.assert_array_equal(again[name], array)


def test_a_mixture_has_a_silhouette() -> None:
    x = rows()
    gm = fw.GaussianMixture(3, random_state=0).fit(x)
    assert gm.n_clusters_ == 3
    assert fw.silhouette(x, gm).mean == pytest.approx(fw.silhouette(x, gm.predict(x)).mean)
    merged = gm.merge(x, 2)
    assert merged.n_clusters_ == 2
    assert fw.silhouette(x, merged).clusters == (0, 1)
    for model in (fw.KMeans(3), fw.SoftKMeans(3), fw.BisectingKMeans(3)):
        assert model.fit(x).n_clusters_ == 3


def test_labels_have_one_dtype() -> None:
    x = rows()
    gm = fw.GaussianMixture(3).fit(x)
    merged = gm.merge(x, 2)
    found = (gm.predict(x), gm.fit_predict(x), gm.sample(5)[1], merged.clusters_, merged.predict(x))
    assert {labels.dtype for labels in found} == {np.dtype(np.int32)}
    assert fw.SoftKMeans(2).fit_predict(x).dtype == np.int32


def start_from(number: int) -> Any:
    """Functions with one name that start elsewhere."""

    def start(X: Any, n_clusters: int, random_state: Any) -> Any:
        return X[number : number + n_clusters]

    return start


def test_soft_kmeans_knows_its_checkpoint_by_what_the_start_does(tmp_path: Path) -> None:
    """It went on from the checkpoint of another function of the same name."""
    path, settings = tmp_path / "soft.checkpoint", {"beta": 0.01, "tol": 0.0}
    with pytest.warns(NotFinishedWarning):
        fw.SoftKMeans(3, init=start_from(0), max_iter=2, checkpoint=path, **settings).fit(rows())
    with pytest.raises(StoreError, match="other data or other parameters"):
        fw.SoftKMeans(3, init=start_from(7), max_iter=2, checkpoint=path, **settings).fit(rows())
    with pytest.warns(NotFinishedWarning):
        resumed = fw.SoftKMeans(3, init=start_from(0), max_iter=5, checkpoint=path, **settings).fit(rows())
    assert resumed.manifest_.resumed_at == 2


def test_a_fit_goes_on_from_starts_of_the_callers() -> None:
    x = rows()
    known = fw.GaussianMixture(3, covariance_type="diag", random_state=0).fit(x)
    start = MixtureStart(known.weights_, known.means_, known.covariance_matrices())
    poor = fw.GaussianMixture(3, init_params="random", random_state=0).fit(x)
    better = fw.GaussianMixture(3, init_params="random", max_iter=100, random_state=0).fit_from_starts(x, [start])
    assert better.lower_bound_ > poor.lower_bound_
    assert not better.collapsed_


def test_the_registry_orders_special_cases() -> None:
    assert set(simpler_types("full")) >= {"diag", "tied"}
    assert "spherical" in simpler_types("diag")
    for name, kind in COVARIANCE_TYPES.items():
        assert kind.name == name
        assert kind.label
        assert all(complexity(name) < complexity(other) for other in kind.special_case_of)


@pytest.mark.parametrize("kind", TYPES)
def test_each_covariance_type_keeps_its_promises(kind: str) -> None:
    k, d = 3, 4
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((k, d, d)) + 3 * np.eye(d)
    weights = np.array([0.5, 0.3, 0.2])
    covariance = COVARIANCE_TYPES[kind].of_columns(d, None)
    own = covariance.of_matrices(factor @ factor.transpose(0, 2, 1), weights)
    assert own.shape == covariance.shape(k)
    matrices = np.array(covariance.matrices(own, k))
    np.testing.assert_allclose(covariance.of_matrices(matrices, weights), own, rtol=1e-12)
    np.testing.assert_allclose(
        covariance.variances(own), np.diagonal(matrices, axis1=1, axis2=2)[: len(covariance.variances(own))]
    )
    whiten = covariance.whiten(own)
    inverse = covariance.invert(covariance.precisions(whiten))
    np.testing.assert_allclose(inverse, own, rtol=1e-10)
    ridge = np.full(d, 0.7)
    expected = np.trace(np.linalg.inv(matrices), axis1=1, axis2=2) * 0.7
    np.testing.assert_allclose(np.broadcast_to(covariance.traces(whiten, ridge), k), expected, rtol=1e-10)
    dets = np.broadcast_to(covariance.log_determinants(whiten), k)
    np.testing.assert_allclose(dets, -np.linalg.slogdet(matrices)[1] / 2, rtol=1e-10)
    twice = np.full(d, 2.0)
    np.testing.assert_allclose(covariance.matrices(covariance.scaled(own, twice), k), 4 * matrices)
    np.testing.assert_allclose(
        covariance.scaled_whiten(covariance.whiten(covariance.scaled(own, twice)), twice), whiten
    )
    assert pickle.loads(pickle.dumps(covariance)) == covariance
    normals = rng.standard_normal((200_000, d))
    drawn = covariance.draw(normals, covariance.stacked(own)[0])
    np.testing.assert_allclose(np.cov(drawn.T), matrices[0], atol=0.03 * np.abs(matrices[0]).max())


def test_units_are_one_for_ordinary_data_and_lead_back() -> None:
    ordinary = Units.of(Extent.of(DenseBlock(rows())), np.dtype(np.float64))
    assert ordinary.plain
    assert ordinary.log_volume == 0.0
    x = rows() * [1e-200, 1.0, 1e200]
    with np.errstate(all="ignore"):
        extent = Extent.of(DenseBlock(x))
    shared, apart = (Units.of(extent, np.dtype(np.float64), per_column=own) for own in (False, True))
    assert len(set(shared.factor)) == 1
    assert len(set(apart.factor)) == 3
    assert (np.frexp(apart.factor)[0] == 0.5).all()
    np.testing.assert_array_equal(apart.back(apart.seen(x)), x)
    assert np.abs(apart.seen(x)).max() < 8.0
    np.testing.assert_array_equal(next(iter(apart.view(fw.scan(x)).pieces())).load().dense(), apart.seen(x))
    assert shared.back(shared.seen(3e-300, -2), -2) == 3e-300
    step = {"step": 1.0, "shift": 1.0, "lower_bound": 2.0}
    (told,) = shared.trace([step], {"shift": 1}, log_densities=("lower_bound",))
    assert told == {"step": 1.0, "shift": 1.0 / shared.factor[0], "lower_bound": 2.0 + shared.log_volume}
    with pytest.raises(DataError, match="beta leaves the range"):
        in_range(shared.seen(1.0, -2), "beta", "leaves", least=1e-300)
