"""One hash of the fitted model, whatever the threads, the source and its chunks."""

import hashlib

import numpy as np
import pytest

import foldwise as fw

N, D = 30_011, 7  # several blocks of float64, the last one ragged


def model_hash(pca):
    parts = [pca.components_, pca.explained_variance_, pca.mean_, pca.singular_values_, np.array(pca.noise_variance_)]
    if pca.scale_ is not None:
        parts.append(pca.scale_)
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


@pytest.fixture(scope="module", params=[np.float64, np.float32])
def rows(request):
    rng = np.random.default_rng(3)
    dtype = request.param
    n = N * 3 if dtype == np.float32 else N
    return (rng.standard_normal((n, D)) * np.arange(1, D + 1) + 1e4).astype(dtype)


@pytest.fixture(scope="module")
def expected(rows):
    return model_hash(fw.PCA(n_threads=1).fit(rows))


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
@pytest.mark.parametrize("solver", ["covariance_eigh", "full", "krylov", "power"])
def test_threads(rows, solver, n_threads):
    one = model_hash(fw.PCA(3, svd_solver=solver, n_threads=1).fit(rows))
    assert model_hash(fw.PCA(3, svd_solver=solver, n_threads=n_threads).fit(rows)) == one


@pytest.mark.parametrize(
    "kind", ["fortran", "strided", "big-endian", "npy", "npy-fortran", "pandas", "polars", "arrow"]
)
def test_containers(rows, expected, kind, tmp_path):
    names = [f"c{j}" for j in range(D)]
    if kind == "fortran":
        given = np.asfortranarray(rows)
    elif kind == "strided":
        given = np.repeat(rows, 2, axis=1)[:, ::2]
    elif kind == "big-endian":
        given = rows.astype(rows.dtype.newbyteorder(">"))
        if rows.dtype == np.float32:
            given = fw.scan(given, dtype=np.float32)
    elif kind.startswith("npy"):
        given = tmp_path / "rows.npy"
        np.save(given, np.asfortranarray(rows) if kind.endswith("fortran") else rows)
    elif kind == "pandas":
        given = pytest.importorskip("pandas").DataFrame(rows, columns=names)
    elif kind == "polars":
        given = pytest.importorskip("polars").DataFrame(rows, schema=names)
    else:
        given = pytest.importorskip("pyarrow").table(dict(zip(names, rows.T, strict=True)))
    assert model_hash(fw.PCA().fit(given)) == expected


@pytest.mark.parametrize("row_group", [1, 997, None], ids=["one", "prime", "all"])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_parquet_row_groups(rows, expected, row_group, n_threads, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    if row_group == 1:
        rows = rows[:3001]
        expected = model_hash(fw.PCA().fit(rows))
    table = pa.table({f"c{j}": rows[:, j] for j in range(D)})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=row_group or len(rows))
    assert model_hash(fw.PCA(n_threads=n_threads).fit(tmp_path / "rows.parquet")) == expected


@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_csv(rows, expected, suffix, tmp_path):
    path = tmp_path / f"rows.{suffix}"
    # repr of a float names exactly that float, so the file has the same values
    lines = [",".join(f"c{j}" for j in range(D)), *(",".join(map(repr, row)) for row in rows.tolist())]
    opener = __import__("gzip").open if suffix.endswith("gz") else open
    with opener(path, "wt") as file:
        file.write("\n".join(lines) + "\n")
    source = fw.scan(path, dtype=rows.dtype)
    assert model_hash(fw.PCA(n_threads=3).fit(source)) == expected


def test_glob_of_parts(rows, expected, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for number, part in enumerate(np.array_split(rows, [10, 5000, 12345])):
        pq.write_table(pa.table({f"c{j}": part[:, j] for j in range(D)}), tmp_path / f"part-{number}.parquet")
    assert model_hash(fw.PCA().fit(str(tmp_path / "part-*.parquet"))) == expected


@pytest.mark.parametrize("batch", [1, 997, None], ids=["one", "prime", "all"])
def test_partial_fit_batches(rows, batch):
    rows = rows[:3001] if batch == 1 else rows
    size = batch or len(rows)
    pca = fw.PCA()
    for start in range(0, len(rows), size):
        pca.partial_fit(rows[start : start + size])
    assert model_hash(pca) == model_hash(fw.PCA().fit(rows))


@pytest.mark.parametrize("solver", ["krylov", "power"])
def test_spooled_file_gives_the_bits_of_memory(rows, solver, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({f"c{j}": rows[:, j] for j in range(D)}), tmp_path / "rows.parquet")
    here = fw.PCA(2, svd_solver=solver, scale=True).fit(rows)
    there = fw.PCA(2, svd_solver=solver, scale=True).fit(tmp_path / "rows.parquet")
    assert model_hash(there) == model_hash(here)
    if solver == "krylov":
        assert there.manifest_.spooled_bytes == rows.nbytes
