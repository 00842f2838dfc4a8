"""Silhouettes, profiles and the inertia curve where cells are missing: all over what is observed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foldwise as fw
from foldwise.data.block import DenseBlock
from foldwise.errors import DataError, ParameterError
from foldwise.report.cluster import cluster_report
from foldwise.report.html import as_html
from foldwise.selection.profile import profile
from foldwise.stats.group_moments import GroupMoments


def holed(n: int = 200, d: int = 4, share: float = 0.2, seed: int = 0, *, blank: int = 1) -> np.ndarray:
    """Two groups, with cells removed at random; nothing is observed of the first rows."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) + 4 * (np.arange(n) % 2)[:, None]
    x[rng.random(x.shape) < share] = np.nan
    x[:blank] = np.nan
    return x


def brute_silhouettes(x: np.ndarray, labels: np.ndarray, w: np.ndarray) -> np.ndarray:
    """By double loops, a weight counting as repetition of its row."""
    out = np.full(len(x), np.nan)
    for i, row in enumerate(x):
        if np.isnan(row).all():
            continue
        sums, weights = np.zeros(labels.max() + 1), np.zeros(labels.max() + 1)
        for other, label, weight in zip(x, labels, w, strict=True):
            common = ~np.isnan(row - other)
            if common.any() and label >= 0:
                gap = row[common] - other[common]
                sums[label] += weight * np.sqrt(gap @ gap * len(row) / common.sum())
                weights[label] += weight
        own = labels[i]
        weights[own] -= w[i] > 0
        if weights[own] <= 0:
            out[i] = 0.0
            continue
        a = sums[own] / weights[own]
        means = [sums[c] / weights[c] for c in range(len(sums)) if c != own and weights[c] > 0]
        out[i] = (min(means) - a) / max(min(means), a) if means else 0.0
    return out


