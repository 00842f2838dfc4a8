"""`foldwise superpixels`: what it prints and writes, and what it refuses."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

import foldwise as fw
from foldwise.cli import main

pytest.importorskip("PIL")
CHINA = str(Path(__file__).parents[2] / "examples" / "china.jpg")


def test_everything_it_writes(tmp_path, capsys):
    files = {
        "--out": "outlines.png",
        "--means": "means.png",
        "--labels": "labels.png",
        "--table": "table.csv",
        "--report": "page.html",
    }
    options = [word for option, name in files.items() for word in (option, str(tmp_path / name))]
    assert main(["superpixels", CHINA, "-n", "120", "--compactness", "20", *options]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"segments +120 \(120 asked for\)", printed)
    assert "explained variation" in printed
    from foldwise.data.image_file import read_image

    found = fw.superpixels(CHINA, 120, 20)
    np.testing.assert_array_equal(read_image(tmp_path / "outlines.png"), found.boundaries())
    np.testing.assert_array_equal(read_image(tmp_path / "means.png"), found.mean_image())
    np.testing.assert_array_equal(read_image(tmp_path / "labels.png"), found.labels)
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["pixels"]) for row in rows] == found.sizes.tolist()
    page = (tmp_path / "page.html").read_text()
    assert "120 superpixels of china.jpg" in page
    assert len(page) < 8_000_000


def test_json_and_parquet(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    command = ["superpixels", CHINA, "-n", "50", "--threads", "1", "--json", "--table", str(tmp_path / "t.parquet")]
    assert main([*command, "--labels", str(tmp_path / "l.npy")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["facts"]["segments"] == 50
    labels = np.load(tmp_path / "l.npy")
    assert labels.max() == 49
    table = parquet.read_table(tmp_path / "t.parquet")
    assert table["pixels"].to_pylist() == np.bincount(labels.reshape(-1)).tolist()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--out", "x.txt"], "pictures are written as"),
        (["--labels", "x.csv"], "labels are written as .npy or .png"),
        (["--table", "x.png"], "x.png"),
        (["--report", "x.pdf"], "ends in .html"),
        (["--out", "x.png", "--means", "x.png"], "same file"),
        (["-n", "100000"], "has 68,480 pixels"),
    ],
)
def test_refusals_before_any_work(more, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["superpixels", CHINA, *more]) != 0
    told = capsys.readouterr()
    assert says in told.out + told.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", [["-n", "0"], ["--compactness", "0"], ["--smoothness", "-1"], ["--space", "hsv"]])
def test_values_that_options_do_not_take(wrong, capsys):
    with pytest.raises(SystemExit):
        main(["superpixels", CHINA, *wrong])
    assert wrong[0].lstrip("-") in capsys.readouterr().err.replace("segments", "n")


def test_the_picture_itself_is_never_overwritten(tmp_path, capsys):
    copy = tmp_path / "photo.png"
    from foldwise.data.image_file import write_image

    write_image(copy, np.zeros((8, 8), np.uint8))
    before = copy.read_bytes()
    assert main(["superpixels", str(copy), "-n", "2", "--out", str(copy)]) != 0
    assert "input file" in capsys.readouterr().err
    assert copy.read_bytes() == before
    assert main(["superpixels", str(tmp_path / "none.png")]) != 0
    assert "no such file" in capsys.readouterr().err


def test_a_large_picture_makes_a_small_page(tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (1500, 2200, 3), dtype=np.uint8)
    fw.superpixels(image, 100, max_iter=1, smoothness=0).report(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 8_000_000
