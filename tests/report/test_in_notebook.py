"""What notebooks show of models and results, asked for as Jupyter does."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import sklearn
from IPython.core.formatters import DisplayFormatter

import foldwise as fw
from foldwise.report import in_notebook

from .every import MODELS, RESULTS, ROWS, made


def shown(thing: Any) -> dict[str, str]:
    found: dict[str, str] = DisplayFormatter().format(thing)[0]
    return found


@pytest.mark.parametrize("name", [*MODELS, *RESULTS])
def test_a_compact_element(name: str) -> None:
    thing = made(name)
    found = shown(thing)
    assert found["text/plain"] == repr(thing)  # as it was
    html = found["text/html"]
    assert html.startswith('<div class="foldwise-brief">')
    assert html.count("<table>") <= 1
    assert html.count("<svg") <= 1
    assert len(html) < 60_000
    began = time.perf_counter()
    for _ in range(3):
        thing._repr_html_()
    assert (time.perf_counter() - began) / 3 < 0.05


@pytest.mark.parametrize("name", MODELS)
def test_no_rows_are_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    thing = made(name)
    from foldwise.fold.passes import Passes

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a pass over the rows")

    for method in ("fold", "rows", "each", "in_order"):
        monkeypatch.setattr(Passes, method, refuse)
    assert thing._repr_html_().startswith("<div")


def test_what_is_in_it() -> None:
    html = shown(made("KMeans"))["text/html"]
    assert "KMeans: 3 clusters" in html
    assert "60 rows, 4 columns, scaled columns" in html
    assert "33.3 %" in html
    assert html.count("<rect") == 3
    means = ROWS.groupby(made("KMeans").labels_).mean()
    for value in means["height"]:
        assert f"{value:.4g}" in html
    mixture = shown(made("GaussianMixture"))["text/html"]
    assert "3 Gaussians" in mixture
    votes = shown(made("ClusterChoice"))["text/html"]
    assert "3 clusters" in votes


def test_scikit_learns_diagram_before_the_fit() -> None:
    html = shown(fw.KMeans(3))["text/html"]
    assert "foldwise-brief" not in html
    assert "sk-" in html


def test_only_text_if_scikit_learn_is_told_so() -> None:
    with sklearn.config_context(display="text"):
        assert set(shown(made("PCA"))) == {"text/plain"}
        assert set(shown(fw.PCA())) == {"text/plain"}


def test_never_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fw.KMeans(3, random_state=0).fit(ROWS)
    del model.cluster_weights_
    assert shown(model)["text/html"] == "<pre>KMeans(n_clusters=3, random_state=0)</pre>"


def test_a_model_that_grew_by_parts() -> None:
    model = fw.MiniBatchKMeans(3, random_state=0)
    model.partial_fit(np.array(ROWS))
    assert "MiniBatchKMeans: 3 clusters" in shown(model)["text/html"]
    assert "PCA: 2 components" in shown(fw.PCA(2).partial_fit(ROWS))["text/html"]


def test_large_tables_are_cut() -> None:
    matrix = fw.LabelledMatrix(
        np.zeros((5000, 300)), tuple(f"r{i}" for i in range(5000)), tuple(f"c{i}" for i in range(300))
    )
    html = matrix._repr_html_()
    assert html is not None
    assert html.count("<tr>") == 11
    assert "more rows" in html
    began = time.perf_counter()
    matrix._repr_html_()
    assert time.perf_counter() - began < 0.05


def test_many_clusters() -> None:
    rows = np.random.default_rng(0).normal(size=(400, 3))
    html = fw.KMeans(40, search="none", max_iter=300, random_state=0).fit(rows)._repr_html_()
    assert html is not None
    assert "30 more rows" in html


def test_brief_of_other_things() -> None:
    assert in_notebook.brief(object()) is None
