"""One hash for any threads, source and memory budget; a fit that was stopped goes on to the same bits; rings are found."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

import foldwise as fw
from foldwise.errors import NotFinishedWarning, StoreError
from foldwise.fold import events
from foldwise.fold.outcome import Reason

# Every step waits, so that the parent has time to kill in the middle of the fit.
CHILD = """
import sys, time
import foldwise as fw
from foldwise.fold import events
path, checkpoint = sys.argv[1:]
with events.listening(lambda event: time.sleep(0.12) if isinstance(event, events.StepDone) else None):
    fw.KernelKMeans(6, gamma=0.3, init="k-means++", n_init=3, checkpoint=checkpoint).fit(path)
print("finished")
"""


def model_hash(model: Any) -> str:
    parts = [model.labels_, np.array(model.inertia_), model.cluster_inertias_, model.cluster_weights_]
    parts += [model.members_, model.mean_norms_] if hasattr(model, "members_") else [model.cluster_centers_]
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


@pytest.fixture(scope="module", params=[np.float32, np.float64], ids=["float32", "float64"])
def rows(request: pytest.FixtureRequest) -> Any:
    """More than a stripe and a tile, ragged at the end, no clear groups: many steps, few moves in the last ones."""
    return np.random.default_rng(1).standard_normal((1333, 3)).astype(request.param)


OPTIONS: dict[str, dict[str, Any]] = {
    "spectral": {},
    "normalized": {"normalize": True},
    "k-means++": {"init": "k-means++", "n_init": 2, "gamma": 0.2},
    "poly": {"kernel": "poly", "n_init": 2},
    "laplacian": {"kernel": "laplacian", "init": "random", "n_init": 1},
    "nystroem": {"approximation": "nystroem", "n_features": 40},
    "random-features": {"approximation": "random-features", "n_features": 40},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_threads_and_memory(rows: Any, name: str) -> None:
    one = fw.KernelKMeans(5, n_threads=1, **OPTIONS[name]).fit(rows)
    for n_threads, memory_budget in ((2, 2**29), (3, 2**21), (7, 2**21)):  # kept, or computed again; features on disk
        other = fw.KernelKMeans(5, n_threads=n_threads, memory_budget=memory_budget, **OPTIONS[name]).fit(rows)
        assert model_hash(other) == model_hash(one)
        assert other.trace_ == one.trace_ or "approximation" in OPTIONS[name]
        np.testing.assert_array_equal(other.predict(rows), one.labels_)
        assert other.transform(rows).tobytes() == one.transform(rows).tobytes()
    assert one.score(rows) == pytest.approx(-one.inertia_, rel=1e-6)


def test_budget_is_what_decides(rows: Any) -> None:
    """Otherwise the test above would show nothing."""
    kept, tiles = (fw.KernelKMeans(5, memory_budget=size).fit(rows).manifest_.algorithm for size in (2**29, 2**21))
    assert "kept" in kept
    assert "in tiles" in tiles


@pytest.mark.parametrize("options", [{}, {"approximation": "nystroem", "n_features": 30}])
def test_containers(rows: Any, options: dict[str, Any], tmp_path: Path) -> None:
    expected = model_hash(fw.KernelKMeans(4, **options).fit(rows))
    np.save(tmp_path / "rows.npy", rows)
    given: list[Any] = [np.asfortranarray(rows), tmp_path / "rows.npy"]
    names = ["a", "b", "c"]
    given.append(pytest.importorskip("pandas").DataFrame(rows, columns=names))
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({name: rows[:, j] for j, name in enumerate(names)})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=97)
    given.append(tmp_path / "rows.parquet")
    for each in given:
        model = fw.KernelKMeans(4, n_threads=2, **options).fit(each)
        assert model_hash(model) == expected
        np.testing.assert_array_equal(model.predict(each), model.labels_)


def test_features_larger_than_the_budget_go_to_disk(tmp_path: Path) -> None:
    """Several blocks of features, from a file whose blocks are cut elsewhere."""
    x = np.random.default_rng(0).standard_normal((30_000, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    weights = np.arange(len(x)) % 3 + 1.0
    options: dict[str, Any] = {"approximation": "nystroem", "n_features": 60, "init": "k-means++", "n_init": 1}
    memory = fw.KernelKMeans(4, **options).fit(x, sample_weight=weights)
    disk = fw.KernelKMeans(4, memory_budget=2**20, **options).fit(tmp_path / "x.npy", sample_weight=weights)
    assert model_hash(disk) == model_hash(memory)
    assert disk.manifest_.spooled_bytes > len(x) * 4 > memory.manifest_.spooled_bytes
    np.testing.assert_array_equal(disk.predict(tmp_path / "x.npy"), disk.labels_)


def test_approximations_come_near(rows: Any) -> None:
    start = {"gamma": 0.3, "init": "k-means++", "n_init": 5}
    exact = fw.KernelKMeans(4, **start).fit(rows)
    near = fw.KernelKMeans(4, approximation="nystroem", n_features=400, **start).fit(rows)
    assert near.inertia_ == pytest.approx(exact.inertia_, rel=0.01)
    waves = fw.KernelKMeans(4, approximation="random-features", n_features=2000, **start).fit(rows)
    assert waves.inertia_ == pytest.approx(exact.inertia_, rel=0.03)


# ---------------------------------------------------------------- saved, stopped, resumed


@pytest.mark.parametrize("name", OPTIONS)
def test_saved_and_loaded(rows: Any, name: str, tmp_path: Path) -> None:
    model = fw.KernelKMeans(3, **OPTIONS[name]).fit(rows, sample_weight=np.arange(len(rows)) % 3 + 1.0)
    fw.save(model, tmp_path / "m.fw")
    again = fw.load(tmp_path / "m.fw")
    assert model_hash(again) == model_hash(model)
    np.testing.assert_array_equal(again.predict(rows), model.labels_)
    assert again.transform(rows).tobytes() == model.transform(rows).tobytes()
    assert again.outcome_ == model.outcome_


def test_saved_precomputed_and_sparse(tmp_path: Path) -> None:
    import scipy.sparse as sp

    x = sp.random_array((80, 20), density=0.3, format="csr", rng=np.random.default_rng(0))
    for model, new in (
        (fw.KernelKMeans(3).fit(x), x),
        (fw.KernelKMeans(3, approximation="nystroem", n_features=20).fit(x), x),
        (fw.KernelKMeans(3, kernel="precomputed").fit((x @ x.T).toarray()), (x @ x.T).toarray()),
    ):
        fw.save(model, tmp_path / "m.fw")
        np.testing.assert_array_equal(fw.load(tmp_path / "m.fw").predict(new), model.labels_)


def assert_same(a: Any, b: Any) -> None:
    assert model_hash(a) == model_hash(b)
    assert a.trace_ == b.trace_
    assert (a.n_iter_, a.outcome_.reason, a.manifest_.repairs) == (b.n_iter_, b.outcome_.reason, b.manifest_.repairs)


@pytest.fixture(scope="module")
def cloud() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((600, 3)) + 100


def test_killed_and_resumed(cloud: np.ndarray, tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "rows.npy", tmp_path / "fit.checkpoint"
    np.save(path, cloud)
    options: dict[str, Any] = {"gamma": 0.3, "init": "k-means++", "n_init": 3}
    undisturbed = fw.KernelKMeans(6, **options).fit(path)
    assert undisturbed.outcome_.steps > 20
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(path), str(checkpoint)], env=environment)
    deadline = time.monotonic() + 60
    while not checkpoint.exists() and time.monotonic() < deadline and child.poll() is None:
        time.sleep(0.02)
    time.sleep(0.3)
    assert child.poll() is None, "it must not have finished yet"
    child.send_signal(signal.SIGKILL)
    child.wait()
    resumed = fw.KernelKMeans(6, n_threads=2, checkpoint=checkpoint, **options).fit(path)
    assert resumed.manifest_.resumed_at > 0
    assert_same(resumed, undisturbed)
    assert not checkpoint.exists()


class StopAt:
    """Ctrl-C after so many steps."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, event: Any) -> None:
        self.left -= isinstance(event, events.StepDone)
        if self.left == 0:
            self.left = -1
            raise KeyboardInterrupt


