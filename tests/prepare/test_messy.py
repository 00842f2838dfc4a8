"""Every file of the messy tables gives what its expected.json says: rows, kinds, missing cells, values and warnings."""

from __future__ import annotations

import datetime as dt
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

import foldwise as fw
from foldwise.cli import main

FILES = [
    *(
        "years_header.csv",
        "sample_numbers.tsv",
        "no_header_numbers.csv",
        "text_header_numbers.csv",
        "no_header_mixed.csv",
    ),
    *("duplicate_names.csv", "units_row.csv", "comment_lines.csv", "na_tokens.csv", "sentinel_999.csv"),
    *("european_semicolon.csv", "latin1.csv", "currency.csv", "euro_currency.csv", "units.csv", "utf16_excel.txt"),
    *("utf8_bom_crlf.csv", "cr_only.csv", "quoted_newlines.csv", "trailing_delimiter.csv", "ragged_rows.csv"),
    *(
        "aligned_columns.txt",
        "one_space.txt",
        "pipe.txt",
        "booleans.csv",
        "codes_and_ids.csv",
        "dates.csv",
        "odd_columns.csv",
    ),
    *("penguins.csv.gz", "taxis.csv.zst", "lab.duckdb", "penguins.feather", "planets.arrow", "types.parquet"),
    *("missing_keys.jsonl", "arrays.npz"),
]
PARTS = [
    ("two_sheets.xlsx", "Stations"),
    ("two_sheets.xlsx", "Readings"),
    ("shop.sqlite", "customers"),
    ("shop.sqlite", "orders"),
]


@pytest.fixture(scope="session")
def messy(shared_data: Path) -> Path:
    folder = shared_data / "messy"
    if not folder.is_dir():
        pytest.skip("the messy tables (../shared/data/messy) are not here")
    return folder


@pytest.fixture(scope="session")
def expected(messy: Path) -> dict[str, Any]:
    files: dict[str, Any] = json.loads((messy / "expected.json").read_text("utf-8"))["files"]
    return files


