"""fw.report and .report of every model and result, and the rows that models remember."""

from __future__ import annotations

import copy
import gc
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import foldwise as fw
from foldwise.errors import DataError, FoldwiseWarning, OutputError, ParameterError
from foldwise.report.values import Report

from .every import MODELS, RESULTS, ROWS, made
from .explorations import blobs


@pytest.mark.parametrize("name", [*MODELS, *RESULTS])
def test_every_model_and_result_has_a_report(name: str, tmp_path: Path) -> None:
    found = made(name)
    report = fw.report(found)
    assert isinstance(report, Report)
    assert report.title
    assert str(report)
    written = found.report(tmp_path / "r.html")
    assert written.title == report.title
    page = (tmp_path / "r.html").read_text()
    assert page.lstrip().startswith("<!doctype html>")
    assert report.title.split(",")[0] in page
    assert "hint: " not in str(report)  # those are for the command line


def test_what_the_reports_say() -> None:
    assert fw.report(made("PCA")).title == "Principal components"
    assert "3 clusters of 60 rows" in fw.report(made("KMeans")).title
    assert "by KernelKMeans" in fw.report(made("KernelKMeans")).title
    assert "height" in str(fw.report(made("FeatureSelector")))
    assert "income" in str(fw.report(made("BisectingKMeans")))
    assert "3" in fw.report(made("ClusterChoice")).facts[0].text
    dip = fw.dip_test(np.concatenate([np.linspace(0, 1, 60), np.linspace(9, 10, 60)]))
    assert "more than one peak" in str(fw.report(dip))
    assert "One peak is enough" in str(fw.report(fw.dip_test(np.linspace(0, 1, 120))))
    choice = fw.report(made("MixtureChoice"))
    assert "cluster" in choice.title  # with the best model, as its rows are there


def test_exploration(tmp_path: Path) -> None:
    found = blobs(3)
    report = found.report(tmp_path / "r.html")
    assert len(report.lead) == 5
    assert (tmp_path / "r.html").stat().st_size > 10_000
    shown = found._repr_html_()
    assert shown is not None
    assert shown.count("<li>") == 5