# ---------------------------------------------------------------- silhouettes


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 4), st.sampled_from([0.05, 0.4, 0.8]), st.booleans())
def test_silhouettes_are_those_of_double_loops(seed: int, k: int, share: float, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    x = holed(40, 3, share, seed)
    x[1 : k + 1] = rng.standard_normal((k, 3))
    labels = rng.integers(k, size=40)
    labels[1 : k + 1] = np.arange(k)
    weights = rng.integers(0, 3, 40).astype(float) if weighted else np.ones(40)
    weights[1 : k + 1] = 1.0
    given_weights = weights if weighted else None
    found = fw.silhouette(x, labels, missing="model", values=True, sample_weight=given_weights)
    true = brute_silhouettes(x, labels, weights)
    np.testing.assert_allclose(found.values, true, rtol=1e-10, atol=1e-12)
    some = ~np.isnan(true)
    assert found.mean == pytest.approx(float(weights[some] @ true[some] / weights[some].sum()), abs=1e-12)
    for c, mean in enumerate(found.cluster_means):
        here = some & (labels == c)
        assert mean == pytest.approx(float(weights[here] @ true[here] / weights[here].sum()), abs=1e-12)


def test_by_hand() -> None:
    """Two columns: (0, -) to (2, 5) is 2 in one of two columns, so the root of 2 x 4; to (10, -) it is the root of 2 x 100."""
    nan = np.nan
    x = [[0.0, nan], [2.0, 5.0], [10.0, nan], [12.0, nan], [nan, nan]]
    found = fw.silhouette(x, [0, 0, 1, 1, 1], missing="model", values=True)
    near, far = np.sqrt(2) * 2.0, np.sqrt(2) * 11.0
    assert found.values[0] == pytest.approx((far - near) / far)
    assert np.isnan(found.values[4])
    assert found.cluster_weights.tolist() == [2.0, 2.0]


def test_with_nothing_missing_the_bits_are_those_of_complete_rows() -> None:
    x = holed(share=0.0, blank=0)
    labels = np.arange(200) % 2
    plain = fw.silhouette(x, labels, values=True)
    model = fw.silhouette(x, labels, values=True, missing="model")
    assert plain.values.tobytes() == model.values.tobytes()
    assert plain.mean == model.mean


def test_of_a_model_and_of_its_labels() -> None:
    x = holed()
    km = fw.KMeans(2, missing="model").fit(x)
    by_model, by_labels = fw.silhouette(x, km, values=True), fw.silhouette(x[1:], km.labels_[1:], missing="model")
    assert by_model.mean == pytest.approx(by_labels.mean, rel=1e-13)
    assert np.isnan(by_model.values[0])
    scaled = fw.KMeans(2, missing="model", scale=True).fit(x)
    again = fw.silhouette((x - scaled.mean_) / scaled.scale_, scaled.labels_, missing="model")
    assert fw.silhouette(x, scaled).mean == pytest.approx(again.mean, rel=1e-12)


def test_a_sample_estimates_the_mean_and_threads_do_not_matter() -> None:
    x = holed(4000, blank=3)
    km = fw.KMeans(2, missing="model").fit(x)
    whole, some = fw.silhouette(x, km, sample_size=None), fw.silhouette(x, km, sample_size=300)
    assert abs(whole.mean - some.mean) < 5 * some.standard_error
    assert not np.isin([0, 1, 2], some.rows).any()
    assert fw.silhouette(x, km, sample_size=300, n_threads=3).mean == some.mean


def test_offsets_cost_no_digits() -> None:
    x, labels = holed(), np.arange(200) % 2
    near, far = (fw.silhouette(x + offset, labels, missing="model").mean for offset in (0.0, 1e8))
    assert far == pytest.approx(near, rel=1e-7)  # the rows themselves were rounded


def test_what_is_refused() -> None:
    x, labels = holed(), np.arange(200) % 2
    with pytest.raises(DataError, match="NaN"):
        fw.silhouette(x, labels)
    with pytest.raises(ParameterError, match="missing='mean'"):
        fw.silhouette(x, labels, missing="mean")
    with pytest.raises(DataError, match="whole rows"):
        fw.silhouette(x, labels, missing="model", metric="cosine")
    with pytest.raises(DataError, match=r"fw\.silhouette"):
        fw.squared_silhouette(x, fw.KMeans(2, missing="model").fit(x))
    with pytest.raises(DataError, match="fewer labels"):
        fw.silhouette(x, labels[:-1], missing="model")
    with pytest.raises(DataError, match="201 labels"):
        fw.silhouette(x, np.append(labels, 0), missing="model")


# ---------------------------------------------------------------- profiles


@pytest.mark.parametrize("scale", [False, True])
def test_a_profile_is_of_observed_cells(scale: bool) -> None:
    x = holed(blank=2)
    km = fw.KMeans(2, missing="model", scale=scale).fit(x)
    found = profile(km, fw.scan(x))
    assert found.rows.sum() == 198
    deviation = np.nanstd(x, axis=0)
    np.testing.assert_allclose(found.mean, np.nanmean(x, axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.deviation, deviation, rtol=1e-12)
    within = np.zeros(4)
    for c in range(2):
        mine = x[km.labels_ == c]
        np.testing.assert_allclose(found.means[c], np.nanmean(mine, axis=0), rtol=1e-12)
        within += np.nansum((mine - np.nanmean(mine, axis=0)) ** 2, axis=0)
        distances = km.transform(mine)[:, c]
        weights = (~np.isnan(mine)).sum(axis=1)
        assert found.spreads[c] == pytest.approx(np.sqrt(weights @ distances**2 / weights.sum()), rel=1e-12)
    total = np.nansum((x - np.nanmean(x, axis=0)) ** 2, axis=0)
    np.testing.assert_allclose(found.separation, 1 - within / total, rtol=1e-10)
    np.testing.assert_allclose(found.differences, (found.means - found.mean) / deviation, rtol=1e-10)
    expected = (
        1 - (within / deviation**2).sum() / (total / deviation**2).sum() if scale else 1 - within.sum() / total.sum()
    )
    assert found.between == pytest.approx(expected, rel=1e-10)
    assert found.silhouette == pytest.approx(fw.silhouette(x, km).mean, rel=1e-12)


@pytest.mark.parametrize("policy", ["drop", "mean"])
def test_a_profile_of_other_policies(policy: str) -> None:
    x = holed()
    km = fw.KMeans(2, missing=policy).fit(x)
    found = profile(km, fw.scan(x))
    kept = ~np.isnan(x).any(axis=1) if policy == "drop" else np.ones(200, bool)
    np.testing.assert_array_equal(found.rows, np.bincount(km.labels_[kept], minlength=2))
    np.testing.assert_allclose(found.mean, np.nanmean(x[kept], axis=0), rtol=1e-10)


def test_the_report_of_a_fit_with_missing_cells() -> None:
    """The plane, too, is drawn: missing cells are where the centres are, and a row with nothing observed is not there."""
    x = holed(60)
    page = as_html(cluster_report(fw.KMeans(2, missing="model").fit(x), fw.scan(x)))
    assert "missing cells" in page
    assert "principal components" in page
    assert "nan" not in page.lower().split("<svg", 1)[1]


@given(st.integers(0, 10_000), st.integers(1, 30), st.sampled_from([0.0, 1e8]), st.data())
def test_moments_of_groups_merge(seed: int, n: int, offset: float, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    x = holed(n, 3, 0.4, seed, blank=0) + offset
    labels = np.where(np.isnan(x).all(axis=1), -1, rng.integers(3, size=n)).astype(np.int32)
    weights = rng.integers(0, 3, n).astype(float) if seed % 2 else None
    at = data.draw(st.integers(0, n))

    def part(a: int, b: int) -> Any:
        block = DenseBlock(x[a:b], a, None if weights is None else weights[a:b])
        return GroupMoments.of_observed(block, labels[a:b], 3)

    whole, nothing = part(0, n), GroupMoments.empty(3, 3, observed=True)
    for merged in (part(0, at).merge(part(at, n)), whole.merge(nothing), nothing.merge(whole)):
        np.testing.assert_allclose(merged.cells, whole.cells)
        np.testing.assert_allclose(merged.weight, whole.weight)
        np.testing.assert_array_equal(merged.rows, whole.rows)
        np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(merged.squares, whole.squares, rtol=1e-7, atol=1e-9)
    w = np.ones(n) if weights is None else weights
    for c in range(3):
        for j in range(3):
            here = (labels == c) & ~np.isnan(x[:, j])
            total = w[here].sum()
            assert whole.cells[c, j] == total
            if total > 0:
                mean = w[here] @ x[here, j] / total
                np.testing.assert_allclose(whole.mean[c, j], mean, rtol=1e-13, atol=1e-13)
                squares = w[here] @ (x[here, j] - mean) ** 2
                np.testing.assert_allclose(whole.squares[c, j], squares, rtol=1e-6, atol=1e-8)


# ---------------------------------------------------------------- the inertia curve


def test_the_inertia_curve() -> None:
    x = holed(300)
    curve = fw.inertia_curve(x, range(1, 5), missing="model")
    assert (np.diff(curve.inertias) < 0).all()
    whole = np.nansum((x - np.nanmean(x, axis=0)) ** 2)
    assert curve.inertias[0] == pytest.approx(whole, rel=1e-10)
    km = fw.KMeans(2, missing="model", search="breathing").fit(x)
    assert curve.inertias[1] <= km.inertia_ * (1 + 1e-3)
    assert curve.silhouettes[1] == pytest.approx(fw.silhouette(x, km).mean, abs=0.02)
