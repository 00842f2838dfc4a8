"""The report on an autoencoder, and the profile that it is made of."""

import json

import numpy as np
import pytest

import foldwise as fw
from foldwise.report.autoencoder import autoencoder_report
from foldwise.report.codes import comparison_report
from foldwise.report.html import as_html
from foldwise.report.json import as_dict
from foldwise.report.plane import scatter
from foldwise.selection.code_profile import code_profile

QUICK = {"encoder": [8], "max_iter": 20, "random_state": 0}


def bent(n=300, d=6, seed=0):
    rng = np.random.default_rng(seed)
    turn = rng.uniform(-2, 2, n)
    curve = np.column_stack([turn, turn**2, np.sin(2 * turn)]) @ rng.normal(size=(3, d))
    return curve + 0.1 * rng.normal(size=(n, d))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [False, True])
def test_the_profile_adds_up_to_what_the_fit_has_recorded(dtype, scale):
    x = bent().astype(dtype)
    model = fw.Autoencoder(2, scale=scale, encoder=[16], max_iter=60, random_state=0).fit(x)
    assert model.best_epoch_ > 0
    found = code_profile(model, fw.scan(x))
    assert found.judged is not None
    # Variances of the columns times what is not explained of them add up to the error of the held-out rows.
    from foldwise.selection.code_profile import held_out_split

    block = next(iter(fw.scan(x).pieces())).load()
    which = held_out_split(model, fw.scan(x)).held_out(block)
    assert which.sum() == found.judged
    spread = found.pca.scale_ if scale else np.ones(x.shape[1])
    squares = (((x[which] - model.mean_) / spread) ** 2).sum(axis=0)
    for shares, error in ((found.explained, model.held_out_error_), (found.pca_explained, model.pca_error_)):
        assert ((1 - shares) * squares).sum() / found.judged == pytest.approx(error, rel=1e-3)
    np.testing.assert_allclose(found.codes, model.transform(x), rtol=1e-5, atol=1e-5)
    assert found.error == pytest.approx(model.reconstruction_error(x).mean(), rel=1e-6)


def test_other_rows_are_not_taken_for_the_held_out_ones():
    x = bent()
    model = fw.Autoencoder(2, **QUICK).fit(x)
    assert code_profile(model, fw.scan(x[::-1].copy())).judged is None
    report = autoencoder_report(model, fw.scan(x[::-1].copy()))
    assert "all rows, most of which the training has seen" in str(report)


def test_a_strange_row_is_the_most_novel_and_where_it_is_strange_is_told():
    x = bent()
    model = fw.Autoencoder(2, **QUICK).fit(x)
    strange = x.copy()
    strange[17, 4] += 30.0
    found = code_profile(model, fw.scan(strange))
    worst = found.novel[0]
    assert worst.number == 17
    assert 4 in worst.columns
    np.testing.assert_allclose(worst.values, strange[17, worst.columns])
    np.testing.assert_allclose(worst.expected, model.reconstruct(strange)[17, worst.columns], rtol=1e-6)
    assert [row.error for row in found.novel] == sorted((row.error for row in found.novel), reverse=True)
    text = str(autoencoder_report(model, fw.scan(strange)))
    assert "x4 " in text.split("where it differs most")[1].splitlines()[1]


def test_many_blocks_give_what_one_gives(pieces):
    x = bent(500)
    model = fw.Autoencoder(2, **QUICK).fit(x)
    one, many = code_profile(model, fw.scan(x)), code_profile(model, pieces(x, 64, known=True))
    assert [row.number for row in one.novel] == [row.number for row in many.novel]
    np.testing.assert_allclose(many.codes, one.codes, rtol=1e-6)
    np.testing.assert_array_equal(many.shown, np.arange(500))


def test_rows_without_weight_are_never_novel():
    x, weights = bent(), np.ones(300)
    x[5], weights[5] = 1e4, 0.0
    source = fw.scan(x, weights=weights)
    model = fw.Autoencoder(2, **QUICK).fit(source)
    assert 5 not in [row.number for row in code_profile(model, source).novel]


def test_many_columns_sparse_rows_and_few_rows():
    import scipy.sparse as sp

    wide = bent(200, 60)
    text = str(autoencoder_report(fw.Autoencoder(2, **QUICK).fit(wide), fw.scan(wide)))
    assert "Of 60 columns, the 20 in which codes and PCA differ most" in text
    sparse = sp.random(150, 40, density=0.2, random_state=0, format="csr")
    model = fw.Autoencoder(2, **QUICK).fit(sparse)
    report = autoencoder_report(model, fw.scan(sparse))
    assert "The most novel rows" in as_html(report)
    assert "What the codes tell of each column" not in as_html(report)
    few = bent(12)
    report = autoencoder_report(fw.Autoencoder(1, **QUICK).fit(few), fw.scan(few))
    assert "no rows were held out" in str(report)
    assert "of the variance of rows of the training" in str(report)


@pytest.mark.parametrize("missing", ["error", "model"])
def test_a_model_that_is_pca_says_so(missing):
    x = np.random.default_rng(1).normal(size=(60, 2)) @ np.random.default_rng(2).normal(size=(2, 4))
    x += 0.5 * np.random.default_rng(3).normal(size=(60, 4))
    if missing == "model":
        x[np.random.default_rng(4).random(x.shape) < 0.1] = np.nan
    model = fw.Autoencoder(2, missing=missing, learning_rate=1e-30, **QUICK).fit(x)
    assert model.best_epoch_ == 0
    text = str(autoencoder_report(model, fw.scan(x)))
    assert "which is PCA" in text
    assert "over all rows;" in text
    found = code_profile(model, fw.scan(x))
    assert found.judged is None
    np.testing.assert_allclose(found.explained, found.pca_explained, rtol=1e-4, atol=1e-6)


def test_json_and_page_of_a_comparison():
    found = fw.compare_codes(bent(), [1, 2], autoencoder=fw.Autoencoder(**QUICK))
    report = comparison_report(found, fw.scan(bent()))
    assert json.dumps(as_dict(report))
    page = as_html(report)
    assert "as good as components" in page
    assert page.count("<circle") >= 2


def test_planes_of_few_and_of_many_rows():
    rng = np.random.default_rng(0)
    places, groups = rng.normal(size=(300, 2)), rng.integers(-1, 2, 300)
    drawn = scatter(places, groups, ["a", "b & c"], "x", "y")
    assert drawn.count("<circle") == 300 + 2
    assert "b &amp; c" in drawn
    many = scatter(rng.normal(size=(5000, 2)), None, [], "x", "y")
    assert "<circle" not in many
    assert many.count("<path") >= 5
    assert "nan" not in scatter(np.zeros((5, 2)), None, [], "x", "y")