@pytest.mark.parametrize("normalize", [False, True])
def test_interrupted_and_resumed(cloud: np.ndarray, normalize: bool, tmp_path: Path) -> None:
    weights = np.arange(len(cloud)) % 2 + 1.0
    options: dict[str, Any] = {"gamma": 0.3, "init": "random", "n_init": 1, "normalize": normalize}
    undisturbed = fw.KernelKMeans(6, **options).fit(cloud, sample_weight=weights)
    assert undisturbed.outcome_.steps > 5
    model = fw.KernelKMeans(6, checkpoint=tmp_path / "c", **options)
    with events.listening(StopAt(4)), pytest.warns(NotFinishedWarning, match="interrupted"):
        model.fit(cloud, sample_weight=weights)
    assert model.outcome_.reason is Reason.INTERRUPTED
    np.testing.assert_array_equal(model.predict(cloud), model.labels_)
    resumed = fw.KernelKMeans(6, checkpoint=tmp_path / "c", **options).fit(cloud, sample_weight=weights)
    assert resumed.manifest_.resumed_at == 4
    assert_same(resumed, undisturbed)


def test_capped_and_out_of_time(cloud: np.ndarray, tmp_path: Path) -> None:
    options: dict[str, Any] = {"gamma": 0.3, "init": "random", "n_init": 1}
    undisturbed = fw.KernelKMeans(6, **options).fit(cloud)
    with pytest.warns(NotFinishedWarning, match="capped"):
        model = fw.KernelKMeans(6, max_iter=3, checkpoint=tmp_path / "c", **options).fit(cloud)
    np.testing.assert_array_equal(model.predict(cloud), model.labels_)
    assert not np.array_equal(model.members_, model.labels_)  # labels are those of the means given
    assert_same(fw.KernelKMeans(6, checkpoint=tmp_path / "c", **options).fit(cloud), undisturbed)
    with pytest.warns(NotFinishedWarning, match="out of time"):
        late = fw.KernelKMeans(6, time_budget=0, **options).fit(cloud)
    np.testing.assert_array_equal(late.predict(cloud), late.labels_)


