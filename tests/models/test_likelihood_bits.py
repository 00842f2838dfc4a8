"""One hash of a fit, whatever the threads and whatever holds the values."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foldwise as fw
from foldwise.data.block_grid import rows_per_block
from foldwise.models.likelihood import quantiles

FAMILIES = [
    "normal",
    "gamma",
    "weibull",
    "lognormal",
    "inverse-gaussian",
    "logistic",
    "cauchy",
    "laplace",
    "gumbel",
    "beta",
]
LATER = ["student-t", "shifted-exponential", "shifted-gamma", "shifted-weibull", "shifted-lognormal"]
OTHERS = ["poisson", "negative-binomial", "geometric", "binomial", "uniform", "pareto", "rayleigh", "exponential"]


def fit_hash(found: Any) -> str:
    digest = hashlib.sha256()
    for fit in found:
        figures = [*fit.parameters.values(), *fit.standard_errors.values(), fit.max_log_likelihood]
        figures += [value for step in fit.trace for value in step.values()]
        figures += [found.score(fit), found.log_probabilities.get(fit.family, 0.0)]
        digest.update(
            repr(fit.notes).encode() + fit.family.encode() + np.array(figures).tobytes() + fit.covariance.tobytes()
        )
    digest.update(repr(found.refused).encode())
    return digest.hexdigest()


def fitted(given: Any, **options: Any) -> str:
    return fit_hash(fw.fit_distribution(given, FAMILIES, **options))


@pytest.fixture(scope="module", params=[np.float32, np.float64], ids=["float32", "float64"])
def values(request: pytest.FixtureRequest) -> np.ndarray:
    """Some blocks, the last one ragged, all between 0 and 1."""
    dtype = np.dtype(request.param)
    n = 2 * rows_per_block(1, dtype) + 12_345
    return np.random.default_rng(0).beta(2.0, 3.0, n).clip(1e-6, 1 - 1e-6).astype(dtype)


@pytest.fixture(scope="module")
def expected(values: np.ndarray) -> str:
    return fitted(values, n_threads=1)


@pytest.mark.parametrize("n_threads", [2, 3, 7])
def test_threads(values: np.ndarray, expected: str, n_threads: int) -> None:
    assert fitted(values, n_threads=n_threads) == expected


@pytest.mark.parametrize(
    "kind", ["column", "strided", "npy", "npy-flat", "pandas", "series", "polars", "arrow", "parquet", "csv"]
)
def test_containers(values: np.ndarray, expected: str, kind: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"n_threads": 2}
    if kind == "column":
        given: Any = values.reshape(-1, 1)
    elif kind == "strided":
        given = np.repeat(values, 2)[::2]
    elif kind.startswith("npy"):
        given = tmp_path / "x.npy"
        np.save(given, values if kind == "npy-flat" else values.reshape(-1, 1))
    elif kind in ("pandas", "series"):
        pd = pytest.importorskip("pandas")
        given = pd.DataFrame({"a": values[::-1], "x": values})
        if kind == "series":
            given = given["x"]
        else:
            options["column"] = "x"
    elif kind == "polars":
        given = pytest.importorskip("polars").Series("x", values)
    elif kind == "arrow":
        given = pytest.importorskip("pyarrow").table({"x": values})
    elif kind == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        given = tmp_path / "x.parquet"
        pq.write_table(pa.table({"a": values[::-1], "x": values}), given, row_group_size=99_991)
        options["column"] = "x"
    else:
        path = tmp_path / "x.csv"
        path.write_text("\n".join(["x", *map(repr, values.tolist())]) + "\n")
        given = fw.scan(path, dtype=values.dtype)
    assert fitted(given, **options) == expected


def test_weights_and_counts(tmp_path: Path) -> None:
    n = rows_per_block(1, np.dtype(np.float64)) + 5000
    rng = np.random.default_rng(1)
    x, w = rng.negative_binomial(3, 0.3, n) + 1.0, rng.random(n) * (rng.random(n) < 0.8)
    np.save(tmp_path / "x.npy", x)
    given = {"fixed": {"binomial": {"n": 100}}}

    def run(data: Any, n_threads: int) -> str:
        return fit_hash(
            fw.fit_distribution(
                data,
                [*OTHERS, *(name for name in FAMILIES if name != "beta")],
                sample_weight=w,
                n_threads=n_threads,
                **given,
            )
        )

    one = run(x, 1)
    assert run(x, 3) == one
    assert run(tmp_path / "x.npy", 2) == one


def test_three_parameters(tmp_path: Path) -> None:
    """Student's t and the shifted families, in two blocks: from a file with threads as from memory with one."""
    x = 5.0 + np.random.default_rng(1).gamma(3.0, 2.0, rows_per_block(1, np.dtype(np.float64)) + 1000)
    np.save(tmp_path / "x.npy", x)
    one = fw.fit_distribution(x, LATER, n_threads=1)
    assert len(one) == 5
    assert fit_hash(fw.fit_distribution(tmp_path / "x.npy", LATER, n_threads=3)) == fit_hash(one)


def test_quantiles_narrowed_down_are_those_of_sorting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a million rows nothing is sorted; here the limit is moved instead."""
    rng = np.random.default_rng(2)
    for x in (
        rng.standard_normal(5000),
        rng.integers(0, 9, 4000) * 1.0,
        1e300 * rng.standard_cauchy(3001),
        -np.ones(7),
    ):
        w = rng.integers(0, 3, len(x)) * 1.0
        w[0] = 1.0
        for weights in (None, w):
            source = fw.scan(x.reshape(-1, 1), weights=weights)
            total = float(len(x) if weights is None else w.sum())
            levels = (0.01, 0.25, 0.5, 0.75, 1.0)
            here = x if weights is None else x[w > 0]
            about = (total, len(here), float(here.min()), float(here.max()))
            from foldwise.fold.passes import Passes

            exact = quantiles.quantiles(Passes(source), levels, *about)
            with monkeypatch.context() as patch:
                patch.setattr(quantiles, "_IN_MEMORY", 0)
                np.testing.assert_array_equal(quantiles.quantiles(Passes(source), levels, *about), exact)
            assert exact[2] == np.median(np.repeat(x, w.astype(int)) if weights is not None else x)


def test_large_data_take_the_same_median(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(3).laplace(1.0, 2.0, 3000)
    usual = fw.fit_distribution(x, "laplace")
    monkeypatch.setattr(quantiles, "_IN_MEMORY", 100)
    assert fw.fit_distribution(x, "laplace").parameters == usual.parameters