@pytest.fixture(scope="session")
def score(messy: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("messy_score", messy / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


def moments(found: dict[str, Any]) -> dict[str, Any]:
    """The finding with dates as dates, which JSON cannot hold."""
    for column in found.get("columns", ()):
        if column["kind"] == "date":
            column["values"] = [None if cell is None else dt.datetime.fromisoformat(cell) for cell in column["values"]]
    return found


def test_no_file_is_left_out(expected: dict[str, Any]) -> None:
    assert set(FILES) | {file for file, _ in PARTS} == set(expected)


@pytest.mark.parametrize("file", FILES)
def test_path(file: str, messy: Path, expected: dict[str, Any], score: ModuleType) -> None:
    found = fw.look(messy / file).as_dict(values=True)
    assert score.compare(moments(found), expected[file]) == []


@pytest.mark.parametrize(("file", "part"), PARTS)
def test_parts_of_a_file(
    file: str, part: str, messy: Path, expected: dict[str, Any], score: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    option = "--sheet" if file.endswith(".xlsx") else "--table"
    assert main(["look", str(messy / file), option, part, "--json", "--values"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert score.compare(moments(found), expected[file]["tables"][part]) == []


@pytest.mark.parametrize("file", ["two_sheets.xlsx", "shop.sqlite"])
def test_of_several_tables_one_is_taken_and_the_others_named_or_all_named(
    file: str, messy: Path, expected: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["look", str(messy / file), "--json"])
    found = json.loads(capsys.readouterr().out)
    topic = expected[file]["warnings"][0]["topic"]
    said = found.get("error") or " ".join(note["text"] for note in found["warnings"] if note["topic"] == topic)
    for part in expected[file]["tables"]:
        assert part in said


def _frames(file: str, messy: Path) -> Any:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    if file.endswith(".feather"):
        return pyarrow.feather.read_table(messy / file)
    if file.endswith(".arrow"):
        return pa.ipc.open_stream(messy / file).read_all()
    return pyarrow.parquet.read_table(messy / file)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("file", ["penguins.feather", "planets.arrow", "types.parquet"])
def test_frames_with_types(file: str, library: str, messy: Path, expected: dict[str, Any], score: ModuleType) -> None:
    table = _frames(file, messy)
    if library == "pandas":
        frame: Any = table.to_pandas()
    elif library == "polars":
        frame = pytest.importorskip("polars").from_arrow(table)
    else:
        frame = table
    found = fw.look(frame).as_dict(values=True)
    assert score.compare(moments(found), expected[file]) == []


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    "file", ["na_tokens.csv", "currency.csv", "units.csv", "booleans.csv", "codes_and_ids.csv", "dates.csv"]
)
def test_frames_of_text(file: str, library: str, messy: Path, expected: dict[str, Any], score: ModuleType) -> None:
    """As a frame whose cells are all text gives them."""
    frame: Any = pd.read_csv(messy / file, dtype=str, keep_default_na=False, skipinitialspace=True)
    if library == "polars":
        frame = pytest.importorskip("polars").DataFrame({name: frame[name].tolist() for name in frame})
    found = fw.look(frame).as_dict(values=True)
    assert score.compare(moments(found), expected[file]) == []


KINDS: dict[str, dict[str, str]] = {
    "penguins": {
        "category": "species island sex",
        "number": "bill_length_mm bill_depth_mm flipper_length_mm body_mass_g",
    },
    "titanic": {
        "number": "age sibsp parch fare",
        "category": "sex embarked pclass ticket cabin",
        "boolean": "survived",
        "identifier": "name",
    },
    "mpg": {
        "number": "mpg cylinders displacement horsepower weight acceleration model_year",
        "category": "origin",
        "identifier": "name",
    },
    "tips": {"number": "total_bill tip size", "category": "sex day time", "boolean": "smoker"},
    "taxis": {
        "date": "pickup dropoff",
        "number": "passengers distance fare tip tolls total",
        "category": "color payment pickup_zone dropoff_zone pickup_borough dropoff_borough",
    },
    "planets": {"category": "method", "number": "number orbital_period mass distance year"},
    "msleep": {
        "identifier": "rownames name",
        "category": "genus vore order conservation",
        "number": "sleep_total sleep_rem sleep_cycle awake brainwt bodywt",
    },
    "starwars": {
        "identifier": "rownames name",
        "number": "height mass birth_year",
        "category": "hair_color skin_color eye_color sex gender homeworld species",
    },
}


@pytest.mark.parametrize("name", KINDS)
def test_real_tables(name: str, shared_data: Path) -> None:
    found = fw.look(shared_data / "tables-mixed" / f"{name}.csv")
    wanted = {column: kind for kind, columns in KINDS[name].items() for column in columns.split()}
    assert {one.name: one.kind for one in found} == wanted
    assert not [note for note in found.notes if note.topic in ("sentinel", "mixed-types", "mixed-units", "constant")]


def test_penguins_raw(shared_data: Path) -> None:
    found = fw.look(shared_data / "tables-mixed" / "penguins_raw.csv")
    kinds = {one.name: one.kind for one in found}
    numbers = [name for name, kind in kinds.items() if kind == "number"]
    assert numbers == [
        *("Culmen Length (mm)", "Culmen Depth (mm)", "Flipper Length (mm)", "Body Mass (g)"),
        *("Delta 15 N (o/oo)", "Delta 13 C (o/oo)"),
    ]
    assert kinds["rownames"] == "identifier"
    assert kinds["Region"] == kinds["Stage"] == "constant"
    assert (kinds["Date Egg"], kinds["Comments"], kinds["Clutch Completion"]) == ("date", "text", "boolean")
    assert all(kinds[name] == "category" for name in ("studyName", "Species", "Island", "Sex", "Sample Number"))
    assert found["Comments"].profile.missing == 290


def test_msleep_awake_is_the_rest_of_the_day(shared_data: Path) -> None:
    found = fw.look(shared_data / "tables-mixed" / "msleep.csv")
    (copies,) = [note.text for note in found.notes if note.topic == "near-duplicate"]
    assert "sleep_total and awake" in copies


def test_starwars_none_is_a_level(shared_data: Path) -> None:
    found = fw.look(shared_data / "tables-mixed" / "starwars.csv")
    assert dict(found["hair_color"].profile.levels)["none"] == 38
    assert found["hair_color"].profile.missing == 5


HELD_OUT: dict[str, dict[str, str]] = {
    "iris": {"Species": "category"},
    "wine": {"class": "category"},
    "mtcars": {"model": "identifier", "vs": "boolean", "am": "boolean"},
    "decathlon": {"athlete": "identifier", "Competition": "category"},
    "banknote": {"Status": "category"},
    "faithful": {},
    "swiss": {"province": "identifier"},
    "usarrests": {"state": "identifier"},
    "galaxies": {},
    "rivers": {},
    "ruspini": {},
    "fgl_glass": {"type": "category"},
    "diabetes": {"class": "category"},
    "crabs": {"sp": "category", "sex": "category", "index": "category"},
    "precip": {"city": "category"},
    "eurodist": {"city": "identifier"},
    "cassini": {"class": "category"},
    "quine": {"Eth": "category", "Sex": "category", "Age": "category", "Lrn": "category"},
    "geyser": {},
    "aircondit": {},
    "groundbeef": {},
}


@pytest.mark.parametrize("name", HELD_OUT)
def test_tables_that_no_rule_was_made_for(name: str, shared_data: Path) -> None:
    """Measurements stay numbers, also if no two are alike, and nothing is cried out."""
    found = fw.look(shared_data / "tables" / f"{name}.csv")
    others = {one.name: one.kind for one in found if one.kind != "number"}
    assert others == HELD_OUT[name]
    alarms = (
        "sentinel",
        "mixed-types",
        "mixed-units",
        "constant",
        "missing-tokens",
        "decimal-comma",
        "ambiguous-dates",
    )
    assert not [note for note in found.notes if note.topic in alarms]
