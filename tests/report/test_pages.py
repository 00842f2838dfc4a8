"""The pages of the commands: they begin with the answer, end with the details, and every picture has words."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import foldwise as fw
from foldwise.report.autoencoder import autoencoder_report
from foldwise.report.choice import choice_report
from foldwise.report.cluster import cluster_report
from foldwise.report.distribution import distribution_report, verdict
from foldwise.report.ensemble import ensemble_report
from foldwise.report.html import as_html
from foldwise.report.mixture import mixture_report
from foldwise.report.pca import pca_report
from foldwise.report.select import select_report
from foldwise.report.stability import with_stability
from foldwise.report.text import as_text
from foldwise.report.values import Chart, Group

WINE = Path(__file__).parents[2] / "examples" / "wine.csv"


@pytest.fixture(scope="module")
def wine():
    return fw.scan(WINE, columns="numeric")


MADE = {
    "pca": lambda x: pca_report(fw.PCA(scale=True).fit(x), x),
    "cluster": lambda x: cluster_report(fw.KMeans(3, scale=True).fit(x), x),
    "mixture": lambda x: mixture_report(fw.GaussianMixture(3, scale=True).fit(x), x),
    "ensemble": lambda x: ensemble_report(fw.ClusterEnsemble(3, scale=True).fit(x), x),
    "select": lambda x: select_report(fw.FeatureSelector(n_features=3, scale=True).fit(x), x),
    "autoencoder": lambda x: autoencoder_report(fw.Autoencoder(2, scale=True, max_iter=3).fit(x), x),
    "choice": lambda x: choice_report(fw.choose_clusters(x, range(1, 5), scale=True), x, scale=True),
}


@pytest.fixture(scope="module", params=MADE)
def report(request, wine):
    if request.param == "autoencoder":
        pytest.importorskip("torch")
    return MADE[request.param](wine)


def charts(report):
    parts = [one for part in report.parts for one in (part.parts if isinstance(part, Group) else [part])]
    return [part for part in parts if isinstance(part, Chart)]


def test_the_answer_comes_first_on_a_page_and_text_stays_as_it_is(report):
    assert 1 <= len(report.lead) <= 6
    page, text = as_html(report), as_text(report)
    for sentence in report.lead:
        assert sentence[0].isupper() or sentence[0].isdigit()
        assert sentence.endswith((".", ").")), sentence
        assert "nan" not in sentence
    assert '<div class="lead">' in page
    assert report.lead_only == "page"
    assert text == as_text(replace(report, lead=[]))
    assert page.index('class="lead"') < page.index("<svg")


def test_every_picture_has_words(report):
    page = as_html(report)
    labels = re.findall(r'<div class="figure" role="img" aria-label="([^"]+)">\s*<svg', page)
    assert len(labels) == page.count("<svg")
    assert all(len(label) > 15 for label in labels)
    assert not re.search(r'<svg[^>]*role="img"(?![^>]*aria-label)', page)


def test_details_are_collapsed_and_last(report):
    page_parts = report.for_("page")[1]
    details = [part.collapsed for part in page_parts]
    assert details == sorted(details)
    if report.title != "How many clusters?":
        assert page_parts[-1].title == "What ran"
        assert page_parts[-1].collapsed
    for part in page_parts:
        if getattr(part, "title", "") in ("Convergence", "Training", "Criteria", "BIC of all fits"):
            assert part.collapsed


def test_no_criterion_is_a_headline(report):
    names = {fact.name for fact in report.for_("page")[0]}
    assert not names & {"BIC", "AIC", "ICL", "log-likelihood", "inertia"}


def test_names_from_the_data_are_escaped_and_long_ones_kept_out_of_sentences():
    rng = np.random.default_rng(0)
    pd = pytest.importorskip("pandas")
    name = "<script>alert(1)</script>" + 10_000 * "x"
    rows = pd.DataFrame(rng.standard_normal((60, 3)) + 9 * (np.arange(60) < 30)[:, None], columns=[name, "b", "c"])
    source = fw.scan(rows)
    for made in (cluster_report(fw.KMeans(2).fit(source), source), pca_report(fw.PCA().fit(source), source)):
        assert all(len(sentence) < 400 for sentence in made.lead)
        assert "<script>alert" not in as_html(made)


# ---------------------------------------------------------------- what the sentences say


def test_the_sentences_on_clusters(wine):
    lead = MADE["cluster"](wine).lead
    assert lead[0] == "178 rows fall into 3 clusters, which differ most in flavanoids and od280_od315_of_diluted_wines."
    assert lead[1].startswith("The clusters overlap in part (mean silhouette 0.28")
    apart = fw.scan(np.repeat([[0.0, 1.0], [50.0, 1.5]], 20, axis=0) + np.arange(40)[:, None] % 7 / 10)
    assert "The clusters are far apart" in cluster_report(fw.KMeans(2).fit(apart), apart).lead[1]
    assert cluster_report(fw.KMeans(1).fit(apart), apart).lead[0] == "All 40 rows are in one cluster."


def test_units_that_decide_the_distances_are_told(wine):
    assert "proline" in cluster_report(fw.KMeans(3).fit(wine), wine).lead[-1]
    assert not any("--scale" in sentence for sentence in MADE["cluster"](wine).lead)


def test_stability_adds_its_sentence(wine):
    model = fw.KMeans(3, scale=True).fit(wine)
    found = fw.stability(model, wine, n_repeats=10)
    made = with_stability(cluster_report(model, wine), found)
    assert made.lead[-1] == found.sentence
    assert found.sentence in as_text(made)
    assert as_html(made).count("with a confidence of") == 1


def test_the_sentences_on_components(wine):
    lead = MADE["pca"](wine).lead
    assert lead[0] == "The first two components hold 55.4 % of the variance, the first alone 36.2 %."
    assert lead[1].startswith("The first goes mostly with flavanoids, total_phenols and")


@pytest.mark.parametrize(
    ("family", "rows", "words"),
    [
        ("normal", 300, "The data do not contradict a normal distribution (p ="),
        ("exponential", 300, "An exponential distribution does not fit (p "),
        ("normal", 12, "With only 12 values that says little."),
    ],
)
def test_a_p_value_has_a_verdict(family, rows, words):
    fit = fw.fit_distribution(np.random.default_rng(4).normal(10.0, 1.0, rows), family)
    goodness = fit.goodness_of_fit()
    said = verdict(fit, goodness)
    assert words in said[0]
    points = 100 * goodness.statistics["Kolmogorov-Smirnov"]
    assert f"by at most {points:.2g} percentage points" in said[-1]
    made = distribution_report(fit, goodness)
    assert list(made.lead) == said
    assert {fact.name: fact.text for fact in made.for_("page")[0]}["does it fit?"] in ("no", "not contradicted")
    assert verdict(fit, None) == []


def test_many_values_show_small_deviations():
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.normal(0, 1, 4500), rng.normal(0, 1, 500) + 1.5])
    fit = fw.fit_distribution(values, "normal")
    said = verdict(fit, fit.goodness_of_fit())
    assert said[0].startswith("A normal distribution does not fit")
    assert "values even small deviations show: the share" in said[1]
    counts = fw.fit_distribution(rng.poisson(3.0, 4000), "poisson")
    assert "ounts typically differ from those expected by" in verdict(counts, counts.goodness_of_fit())[-1]


def test_a_mixture_says_how_sure_rows_are(wine):
    made = MADE["mixture"](wine)
    assert "of the rows" in made.lead[1] or made.lead[1].startswith("Every row belongs")
    assert {"clusters", "rows clearly in one", "uncertain rows"} <= {fact.name for fact in made.for_("page")[0]}
    assert "BIC" in {fact.name for fact in made.for_("text")[0]}


def test_an_ellipse_stays_in_its_picture(wine):
    """Columns of very different spreads, and one row far out, whose component is wide."""
    rng = np.random.default_rng(3)
    rows = np.vstack([rng.standard_normal((80, 2)), rng.standard_normal((40, 2)) * 12 + 30])
    source = fw.scan(rows * [1000.0, 1.0])
    page = as_html(mixture_report(fw.GaussianMixture(2).fit(source), source))
    drawing = next(one for one in re.findall(r"<svg.*?</svg>", page, re.S) if "<polygon" in one)
    width, height = map(float, re.match(r'<svg viewBox="0 0 ([\d.]+) ([\d.]+)"', drawing).groups())
    polygons = re.findall(r'<polygon points="([^"]+)"', drawing)
    assert len(polygons) == 2
    for polygon in polygons:
        places = np.array([place.split(",") for place in polygon.split()], dtype=float)
        assert places.min() > 10
        assert (places < [width - 10, height - 36]).all()
