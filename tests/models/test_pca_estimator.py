"""The manners of a scikit-learn estimator, partial_fit, names, frames, bad parameters."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import foldwise as fw
from foldwise.errors import DataError, FoldwiseWarning, ParameterError


@parametrize_with_checks(
    [fw.PCA(), fw.PCA(1, svd_solver="krylov"), fw.PCA(scale=True), fw.PCA(1, svd_solver="full", whiten=True)]
)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


BITS = (
    "components_",
    "explained_variance_",
    "explained_variance_ratio_",
    "singular_values_",
    "mean_",
    "residuals_",
)


def assert_equal_bits(a: fw.PCA, b: fw.PCA) -> None:
    for name in BITS:
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes(), name
    assert a.noise_variance_ == b.noise_variance_
    assert a.n_samples_ == b.n_samples_


@pytest.mark.parametrize("batch", [1, 7, 150])
@pytest.mark.parametrize(
    "options", [{}, {"n_components": 2, "scale": True}, {"n_components": 0.9}, {"n_components": "mle"}]
)
def test_partial_fit_has_the_bits_of_fit(table: Any, batch: int, options: dict[str, Any]) -> None:
    x, parts = table("iris"), fw.PCA(**options)
    for start in range(0, len(x), batch):
        parts.partial_fit(x[start : start + batch])
    whole = fw.PCA(**options, svd_solver="covariance_eigh").fit(x)
    assert_equal_bits(parts, whole)
    assert parts.n_samples_seen_ == 150
    assert parts.transform(x).tobytes() == whole.transform(x).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [10_007, 200_000])
def test_partial_fit_has_the_bits_of_fit_over_many_blocks(dtype: type, batch: int) -> None:
    x = (np.random.default_rng(0).standard_normal((300_000, 3)) + 5).astype(dtype)
    w = np.random.default_rng(1).random(300_000)
    parts, weighted = fw.PCA(2), fw.PCA(2)
    for start in range(0, len(x), batch):
        parts.partial_fit(x[start : start + batch])
        weighted.partial_fit(x[start : start + batch], sample_weight=w[start : start + batch])
    assert_equal_bits(parts, fw.PCA(2).fit(x))
    assert_equal_bits(weighted, fw.PCA(2).fit(x, sample_weight=w))


def test_partial_fit_can_be_looked_at_in_between(table: Any) -> None:
    x, pca = table("wine"), fw.PCA(2)
    pca.partial_fit(x[:60])
    assert_equal_bits(pca, fw.PCA(2, svd_solver="covariance_eigh").fit(x[:60]))
    pca.partial_fit(x[60:])
    assert_equal_bits(pca, fw.PCA(2, svd_solver="covariance_eigh").fit(x))


def test_partial_fit_of_sparse_batches(table: Any) -> None:
    import scipy.sparse as sp

    x = table("fgl_glass")
    x = np.where(np.abs(x) < 1, 0, x)
    parts = fw.PCA(2)
    for start in range(0, len(x), 50):
        parts.partial_fit(sp.csr_array(x[start : start + 50]))
    assert_equal_bits(parts, fw.PCA(2, svd_solver="covariance_eigh").fit(sp.csr_array(x)))
    with pytest.raises(DataError, match="sparse and another dense"):
        parts.partial_fit(x[:5])


def test_partial_fit_after_fit_starts_anew_and_says_so(table: Any) -> None:
    x = table("iris")
    fitted = fw.PCA().fit(x)
    with pytest.warns(FoldwiseWarning, match="starts anew"):
        fitted.partial_fit(x[:50])
    assert_equal_bits(fitted, fw.PCA(svd_solver="covariance_eigh").fit(x[:50]))
    pca = fw.PCA().partial_fit(x[:20]).fit(x)
    assert_equal_bits(pca, fw.PCA().fit(x))
    assert not hasattr(pca, "n_samples_seen_")


def test_a_refused_batch_leaves_the_stream_as_it_was(table: Any) -> None:
    x, pca = table("iris"), fw.PCA()
    pca.partial_fit(x[:70])
    with pytest.raises(DataError, match="features"):
        pca.partial_fit(x[:5, :3])
    bad = x[70:80].copy()
    bad[4, 2] = np.nan
    with pytest.raises(DataError, match="NaN"):
        pca.partial_fit(bad)
    pca.partial_fit(x[70:])
    assert_equal_bits(pca, fw.PCA(svd_solver="covariance_eigh").fit(x))


def test_a_batch_refused_in_its_second_block_is_refused_whole() -> None:
    x = np.random.default_rng(0).standard_normal((200_000, 3))
    bad = x.copy()
    bad[150_000, 1] = np.nan
    pca = fw.PCA().partial_fit(x[:10])
    with pytest.raises(DataError, match="NaN"):
        pca.partial_fit(bad)
    assert_equal_bits(pca.partial_fit(x[10:]), fw.PCA(svd_solver="covariance_eigh").fit(x))


def test_pickle_and_clone(table: Any) -> None:
    x = table("iris")
    stream = fw.PCA(2).partial_fit(x[:50])
    for pca in (fw.PCA(2, whiten=True, scale=True).fit(x), fw.PCA("mle").fit(x), stream):
        again = pickle.loads(pickle.dumps(pca))
        assert again.transform(x).tobytes() == pca.transform(x).tobytes()
        fresh = clone(pca)
        assert fresh.get_params() == pca.get_params()
        assert not hasattr(fresh, "components_")
    later = pickle.loads(pickle.dumps(stream)).partial_fit(x[50:])
    assert_equal_bits(later, stream.partial_fit(x[50:]))


def test_refitting_forgets_everything(table: Any) -> None:
    pca = fw.PCA(2, scale=True).fit(table("wine"))
    assert_equal_bits(pca.fit(table("iris")), fw.PCA(2, scale=True).fit(table("iris")))


def test_errors_when_not_fitted() -> None:
    for call in (
        "transform",
        "inverse_transform",
        "scores",
        "reconstruction_error",
        "score_samples",
        "score",
    ):
        with pytest.raises(NotFittedError):
            getattr(fw.PCA(), call)([[1.0, 2.0]])
    for call in ("get_covariance", "get_precision", "contributions", "cos2", "get_feature_names_out"):
        with pytest.raises(NotFittedError):
            getattr(fw.PCA(), call)()
    with pytest.raises(AttributeError, match="components_"):
        _ = fw.PCA().components_


# ---------------------------------------------------------------- names and frames


@pytest.fixture
def frame(table: Any) -> Any:
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(table("iris"), columns=["sepal length", "sepal width", "petal length", "petal width"])


def test_names_go_in_and_come_out(frame: Any) -> None:
    pca = fw.PCA(2).fit(frame)
    assert list(pca.feature_names_in_) == list(frame.columns)
    assert list(pca.get_feature_names_out()) == ["pca0", "pca1"]
    assert pca.loadings_.rows == tuple(frame.columns)
    assert pca.loadings_["petal length", "pca0"] > 1.7
    assert list(pca.loadings_.frame().index) == list(frame.columns)
    np.testing.assert_array_equal(pca.transform(frame), fw.PCA(2).fit(frame.to_numpy()).transform(frame.to_numpy()))


def test_pandas_output(frame: Any) -> None:
    out = fw.PCA(2).set_output(transform="pandas").fit_transform(frame.set_index(frame.index + 5))
    assert list(out.columns) == ["pca0", "pca1"]
    assert list(out.index) == list(range(5, 155))


def test_other_names_are_an_error(frame: Any) -> None:
    pca = fw.PCA(2).fit(frame)
    with pytest.raises(
        ValueError, match=r"(?s)should match.*unseen at fit time:\n- colour.*now missing:\n- petal width"
    ):
        pca.transform(frame.rename(columns={"petal width": "colour"}))
    with pytest.raises(ValueError, match="must be in the same order"):
        pca.transform(frame[frame.columns[::-1]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        pca.transform(frame.to_numpy())
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        fw.PCA(2).fit(frame.to_numpy()).transform(frame)


def test_names_are_forgotten_by_a_fit_without_names(frame: Any) -> None:
    pca = fw.PCA(2).fit(frame).fit(frame.to_numpy())
    assert not hasattr(pca, "feature_names_in_")
    assert pca.loadings_.rows == ("x0", "x1", "x2", "x3")


def test_files_give_the_bits_of_arrays(shared_data: Path, table: Any) -> None:
    from foldwise.errors import LeftOutWarning

    path, x = shared_data / "tables" / "iris.csv", table("iris")
    with pytest.warns(LeftOutWarning, match="Species"):
        pca = fw.PCA(2).fit(path)
    assert_equal_bits(pca, fw.PCA(2).fit(x))
    assert list(pca.feature_names_in_) == ["Sepal.Length", "Sepal.Width", "Petal.Length", "Petal.Width"]
    assert pca.transform(str(path)).tobytes() == fw.PCA(2).fit(x).transform(x).tobytes()
    assert pca.manifest_.left_out == ("Species",)
    assert "iris.csv" in pca.manifest_.source


# ---------------------------------------------------------------- what cannot be meant


@pytest.mark.parametrize("solver", ["auto", "covariance_eigh", "full", "krylov", "power"])
@pytest.mark.parametrize("shape", [(10, 3), (3, 10)])
def test_more_components_than_there_are(solver: str, shape: tuple[int, int]) -> None:
    with pytest.raises(ParameterError, match=r"n_components=4 must be between 0 and min\(n_samples, n_features\)=3"):
        fw.PCA(4, svd_solver=solver).fit(np.random.default_rng(0).standard_normal(shape))


@pytest.mark.parametrize(
    "bad",
    [
        {"n_components": -1},
        {"n_components": 1.5},
        {"n_components": 0.0},
        {"n_components": "many"},
        {"svd_solver": "gramm"},
        {"whiten": "yes"},
        {"scale": 2},
        {"ddof": -1},
        {"tol": -1e-3},
        {"max_iter": 0},
        {"time_budget": -1.0},
        {"n_threads": 0},
        {"random_state": "x"},
        {"checkpoint": 3},
    ],
)
def test_bad_parameters(bad: dict[str, Any]) -> None:
    (name,) = bad
    for call in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=f"'{name}' parameter of PCA must be"):
            getattr(fw.PCA(**bad), call)(np.eye(3))


def test_arpack_cannot_find_all_and_shares_need_all() -> None:
    x = np.random.default_rng(0).standard_normal((10, 3))
    with pytest.raises(ParameterError, match="strictly less than"):
        fw.PCA(3, svd_solver="arpack").fit(x)
    assert fw.PCA(svd_solver="arpack").fit(x).n_components_ == 2
    for solver in ("krylov", "randomized", "arpack"):
        with pytest.raises(ParameterError, match="a share of variance needs all of the variances"):
            fw.PCA(0.9, svd_solver=solver).fit(x)
        with pytest.raises(ParameterError, match="cannot be a string"):
            fw.PCA("mle", svd_solver=solver).fit(x)


def test_ddof_must_leave_something() -> None:
    with pytest.raises(DataError, match="ddof=3 cannot be formed"):
        fw.PCA(ddof=3).fit(np.eye(3))


def test_wrong_number_of_columns(table: Any) -> None:
    pca = fw.PCA(2).fit(table("iris"))
    with pytest.raises(ValueError, match="X has 3 features, but PCA is expecting 4 features"):
        pca.transform(np.zeros((2, 3)))
    with pytest.raises(DataError, match="X has 4 columns, but this PCA has 2 components"):
        pca.inverse_transform(np.zeros((2, 4)))


def test_nan_is_named_by_row_and_column(table: Any) -> None:
    x = table("iris")
    x[17, 2] = np.nan
    with pytest.raises(DataError) as caught:
        fw.PCA().fit(x)
    assert (caught.value.row, caught.value.column) == (17, 2)
