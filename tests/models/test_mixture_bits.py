"""The same model to the last bit: any number of threads, memory or file, any chunks."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foldwise as fw

NAMES = ["a", "b", "c", "d", "e"]
TYPES = ["full", "tied", "diag", "spherical", "ppca"]


def digest(model: Any) -> str:
    found = hashlib.sha256()
    for name in sorted(vars(model)):
        value = vars(model)[name]
        if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype != object:
            found.update(name.encode() + np.ascontiguousarray(value).tobytes())
    found.update(repr([sorted(step.items()) for step in model.trace_]).encode())
    return found.hexdigest()


@pytest.fixture(scope="module", params=[np.float32, np.float64], ids=["float32", "float64"])
def rows(request: Any) -> np.ndarray:
    """More than one block, so that there is something to merge."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((230_000, 5)) * [1.0, 2.0, 0.5, 1.0, 1.0] + 30.0
    x[:90_000] += [4.0, 0.0, 0.0, 3.0, 0.0]
    return x.astype(request.param)


def fitted(x: Any, kind: str = "full", weights: Any = None, **options: Any) -> str:
    gm = fw.GaussianMixture(2, covariance_type=kind, max_iter=4, tol=0, init_params="k-means++", **options)
    with pytest.warns(UserWarning, match="did not converge"):
        return digest(gm.fit(x, sample_weight=weights))


@pytest.mark.parametrize("kind", TYPES)
def test_threads(rows: np.ndarray, kind: str) -> None:
    assert len({fitted(rows, kind, n_threads=n) for n in (1, 2, 3, 7)}) == 1


def test_weights_and_starts(rows: np.ndarray) -> None:
    w = np.random.default_rng(1).random(len(rows))
    assert len({fitted(rows, weights=w, n_threads=n) for n in (1, 3)}) == 1
    for init in ("kmeans", "random", "random_from_data"):
        made = {
            digest(_quiet(fw.GaussianMixture(2, init_params=init, max_iter=2, tol=0, n_threads=n), rows))
            for n in (1, 3)
        }
        assert len(made) == 1


def _quiet(model: Any, x: Any) -> Any:
    with pytest.warns(UserWarning, match="did not converge"):
        return model.fit(x)


def test_files(rows: np.ndarray, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    expected = fitted(rows, n_threads=2)
    np.save(tmp_path / "x.npy", rows)
    pq.write_table(pa.table(dict(zip(NAMES, rows.T, strict=True))), tmp_path / "x.parquet", row_group_size=997)
    assert fitted(tmp_path / "x.npy", n_threads=3) == expected
    assert fitted(tmp_path / "x.parquet", n_threads=2) == expected
    assert fitted(np.asfortranarray(rows), n_threads=1) == expected


def test_what_is_said_of_rows_too(rows: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", rows)
    gm = fw.GaussianMixture(2, init_params="k-means++", n_threads=1).fit(rows)
    told = gm.predict_proba(rows).tobytes(), gm.score_samples(rows).tobytes(), gm.bic(rows), gm.predict(rows).tobytes()
    gm.set_params(n_threads=3)
    for given in (rows, tmp_path / "x.npy"):
        again = gm.predict_proba(given).tobytes(), gm.score_samples(given).tobytes(), gm.bic(given)
        assert (*again, gm.predict(given).tobytes()) == told


def test_soft_k_means(rows: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", rows)
    made = {digest(fw.SoftKMeans(3, beta=0.05, n_threads=n, tol=1e-4).fit(rows)) for n in (1, 2, 7)}
    made.add(digest(fw.SoftKMeans(3, beta=0.05, tol=1e-4).fit(tmp_path / "x.npy")))
    assert len(made) == 1
