"""A recipe reads the same table alike, whichever file or frame holds it; and what users ask of columns is done or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import foldwise as fw
from foldwise.errors import DataError
from foldwise.prepare.prepared import describing


def rows_of(source: Any) -> Any:
    return np.concatenate([piece.load().unchecked for piece in source.pieces()])


def written(path: Path, header: str, rows: list[str]) -> str:
    path.write_text("\n".join([header, *rows]) + "\n")
    return str(path)


def test_dask_frames_are_fitted_as_they_are_and_not_prepared() -> None:
    dd = pytest.importorskip("dask.dataframe")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "y": rng.normal(size=60)})
    there = dd.from_pandas(frame, npartitions=2)
    model = fw.KMeans(2, prepare="auto", random_state=0).fit(there)
    wanted = fw.KMeans(2, random_state=0).fit(frame)
    np.testing.assert_array_equal(model.cluster_centers_, wanted.cluster_centers_)
    prepared = fw.KMeans(2, prepare="auto", random_state=0).fit(frame)
    np.testing.assert_array_equal(prepared.predict(there), prepared.labels_)
    with pytest.raises(DataError, match=r"Dask collection.*x\.compute\(\)"):
        fw.prepare(there)


@pytest.fixture
def typed() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    n = 60
    return pd.DataFrame(
        {
            "x": np.round(rng.normal(size=n), 3),
            "zip": [10115, 10117, 10119] * (n // 3),
            "ok": [True, False] * (n // 2),
            "joined": pd.date_range("2024-01-01 05:00", periods=n, freq="25h"),
        }
    )


def test_a_recipe_fitted_to_types_reads_them_as_text_alike(typed: pd.DataFrame, tmp_path: Path) -> None:
    typed.to_parquet(tmp_path / "t.parquet")
    typed.to_csv(tmp_path / "t.csv", index=False)
    recipe = fw.prepare(tmp_path / "t.parquet", categories="encode", as_={"joined": "hour"}).recipe
    wanted = rows_of(recipe.open(tmp_path / "t.parquet"))
    again = recipe.open(tmp_path / "t.csv")
    assert again.unseen() == []
    np.testing.assert_array_equal(rows_of(again), wanted)
    other = typed.assign(ok=["yes", "no"] * 30, x=[f"{value:.3f}".replace(".", ",") for value in typed["x"]])
    other.to_csv(tmp_path / "o.csv", index=False, sep=";")
    again = recipe.open(tmp_path / "o.csv")
    assert again.unseen() == []
    np.testing.assert_array_equal(rows_of(again), wanted)


def test_missing_cells_of_text_are_missing_for_a_recipe_fitted_to_types(typed: pd.DataFrame, tmp_path: Path) -> None:
    recipe = fw.prepare(typed, categories="encode").recipe
    holes = typed.astype(object)
    for row, name in enumerate(("x", "zip", "ok")):
        holes.loc[row, name] = None
    holes.to_csv(tmp_path / "t.csv", index=False, na_rep="NA")
    source = recipe.open(tmp_path / "t.csv")
    assert source.unseen() == []
    found, wanted = rows_of(source), rows_of(recipe.open(typed))
    np.testing.assert_array_equal(np.isnan(found[:3]).sum(axis=1), [1, 3, 2])
    np.testing.assert_array_equal(found[3:], wanted[3:])
    written(tmp_path / "w.csv", "x,zip,ok", ["1.5,10115,True", "abc,10117,False", *["2.5,10117,False"] * 20])
    with pytest.raises(DataError):
        rows_of(recipe.open(tmp_path / "w.csv"))


def test_zeros_and_ones_are_the_same_levels_as_true_and_false(typed: pd.DataFrame) -> None:
    recipe = fw.prepare(typed, categories="encode").recipe
    ones = typed.assign(ok=typed["ok"].astype(int))
    for fitted, new in ((recipe, ones), (fw.prepare(ones, categories="encode").recipe, typed)):
        source = fitted.open(new)
        assert source.unseen() == []
        np.testing.assert_array_equal(rows_of(source), rows_of(recipe.open(typed)))


def test_codes_with_a_point_are_the_levels_of_whole_numbers(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(60) % 7 + 0.5, "class": [1.0, 2.0, 3.0] * 20})
    frame.loc[0, "class"] = np.nan  # so that pandas writes 1.0
    frame.to_csv(tmp_path / "c.csv", index=False)
    frame.to_parquet(tmp_path / "c.parquet")
    ints = frame.astype({"class": "Int64"})
    sources = [fw.prepare(data, categories="encode") for data in (tmp_path / "c.csv", tmp_path / "c.parquet", ints)]
    for source in sources:
        assert source.names == ("x", "class=1", "class=2", "class=3")
        for other in (tmp_path / "c.csv", tmp_path / "c.parquet", ints):
            assert source.recipe.open(other).unseen() == []
            np.testing.assert_array_equal(rows_of(source.recipe.open(other)), rows_of(sources[0]))


def test_codes_that_no_float_holds_are_told_apart(tmp_path: Path) -> None:
    codes = [5, 90071992547409921, 90071992547409922]
    path = written(tmp_path / "c.csv", "x,class", [f"{i % 7}.5,{codes[i % 3]}" for i in range(60)])
    names = fw.prepare(path, categories="encode").names
    assert names == ("x", *(f"class={code}" for code in codes))
    frame = pd.read_csv(path)
    assert fw.prepare(frame, categories="encode").names == names


def test_zoned_moments_are_in_utc_on_every_machine(tmp_path: Path) -> None:
    moments = pd.date_range("2024-01-01 00:30", periods=40, freq="7h", tz="UTC")
    frame = pd.DataFrame({"x": np.arange(40) * 0.7, "t": moments.tz_convert("Asia/Tokyo")})
    frame.to_parquet(tmp_path / "t.parquet")
    for data in (frame, tmp_path / "t.parquet"):
        for part, wanted in (("hour", moments.hour), ("day", moments.day), ("month", moments.month)):
            source = fw.prepare(data, as_={"t": part})
            np.testing.assert_array_equal(rows_of(source)[:, 1], wanted)
            # Of a moment with a zone, DuckDB's own parts and casts are those of the machine's zone.
            types = dict(zip(source.table.relation().columns, map(str, source.table.relation().types), strict=True))
            assert types["t"] == "TIMESTAMP"


def test_categories_of_pandas_are_read_as_they_are_judged() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=40),
            "g": pd.Categorical(["a", "NA", "b", "b"] * 10),
            "p": pd.Categorical(["10%", "20%", "30%", "40%"] * 10),
        }
    )
    source = fw.prepare(frame, categories="encode")
    assert source.names == ("x", "g=a", "g=b", "p")
    plain = fw.prepare(frame.astype({"g": str, "p": str}), categories="encode")
    np.testing.assert_array_equal(rows_of(source), rows_of(plain))
    assert rows_of(source)[:4, 3].tolist() == [10, 20, 30, 40]
    assert np.isnan(rows_of(source)[1, 1:3]).all()


def test_words_asked_for_as_numbers_are_refused_with_a_cell(tmp_path: Path) -> None:
    path = written(tmp_path / "w.csv", "x,g", [f"{i * 0.5},{'ab'[i % 2]}" for i in range(30)])
    with pytest.raises(
        DataError, match=r"w\.csv, column 'g': the cells cannot be read as numbers: 'a' is none \(15 cells\)"
    ):
        fw.prepare(path, as_={"g": "number"})
    with pytest.raises(DataError, match=r"column 'g': the cells cannot be read as numbers: 'a' is none"):
        fw.prepare(pd.read_csv(path), as_={"g": "number"})


def test_yes_and_no_asked_for_as_numbers_are_one_and_zero(tmp_path: Path) -> None:
    path = written(tmp_path / "y.csv", "x,ok", [f"{i * 0.5},{'yes' if i % 3 else 'no'}" for i in range(30)])
    source = fw.prepare(path, as_={"ok": "number"})
    assert rows_of(source)[:4].tolist() == [[0, 0], [0.5, 1], [1, 1], [1.5, 0]]
    typed = pd.DataFrame({"x": [1.5, 2.5], "ok": [True, False]})
    assert rows_of(source.recipe.open(typed)).tolist() == [[1.5, 1], [2.5, 0]]


def test_numbers_asked_for_have_the_missing_cells_that_the_user_says(tmp_path: Path) -> None:
    rows = [f"{i * 0.5},{'unknown' if i == 4 else f'{i:05d}'}" for i in range(30)]
    path = written(tmp_path / "z.csv", "x,zip", rows)
    found = rows_of(fw.prepare(path, as_={"zip": "number"}, missing_values=["unknown"]))
    np.testing.assert_array_equal(found[:6, 1], [0, 1, 2, 3, np.nan, 5])


@pytest.mark.parametrize("categories", ["describe", "encode"])
def test_only_zero_and_one_can_be_boolean(tmp_path: Path, categories: str) -> None:
    for cells in ("0123", ("0.5", "1")):
        path = written(tmp_path / "b.csv", "x,k", [f"{i * 0.5},{cells[i % len(cells)]}" for i in range(30)])
        with pytest.raises(DataError, match=r"column 'k': the cells cannot be read as boolean.*not only 0 and 1"):
            fw.prepare(path, as_={"k": "boolean"}, categories=categories)
    path = written(tmp_path / "c.csv", "x,k", [f"{i * 0.5},{i % 2}.0" for i in range(30)])
    assert fw.prepare(path, as_={"k": "boolean"}, categories="encode").names == ("x", "k=0", "k=1")


@pytest.mark.parametrize("where", ["nonsense > 0", "x >", "random() < 0.5", "x > (SELECT 0)", 5])
def test_a_wrong_condition_is_an_error_of_ours(typed: pd.DataFrame, tmp_path: Path, where: Any) -> None:
    typed.to_parquet(tmp_path / "t.parquet")
    for categories in ("describe", "encode"):
        with pytest.raises(DataError, match="where="):
            fw.prepare(f"SELECT * FROM '{tmp_path / 't.parquet'}'", categories=categories, where=where)


@pytest.mark.parametrize("way", ["name", "array"])
def test_weights_count_as_repetition_when_levels_are_found(tmp_path: Path, way: str) -> None:
    rng = np.random.default_rng(2)
    n = 200
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "g": ["a", "b"] * (n // 2 - 2) + ["c", "d", "e", "f"],  # c and d weigh much, e nothing
            "h": ["u", None, "v", "w"] * (n // 4),
            "times": [1] * (n - 4) + [50, 50, 0, 1],
        }
    )
    repeated = frame.loc[frame.index.repeat(frame["times"])].reset_index(drop=True)
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = {"weights": "times"} if way == "name" else {"weights": frame["times"].to_numpy(float), "exclude": "times"}
    wanted = fw.prepare(repeated, categories="encode", exclude="times")
    assert wanted.names == ("x", "g=a", "g=b", "g=c", "g=d", "g=f", "h=u", "h=v", "h=w")
    for data in (frame, tmp_path / "t.csv"):
        source = fw.prepare(data, categories="encode", **options)
        assert source.names == wanted.names
        levels = [[column.levels for column in one.recipe.columns if column.levels] for one in (source, wanted)]
        assert levels[0] == levels[1]
        described = describing(fw.prepare(data, **options)), describing(fw.prepare(repeated, exclude="times"))
        assert described[0][1] == described[1][1]
    kept = fw.prepare(frame, categories="encode", where="times > 0", weights="times")
    assert kept.names == wanted.names


@pytest.mark.parametrize(
    ("cells", "unit"),
    [
        (["0.1", "11%", "0.12", "13%"], "%"),
        (["5 kg", "6", "7 kg", "8.5"], "kg"),
        (["1,200", "3 k", "1,400", "5 k"], "k"),
    ],
)
def test_a_unit_that_some_cells_lack_makes_no_number(tmp_path: Path, cells: list[str], unit: str) -> None:
    path = written(tmp_path / "u.csv", "x;p", [f"{i * 0.5};{cells[i % 4]}" for i in range(40)])
    prepared = fw.prepare(path)
    assert prepared.names == ("x",)
    (told,) = [note.text for note in prepared.recipe.notes if note.topic == "mixed-units"]
    assert told.endswith(f"p ({unit}, no unit)")


def test_zeros_and_money_may_lack_their_sign(tmp_path: Path) -> None:
    signs = [("%" if i % 3 else "", "$" if i % 2 else "", " EUR" if i % 2 else "") for i in range(40)]
    rows = [f"{i * 0.5};{i % 3}{a};{b}{i}.25;{i % 9}.5{c}" for i, (a, b, c) in enumerate(signs)]
    path = written(tmp_path / "z.csv", "x;p;m;e", rows)
    found = rows_of(fw.prepare(path))
    assert found[:3].tolist() == [[0, 0, 0.25, 0.5], [0.5, 1, 1.25, 1.5], [1, 2, 2.25, 2.5]]
    new = written(tmp_path / "n.csv", "x;p;m;e", ["1.5;5%;1;1", "2.5;0.1;1;1"])
    with pytest.raises(DataError, match=r"0\.1"):
        rows_of(fw.prepare(path).recipe.open(new))


@pytest.mark.parametrize("weight", ["1", "{}", "{:03d}"])
def test_weights_in_text_are_numbers_whatever_they_look_like(tmp_path: Path, weight: str) -> None:
    path = written(tmp_path / "w.csv", "x,w", [f"{i * 0.37},{weight.format(i + 1)}" for i in range(40)])
    block = next(iter(fw.prepare(path, weights="w").pieces())).load()
    assert block.weights[:2].tolist() == ([1, 1] if weight == "1" else [1, 2])
