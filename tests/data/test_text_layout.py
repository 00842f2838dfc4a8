"""Reading text files as a careful person would: the files of shared/data/messy, odd ones, and damaged ones."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import pickle
import random
import subprocess
import sys
import time
import warnings
from dataclasses import replace

import duckdb
import numpy as np
import pytest

from foldwise.data import scan
from foldwise.data.duckdb_connection import Database
from foldwise.data.files import Files, find, stamp
from foldwise.data.reading import Reading
from foldwise.data.tables import open_table
from foldwise.data.text_table import text_table
from foldwise.errors import DataError, ReadingWarning, SourceChangedError

from .data_helpers import rows

MESSY = [
    "years_header.csv",
    "sample_numbers.tsv",
    "no_header_numbers.csv",
    "text_header_numbers.csv",
    "no_header_mixed.csv",
    "duplicate_names.csv",
    "units_row.csv",
    "comment_lines.csv",
    "na_tokens.csv",
    "sentinel_999.csv",
    "european_semicolon.csv",
    "latin1.csv",
    "currency.csv",
    "euro_currency.csv",
    "units.csv",
    "utf16_excel.txt",
    "utf8_bom_crlf.csv",
    "cr_only.csv",
    "quoted_newlines.csv",
    "trailing_delimiter.csv",
    "ragged_rows.csv",
    "aligned_columns.txt",
    "one_space.txt",
    "pipe.txt",
    "booleans.csv",
    "codes_and_ids.csv",
    "dates.csv",
    "odd_columns.csv",
    "penguins.csv.gz",
    "taxis.csv.zst",
]
TOPICS = {
    "encoding",
    "comment-lines",
    "title-rows",
    "units-row",
    "row-names",
    "no-header",
    "ragged-rows",
    "duplicate-names",
    "empty-names",
    "total-row",
}


def opened(path, reading=None, database=None):
    files = Files((str(path),), "csv", (stamp(str(path)),))
    database = database or Database(files.paths)
    return text_table(files, reading or Reading(), database), database


def cells(path, reading=None):
    """The names, the cells as text with None as "", and the topics of the notes."""
    found, database = opened(path, reading)
    got = database.query(f"FROM {found.reader.clause([str(path)])}")
    names = [column.name for column in found.reader.columns] if found.reader.named else None
    assert all(column.type == "VARCHAR" for column in found.reader.columns)
    return (
        names,
        [["" if cell is None else cell for cell in row] for row in got],
        {n.topic: n.text for n in found.notes},
    )


@pytest.fixture(scope="module")
def messy(shared_data):
    folder = shared_data / "messy"
    if not folder.is_dir():
        pytest.skip("the messy tables (../shared/data/messy beside the repository) are not here")
    return folder


@pytest.fixture(scope="module")
def other_reader(messy):
    """The cells as check_messy.py reads them, with every option given by hand."""
    sys.path.insert(0, str(messy))
    try:
        spec = importlib.util.spec_from_file_location("check_messy", messy / "check_messy.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(messy))
    return module.TEXTS


@pytest.mark.parametrize("name", MESSY)
def test_messy_files(messy, other_reader, name):
    expected = json.loads((messy / "expected.json").read_text("utf-8"))["files"][name]
    names, got, notes = cells(messy / name)
    assert len(got) == expected["rows"]
    if names is None:
        assert all(column["name"] is None for column in expected["columns"])
    else:
        assert len(set(names)) == len(names) == len(expected["columns"])
        for own, column in zip(names, expected["columns"], strict=True):
            assert own
            assert column.get("name_free") or own == column["name"]
    if name != "taxis.csv.zst" or importlib.util.find_spec("zstandard") is not None:
        want = other_reader[name](name).to_numpy().tolist()
        assert [[cell.strip() for cell in row] for row in got] == [[str(cell).strip() for cell in row] for row in want]
    for warning in expected.get("warnings", ()):
        if warning["topic"] in TOPICS:
            text = notes[warning["topic"]]
            assert all(word.lower() in text.lower() for word in warning["mentions"])


def test_messy_files_are_all_there(other_reader):
    assert sorted(MESSY) == sorted(other_reader)


@pytest.mark.parametrize(
    ("content", "names", "want", "topics"),
    [
        ("a\n1\n2\n", ["a"], [["1"], ["2"]], ()),
        ("a,b\n1,2\n", ["a", "b"], [["1", "2"]], ()),
        ("1,2\n", None, [["1", "2"]], ("no-header",)),
        ("x\n1,5\n2,25\n-3,5\n", ["x"], [["1,5"], ["2,25"], ["-3,5"]], ()),
        ("n;x\nA;1,5\nB;2,5\n", ["n", "x"], [["A", "1,5"], ["B", "2,5"]], ()),
        ("1,5;2,5\n3,5;4,5\n", None, [["1,5", "2,5"], ["3,5", "4,5"]], ("no-header",)),
        ("a title\n\na,b\n1,2\n3,4\n", ["a", "b"], [["1", "2"], ["3", "4"]], ("title-rows",)),
        (
            "Sales, 2020\nby region\nr,s,t\nx,1,2\ny,3,4\n",
            ["r", "s", "t"],
            [["x", "1", "2"], ["y", "3", "4"]],
            ("title-rows",),
        ),
        ("a,b\n1,2\na,b\n3,4\n", ["a", "b"], [["1", "2"], ["3", "4"]], ("title-rows",)),
        ("n,x,y\nu,1,2\nv,3,4\nTotal,4,6\n", ["n", "x", "y"], [["u", "1", "2"], ["v", "3", "4"]], ("total-row",)),
        ("n,x\ntotal,1\npart,2\ntotal,3\n", ["n", "x"], [["total", "1"], ["part", "2"], ["total", "3"]], ()),
        (
            "n,x,y\nu,1,2\nv,3,4\n\nSource: us\n",
            ["n", "x", "y"],
            [["u", "1", "2"], ["v", "3", "4"]],
            ("comment-lines",),
        ),
        ("#x,y\n1,2\n3,4\n", ["x", "y"], [["1", "2"], ["3", "4"]], ("comment-lines",)),
        ("c,n\n#ff0000,1\n#00ff00,2\n", ["c", "n"], [["#ff0000", "1"], ["#00ff00", "2"]], ()),
        ("c,n\n1,2\n#N/A,3\n2,3\n4,4\n", ["c", "n"], [["1", "2"], ["#N/A", "3"], ["2", "3"], ["4", "4"]], ()),
        ("P001,3.5\nP002,4.5\nP003,5.5\n", None, [["P001", "3.5"], ["P002", "4.5"], ["P003", "5.5"]], ("no-header",)),
        ("2020-01-01\n2020-01-02\n", None, [["2020-01-01"], ["2020-01-02"]], ("no-header",)),
        ("a b\n  1  2\n 10 20\n", ["a", "b"], [["1", "2"], ["10", "20"]], ()),
        ('a\tb\n27" wide\t1\n"x y\t2\n', ["a", "b"], [['27" wide', "1"], ['"x y', "2"]], ()),
        ("a,b\n'x, y',1\n'z',2\n", ["a", "b"], [["x, y", "1"], ["z", "2"]], ()),
        ('a,b\n"say \\"hi\\"",1\n"z, w",2\n', ["a", "b"], [['say "hi"', "1"], ["z, w", "2"]], ()),
        ("a,b\n1,2\r\n3,4\r5,6\n", ["a", "b"], [["1", "2"], ["3", "4"], ["5", "6"]], ()),
        ('a,b\n"x\r\ny",1\n"z\r",2\nw\n', ["a", "b"], [["x\r\ny", "1"], ["z\r", "2"], ["w", ""]], ("ragged-rows",)),
        ("a,b,\n1,2,\n3,4,\n", ["a", "b", "column_3"], [["1", "2", ""], ["3", "4", ""]], ("empty-names",)),
        ("a,a,A,a_2\n1,2,3,4\n", ["a", "a_3", "A", "a_2"], [["1", "2", "3", "4"]], ("duplicate-names",)),
        ("a,b\n\n1,2\n   \n3,4\n\n\n", ["a", "b"], [["1", "2"], ["3", "4"]], ()),
        ("a\n1\n\n2\n", ["a"], [["1"], ["2"]], ()),
        ("\ufeffa,b\n1,2\n", ["a", "b"], [["1", "2"]], ()),
        ("a,b\n1,2\n3,4\n\x1a", ["a", "b"], [["1", "2"], ["3", "4"]], ()),
        ("x y,z\nAnn Lee,3\nBo Li,4\n", ["x y", "z"], [["Ann Lee", "3"], ["Bo Li", "4"]], ()),
    ],
)
def test_layouts(tmp_path, content, names, want, topics):
    path = tmp_path / "x.csv"
    path.write_bytes(content.encode())
    found_names, got, notes = cells(path)
    assert (found_names, got) == (names, want)
    assert set(topics) == set(notes)


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"\n\n", ["empty"]),
        (b"\xef\xbb\xbf", ["empty"]),
        (b"# only\n# comments\n", ["0 sample(s)"]),
        (b"a,b\n1,\x002\n3,4\n", ["NUL", "line 2", "encoding="]),
        (b"PK\x03\x04" + bytes(200), ["not a text file", "Excel"]),
        (b'a,b\n1,2\n"3,4\n5,6\n"7",8\n9,10\n', ["quotation mark", "line 5", "line 3"]),
        (b'a,b\n"1",2\n"3,4\n5,6\n', ["opens in line 3 is never closed"]),
        (b"a,b\n1,2\n1,2,3\n4,5\n", ["3 cells instead of 2", "line 3", "delimiter="]),
        (b"a,b,c\n1,2,3\nx,5\n4,5,6\n7,8,9\n1,1,1\n1,1,1\n", ["2 cells instead of 3", "line 3"]),
        (
            b"a  b  c\n1  2  3\n4  5\n7  8  9\n1  2  3\n1  2  3\n1  2  3\n1  2  3\n1  2  3\n1  2  3\n1  2  3\n",
            ["2 cells", "line 3", "NA"],
        ),
        (b"a,b\n1,2,3,4\n5,6,7,8\n", ["header in line 1 has 2 names", "4 cells", "skip="]),
        ("a,b\né,1\nü,2\n".encode() + b"\xe9,3\n", ["not UTF-8", "line 4", "encoding="]),
    ],
)
def test_refused(tmp_path, content, parts):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        cells(path)
    assert caught.value.where == str(path)
    for part in parts:
        assert part in str(caught.value)


def test_header_only(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n")
    assert cells(path) == (["a", "b"], [], {})
    with pytest.raises(DataError, match="0 sample"):
        scan(path)


@pytest.mark.parametrize(
    ("content", "reading", "names", "want"),
    [
        ("1,2\n3,4\n", Reading(header=True), ["1", "2"], [["3", "4"]]),
        ("a,b\nc,d\n", Reading(header=False), None, [["a", "b"], ["c", "d"]]),
        ("a;b,c\n1;2,3\n", Reading(delimiter=","), ["a;b", "c"], [["1;2", "3"]]),
        ("a!b\n1!2\n", Reading(delimiter="!"), ["a", "b"], [["1", "2"]]),
        ("a b\nx  y\n", Reading(delimiter=" "), ["a", "b"], [["x", "y"]]),
        ("junk, more, junk\nx\na,b\n1,2\n", Reading(skip=2), ["a", "b"], [["1", "2"]]),
        ("% note\na,b\n% more, here\n1,2\n", Reading(comment="%"), ["a", "b"], [["1", "2"]]),
        ("é,b\n1,2\n", Reading(encoding="latin-1"), ["Ã©", "b"], [["1", "2"]]),
    ],
)
def test_overruled(tmp_path, content, reading, names, want):
    path = tmp_path / "x.csv"
    path.write_bytes(content.encode())
    assert cells(path, reading)[:2] == (names, want)


@pytest.mark.parametrize("reading", [Reading(encoding="klingon"), Reading(delimiter="ab"), Reading(skip=-1)])
def test_bad_options(tmp_path, reading):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"klingon|'ab'|-1"):
        cells(path, reading)


def test_sentence(messy):
    found, _ = opened(messy / "latin1.csv")
    assert found.layout.sentence == "semicolons, header in line 1, Latin-1 (Windows-1252)"


def test_long_lines(tmp_path):
    path = tmp_path / "x.csv"
    wide = 5_000
    path.write_text(
        ",".join(f"a_rather_long_name_of_a_measurement_that_fills_the_line_{j:0100}" for j in range(wide))
        + "\n"
        + (",".join(["1.5"] * wide) + "\n") * 2
    )
    found, _ = opened(path)
    assert len(found.reader.columns) == wide
    path.write_text("a,b\n" + f"{'x' * 1_000_000},1\n" * 3)
    with pytest.raises(DataError, match="line 2 has more than"):
        opened(path)


# Far below what was looked at


def _long(middle, end=b"", header=b"a,b\n"):
    return header + b"1,2\n" * 250_000 + middle + b"3,4\n" * 50_000 + end


@pytest.mark.parametrize(
    ("middle", "value", "topic"),
    [
        (b"5\n", np.nan, "line 250002"),
        (b"5,6,word\n", 6.0, "line 250002"),
        (b"# remark, not a row\n5,6\n", 6.0, "comments"),
        (b"a,b\n5,6\n", 6.0, "line 250002"),
    ],
)
def test_a_row_far_down_that_does_not_fit(tmp_path, middle, value, topic):
    path = tmp_path / "x.csv"
    path.write_bytes(_long(middle))
    source = scan(path)
    with pytest.warns(ReadingWarning, match=topic):
        got = [piece.load().unchecked for piece in source.pieces()]
    got = np.concatenate(got)
    assert got.shape == (300_001, 2)
    assert np.array_equal(got[249_999:250_002], [[1, 2], [5, value], [3, 4]], equal_nan=True)
    assert source.count() == 300_001


def test_what_stands_at_the_end_of_a_long_file(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"n,b\n" + b"u,2\n" * 300_000 + b"Total,600000\n")
    found, database = opened(path)
    assert database.query(f"SELECT count(*) FROM {found.reader.clause([str(path)])}") == [(300_000,)]
    assert [note.topic for note in found.notes] == ["total-row"]


def test_another_encoding_far_down(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"n,b\n" + b"u,2\n" * 250_000 + b"\xe9,3\n" + b"v,2\n" * 50_000)
    table = open_table(str(path))
    with pytest.warns(ReadingWarning, match="Latin-1"):
        assert table.ask(lambda relation: relation.filter("n = 'é'").fetchall()) == [("é", 3.0)]
    path.write_bytes("n,b\nü,1\n".encode() + b"u,2\n" * 300_000 + b"\xe9,3\n" + "ö,2\n".encode() * 10)
    table = open_table(str(path))
    with pytest.raises(DataError, match=r"not UTF-8 text \(line 300003"):
        table.ask(lambda relation: relation.aggregate("count(*)").fetchall())
    assert rows(scan(path, columns=["b"])).shape == (300_012, 1)


def test_quotation_marks_far_down(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(_long(b'"5,6\n'))
    with pytest.raises(DataError, match=r"a cell in line 250002 has more than .* a quotation mark may be missing"):
        rows(scan(path))


# Copies


def test_copies_are_made_anew_where_they_are_needed(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes("n;x;é\n".encode("latin-1") + "ü;1;2\n".encode("latin-1") * 10)
    source = scan(path, columns=["x", "é"])
    data = pickle.dumps(source)
    for _ in range(2):
        assert rows(pickle.loads(data)).shape == (10, 2)
    script = "import sys, pickle; print(sum(len(p.load().dense()) for p in pickle.load(sys.stdin.buffer).pieces()))"
    done = subprocess.run([sys.executable, "-c", script], input=data, capture_output=True, check=True)
    assert done.stdout.split() == [b"10"]


def test_copies_vanish_and_originals_are_watched(tmp_path, monkeypatch):
    monkeypatch.setenv("FOLDWISE_SCRATCH", str(tmp_path))
    (tmp_path / "x.txt").write_text("a  b\n1  2\n3  4\n")
    source = scan(tmp_path / "x.txt")
    (folder,) = tmp_path.glob("foldwise-scratch-*")
    assert len(list(folder.glob("*.csv"))) == 1
    assert np.array_equal(rows(source), [[1, 2], [3, 4]])
    (tmp_path / "x.txt").write_text("a  b\n1  2\n3  4\n5  6\n")
    with pytest.raises(SourceChangedError):
        rows(source)
    del source
    assert not list(folder.glob("*.csv"))
    monkeypatch.setenv("FOLDWISE_SPOOL_LIMIT", "3")
    with pytest.raises(DataError, match="FOLDWISE_SPOOL_LIMIT"):
        scan(tmp_path / "x.txt")


def test_only_the_copy_can_be_read(tmp_path):
    (tmp_path / "x.txt").write_text("a  b\n1  2\n3  4\n")
    (tmp_path / "y.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="not understood"):
        scan(tmp_path / "x.txt", where=f"a IN (SELECT a FROM '{tmp_path}/y.csv')")


# Compressed files


def test_a_wrong_checksum(tmp_path):
    path = tmp_path / "x.csv.gz"
    data = bytearray(gzip.compress(b"a,b\n" + b"1,2\n" * 1000))
    path.write_bytes(data)
    assert rows(scan(path)).shape == (1000, 2)
    data[-8] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match="damaged"):
        scan(path)
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 1000)[:-12])
    with pytest.raises(DataError, match="damaged"):
        scan(path)


def test_zst(tmp_path):
    plain = tmp_path / "x.csv.zst"
    duckdb.sql(
        f"COPY (SELECT i a, i % 7 b, NULL c FROM range(100000) t(i)) TO '{plain}' (FORMAT csv, COMPRESSION zstd)"
    )
    names, got, _ = cells(plain)
    assert names == ["a", "b", "c"]
    assert got == [[str(i), str(i % 7), ""] for i in range(100_000)]
    data = plain.read_bytes()
    for bad in (data[:-1], data[: len(data) // 2], data[:3], b"a,b\n1,2\n", data + b"1234"):
        plain.write_bytes(bad)
        with pytest.raises(DataError, match="damaged"):
            cells(plain)
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 16
    plain.write_bytes(flipped)
    with pytest.raises(DataError, match=r"damaged|line|text"):
        cells(plain)


# Several files


def test_several_files(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("# a remark\nx,y\n3\n5,6\n")
    table = open_table(str(tmp_path / "*.csv"))
    assert table.relation().fetchall() == [(1, 2), (3, None), (5, 6)]
    assert [note.text.partition(":")[0] for note in table.notes] == ["b.csv", "b.csv"]
    (tmp_path / "b.csv").write_text("x;y\n3;4\n")
    with pytest.raises(DataError, match="separator"):
        open_table(str(tmp_path / "*.csv"))


@pytest.mark.parametrize("form", ["csv", "parquet", "json"])
def test_names_of_folders_are_not_data(tmp_path, form):
    for k in (1, 2):
        folder = tmp_path / f"a={k}" / "z=9"
        folder.mkdir(parents=True)
        duckdb.sql(f"COPY (SELECT 5.5 a, {k} b) TO '{folder}/x.{form}'")
    source = scan(str(tmp_path / "*" / "*" / f"x.{form}"))
    assert source.names == ("a", "b")
    assert np.array_equal(rows(source), [[5.5, 1], [5.5, 2]])


def test_types_and_tokens_can_be_given(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,NA\n?,x\n,3\n")
    found, database = opened(path)
    clause = replace(found.reader, nulls=("NA", "?")).clause([str(path)], types={"a": "DOUBLE"})
    assert database.query(f"FROM {clause}") == [(1.0, None), (None, "x"), (None, "3")]
    query = f"SELECT sum(v) FROM (SELECT TRY_CAST(a AS DOUBLE) AS v FROM {found.reader.clause([str(path)])})"
    assert database.query(query) == [(1.0,)]  # which some versions of DuckDB would read strictly


# Damage


def corrupted(data, chance):
    data = bytearray(data)
    kind = chance.randrange(6)
    for _ in range(chance.choice((1, 1, 3))):
        at = chance.randrange(len(data))
        if kind == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del data[at : at + chance.choice((1, 20))]
        elif kind == 2:
            del data[at + 1 :]
        elif kind == 3:
            lines = bytes(data).splitlines(keepends=True)
            lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))
            data = bytearray(b"".join(lines))
        elif kind == 4:
            data[at:at] = bytes([chance.choice(b"\",;\t\r\n#\x00\xff' ")])
        else:
            data[at] = chance.randrange(256)
    return bytes(data)


@pytest.mark.parametrize("name", MESSY)
def test_damaged_files_are_read_or_refused(messy, tmp_path, name):
    data = (messy / name).read_bytes()
    path = tmp_path / name
    database = Database()
    began = time.process_time()
    read, refusals = 0, []
    for seed in range(100):
        path.write_bytes(corrupted(data, random.Random(f"{name} {seed}")))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                found, _ = opened(path, database=database)
                got = database.query(f"FROM {found.reader.clause([str(path)])}") if seed % 4 == 0 else []
            except DataError as error:
                refusals.append(error)
                continue
        read += 1
        assert all(len(row) == len(found.layout.names) for row in got)
    assert read or name.endswith((".gz", ".zst"))
    assert all(error.where == str(path) for error in refusals)
    assert all(any(word in str(error) for word in ("line", "damaged", "not a text", "empty")) for error in refusals)
    assert time.process_time() - began < 10


def test_find_gives_text_files(tmp_path):
    (tmp_path / "x.tsv").write_text("a\tb\n1\t2\n")
    assert find(tmp_path / "x.tsv").kind == "csv"
    assert os.path.basename(find(tmp_path / "x.tsv").paths[0]) == "x.tsv"


@pytest.mark.parametrize(
    ("content", "header"),
    [
        ("age,height,agree\n72,177.6,disagree\n65,157.2,agree\n30,163,neutral\n", True),
        ("age,agree\n72,disagree\n65,agree\n30,neutral\n", True),
        ("red,agree\n72,disagree\nred,neutral\n30,agree\n", False),
        ("unknown,red,dog\n5,blue,cat\n6,red,dog\n", False),
        ("1.5,26-Jul-76\n2.5,27-Aug-77\n3.5,1-Jan-80\n", False),
        ('1.5;"March 04, 2017"\n2.5;"May 05, 2018"\n3.5;"June 17, 2019"\n', False),
        ("06/16/1980 08:35 AM,2.5\n12/16/1998 11:01 PM,3.5\n12/17/1998 10:01 PM,4.5\n", False),
        ("Anna,2020-01-05\nBert,2020-02-06\nCarl,2020-03-07\n", False),
        ("12.5 kg,2.5\n13.5 kg,3.5\n14 kg,4.5\n", False),
        ("$12.50,x\n$13.50,y\n$14,z\n", False),
        ("-1.374e-01,x\n2.5e+01,y\n3.5e-01,z\n", False),
        ("yes,1.5\nno,2.5\nno,3.5\n", False),
        ("date,weight\n26-Jul-76,12.5 kg\n27-Aug-77,13 kg\n", True),
        ("name,2020-01,2020-02\nx,5,6\ny,7,8\n", True),
        ("wave,400.5,401\nx,5,6\ny,7,8\n", True),
    ],
)
def test_the_first_line_is_data_or_a_header(tmp_path, content, header):
    path = tmp_path / "x.csv"
    path.write_text(content)
    names, got, _ = cells(path)
    assert (names is not None) == header
    assert len(got) == len(content.splitlines()) - header


@pytest.mark.parametrize(
    ("content", "width"),
    [
        ("a|b|c\nx|t|67 993 936.47\ny|f|36 060 512.92\nz|f|33 558 953.06\n", 3),
        ("x|t|67 993 936.47\ny|f|36 060 512.92\nz|f|33 558 953.06\n", 3),
        ("a\tb\nx\t72,973.70 £\ny\t2,973.70 £\nz\t1,973.70 £\n", 2),
        ("alpha\tbeta\t1,5\ngamma\tdelta\t2,5\n", 3),
        ("46 320.27,0.43 mg/L\n6 320.27,1.43 mg/L\n7 320.27,2.43 mg/L\n", 2),
        ("a,b\n46 320.27,0.43 mg/L\n6 320.27,1.43 mg/L\n7 320.27,2.43 mg/L\n", 2),
        ("a;b\nx;August 22, 1982\ny;May 23, 1983\n", 2),
        ("x;August 22, 1982\ny;May 23, 1983\n", 2),
        ("x;20 Jun 1994\ny;21 Jul 1995\n", 2),
        ("1,alpha;x,3\n2,beta;x,4\n5,gamma;x,6\n", 3),
        ("x y z\n1,5 2,5 3,5\n4,5 5,5 6,5\n", 3),
        ("x y\n1 2\n3 4\n", 2),
    ],
)
def test_delimiters_that_are_no_part_of_cells_win(tmp_path, content, width):
    path = tmp_path / "x.csv"
    path.write_text(content, "utf-8")
    _, got, _ = cells(path)
    assert {len(row) for row in got} == {width}


@pytest.mark.parametrize(
    ("content", "want", "comments"),
    [
        ("a;b\n#N/A;3\n1;2\n4;5\n", [["#N/A", "3"], ["1", "2"], ["4", "5"]], None),
        (
            "#N/A;3\n1;2\n#DIV/0!;5\n6;7\n8;9\n",
            [["#N/A", "3"], ["1", "2"], ["#DIV/0!", "5"], ["6", "7"], ["8", "9"]],
            None,
        ),
        ("a;b\n#4;6\n1;2\n4;5\n", [["1", "2"], ["4", "5"]], "1 line that begins with #"),
        ("#N/As\na;b\n# x\n1;2\n4;5\n", [["1", "2"], ["4", "5"]], "2 lines that begin with #"),
        ("tag;v\n#love;3\nx;2\n# no\ny;5\nz;6\n", [["#love", "3"], ["x", "2"], ["y", "5"], ["z", "6"]], "1 line that"),
    ],
)
def test_rows_that_begin_with_a_hash(tmp_path, content, want, comments):
    path = tmp_path / "x.csv"
    path.write_text(content)
    _, got, notes = cells(path)
    assert got == want
    assert comments in notes["comment-lines"] if comments else "comment-lines" not in notes


@pytest.mark.parametrize("first", ["sep=;\n", '"sep=;"\r\n', "SEP=;\n"])
def test_the_delimiter_that_excel_is_told(tmp_path, first):
    path = tmp_path / "x.csv"
    path.write_bytes(first.encode() + b"a;b\n1,5;2,25\n3,5;4,25\n")
    names, got, notes = cells(path)
    assert names == ["a", "b"]
    assert got == [["1,5", "2,25"], ["3,5", "4,25"]]
    assert "title-rows" not in notes
    assert cells(path, Reading(delimiter=";"))[1] == got


def test_a_row_of_nothing_but_tabs_is_a_row(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("a\tb\tc\n1\t2\t3\n\t\t\n\n4\t5\t6\n")
    assert cells(path)[1] == [["1", "2", "3"], ["", "", ""], ["4", "5", "6"]]
