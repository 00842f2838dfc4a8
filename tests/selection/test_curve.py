from __future__ import annotations

import numpy as np
import pytest

import foldwise as fw
from foldwise.errors import NotFinishedWarning, ParameterError


@pytest.fixture
def three():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.standard_normal((80, 2)) + centre for centre in ([0, 0], [12, 0], [0, 12])])


def test_the_knee_of_three_clusters(three):
    curve = fw.inertia_curve(three, range(1, 9))
    assert curve.knee == 3
    assert curve.n_clusters[int(np.nanargmax(curve.silhouettes))] == 3
    assert np.isnan(curve.silhouettes[0])
    assert curve.inertias[0] == pytest.approx(((three - three.mean(axis=0)) ** 2).sum())
    assert curve.depths[0] == curve.depths[-1] == 0
    assert [len(centers) for centers in curve.centers] == list(curve.n_clusters)
    assert curve.table["3", "inertia"] == curve.inertias[2]
    for centers, inertia in zip(curve.centers, curve.inertias, strict=True):
        nearest = ((three[:, None] - centers) ** 2).sum(axis=2).min(axis=1).sum()
        assert nearest == pytest.approx(inertia, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ks", [range(1, 20), (2, 5, 30, 4)])
def test_it_never_rises(ks, dtype):
    x = np.random.default_rng(1).random((300, 3)).astype(dtype) + 100
    curve = fw.inertia_curve(x, ks)
    assert curve.n_clusters == tuple(sorted(ks))
    assert (np.diff(curve.inertias) <= 0).all()


def test_it_is_no_worse_than_single_fits(three):
    curve = fw.inertia_curve(three, range(2, 10), scale=True, random_state=3)
    for k, inertia in zip(curve.n_clusters, curve.inertias, strict=True):
        assert inertia <= fw.KMeans(k, scale=True, random_state=3).fit(three).inertia_


def test_fewer_points_than_clusters_and_flat_curves():
    with pytest.warns(UserWarning, match="distinct"):
        curve = fw.inertia_curve([[0.0], [0.0], [1.0], [1.0]], [1, 2, 3])
    assert curve.inertias.tolist() == [1.0, 0.0, 0.0]
    assert curve.knee == 2
    assert fw.inertia_curve([[0.0], [1.0], [3.0]], [2, 3]).knee is None


def test_weights_and_files(three, tmp_path):
    np.save(tmp_path / "x.npy", three)
    in_memory, on_file = fw.inertia_curve(three, [2, 3]), fw.inertia_curve(tmp_path / "x.npy", [2, 3])
    assert in_memory.inertias.tobytes() == on_file.inertias.tobytes()
    twice = fw.inertia_curve(three, [1, 3], sample_weight=np.full(len(three), 2.0))
    assert twice.inertias[1] == pytest.approx(2 * in_memory.inertias[1])


def test_wrong_parameters_and_early_stops(three):
    for ks in ([], [0, 2]):
        with pytest.raises(ParameterError, match="n_clusters="):
            fw.inertia_curve(three, ks)
        with pytest.raises(ParameterError, match="n_clusters="):
            fw.inertia_curve(three, n_clusters=ks)
    with pytest.raises(ParameterError, match="checkpoint"):
        fw.inertia_curve(three, [2], checkpoint="c")
    with pytest.warns(NotFinishedWarning) as told:
        curve = fw.inertia_curve(np.random.default_rng(2).random((500, 4)), [5, 6, 7], max_iter=1)
    assert len(told) == 1
    assert not curve.converged
