"""Images on the command line: every command takes them; odd input is one line and exit code 2."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import foldwise as fw
from foldwise.cli import main
from foldwise.errors import ParameterError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two subfolders of 20 images of 6 x 4 pixels (width x height) each: dark, and light on the left."""
    place = tmp_path_factory.mktemp("images") / "shapes"
    random = np.random.default_rng(0)
    for name, left in (("dark", 30), ("light", 190)):
        (place / name).mkdir(parents=True)
        for number in range(20):
            pixels = random.integers(0, 40, (4, 6)) + 30
            pixels[:, :3] += left
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(place / name / f"img{number}.png")
    return place


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_look(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["look", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "40 images of 6 x 4 pixels (width x height), grey, 8 bits" in out
    assert "dark       20" in out
    assert main(["look", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == 40
    assert found["image"] == {"height": 4, "width": 6, "channels": 1}
    assert found["labels"] == {"dark": 20, "light": 20}


def test_cluster_writes_files_and_labels_and_shows_means(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, page, model = tmp_path / "c.csv", tmp_path / "c.html", tmp_path / "c.fw"
    command = ["cluster", str(folder), "-k", "2", "--out", str(out), "--report", str(page), "--model", str(model)]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "agreement with label       1.00" in text
    assert "pixel" not in text.replace("pixels", "")
    rows = table(out)
    assert list(rows[0]) == ["row", "file", "label", "cluster", "distance"]
    assert [row["file"] for row in rows[:3]] == [str(folder / "dark" / f"img{k}.png") for k in range(3)]
    assert {(row["label"], row["cluster"]) for row in rows} in (
        {("dark", "0"), ("light", "1")},
        {("dark", "1"), ("light", "0")},
    )
    shown = page.read_text()
    assert "The mean image of each cluster" in shown
    assert shown.count("data:image/png;base64,") == 2
    assert len(shown) < 1_000_000
    capsys.readouterr()
    new = tmp_path / "new.csv"
    assert main(["apply", str(model), f"{folder}/light/*.png", "--out", str(new)]) == 0
    assert [row["cluster"] for row in table(new)] == [row["cluster"] for row in rows if row["label"] == "light"]
    assert "label" not in table(new)[0]  # one folder has no labels


def test_apply_to_images_of_another_size(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, out = tmp_path / "c.fw", tmp_path / "o.csv"
    assert main(["pca", str(folder), "-k", "2", "--image-size", "3x2", "--model", str(model)]) == 0
    capsys.readouterr()
    assert main(["apply", str(model), str(folder), "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "--image-size 3x2" in error
    assert not out.exists()
    assert main(["apply", str(model), str(folder), "--image-size", "3x2", "--out", str(out)]) == 0
    assert len(table(out)) == 40


def test_pca_shows_components(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "p.html"
    assert main(["pca", f"{folder}/**/*.png", "-k", "3", "--report", str(page), "--out", str(tmp_path / "s.npy")]) == 0
    assert "top loadings" not in capsys.readouterr().out
    shown = page.read_text()
    assert "The components as images" in shown
    assert shown.count("data:image/png;base64,") == 4  # with the mean
    assert np.load(tmp_path / "s.npy").shape == (40, 3)


@pytest.mark.parametrize(
    "command",
    [
        ["mixture", "-k", "2", "--type", "diag"],
        ["ensemble", "-k", "2", "--clusterings", "10"],
        ["select", "-n", "3"],
        ["autoencode", "-k", "1", "--epochs", "5"],
    ],
)
def test_other_commands_take_images(
    folder: Path, tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    page, out = tmp_path / "x.html", tmp_path / "x.csv"
    assert main([command[0], str(folder), *command[1:], "--report", str(page), "--out", str(out)]) == 0
    assert page.stat().st_size > 1000
    assert table(out)[25]["file"].endswith("img5.png")
    assert table(out)[25]["label"] == "light"


def test_explore_names_files(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(map(str, folder.glob("*/*.png")))  # as a shell expands a pattern
    assert main(["explore", *files, "--out", str(tmp_path / "r.html"), "--json"]) == 0
    capsys.readouterr()
    rows = table(tmp_path / "r-rows.csv") if (tmp_path / "r-rows.csv").exists() else table(tmp_path / "rows.csv")
    assert rows[0]["file"] == files[0]
    assert rows[0]["label"] == "dark"
    assert files[0] in (tmp_path / "r.html").read_text()


def test_explore_takes_the_size_of_images_in_python_too(folder: Path) -> None:
    found = fw.explore(str(folder), image_size="3x2", n_clusters=2)
    assert found.source.image_shape == (2, 3)
    assert "image_size='3x2'" in found.command
    assert fw.explore(folder, grey=True, n_clusters=2).source.image_shape == (4, 6)
    with pytest.raises(ParameterError, match="labels: only for files and data frames"):
        fw.explore(str(folder), labels=["x"])


def test_select_names_pixels_by_their_places(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["select", str(folder), "-n", "2"]) == 0
    out = capsys.readouterr().out
    assert "pixel 0," in out
    assert "x1" not in out


def test_archives_say_the_labels_too(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = fw.scan(folder)
    pixels = np.concatenate([piece.load().rows for piece in source.pieces()]).reshape(-1, 4, 6).astype(np.uint8)
    np.savez(tmp_path / "x.npz", images=pixels, target=source.labels)
    out = tmp_path / "c.csv"
    assert main(["cluster", str(tmp_path / "x.npz"), "-k", "2", "--out", str(out)]) == 0
    assert "agreement with label       1.00" in capsys.readouterr().out
    assert list(table(out)[0]) == ["row", "label", "cluster", "distance"]
    np.save(tmp_path / "x.npy", pixels.reshape(40, -1))
    page = tmp_path / "p.html"
    assert main(["pca", str(tmp_path / "x.npy"), "-k", "1", "--image-size", "6x4", "--report", str(page)]) == 0
    assert "The components as images" in page.read_text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--image-size", "banana"], "--image-size banana"),
        (["--id", "file"], "--id: the columns of arrays and images have no names"),
        (["--where", "x > 1"], "--where is not possible for images"),
    ],
)
def test_options_that_do_not_fit(
    folder: Path, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cluster", str(folder), "-k", "2", *options]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("name", ["mixed", "text.png", "empty.png", "folder.png", "drawing.svg", "photo.heic"])
def test_odd_input_is_one_line(folder: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    if name in ("mixed", "folder.png"):
        path.mkdir()
    if name == "mixed":
        Image.new("L", (2, 2)).save(path / "a.png")
        Image.new("L", (3, 2)).save(path / "b.png")
    elif name != "folder.png":
        path.write_bytes(b"" if name == "empty.png" else b"<svg/>" if name == "drawing.svg" else b"not an image")
    looks = [] if name == "mixed" else [["look"]]  # images that differ are no rows, but can be looked at
    for command in (["cluster", "-k", "2"], ["pca"], *looks):
        assert main([command[0], str(path), *command[1:]]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert name in error
        if name == "mixed":
            assert "--image-size 2x2" in error


def test_without_pillow(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "PIL", None)
    assert main(["cluster", str(folder)]) == 2
    error = capsys.readouterr().err
    assert 'pip install "foldwise[image]"' in error
    assert error.count("\n") == 1


def test_explore_shows_images_and_no_pixels(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "p.html"
    assert main(["explore", str(folder), "-k", "2", "--report", str(page)]) == 0
    out, text = capsys.readouterr().out, page.read_text()
    assert "40 images of 6 x 4 pixels (width x height), grey" in " ".join(out.split())
    assert "all dark" in out  # a label may name a group
    summary = json.loads((tmp_path / "p-summary.json").read_text())
    for said in (out, text, json.dumps(summary["groups"])):
        assert not re.search(r"pixel \d+,\d+", said)
    assert "The directions as images" in text
    assert text.index("The directions as images") < text.index("How many directions matter?")
    assert text.count("data:image/png") >= 2 * 4 + 2  # of each group its mean and three typical ones; the mean of all
    assert "What the columns hold" not in text


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Two grey images of 6 x 4 pixels, and one of 8 x 5 with colours, the first by its name."""
    place = tmp_path / "mixed"
    place.mkdir()
    for name in "bc":
        Image.fromarray(np.full((4, 6), 90, np.uint8)).save(place / f"{name}.png")
    Image.fromarray(np.full((5, 8, 3), 90, np.uint8)).save(place / "a.png")
    return place


def test_look_at_images_that_differ(mixed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["look", str(mixed)]) == 0
    out = capsys.readouterr().out
    assert "3 images that differ" in out
    assert re.search(r"6 x 4 +grey +8 bits +2\n +8 x 5 +with colours +8 bits +1", out)
    assert "read them with --image-size 6x4 (the size of 2 of them) and --grey" in out
    assert main(["look", str(mixed), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["images"][1]["width"] == 8
    assert main(["look", str(mixed), "--image-size", "6x4", "--grey"]) == 0
    assert "3 images of 6 x 4" in capsys.readouterr().out
    (mixed / "a.png").write_bytes(b"no image")
    assert main(["look", str(mixed)]) == 2  # which is another fault


def test_apply_names_the_images_of_the_model(
    folder: Path, mixed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = str(tmp_path / "m.fw"), str(tmp_path / "o.csv")
    assert main(["pca", str(folder), "-k", "1", "--model", model]) == 0
    capsys.readouterr()
    for given, asked in (
        ([], "6 x 4, grey: use --image-size 6x4 and --grey\n"),
        (["--grey"], "6 x 4, grey: use --image-size 6x4\n"),
        (["--image-size", "6x4"], "6 x 4, grey: use --grey\n"),
    ):
        assert main(["apply", model, str(mixed), "--out", out, *given]) == 2
        assert capsys.readouterr().err.endswith(asked)
    assert main(["apply", model, str(mixed), "--out", out, "--grey", "--image-size", "6x4"]) == 0


def test_autoencode_shows_reconstructions_and_no_pixels(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "p.html"
    assert main(["autoencode", str(folder), "-k", "1", "--epochs", "5", "--report", str(page)]) == 0
    for text in (capsys.readouterr().out, page.read_text()):
        assert not re.search(r"pixel \d+,\d+", text)
    assert page.read_text().count("data:image/png") >= 2 * 8


def test_superpixels_takes_one_image(mixed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["superpixels", str(mixed / "a.png"), str(mixed / "b.png")]) == 2
    assert "b.png: superpixels takes one image at a time" in capsys.readouterr().err
    assert main(["superpixels", str(mixed / "a.png"), "-n", "1000000"]) == 2
    assert "--segments 1,000,000, but the image has 40 pixels" in capsys.readouterr().err


def test_pca_tells_how_many_levels_are_hidden_and_rounds_variances(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "many"
    for number, file in enumerate(sorted(folder.glob("*/*.png"))[:20]):
        (place / f"level{number:02}").mkdir(parents=True)
        (place / f"level{number:02}" / "a.png").write_bytes(file.read_bytes())
    assert main(["pca", str(place), "-k", "2"]) == 0
    out = capsys.readouterr().out
    assert "14 more levels of label not listed" in " ".join(out.split())
    assert re.search(r"level00 +5\.0 %", out)