def test_save_writes_the_page(tmp_path: Path) -> None:
    fw.report(made("KMeans")).save(tmp_path / "a.html")
    fw.report(made("KMeans"), path=tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    old = tmp_path / "folder"
    old.mkdir()
    with pytest.raises(OutputError):
        made("KMeans").report(old)
    assert old.is_dir()


# ---------------------------------------------------------------- rows


@pytest.fixture
def rows() -> np.ndarray[Any, Any]:
    return np.array(ROWS)


def test_rows_that_are_gone(rows: np.ndarray[Any, Any]) -> None:
    model = fw.KMeans(3, random_state=0).fit(rows.copy())
    gc.collect()
    with pytest.raises(DataError, match=r'not in memory any more. Give them: model.report\("r.html", X\)'):
        model.report()
    assert "3 clusters of 60 rows" in model.report(X=rows).title
    assert "3 clusters of 60 rows" in fw.report(model, rows).title


def test_the_model_does_not_keep_rows_alive(rows: np.ndarray[Any, Any]) -> None:
    import weakref

    own = rows.copy()
    there = weakref.ref(own)
    model = fw.PCA(2).fit(own)
    assert model.report().title
    del own
    gc.collect()
    assert there() is None


def test_lists_are_not_remembered(rows: np.ndarray[Any, Any]) -> None:
    with pytest.raises(DataError, match="not in memory any more"):
        fw.PCA(2).fit(rows.tolist()).report()


def test_rows_that_have_changed(rows: np.ndarray[Any, Any], tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, rows)
    model = fw.KMeans(3, random_state=0).fit(str(path))
    assert model.report().title
    np.save(path, rows[:50])
    with pytest.raises(DataError, match="there are 50 rows, but 60 in the fit"):
        model.report()
    path.unlink()
    with pytest.raises(DataError, match="is not there any more"):
        model.report()
    with pytest.raises(DataError, match="there are 40 rows, but 60 in the fit"):
        model.report(X=rows[:40])
    with pytest.raises(DataError, match="features"):
        model.report(X=rows[:, :2])


def test_files_and_their_sources_are_remembered(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    ROWS.assign(name=[f"row {i}" for i in range(60)]).to_csv(path, index=False)
    assert fw.PCA(2, prepare="auto").fit(path).report().title
    model = fw.KMeans(3, random_state=0).fit(fw.prepare(path))  # nobody else keeps the source
    gc.collect()
    assert "name" in "".join(model.report().data)


def test_what_explore_makes() -> None:
    """Its models, and the one for new rows, have reports of their own."""
    found = fw.explore(ROWS)
    assert found.clusters is not None
    assert found.kmeans is not None
    assert "3 clusters of 60 rows" in found.kmeans.report(X=found.source).title
    assert "3 clusters of 60 rows" in found.model.report(X=ROWS).title
    shown = found.model._repr_html_()
    assert shown is not None
    assert "ExplorationModel: " in shown


def test_weights_are_remembered_too() -> None:
    weights = np.arange(1.0, 61.0)
    model = fw.KMeans(3, random_state=0).fit(ROWS, sample_weight=weights)
    table = next(part for part in model.report().parts if getattr(part, "title", "") == "The clusters")
    column = next(column for column in table.columns if column.name == "weight")
    assert sum(column.values) == pytest.approx(weights.sum())
    del weights
    gc.collect()
    with pytest.raises(DataError, match="not in memory any more"):
        model.report()


def test_copies_do_not_remember(tmp_path: Path) -> None:
    model = fw.KMeans(3, random_state=0).fit(ROWS)
    fw.save(model, tmp_path / "m.fw")
    for other in (
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        copy.copy(model),
        fw.load(tmp_path / "m.fw"),
    ):
        assert "_fitted_rows" not in vars(other)
        with pytest.raises(DataError, match="Give them"):
            other.report()
        assert other.report(X=ROWS).title == model.report().title
    with pytest.raises(NotFittedError):
        clone(model).report()


def test_models_that_grew_by_parts_tell_of_themselves() -> None:
    model = fw.PCA(2).fit(ROWS)
    with pytest.warns(FoldwiseWarning, match="starts anew"):
        model.partial_fit(ROWS)
    assert "_fitted_rows" not in vars(model)
    assert model.report().title == "PCA: 2 components"
    assert "weight" in str(model.report())
    grown = fw.MiniBatchKMeans(3, random_state=0).partial_fit(np.array(ROWS))
    with pytest.raises(DataError, match="Give them"):
        grown.report()
    assert "3 clusters of 60 rows" in grown.report(X=np.array(ROWS)).title


# ---------------------------------------------------------------- wrong arguments


def test_rows_in_place_of_a_path() -> None:
    with pytest.raises(
        ParameterError, match=r"the first argument is the file to write, but is DataFrame. Give rows as X="
    ):
        made("PCA").report(ROWS)


@pytest.mark.parametrize("other", [ROWS, 3, "iris.csv", object()])
def test_what_it_does_not_take(other: Any) -> None:
    with pytest.raises(ParameterError, match=r"fw.report takes a fitted model, or a result of Foldwise"):
        fw.report(other)


def test_models_that_are_not_fitted() -> None:
    with pytest.raises(NotFittedError):
        fw.PCA().report()


def test_names_stay_inert(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    table = ROWS.rename(columns={"height": evil}).assign(**{'"><img src=x>': 1.0 * np.arange(60)})
    model = fw.KMeans(3, random_state=0).fit(table)
    found = fw.fit_distribution(pd.Series(ROWS["height"], name=evil), "normal")
    for one in (model, fw.PCA(2).fit(table), fw.FeatureSelector(3).fit(table), found):
        page = one.report(tmp_path / "r.html") and (tmp_path / "r.html").read_text()
        shown = one._repr_html_() or ""
        for text in (page, shown):
            assert evil not in text
            assert "<img" not in text
    assert "&lt;script&gt;" in (model._repr_html_() or "")