@pytest.mark.parametrize("change", ["data", "gamma", "seed", "weights"])
def test_a_checkpoint_of_something_else_is_refused(cloud: np.ndarray, change: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"gamma": 0.3, "init": "random", "n_init": 1, "random_state": 1}
    with pytest.warns(NotFinishedWarning):
        fw.KernelKMeans(6, max_iter=2, checkpoint=tmp_path / "c", **options).fit(cloud)
    x, weights = cloud.copy(), None
    if change == "data":
        x[300, 1] += 1e-9
    elif change == "weights":
        weights = np.ones(len(x)) + (np.arange(len(x)) == 7)
    else:
        options |= {"gamma": 0.31} if change == "gamma" else {"random_state": 2}
    with pytest.raises(StoreError, match="other data or other parameters"):
        fw.KernelKMeans(6, checkpoint=tmp_path / "c", **options).fit(x, sample_weight=weights)


def test_approximate_fits_resume_too(cloud: np.ndarray, tmp_path: Path) -> None:
    options: dict[str, Any] = {"approximation": "nystroem", "n_features": 50, "init": "random", "n_init": 1}
    undisturbed = fw.KernelKMeans(6, **options).fit(cloud)
    with pytest.warns(NotFinishedWarning, match="capped"):
        fw.KernelKMeans(6, max_iter=3, checkpoint=tmp_path / "c", **options).fit(cloud)
    resumed = fw.KernelKMeans(6, checkpoint=tmp_path / "c", **options).fit(cloud)
    assert resumed.manifest_.resumed_at == 3
    assert model_hash(resumed) == model_hash(undisturbed)


# ---------------------------------------------------------------- what it is for


def shapes(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if name == "moons":
        return make_moons(300, noise=0.05, random_state=seed)
    x, y = make_circles(300, factor=0.5, noise=0.05, random_state=seed)
    if name == "rings with strays":
        x = np.concatenate([x, np.random.default_rng(seed).uniform(-1.3, 1.3, (12, 2))])
        y = np.concatenate([y, np.full(12, -1)])
    return (x * 1000 + 1e6 if name == "rings in other units" else x), y


@pytest.mark.parametrize(
    "options", [{}, {"normalize": True}, {"approximation": "nystroem"}, {"kernel": "laplacian"}], ids=str
)
@pytest.mark.parametrize("name", ["rings", "moons", "rings with strays", "rings in other units"])
def test_rings_and_moons_with_defaults(name: str, options: dict[str, Any]) -> None:
    for seed in range(4):
        x, y = shapes(name, seed)
        labels = fw.KernelKMeans(2, random_state=seed, **options).fit_predict(x)
        assert adjusted_rand_score(y[y >= 0], labels[y >= 0]) > 0.95
        assert adjusted_rand_score(y[y >= 0], fw.KMeans(2).fit_predict(x)[y >= 0]) < 0.5  # k-means can not


def test_rings_of_more_rows_than_the_sample() -> None:
    x, y = make_circles(5000, factor=0.5, noise=0.05, random_state=0)
    model = fw.KernelKMeans(2, memory_budget=2**22).fit(x)
    assert "in tiles" in model.manifest_.algorithm
    assert adjusted_rand_score(y, model.labels_) > 0.99
    np.testing.assert_array_equal(model.predict(x[:100]), model.labels_[:100])
