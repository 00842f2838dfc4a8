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
        curve = fw.inertia_curve(np.random.default_rng(2).random((3_000, 4)), [5, 6, 7], max_iter=1)
    assert len(told) == 1
    assert not curve.converged


# ---------------------------------------------------------------- Ctrl-C, effort, silhouettes


def test_ctrl_c_keeps_the_numbers_that_are_finished(three, monkeypatch):
    """It lost all of them."""
    from foldwise.selection.curve_fits import CurveFits

    own = CurveFits._own

    def interrupting(self, k):
        if k == 4:
            raise KeyboardInterrupt
        return own(self, k)

    monkeypatch.setattr(CurveFits, "_own", interrupting)
    with pytest.warns(NotFinishedWarning, match="interrupted; the curve has 3 of 6"):
        curve = fw.inertia_curve(three, range(1, 7))
    assert curve.interrupted
    assert curve.n_clusters == (1, 2, 3)
    assert np.isfinite(curve.silhouettes[1:]).all()
    assert [len(centers) for centers in curve.centers] == [1, 2, 3]
    with pytest.raises(KeyboardInterrupt):
        fw.inertia_curve(three, [4, 5])


def test_ctrl_c_inside_a_fit_and_among_the_figures(three, monkeypatch):
    from foldwise.models.kmeans import lloyd

    steps, step = iter(range(10**6)), lloyd.step

    def interrupting(*given):
        if next(steps) == 60:
            raise KeyboardInterrupt
        return step(*given)

    with monkeypatch.context() as patched:
        patched.setattr(lloyd, "step", interrupting)
        with pytest.warns(NotFinishedWarning, match="interrupted"):
            curve = fw.inertia_curve(three, range(1, 30), search="none")
    assert 1 < len(curve.n_clusters) < 29
    from foldwise.selection.curve_fits import CurveFits

    point = CurveFits._point

    def late(self, k):
        if k == 5:
            raise KeyboardInterrupt
        return point(self, k)

    monkeypatch.setattr(CurveFits, "_point", late)
    with pytest.warns(NotFinishedWarning, match="4 of 6"):
        assert fw.inertia_curve(three, range(1, 7)).n_clusters == (1, 2, 3, 4)


def test_the_data_are_summarised_once_and_neighbours_help(monkeypatch):
    """Twenty numbers took 32 s on 60,000 x 8: each was prepared anew, and fitted twice with a search."""
    from foldwise.models.kmeans import fit_data

    made = []
    summary = fit_data._Summary.of
    monkeypatch.setattr(fit_data._Summary, "of", lambda block: made.append(1) or summary(block))
    x = np.random.default_rng(3).random((3_000, 4))
    curve = fw.inertia_curve(x, range(1, 11))
    assert len(made) == 1
    assert curve.parameters["search"] == "auto"
    from sklearn.cluster import KMeans

    for k, inertia in zip(curve.n_clusters, curve.inertias, strict=True):
        assert inertia <= 1.002 * KMeans(k, n_init=1, random_state=0).fit(x).inertia_


def test_silhouettes_are_classical_and_sampled_ones_have_errors(three):
    from sklearn.metrics import silhouette_score

    curve = fw.inertia_curve(three, [2, 3])
    for k, value in zip(curve.n_clusters, curve.silhouettes, strict=True):
        assert value == pytest.approx(silhouette_score(three, fw.KMeans(k).fit_predict(three)), abs=1e-10)
    assert curve.silhouette_errors.tolist() == [0.0, 0.0]
    x = np.random.default_rng(0).random((5_000, 2))
    curve = fw.inertia_curve(x, [2, 3])
    exact = [
        silhouette_score(x, fw.KMeans(k, init=c).fit_predict(x)) for k, c in zip((2, 3), curve.centers, strict=True)
    ]
    assert (np.abs(curve.silhouettes - exact) < 4 * curve.silhouette_errors).all()


@pytest.mark.parametrize("parameters", [{"metric": "cosine"}, {"init": "random", "n_init": 2}, {"scale": True}])
def test_parameters_of_kmeans(three, parameters):
    curve = fw.inertia_curve(three + 20, [2, 3, 6], **parameters)
    for k, inertia in zip(curve.n_clusters, curve.inertias, strict=True):
        single = fw.KMeans(k, **{**parameters, "n_init": 1}).fit(three + 20).inertia_
        assert inertia <= single * (1 + 1e-3)


def test_wrong_numbers(three):
    with pytest.raises(ParameterError, match="whole"):
        fw.inertia_curve(three, [2.5, 3])
    with pytest.raises(ValueError, match="n_clusters=500"):
        fw.inertia_curve(three, [2, 500])
