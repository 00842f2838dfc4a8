"""Tables as people have them, prepared: what is used, what describes, what is carried along; kept and applied by models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import foldwise as fw
from foldwise.errors import DataError, FoldwiseWarning, ParameterError
from foldwise.report.write_rows import write_transformed


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    n = 120
    group = np.repeat([0, 1, 2], n // 3)
    return pd.DataFrame(
        {
            "key": [f"k{i:03}" for i in range(n)],
            "height": np.round(150 + 15 * group + rng.normal(0, 2, n), 1),
            "weight": np.round(50 + 12 * group + rng.normal(0, 2, n), 1),
            "pet": np.array(["cat", "dog", "fish"])[np.where(rng.random(n) < 0.9, group, (group + 1) % 3)],
            "member": np.where(rng.random(n) < 0.5, "yes", "no"),
            "joined": pd.date_range("2020-01-01", periods=n, freq="D").strftime("%Y-%m-%d"),
            "site": "north",
        }
    )


@pytest.fixture
def path(table: pd.DataFrame, tmp_path: Path) -> str:
    place = tmp_path / "people.csv"
    table.to_csv(place, index=False)
    return str(place)


def roles(prepared: Any) -> dict[str, str]:
    return {column.name: column.role for column in prepared.recipe.columns}


def test_numbers_are_used_and_the_rest_has_a_role(path: str) -> None:
    prepared = fw.prepare(path)
    assert prepared.names == ("height", "weight")
    assert roles(prepared) == {
        "key": "identifier",
        "height": "used",
        "weight": "used",
        "pet": "describing",
        "member": "describing",
        "joined": "left out",
        "site": "left out",
    }
    assert prepared.n_rows == 120


def test_files_and_frames_give_the_same_rows(table: pd.DataFrame, path: str, tmp_path: Path) -> None:
    wanted = fw.KMeans(3).fit(fw.prepare(path)).cluster_centers_
    table.to_parquet(tmp_path / "t.parquet")
    for data in (table, pl.from_pandas(table), tmp_path / "t.parquet", f"SELECT * FROM '{path}'"):
        np.testing.assert_array_equal(fw.KMeans(3).fit(fw.prepare(data)).cluster_centers_, wanted)


def test_prepare_auto_is_the_same(table: pd.DataFrame) -> None:
    model = fw.KMeans(3, prepare="auto").fit(table)
    np.testing.assert_array_equal(model.labels_, fw.KMeans(3).fit(fw.prepare(table)).labels_)
    np.testing.assert_array_equal(model.predict(table), model.labels_)
    rows = table[["height", "weight"]].to_numpy()  # an array is taken as it is
    np.testing.assert_array_equal(fw.KMeans(3, prepare="auto").fit(rows).cluster_centers_, model.cluster_centers_)


def test_what_the_user_says_goes_first(path: str) -> None:
    prepared = fw.prepare(path, exclude="weight", labels=["pet"], ids="member", as_={"joined": "month"})
    assert prepared.names == ("height", "joined")
    assert roles(prepared) | {"key": "identifier", "pet": "label", "member": "identifier"} == roles(prepared)
    months = np.concatenate([piece.load().dense()[:, 1] for piece in prepared.pieces()])
    assert months[:2].tolist() == [1.0, 1.0]
    assert months.max() == 4.0
    days = fw.prepare(path, columns=["joined"], as_={"joined": "number"})
    values = np.concatenate([piece.load().dense()[:, 0] for piece in days.pieces()])
    assert values[0] == 18262  # days from 1970-01-01 to 2020-01-01
    np.testing.assert_array_equal(np.diff(values), 1.0)
    assert fw.prepare(path, columns=["weight"]).names == ("weight",)
    assert fw.prepare(path, as_={"height": "category"}).names == ("weight",)


def test_encoded_categories_are_used_in_the_geometry_of_famd(table: pd.DataFrame, path: str) -> None:
    prepared = fw.prepare(path, categories="encode")
    assert prepared.names == ("height", "weight", "pet=cat", "pet=dog", "pet=fish", "member=false", "member=true")
    pca = fw.PCA().fit(prepared)
    assert pca.explained_variance_.sum() == pytest.approx(2 + 2 + 1)  # numbers, and levels less one
    scores = pca.transform(table)
    np.testing.assert_allclose(scores, pca.transform(path), atol=1e-12)
    np.testing.assert_allclose(scores, pca.transform(prepared), atol=1e-12)


def test_unseen_levels_are_told_and_neutral(table: pd.DataFrame) -> None:
    pca = fw.PCA(missing="mean").fit(fw.prepare(table, categories="encode", exclude="member"))
    new = table.head(2).copy()
    new["pet"] = ["newt", None]
    with pytest.warns(FoldwiseWarning, match=r"pet: 1 cell with levels that were not there in the fit \('newt'\)"):
        scores = pca.transform(new)
    known = (new[["height", "weight"]].to_numpy() - pca.mean_[:2]) / pca.scale_[:2]
    np.testing.assert_allclose(scores, known @ pca.components_[:, :2].T, atol=1e-12)


def test_rare_levels_are_pooled_and_told(table: pd.DataFrame) -> None:
    table.loc[:1, "pet"] = ["emu", "newt"]
    prepared = fw.prepare(table, categories="encode", rare=0.02)
    assert "pet=other" in prepared.names
    assert any("rare levels pooled" in note.text for note in prepared.recipe.notes)
    assert "pet=other" not in fw.prepare(table, categories="encode", rare=0).names


def test_the_recipe_is_saved_with_the_model(path: str, table: pd.DataFrame, tmp_path: Path) -> None:
    for options in ({}, {"categories": "encode"}, {"as_": {"joined": "weekday"}}):
        model = fw.KMeans(3).fit(fw.prepare(path, **options))
        fw.save(model, tmp_path / "m.fw")
        again = fw.load(tmp_path / "m.fw")
        assert again.recipe_ == model.recipe_
        np.testing.assert_array_equal(again.predict(path), model.labels_)
        np.testing.assert_array_equal(again.predict(table), model.labels_)


def test_where_and_weights(path: str, table: pd.DataFrame) -> None:
    some = fw.prepare(path, where="pet <> 'cat' AND height > 160", weights="weight")
    kept = table[(table["pet"] != "cat") & (table["height"] > 160)]
    model = fw.KMeans(2).fit(some)
    wanted = fw.KMeans(2).fit(kept[["height"]].to_numpy(), sample_weight=kept["weight"].to_numpy())
    np.testing.assert_array_equal(model.labels_, wanted.labels_)
    assert roles(some)["weight"] == "weight"


def test_missing_cells_go_the_way_of_the_model(table: pd.DataFrame, tmp_path: Path) -> None:
    text = table.astype({"height": object})
    text.loc[[3, 50], "height"] = ["n/a", "?"]
    text.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match="missing='model'"):
        fw.KMeans(3).fit(fw.prepare(tmp_path / "t.csv"))
    with_gaps = table[["height", "weight"]].to_numpy().copy()
    with_gaps[[3, 50], 0] = np.nan
    for policy in ("drop", "mean", "model"):
        model = fw.KMeans(3, missing=policy).fit(fw.prepare(tmp_path / "t.csv"))
        np.testing.assert_array_equal(model.labels_, fw.KMeans(3, missing=policy).fit(with_gaps).labels_)
        np.testing.assert_array_equal(model.predict(tmp_path / "t.csv"), model.labels_)


def test_errors_say_what_to_do(path: str, table: pd.DataFrame) -> None:
    with pytest.raises(DataError, match=r"no column 'hight'.*'height'"):
        fw.prepare(path, exclude=["hight"])
    with pytest.raises(DataError, match=r"pet.*not a number.*categories='encode'"):
        fw.prepare(path, columns=["pet"])
    with pytest.raises(DataError, match=r"joined.*not a number.*as_="):
        fw.prepare(path, columns=["joined"])
    with pytest.raises(ParameterError, match="a column can be number"):
        fw.prepare(path, as_={"pet": "thing"})
    with pytest.raises(ParameterError, match="'describe' or 'encode'"):
        fw.prepare(path, categories="use")
    with pytest.raises(ParameterError, match=r"prepare has no such option.*categories"):
        fw.prepare(path, headr=True)
    with pytest.raises(DataError, match=r"no column of numbers is left.*categories='encode'"):
        fw.prepare(table[["pet", "member"]])
    model = fw.KMeans(2).fit(fw.prepare(path))
    with pytest.raises(DataError, match="no column 'height'"):
        model.predict(table.drop(columns="height"))


def test_models_pickle_with_their_recipe(path: str) -> None:
    import pickle

    model = fw.KMeans(2, missing="model").fit(fw.prepare(path, categories="encode"))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(path), model.labels_)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "jsonl", "parquet"])
def test_names_that_differ_by_case_are_written(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(5)
    table = pd.DataFrame({name: rng.normal(size=50) for name in ("x", "X", 'a"b', "c,d", "it's")})
    table["g"], table["G"] = ["it's, so", 'say "hi"'] * 25, [None, "b"] * 25
    source = fw.prepare(table)
    model = fw.KMeans(2, random_state=0).fit(source)
    out = tmp_path / f"out.{kind}"
    assert write_transformed(model, source, out, keep="all") == 50
    if kind == "parquet":
        table = table.rename(columns={"X": "X_", "G": "G_"})
        back = pd.read_parquet(out)
    elif kind == "jsonl":
        back = pd.read_json(out, lines=True, precise_float=True)
    else:
        back = pd.read_csv(out, sep="\t" if kind == "tsv" else ",")
    assert list(back.columns)[: 1 + len(table.columns)] == ["row", *table.columns]
    for name in table.columns:
        if table[name].dtype == float:
            assert np.array_equal(back[name], table[name])
        else:
            assert back[name].fillna("").tolist() == table[name].fillna("").tolist()
    assert np.array_equal(back.cluster, model.labels_)
