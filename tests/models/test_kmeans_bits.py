"""One hash of centres, labels and inertia, whatever the threads, the source, and the shortcuts taken."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import foldwise as fw
from foldwise.data.block_grid import rows_per_block

D = 20
K = 72  # clusters: with fewer, comparing takes so little time that `auto` does without bounds
NAMES = [f"c{j}" for j in range(D)]


def model_hash(km: Any) -> str:
    parts = [km.cluster_centers_, km.labels_, np.array(km.inertia_), km.cluster_inertias_, km.cluster_weights_]
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


def fitted(given: Any, weights: Any = None, **options: Any) -> str:
    """Enough clusters and columns that `auto` takes to bounds after a few steps."""
    options = {"n_clusters": K, "max_iter": 300, "random_state": 2, "tol": 1e-3, **options}
    return model_hash(fw.KMeans(**options).fit(given, sample_weight=weights))


@pytest.fixture(scope="module", params=[np.float32, np.float64], ids=["float32", "float64"])
def rows(request: pytest.FixtureRequest) -> Any:
    """Two or three blocks, the last one ragged; groups that overlap, at an offset."""
    dtype = np.dtype(request.param)
    n = 27_648
    assert rows_per_block(D, dtype) < n
    rng = np.random.default_rng(3)
    middles = rng.standard_normal((10, D)) * 2
    return (middles[rng.integers(10, size=n)] + rng.standard_normal((n, D)) + 100).astype(dtype)


@pytest.fixture(scope="module")
def expected(rows: Any) -> str:
    return fitted(rows, n_threads=1, algorithm="lloyd")


@pytest.mark.parametrize(
    ("algorithm", "n_threads"),
    [
        ("lloyd", 2),
        ("lloyd", 3),
        ("lloyd", 7),
        ("bounded", 1),
        ("bounded", 2),
        ("bounded", 7),
        ("auto", 1),
        ("auto", 3),
    ],
)
def test_threads_and_bounds(rows: Any, expected: str, algorithm: str, n_threads: int) -> None:
    assert fitted(rows, algorithm=algorithm, n_threads=n_threads) == expected


def test_auto_does_use_bounds(rows: Any) -> None:
    """Otherwise the test above would show nothing."""
    km = fw.KMeans(K, random_state=2, tol=1e-3).fit(rows)
    assert max(figures["pruned"] for figures in km.trace_) > len(rows) / 2


@pytest.mark.parametrize("init", ["random", "k-means||", "array"])
def test_every_kind_of_start(rows: Any, init: str) -> None:
    options = {"init": rows[:K] if init == "array" else init, "n_init": 1, "max_iter": 300}
    assert fitted(rows, n_threads=3, **options) == fitted(rows, n_threads=1, algorithm="lloyd", **options)


@pytest.mark.parametrize("search", ["breathing", "split-merge"])
def test_searches(search: str) -> None:
    """Of more but narrower rows: they take many runs."""
    rng = np.random.default_rng(5)
    n = 9000
    x = (rng.standard_normal((9, 128))[rng.integers(9, size=n)] * 2 + rng.standard_normal((n, 128))).astype(np.float32)
    assert n > 2 * rows_per_block(128, x.dtype)
    one = fitted(x, n_clusters=7, search=search, n_threads=1, algorithm="lloyd")
    assert fitted(x, n_clusters=7, search=search, n_threads=3, algorithm="bounded") == one


def test_weights(rows: Any) -> None:
    w = np.random.default_rng(0).random(len(rows)) * (np.arange(len(rows)) % 5 > 0)
    one = fitted(rows, w, n_threads=1, algorithm="lloyd")
    assert fitted(rows, w, n_threads=3, algorithm="bounded") == one
    assert fitted(np.asfortranarray(rows), w, n_threads=2) == one


def test_sparse() -> None:
    x = sp.random_array((20_000, 12), density=0.3, format="csr", rng=np.random.default_rng(0))
    one = fitted(x, n_threads=1, algorithm="lloyd")
    assert fitted(x, n_threads=3, algorithm="bounded") == one
    assert fitted(x.tocsc(), n_threads=2) == one


@pytest.mark.parametrize("kind", ["fortran", "strided", "npy", "npy-fortran", "pandas", "polars", "arrow"])
def test_containers(rows: Any, expected: str, kind: str, tmp_path: Path) -> None:
    if kind == "fortran":
        given: Any = np.asfortranarray(rows)
    elif kind == "strided":
        given = np.repeat(rows, 2, axis=1)[:, ::2]
    elif kind.startswith("npy"):
        given = tmp_path / "rows.npy"
        np.save(given, np.asfortranarray(rows) if kind.endswith("fortran") else rows)
    elif kind == "pandas":
        given = pytest.importorskip("pandas").DataFrame(rows, columns=NAMES)
    elif kind == "polars":
        given = pytest.importorskip("polars").DataFrame(rows, schema=NAMES)
    else:
        given = pytest.importorskip("pyarrow").table(dict(zip(NAMES, rows.T, strict=True)))
    assert fitted(given) == expected


@pytest.mark.parametrize("row_group", [997, None], ids=["prime", "all"])
def test_parquet(rows: Any, expected: str, row_group: int | None, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({name: rows[:, j] for j, name in enumerate(NAMES)})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=row_group or len(rows))
    for n_threads in (1, 3):
        assert fitted(tmp_path / "rows.parquet", n_threads=n_threads) == expected


def test_csv(rows: Any, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    # repr of a float names exactly that float, so the file has the same values
    lines = [",".join(NAMES), *(",".join(map(repr, row)) for row in rows.tolist())]
    path.write_text("\n".join(lines) + "\n")
    assert fitted(fw.scan(path, dtype=rows.dtype), n_threads=2) == expected


@pytest.mark.parametrize("threads", [1, 3])
def test_predict_and_score_too(rows: Any, threads: int, tmp_path: Path) -> None:
    km = fw.KMeans(K, max_iter=300, n_threads=1).fit(rows)
    np.save(tmp_path / "rows.npy", rows)
    distances, score = km.transform(rows), km.score(rows)
    km.set_params(n_threads=threads)
    for given in (rows, np.asfortranarray(rows), tmp_path / "rows.npy"):
        np.testing.assert_array_equal(km.predict(given), km.labels_)
        assert km.transform(given).tobytes() == distances.tobytes()
        assert km.score(given) == score
