"""Input that used to end in an error of NumPy, pandas or Python: it works, or the message says what is wrong and where."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import foldwise as fw
from foldwise.errors import DataError, FoldwiseError, ParameterError, StoreError

X = np.random.default_rng(0).normal(size=(12, 4))
FRAME = pd.DataFrame(X, columns=list("abcd"))


def rows_of(source: Any) -> np.ndarray:
    return np.vstack([piece.load().dense() for piece in source.pieces()])


@pytest.fixture(params=["array", "sparse", "npy", "csv", "parquet", "pandas", "arrow", "dask"])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "npy":
        np.save(tmp_path / "x.npy", X)
        return tmp_path / "x.npy"
    if request.param == "csv":
        FRAME.to_csv(tmp_path / "x.csv", index=False)
        return tmp_path / "x.csv"
    if request.param == "parquet":
        FRAME.to_parquet(tmp_path / "x.parquet")
        return tmp_path / "x.parquet"
    if request.param == "dask":
        import dask.array as da

        return da.from_array(X, chunks=(5, 4))
    return {"array": X, "sparse": sp.csr_array(X), "pandas": FRAME, "arrow": pa.Table.from_pandas(FRAME)}[request.param]


@pytest.mark.parametrize(
    "columns",
    [np.array([0, 2]), np.array([0, 2], dtype=np.uint8), (0, 2), range(0, 3, 2), pd.Index([0, 2]), pd.Series([0, 2])],
    ids=["array", "uint8", "tuple", "range", "Index", "Series"],
)
def test_columns_in_any_sequence(data: Any, columns: Any) -> None:
    assert fw.scan(data, columns=columns).n_columns == 2
    assert fw.scan(data, columns=np.array(2)).n_columns == 1


@pytest.mark.parametrize(
    "columns",
    [1.5, object(), slice(0, 2), np.array([0.0, 1.0]), np.array([[0, 1]]), np.array([True, False, True, False]), b"a"],
    ids=["float", "object", "slice", "floats", "2-D", "mask", "bytes"],
)
def test_columns_that_are_neither_names_nor_positions(data: Any, columns: Any) -> None:
    with pytest.raises(DataError, match="columns= takes names or positions"):
        fw.scan(data, columns=columns)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool])
def test_sparse_columns_of_pandas(dtype: Any) -> None:
    dense = pd.DataFrame({"a": np.array([0, 1, 0, 2], dtype=dtype), "b": [1.0, 2.0, 3.0, 5.0]})
    frame = dense.assign(a=pd.arrays.SparseArray(dense["a"].to_numpy()))
    np.testing.assert_array_equal(rows_of(fw.scan(frame)), rows_of(fw.scan(dense)))
    assert fw.scan(frame[["a"]]).dtype == fw.scan(dense[["a"]]).dtype
    np.testing.assert_array_equal(rows_of(fw.scan(frame, where="b > 2")), rows_of(fw.scan(dense, where="b > 2")))
    assert isinstance(frame["a"].dtype, pd.SparseDtype)  # the caller's frame is as before


def test_a_frame_that_duckdb_cannot_read() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "p": pd.period_range("2020", periods=2, freq="Y")})
    with pytest.raises(DataError, match="DuckDB cannot read this frame"):
        fw.scan(frame, columns=["a"], where="a > 1")


def test_strings_of_numpy() -> None:
    kind = np.dtypes.StringDType
    np.testing.assert_array_equal(
        rows_of(fw.scan(np.array([["1", "2.5"], ["3", "5"]], dtype=kind()))), [[1, 2.5], [3, 5]]
    )
    with pytest.raises(DataError, match="'x' is not a number") as error:
        rows_of(fw.scan(np.array([["1", "2"], ["3", "x"]], dtype=kind())))
    assert (error.value.row, error.value.column) == (1, 1)
    for missing in (None, np.nan):
        with pytest.raises(DataError, match="NaN") as error:
            fw.PCA(1).fit(np.array([["1", "2"], [missing, "x"]], dtype=kind(na_object=missing))[:, :1])
        assert (error.value.row, error.value.column) == (1, 0)


@pytest.mark.parametrize("dtype", ["string", "string[pyarrow]", "str", "object"])
def test_text_columns_of_pandas_with_missing_values(dtype: str) -> None:
    frame = pd.DataFrame({"a": pd.Series(["1", None, "4"], dtype=dtype), "b": [1.0, 2.0, 4.0]})
    with pytest.raises(DataError, match="does not hold numbers"):
        fw.scan(frame, columns=["a"])
    assert fw.scan(frame, columns="numeric").names == ("b",)


def head(text: str | bytes, after: bytes = bytes(640)) -> bytes:
    header = text.encode() if isinstance(text, str) else text
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header + b"\n" + after


def described(shape: str, descr: str = "'<f8'") -> bytes:
    return head(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}")


DAMAGED = {
    "cut in the magic": b"\x93NU",
    "cut in the header": described("(3, 4)")[:30],
    "wrong magic": b"NOTNUMPY" + bytes(64),
    "huge": described("(4611686018427387904, 4)"),
    "negative rows": described("(-3, 4)"),
    "negative columns": described("(3, -4)"),
    "bool as a length": described("(True, 4)"),
    "objects": described("(3, 4)", "'|O'"),
    "unknown dtype": described("(3, 4)", "'zz'"),
    "open bracket": head("{'descr': '<f8', "),
    "deep": head("(" * 3000),
    "not text": head(bytes(range(128, 190))),
    "header of gigabytes": b"\x93NUMPY\x02\x00" + struct.pack("<I", 4_000_000_000) + bytes(100),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_npy(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(DAMAGED[name])
    for use in (fw.PCA(1).fit, lambda x: fw.fit_distribution(x, "normal")):
        with pytest.raises(DataError, match=r"x\.npy") as error:
            use(path)
        assert len(str(error.value)) < 500
        assert "sample(s)" not in str(error.value)


def test_npy_in_other_orders(tmp_path: Path) -> None:
    for number, array in enumerate((np.asfortranarray(X), X.astype(">f8"))):
        np.save(tmp_path / f"{number}.npy", array)
        np.testing.assert_array_equal(rows_of(fw.scan(tmp_path / f"{number}.npy")), X)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
@pytest.mark.parametrize("name", ["x.npy", "x.csv"])
def test_a_pipe_that_nobody_writes_to(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    os.mkfifo(path)
    code = (
        "import sys, foldwise as fw\n"
        "for use in (fw.scan, lambda x: fw.scan([x]), lambda x: fw.fit_distribution(x, 'normal')):\n"
        "    try:\n        use(sys.argv[1])\n    except fw.errors.DataError as e:\n        print('a pipe' in str(e))\n"
        "try:\n    fw.KMeans(1, checkpoint=sys.argv[1]).fit([[1.0], [2.0]])\n"
        "except fw.errors.StoreError as e:\n    print('a pipe' in str(e))\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    code = "import foldwise.errors\n" + code
    done = subprocess.run(
        [sys.executable, "-c", code, path], env=environment, capture_output=True, text=True, timeout=30
    )
    assert done.stdout.split() == ["True"] * 4, done.stderr
    assert issubclass(StoreError, FoldwiseError)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("FOLDWISE_SPOOL_LIMIT", value) for value in ("x", "-1", "1.5", "5GB", "nan")),
        *(("FOLDWISE_SCRATCH", value) for value in ("/no/such/folder", __file__)),
        *(("FOLDWISE_THREADS", value) for value in ("x", "0", "1.5", "9" * 25)),
    ],
)
def test_bad_settings_in_the_environment(
    tmp_path: Path, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    FRAME.to_csv(tmp_path / "x.csv", index=False)
    monkeypatch.setenv(name, value)
    with pytest.raises(ParameterError, match=name):
        fw.KMeans(2).fit(tmp_path / "x.csv")


def test_an_unknown_instruction_set() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "FOLDWISE_ISA": "sse9"}
    code = "import foldwise\nfoldwise.scan"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert "FOLDWISE_ISA='sse9' is not one of" in done.stderr


@pytest.mark.parametrize("solver", ["covariance_eigh", "full", "power"])
def test_an_overflow_names_its_column(tmp_path: Path, solver: str) -> None:
    vast = X * [1, 1, 1e200, 1]
    frame = pd.DataFrame(vast, columns=list("abcd"))
    frame.to_parquet(tmp_path / "x.parquet")
    cases = [
        (vast, 2),
        (fw.scan(vast, columns=[3, 2]), 2),
        (frame, "c"),
        (frame[["c", "a"]], "c"),
        (tmp_path / "x.parquet", "c"),
    ]
    for rows, column in cases:
        with pytest.raises(DataError, match="overflows") as error:
            fw.PCA(1, svd_solver=solver).fit(rows)
        assert error.value.column == column
    with pytest.raises(DataError, match="column 'c'"):
        _ = fw.PCA(1).partial_fit(frame).components_


@pytest.mark.parametrize("model", [fw.KMeans(2), fw.KMeans(2, scale=True), fw.BisectingKMeans(2)], ids=str)
def test_values_too_far_apart_name_their_column(model: Any) -> None:
    vast = np.clip(X * [1, 1, 1e308, 1], -1.7e308, 1.7e308)
    for rows, column in ((fw.scan(vast, columns=[3, 2]), 2), (pd.DataFrame(vast, columns=list("abcd")), "c")):
        with pytest.raises(DataError, match="float64") as error:
            model.fit(rows)
        assert error.value.column == column


def test_a_decomposition_that_fails() -> None:
    with np.errstate(over="ignore"):
        vast = np.clip(np.random.default_rng(0).normal(size=(20, 4)) * [1, 1, 1e308, 1], -1.7e308, 1.7e308)
    for model in (fw.GaussianMixture(2), fw.PCA(2, svd_solver="krylov")):
        with pytest.raises(FoldwiseError), np.errstate(all="ignore"):
            model.fit(vast)


def test_masked_weights(data: Any) -> None:
    if type(data).__module__.startswith("dask"):
        pytest.skip("weights of a Dask collection are Dask arrays")
    weights = np.ma.masked_array(np.ones(12), mask=np.arange(12) == 3)
    with pytest.raises(DataError, match="masked") as error:
        fw.scan(data, weights=weights)
    assert error.value.row == 3
    assert fw.scan(data, weights=np.ma.masked_array(np.ones(12))) is not None


def test_masked_rows() -> None:
    with pytest.raises(DataError, match="masked"):
        fw.scan(X, where=np.ma.masked_array(np.ones(12, dtype=bool), mask=np.arange(12) == 3))


def test_names_that_differ_only_by_case(tmp_path: Path) -> None:
    nested = pa.array([{"A": 1.0, "b": 2.0}] * 12)
    table = pa.table({"a": X[:, 0], "n": nested, "A": X[:, 1], "B": X[:, 2]})
    pq.write_table(table, tmp_path / "x.parquet")
    source = fw.scan(tmp_path / "x.parquet", columns="numeric")
    assert source.names == ("a", "A", "B")
    assert source.left_out == ("n",)
    np.testing.assert_array_equal(rows_of(source), X[:, :3])
    np.testing.assert_array_equal(rows_of(fw.scan(tmp_path / "x.parquet", columns=["A"])), X[:, 1:2])
    flat = table.drop_columns("n")
    for frame in (flat, flat.to_pandas()):
        source = fw.scan(frame, columns=["A", "B"], where='"B" > 0')
        np.testing.assert_array_equal(rows_of(source), X[X[:, 2] > 0, 1:3])
    pq.write_table(table, tmp_path / "y.parquet")
    with pytest.raises(DataError, match="differ only by case"):
        fw.scan(str(tmp_path / "*.parquet"))
    (tmp_path / "x.jsonl").write_text('{"a": 1, "A": 2}\n{"a": 3, "A": 5}\n')
    with pytest.raises(DataError, match="differ only by case"):
        fw.scan(tmp_path / "x.jsonl")


@pytest.mark.parametrize(
    "kind",
    [fw.KMeans, fw.MiniBatchKMeans, fw.BisectingKMeans, fw.KernelKMeans, fw.SoftKMeans, fw.GaussianMixture, fw.PCA],
)
def test_a_bool_is_not_a_number_of_clusters(kind: Any) -> None:
    for value in (True, np.True_):
        with pytest.raises(ParameterError, match=r"'n_\w+' parameter of"):
            kind(value).fit(X)


def test_other_parameters_that_are_bools() -> None:
    for given in ({"n_clusters": 2.0}, {"max_iter": True}, {"n_init": True}, {"n_threads": True}):
        with pytest.raises(ParameterError, match="parameter of KMeans must"):
            fw.KMeans(**{"n_clusters": 2, **given}).fit(X)
    with pytest.raises(ParameterError):
        fw.engine("threads", True)


def test_rows_of_a_list_are_not_names(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text('[{"a": 1, "s": "X"}, {"a": 2, "s": "x"}, {"a": 4, "s": "x"}]')
    assert fw.scan(path, columns=["a"]).n_columns == 1


@pytest.mark.parametrize("how", ["far", "beyond", "negative", "start", "end"])
def test_sparse_matrices_put_together_wrongly_are_refused(how):
    import scipy.sparse as sp

    x = sp.csr_matrix(np.eye(4) + 1.0)
    if how in ("start", "end"):
        x.indptr[2 if how == "start" else -1] = 10**7 if how == "start" else 100
    else:
        x.indices[2] = {"far": 10**8, "beyond": 7, "negative": -3}[how]
    for fit in (fw.PCA(1).fit, fw.KMeans(2).fit):
        with pytest.raises(DataError, match="indptr and indices"):
            fit(x)
