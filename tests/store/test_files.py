"""Models in files: what is loaded has the bits of what was saved, and no file is ever half a model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.errors import NotFinishedWarning, StoreError
from foldwise.fold.tensor_file import read_tensors, write_tensors

X = np.random.default_rng(0).standard_normal((60, 5)) * [5, 4, 3, 2, 1] + 10

OPTIONS: list[dict[str, Any]] = [
    {},
    {"n_components": 2},
    {"n_components": 0},
    {"n_components": np.int64(3), "whiten": True},
    {"n_components": 0.9, "scale": True},
    {"n_components": "mle"},
    {"n_components": "parallel", "random_state": 5},
    {"n_components": "gavish-donoho", "ddof": 0},
    {"n_components": 2, "svd_solver": "krylov", "random_state": np.int32(7), "tol": 1e-9},
    {"n_components": 2, "svd_solver": "power", "time_budget": 60.0, "max_iter": 100_000, "n_threads": 2},
    {"svd_solver": "full", "scale": True, "whiten": True},
]


def edit_header(path: Path, **changes: Any) -> None:
    """Write the file anew, with its digest, and other entries in its header; None takes an entry out."""
    content = read_tensors(path)
    header = {name: value for name, value in (content.header | changes).items() if value is not None}
    write_tensors(path, content.arrays, header)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "pca.fw"
    fw.save(fw.PCA(2).fit(X), path)
    return path


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_round_trip_gives_equal_bits(tmp_path: Path, options: dict[str, Any], dtype: type) -> None:
    x = X.astype(dtype)
    pca, path = fw.PCA(**options).fit(x), tmp_path / "pca.fw"
    fw.save(pca, path)
    again = fw.load(str(path))
    assert type(again) is fw.PCA
    assert again.get_params() == pca.get_params()
    codes = pca.transform(x)
    assert again.transform(x).tobytes() == codes.tobytes()
    assert again.transform(x).dtype == dtype
    assert again.inverse_transform(codes).tobytes() == pca.inverse_transform(codes).tobytes()
    assert again.score_samples(x).tobytes() == pca.score_samples(x).tobytes()
    for name, value in vars(pca).items():
        if isinstance(value, np.ndarray):
            assert getattr(again, name).dtype == value.dtype
            np.testing.assert_array_equal(getattr(again, name), value)
    assert again.outcome_ == pca.outcome_
    assert again.manifest_ == pca.manifest_
    assert (again.rank_ is None) == (pca.rank_ is None)
    if pca.rank_ is not None:
        assert (again.rank_.rule, again.rank_.chosen, again.rank_.low, again.rank_.high) == (
            pca.rank_.rule,
            pca.rank_.chosen,
            pca.rank_.low,
            pca.rank_.high,
        )
        for name, figures in pca.rank_.figures.items():
            np.testing.assert_array_equal(again.rank_.figures[name], figures)


def test_saving_twice_gives_the_same_file(tmp_path: Path, saved: Path) -> None:
    again = tmp_path / "again.fw"
    fw.save(fw.load(saved), again)
    assert again.read_bytes() == saved.read_bytes()


def test_names_of_columns_are_kept(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "Länge", "d e", "f"])
    fw.save(fw.PCA(2).fit(frame), tmp_path / "m.fw")
    again = fw.load(tmp_path / "m.fw")
    assert list(again.feature_names_in_) == list(frame.columns)
    assert again.feature_names_in_.dtype == object
    again.transform(frame)  # and no warning


def test_a_partial_fit_is_worked_out_and_kept(tmp_path: Path) -> None:
    pca = fw.PCA(2).partial_fit(X[:30]).partial_fit(X[30:])
    fw.save(pca, tmp_path / "m.fw")
    assert fw.load(tmp_path / "m.fw").transform(X).tobytes() == pca.transform(X).tobytes()


def test_a_fit_that_did_not_finish_says_so_after_loading(tmp_path: Path) -> None:
    with pytest.warns(NotFinishedWarning, match="capped"):
        pca = fw.PCA(2, svd_solver="power", max_iter=3, checkpoint=tmp_path / "c").fit(X)
    fw.save(pca, tmp_path / "m.fw")
    again = fw.load(tmp_path / "m.fw")
    assert again.outcome_ == pca.outcome_
    assert not again.outcome_.converged
    assert again.trace_ == pca.trace_
    assert again.checkpoint == str(tmp_path / "c")


def test_loaded_models_can_be_fitted_again(saved: Path) -> None:
    assert fw.load(saved).fit(X).transform(X).tobytes() == fw.PCA(2).fit(X).transform(X).tobytes()


# ---------------------------------------------------------------- what cannot be saved


def test_unfitted_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not fitted yet"):
        fw.save(fw.PCA(), tmp_path / "m.fw")
    broken = fw.PCA(9)
    with pytest.raises(ValueError, match="n_components=9"):
        broken.fit(X)
    with pytest.raises(StoreError, match="not fitted yet"):
        fw.save(broken, tmp_path / "m.fw")
    assert list(tmp_path.iterdir()) == []


def test_random_state_objects_are_refused_with_advice(tmp_path: Path) -> None:
    pca = fw.PCA(2, random_state=np.random.RandomState(0)).fit(X)
    with pytest.raises(StoreError, match="random_state, give a whole number"):
        fw.save(pca, tmp_path / "m.fw")
    assert list(tmp_path.iterdir()) == []


def test_other_objects_are_refused(tmp_path: Path) -> None:
    from sklearn.decomposition import PCA

    class Mine(fw.PCA):
        pass

    for model in (PCA().fit(X), Mine().fit(X), 3, None):
        with pytest.raises(StoreError, match=r"cannot be saved; supported are .*PCA"):
            fw.save(model, tmp_path / "m.fw")


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"folder .*nowhere does not exist"):
        fw.save(fw.PCA().fit(X), tmp_path / "nowhere" / "m.fw")


# ---------------------------------------------------------------- what cannot be loaded


@pytest.mark.parametrize("content", [b"", b"\x00", b"not a model", os.urandom(5000), b"\xff" * 100, b"\x80\x04N."])
def test_garbage_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.fw"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"m\.fw: this is not a model saved by Foldwise, or it is damaged"):
        fw.load(path)


def test_every_truncation_is_refused(saved: Path) -> None:
    whole = saved.read_bytes()
    for length in [*range(0, len(whole), 97), len(whole) - 1]:
        saved.write_bytes(whole[:length])
        with pytest.raises(StoreError, match="damaged"):
            fw.load(saved)


def test_safetensors_of_others_are_refused(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"weights": np.zeros(3)}, tmp_path / "net.fw")
    with pytest.raises(StoreError, match="not a model saved by Foldwise"):
        fw.load(tmp_path / "net.fw")


def test_checkpoints_are_not_models(tmp_path: Path) -> None:
    with pytest.warns(NotFinishedWarning, match="out of time"):
        fw.PCA(2, svd_solver="power", time_budget=0.0, checkpoint=tmp_path / "c").fit(X)
    with pytest.raises(StoreError, match="not a model"):
        fw.load(tmp_path / "c")


def test_missing_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no such file"):
        fw.load(tmp_path / "m.fw")
    with pytest.raises(StoreError, match="there is no such file"):
        fw.load(tmp_path)


def test_newer_formats_ask_for_an_update(saved: Path) -> None:
    edit_header(saved, format=3, version="9.9.9")
    with pytest.raises(StoreError, match=r"written by Foldwise 9\.9\.9 in format 3.*Update foldwise"):
        fw.load(saved)


def test_unknown_models_ask_for_an_update(saved: Path) -> None:
    edit_header(saved, model="Oracle")
    with pytest.raises(StoreError, match="holds a 'Oracle', which this version of Foldwise does not know"):
        fw.load(saved)


@pytest.mark.parametrize(
    "changes", [{"parameters": None}, {"fitted": None}, {"format": "one"}, {"fitted": {"array": "a99"}}]
)
def test_headers_that_make_no_sense_are_refused(saved: Path, changes: dict[str, Any]) -> None:
    edit_header(saved, **changes)
    with pytest.raises(StoreError, match="damaged"):
        fw.load(saved)


@pytest.mark.parametrize(
    "value", [{"record": "Popen", "fields": {}}, {"enum": "Signals", "value": 9}, {"call": "os.system"}]
)
def test_files_cannot_name_other_classes(saved: Path, value: Any) -> None:
    edit_header(saved, fitted={"dict": [["mean_", value]]})
    with pytest.raises(StoreError, match="does not know"):
        fw.load(saved)


def test_parameters_of_a_later_version_are_left_out(saved: Path) -> None:
    parameters = {"dict": [["n_components", 2], ["flavour", "sweet"]]}
    edit_header(saved, parameters=parameters)
    assert fw.load(saved).transform(X).tobytes() == fw.PCA(2).fit(X).transform(X).tobytes()


# ---------------------------------------------------------------- whole or not at all


@pytest.mark.parametrize("call", ["os.replace", "os.fsync"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_files_are_never_half_written(
    saved: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException
) -> None:
    before = saved.read_bytes()

    def broken(*arguments: Any) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(call, broken)
        with pytest.raises(type(error)):
            fw.save(fw.PCA(4).fit(X), saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["pca.fw"]
    fw.save(fw.PCA(4).fit(X), saved)
    assert fw.load(saved).n_components_ == 4


def test_the_new_file_is_flushed_before_it_takes_the_name(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr("os.fsync", lambda handle: (order.append("fsync"), fsync(handle)))
    monkeypatch.setattr("os.replace", lambda a, b: (order.append("replace"), replace(a, b)))
    fw.save(fw.PCA(2).fit(X), saved)
    assert order[:2] == ["fsync", "replace"]


def test_files_have_the_usual_permissions(saved: Path) -> None:
    plain = saved.parent / "plain"
    plain.touch()
    assert saved.stat().st_mode == plain.stat().st_mode
