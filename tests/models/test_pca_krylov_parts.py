"""The parts that Krylov is made of: tall products, a block left raw, the side of the rows, and the judgement of a sample."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import foldwise as fw
from foldwise import kernels
from foldwise.data.scan import scan
from foldwise.errors import DataError, NotFinishedWarning
from foldwise.fold.passes import Passes
from foldwise.models.pca import choose, costs, krylov, lanczos, sample_start, tall
from foldwise.models.pca.lanczos import Ritz, by_weight, closed, completed, empty, enlarged, orthonormal, random_block
from foldwise.models.pca.row_side import RowSide
from foldwise.models.pca.solver import SolverOptions
from foldwise.models.pca.units import units
from foldwise.stats.column_moments import ColumnMoments


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """ "auto" takes Krylov, whatever it costs, and does not give up."""
    monkeypatch.setattr("foldwise.models.pca.choose.cheapest", lambda *args, **options: "krylov")
    monkeypatch.setattr("foldwise.models.pca.krylov._patience", lambda *args, **options: np.inf)


@pytest.mark.parametrize("n", [1, 2047, 2048, 2049, 9000])
def test_tall_products_are_products_with_the_same_bits_for_any_number_of_threads(n: int) -> None:
    rng = np.random.default_rng(0)
    left, right, small = rng.standard_normal((n, 40)), rng.standard_normal((n, 24)), rng.standard_normal((40, 24))
    for made, expected in (
        (lambda t: tall.transposed_times(left, right, t), left.T @ right),
        (lambda t: tall.times(left, small, t), left @ small),
        (lambda t: tall.less(right, left, small, t), right - left @ small),
    ):
        found = [made(threads) for threads in (1, 2, 3)]
        np.testing.assert_allclose(found[0], expected, atol=1e-11)
        assert len({each.tobytes() for each in found}) == 1


def test_a_product_of_no_columns() -> None:
    assert tall.transposed_times(np.ones((5, 0)), np.ones((5, 3))).shape == (0, 3)
    assert tall.times(np.ones((5, 0)), np.ones((0, 3))).tolist() == [[0.0] * 3] * 5


@pytest.mark.parametrize("spread", [1.0, 1e-6])
def test_columns_become_orthonormal_and_span_the_same(spread: float) -> None:
    rng = np.random.default_rng(0)
    base = rng.standard_normal((300, 1))
    block = base + spread * rng.standard_normal((300, 6))  # nearly dependent for the small spread
    found = orthonormal(block)
    np.testing.assert_allclose(found.T @ found, np.eye(6), atol=1e-13)
    np.testing.assert_allclose(found @ (found.T @ block), block, atol=1e-9)


def test_a_block_left_raw_has_the_residuals_of_one_that_is_not() -> None:
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((90, 90)))[0]
    S = (turn * np.geomspace(10, 0.1, 90)) @ turn.T
    state = enlarged(empty(random_block(90, 5, 0)), lambda block: S @ block)
    raw, plain = (enlarged(state, lambda block: S @ block, raw=raw) for raw in (True, False))
    for each in (raw, plain):  # the law that a state obeys
        np.testing.assert_allclose(
            S @ each["basis"], each["basis"] @ each["small"] + each["block"] @ each["coupling"], atol=1e-12
        )
    np.testing.assert_allclose(Ritz.of(raw).residuals, Ritz.of(plain).residuals, atol=1e-12)
    done = completed(raw)
    assert all(np.array_equal(done[name], plain[name]) for name in plain)
    assert completed(done) is done


def test_a_step_with_a_part_of_the_block_keeps_the_law_and_loses_little() -> None:
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((200, 200)))[0]
    S = (turn * np.append(np.geomspace(10, 2, 12), np.linspace(1, 0.5, 188))) @ turn.T
    start, k = orthonormal(turn[:, :16] + 0.02 * rng.standard_normal((200, 16))), 6

    def worst(state: Any) -> float:
        ritz = Ritz.of(state)
        return float((ritz.errors(k)[-1] / ritz.values[:k]).max())

    one = enlarged(empty(start), lambda block: S @ block)
    two = enlarged(one, lambda block: S @ block)
    turned, few = by_weight(two, Ritz.of(two), k, worst(two) / worst(one))
    assert few == 8
    np.testing.assert_allclose(turned["block"] @ turned["coupling"], two["block"] @ two["coupling"], atol=1e-13)
    counts: list[int] = []

    def times(block: Any) -> Any:
        counts.append(block.shape[1])
        return S @ block

    raw, part = (enlarged(turned, times, raw=raw, few=few) for raw in (True, False))
    whole = enlarged(two, times)
    assert counts == [8, 8, 16]
    for each in (raw, part):
        np.testing.assert_allclose(
            S @ each["basis"], each["basis"] @ each["small"] + each["block"] @ each["coupling"], atol=1e-12
        )
    np.testing.assert_allclose(
        part["block"].T @ np.hstack([part["basis"], part["block"]]), np.eye(16, 56, 40), atol=1e-12
    )
    assert worst(whole) <= worst(part) <= 4 * worst(whole) <= 0.1 * worst(two)


def test_narrow_steps_are_certified_and_resumed_with_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    loadings = np.linalg.qr(rng.standard_normal((300, 40)))[0] * (8 / np.sqrt(np.arange(1, 41)))
    x = rng.standard_normal((9000, 300)) + rng.standard_normal((9000, 40)) @ loadings.T
    x = x.astype(np.float32)
    monkeypatch.setattr("foldwise.models.pca.choose.cheapest", lambda *_, **__: "krylov")
    monkeypatch.setattr("foldwise.models.pca.krylov._patience", lambda *_, **__: np.inf)
    widths: list[int] = []
    plain = krylov.InFloat32.times

    def times(self: Any, block: Any) -> Any:
        widths.append(block.shape[1])
        return plain(self, block)

    monkeypatch.setattr(krylov.InFloat32, "times", times)
    monkeypatch.setattr(krylov, "_LAST_STEP", 1e3)  # sooner than usual
    model = fw.PCA(6).fit(x)
    assert widths[0] == 16
    assert widths[-1] in (8, 12)
    true = np.linalg.eigvalsh(np.cov(x.astype(np.float64), rowvar=False))[::-1][:6]
    assert (np.abs(model.explained_variance_ - true) <= model.variance_errors_).all()
    assert (model.variance_errors_ <= 1e-6 * true).all()
    steps = len(widths)
    for done in range(1, steps + 1):  # stopped after any step, it goes on with the same bits
        path = tmp_path / str(done)
        with pytest.warns(NotFinishedWarning):
            fw.PCA(6, max_iter=done, checkpoint=path).fit(x)
        resumed = fw.PCA(6, max_iter=300, checkpoint=path).fit(x)
        assert resumed.manifest_.resumed_at == done
        for name in ("components_", "explained_variance_", "variance_errors_", "residuals_"):
            assert getattr(resumed, name).tobytes() == getattr(model, name).tobytes()
    for n_threads in (1, 3):
        again = fw.PCA(6, n_threads=n_threads).fit(x)
        assert again.components_.tobytes() == model.components_.tobytes()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("scaled", [False, True])
def test_products_from_the_side_of_the_rows(weighted: bool, offset: float, scaled: bool) -> None:
    rng = np.random.default_rng(0)
    x = sp.random_array((50, 400), density=0.05, rng=rng).toarray()
    x[:, 7] = rng.standard_normal(50) + offset  # stored in every row
    x[:, 9] = 0.0  # in none
    weights = rng.integers(0, 3, 50).astype(float) if weighted else np.ones(50)
    if weighted:
        x[weights == 0, 7] = 0.0  # not stored, but in rows that do not count
    factor = rng.uniform(0.5, 2, 400) if scaled else None
    passes = Passes(scan(sp.csr_array(x), weights=weights))
    centre = passes.fold(ColumnMoments.of).centre
    side = RowSide.of(passes, centre, factor)
    mean = weights @ (x - [offset * (j == 7) for j in range(400)]) / weights.sum()
    z = (x - [offset * (j == 7) for j in range(400)] - mean) * (1.0 if factor is None else factor)
    z *= np.sqrt(weights)[:, None]
    block, tall_block = rng.standard_normal((50, 5)), rng.standard_normal((400, 5))
    np.testing.assert_allclose(side.times(block), z @ (z.T @ block), atol=1e-8)
    np.testing.assert_allclose(side.over_columns(tall_block), z.T @ (z @ tall_block), atol=1e-8)
    directions = side.directions(block)
    np.testing.assert_allclose(directions.T @ directions, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(directions @ (directions.T @ (z.T @ block)), z.T @ block, atol=1e-8)


def start_of(x: Any, k: int) -> sample_start.Start:
    start = sample_start.found(Passes(scan(x)), SolverOptions(k), k, 16, judge=True)
    assert start is not None
    return start


@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("d", [300, 1200])
def test_rows_that_had_no_part_in_a_sample_tell_noise_from_factors(
    monkeypatch: pytest.MonkeyPatch, offset: float, d: int
) -> None:
    monkeypatch.setattr(sample_start, "_ROWS", 1000)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((9000, d), dtype=np.float32) + np.float32(offset)
    assert start_of(noise, 5).flat
    for n_factors, flat in ((2, True), (10, False)):  # the fifth direction is one of noise, or not
        loadings = np.linalg.qr(rng.standard_normal((d, n_factors)))[0].T
        codes = 4 * rng.standard_normal((9000, n_factors))
        found = start_of(noise + (codes @ loadings).astype(np.float32), 5)
        assert found.flat == flat
        np.testing.assert_allclose(found.block.T @ found.block, np.eye(16), atol=1e-12)


def test_how_many_rows_a_sample_has() -> None:
    shapes = {(200_000, 784): 8192, (200_000, 2000): 4096, (50_000, 2000): 4096, (20_000, 300): 2500, (20_000, 9000): 0}
    assert {shape: sample_start._size(*shape) for shape in shapes} == shapes


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_opening_pass_takes_the_first_step(scale: bool, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x = (1e3 + 50 * rng.uniform(0.1, 10, 300) * rng.standard_normal((9000, 300))).astype(dtype)
    passes, options = Passes(scan(x)), SolverOptions(5, scale=scale)
    start = sample_start.found(passes, options, 5, 16, judge=True)
    assert start is not None
    assert start.wide == (dtype == np.float64)
    columns, raw = start.opened(passes)
    assert passes.counter.passes == 1
    np.testing.assert_array_equal(columns.centre, passes.fold(ColumnMoments.of).centre)
    factor = units(columns, options.deviations(columns), options.ddof)[1]
    found = start.first_step(columns, factor, raw)
    assert found is not None
    np.testing.assert_allclose(found.block.T @ found.block, np.eye(16), atol=1e-12)
    rows = (x.astype(np.float64) - columns.mean) * factor
    true = rows.T @ (rows @ found.block)
    np.testing.assert_allclose(
        found.product, true, atol=(1e-6 if dtype == np.float32 else 1e-12) * float((rows**2).sum())
    )
    if not scale:
        np.testing.assert_allclose(found.block, start.block, atol=1e-12)
    # With means so far apart, or other factors, digits would be lost.
    away = replace(columns, centre=columns.centre + 1e6 * np.array([[1.0], [0.0]]))
    assert start.first_step(away, factor, raw) is None
    assert start.first_step(columns, np.full(300, 1e3), raw) is None


def test_a_fit_stopped_before_its_first_step_goes_on_with_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(choose, "cheapest", lambda *given, **more: "krylov")
    monkeypatch.setattr(krylov, "_patience", lambda *given, **more: np.inf)
    monkeypatch.setattr(sample_start, "_ROWS", 1000)
    rng = np.random.default_rng(0)
    x = 3 * rng.standard_normal((9000, 6)) @ rng.standard_normal((6, 300)) + rng.standard_normal((9000, 300)) / 2
    x = x.astype(np.float32)
    whole, path = fw.PCA(5).fit(x), tmp_path / "checkpoint"
    with pytest.warns(NotFinishedWarning):
        fw.PCA(5, time_budget=1e-9, checkpoint=path).fit(x)
    resumed = fw.PCA(5, checkpoint=path).fit(x)
    assert resumed.manifest_.resumed_at == 0
    assert resumed.components_.tobytes() == whole.components_.tobytes()
    assert resumed.explained_variance_.tobytes() == whole.explained_variance_.tobytes()


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("where", ["in the sample", "elsewhere"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_no_number_is_found_by_its_place(
    where: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_start, "_ROWS", 1000)
    x = np.random.default_rng(0).standard_normal((9000, 300), dtype=np.float32)
    if where == "elsewhere":
        x[8123, 7] = value
        row = 8123
    else:
        row = int(sample_start._spread(9000, 1000, 0)[500])
        x[row, 7] = value
    with pytest.raises(DataError, match=f"row {row}"):
        fw.PCA(3).fit(x)


@pytest.mark.usefixtures("always")
def test_slow_sources_are_decoded_before_rows_are_picked_and_give_the_same_bits(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pd = pytest.importorskip("pandas")
    monkeypatch.setattr(sample_start, "_ROWS", 1000)
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((9000, 300)) + 3 * rng.standard_normal((9000, 5)) @ rng.standard_normal((5, 300))).astype(
        np.float32
    )
    pd.DataFrame(x, columns=[f"c{j}" for j in range(300)]).to_parquet(tmp_path / "x.parquet")
    memory, file = fw.PCA(4).fit(x), fw.PCA(4).fit(str(tmp_path / "x.parquet"))
    assert memory.manifest_.algorithm == file.manifest_.algorithm == "krylov"
    assert file.manifest_.passes == memory.manifest_.passes + 1
    for name in ("components_", "explained_variance_", "variance_errors_", "mean_"):
        assert getattr(memory, name).tobytes() == getattr(file, name).tobytes()


def test_noise_is_given_up_before_any_step_and_the_manifest_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "_DIGITS", 0.0)
    monkeypatch.setattr(sample_start, "_ROWS", 1000)
    x = np.random.default_rng(0).standard_normal((12_000, 1000), dtype=np.float32)
    assert costs.cheapest(12_000, 1000, 5, sparse=False) == "krylov"
    pca = fw.PCA(5).fit(x)
    assert pca.manifest_.algorithm == "covariance_eigh"
    assert pca.manifest_.passes == 1  # for the covariance
    (note,) = pca.manifest_.notes
    assert note.startswith("krylov gave up before the first pass: the variances near the 5th are too alike")
    assert note.endswith("covariance_eigh found the directions")
    by_name = fw.PCA(5, svd_solver="covariance_eigh").fit(x)
    assert not by_name.manifest_.notes
    assert np.array_equal(by_name.components_, pca.components_)


def made(kind: str, rng: np.random.Generator) -> Any:
    """Rows in which rounding errors of float32 sums do not average out, and others."""
    n, d = 6000, 300
    if kind == "noise":
        return rng.standard_normal((n, d)) * np.geomspace(5, 0.5, d)
    labels = np.sort(rng.integers(0, 4, n))
    if kind == "sorted groups":  # equal rows, one after the other: every sum is of equal terms
        return rng.standard_normal((4, d))[labels] * 3
    if kind == "sorted bits":
        return (rng.random((4, d)) < 0.3)[labels] * 1.0 + (rng.random((n, d)) < 0.01)
    if kind == "counts":
        return rng.poisson(np.geomspace(20, 0.1, d), (n, d))
    return rng.standard_t(2, (n, d))  # "far rows"


@pytest.mark.parametrize("kind", ["noise", "sorted groups", "sorted bits", "counts", "far rows"])
@pytest.mark.parametrize("k", [1, 3, 12])
def test_what_float32_may_hide_of_residuals_is_allowed_for(kind: str, k: int) -> None:
    rng = np.random.default_rng(k)
    x = np.ascontiguousarray(made(kind, rng), dtype=np.float32)
    wide = x.astype(np.float64)
    centre = np.vstack([wide.mean(axis=0), np.zeros(x.shape[1])])
    rows = wide - centre[0]
    block = np.ascontiguousarray(np.linalg.svd(rows, full_matrices=False)[2][:k].T)
    block = orthonormal(block + 1e-4 * rng.standard_normal(block.shape))
    product, form = kernels.product_and_form(x, None, centre, None, block)
    state = closed(empty(block, 0.0), product, form, float((rows**2).sum()))
    found = Ritz.of(state)
    true = rows.T @ (rows @ block)
    values, vectors = np.linalg.eigh(block.T @ true)
    vectors = vectors[:, ::-1]
    residuals = np.linalg.norm((true - block @ (block.T @ true)) @ vectors, axis=0)
    np.testing.assert_allclose(found.values, values[::-1], rtol=1e-11, atol=1e-11 * values[-1])
    hidden = np.linalg.norm((product - true) @ vectors, axis=0)
    assert (hidden <= np.linalg.norm(state["blur"][:, None] * found.vectors, axis=0)).all()
    assert (found.residuals >= residuals * (1 - 1e-9)).all()
    large = values[::-1] > 1e-6 * values[-1]
    assert (found.residuals <= 1.2 * residuals + 1e-3 * values[::-1])[large].all()  # or nothing would ever be certified


def test_a_last_pass_in_float32_that_proves_too_little_is_repeated_in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((9000, 300)) + rng.standard_normal((9000, 12)) @ rng.standard_normal((12, 300))).astype(
        np.float32
    )
    monkeypatch.setattr("foldwise.models.pca.choose.cheapest", lambda *_, **__: "krylov")
    monkeypatch.setattr("foldwise.models.pca.krylov._patience", lambda *_, **__: np.inf)
    usual = fw.PCA(5).fit(x)
    assert usual.manifest_.algorithm == "krylov"
    monkeypatch.setattr(lanczos, "_UNSEEN", 1e9)
    doubted = fw.PCA(5).fit(x)
    assert doubted.manifest_.algorithm == "krylov"
    assert doubted.manifest_.passes == usual.manifest_.passes + 1
    true = np.linalg.eigvalsh(np.cov(x.astype(np.float64), rowvar=False))[::-1][:5]
    for model in (usual, doubted):
        assert (np.abs(model.explained_variance_ - true) <= np.minimum(model.variance_errors_, 1e-6 * true)).all()
        assert (model.variance_errors_ <= 1e-6 * true).all()


def test_small_variances_are_not_left_to_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of variances a millionth of the first and less, a product in float32 would prove nothing: no pass is spent on it."""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((9000, 6)) @ rng.standard_normal((6, 300))).astype(np.float32)  # of rank 6
    monkeypatch.setattr("foldwise.models.pca.choose.cheapest", lambda *_, **__: "krylov")
    monkeypatch.setattr("foldwise.models.pca.krylov._patience", lambda *_, **__: np.inf)
    monkeypatch.setattr("foldwise.models.pca.early.InFloat32.with_form", lambda *_: pytest.fail("a pass in float32"))
    model = fw.PCA(8).fit(x)
    assert model.manifest_.algorithm == "krylov"
    true = np.linalg.eigvalsh(np.cov(x.astype(np.float64), rowvar=False))[::-1][:8]
    np.testing.assert_allclose(model.explained_variance_[:6], true[:6], rtol=1e-9)
    assert (np.abs(model.explained_variance_ - true) <= model.variance_errors_ + 1e-12 * true[0]).all()
