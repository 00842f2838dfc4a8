"""`foldwise faces`: what it prints and writes, and its errors in one line."""

import json

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

import foldwise as fw
from foldwise.cli import main


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A table of 8 x 8 pixels and which digit they show."""
    images, numbers = load_digits(return_X_y=True)
    place = tmp_path_factory.mktemp("digits") / "digits.csv"
    head = ",".join([*(f"p{i}" for i in range(64)), "digit"])
    np.savetxt(place, np.column_stack([images, numbers]), "%d", ",", header=head, comments="")
    return str(place)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Five people with four pictures each; theirs differ in a stripe."""
    rng, place = np.random.default_rng(0), tmp_path_factory.mktemp("faces")
    for person in range(5):
        (place / f"person{person}").mkdir()
        for number in range(4):
            pixels = rng.normal(120, 12, (14, 10))
            pixels[2 * person + 1 : 2 * person + 4] += 60
            name = place / f"person{person}" / f"{number}.png"
            Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(name)
    return place


def test_a_folder(folder, tmp_path, capsys):
    page, model = tmp_path / "faces.html", tmp_path / "faces.fw"
    assert main(["faces", str(folder), "--splits", "2", "--report", str(page), "--model", str(model)]) == 0
    told = capsys.readouterr().out
    assert "20 images, 10 x 14 pixels, 5 labels" in told
    assert "recognised, left out" in told
    assert "shuffled tiles" in told
    text = page.read_text()
    assert len(text) < 1_000_000
    for title in (
        "Mean and components",
        "Reconstructions",
        "Recognition",
        "Novelty",
        "Everything is a face",
        "Variance",
    ):
        assert title in text
    assert text.count("data:image/png;base64,") > 50
    assert fw.load(model).n_components_ == 19


def test_the_model_is_for_new_images(folder, tmp_path, capsys):
    model, out = tmp_path / "faces.fw", tmp_path / "scores.npy"
    assert main(["faces", str(folder), "--splits", "1", "--model", str(model)]) == 0
    assert main(["apply", str(model), str(folder), "--out", str(out)]) == 0
    assert np.load(out).shape == (20, 19)
    capsys.readouterr()


def test_figures_for_programs(folder, tmp_path, capsys):
    out = tmp_path / "figures.json"
    arguments = [
        "faces",
        str(folder),
        "--components",
        "2,5",
        "--reconstruct",
        "1,3",
        "--splits",
        "2",
        "--out",
        str(out),
    ]
    assert main([*arguments, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(out.read_text())
    table = printed["tables"]["Accuracy by number of components"]
    assert table["components"] == [2, 5, "all pixels"]
    assert table["left out"][1] > 0.9
    assert printed["facts"]["AUC of novelty"] > 0.9


def test_a_table_of_digits(digits, capsys):
    arguments = [
        "faces",
        digits,
        "--label",
        "digit",
        "--shape",
        "8x8",
        "--components",
        "10,30",
        "--splits",
        "1",
        "--json",
    ]
    assert main([*arguments, "--max-images", "500"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["title"] == "Components of 500 images"
    assert printed["tables"]["Accuracy by number of components"]["left out"][1] > 0.95
    assert "500 of 1,797 images were drawn at random; all figures are of these." in printed["notes"]


def test_without_labels(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(9, 3, 4)))
    assert main(["faces", str(tmp_path / "x.npy")]) == 0
    told = capsys.readouterr().out
    assert "recognised" not in told
    assert "AUC of novelty" in told


def test_other_images(folder, tmp_path, capsys):
    Image.fromarray(np.random.default_rng(1).integers(0, 255, (40, 40, 3), np.uint8)).save(tmp_path / "noise.png")
    page = tmp_path / "page.html"
    assert main(["faces", str(folder), "--splits", "1", "--novel", str(tmp_path), "--report", str(page)]) == 0
    told = capsys.readouterr().out
    assert "Of 1 other image given" in told
    assert "shuffled tiles" not in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{tmp}/one"], "only one image"),
        (["{tmp}/sizes"], "differ in size"),
        (["{tmp}/nothing"], "nothing"),
        (["{folder}", "--components", "500"], "at most 19 components"),
        (["{folder}", "--components", "ten"], "--components ten"),
        (["{folder}", "--label", "{tmp}/short.txt"], "20 images, but labels of shape (2,)"),
        (["{folder}", "--label", "nobody"], "nobody"),
        (["{tmp}/nan.npy"], "not finite"),
        (["{tmp}/same.npz", "--label", "who"], "all images have the label 1"),
        (["{tmp}/same.npz", "--label", "whom"], "no array 'whom'"),
        (["{digits}", "--label", "letter"], "no column 'letter'"),
        (["{folder}", "--report", "page.txt"], "ends in .html"),
        (["{folder}", "--novel", "{tmp}/void"], "no images"),
    ],
)
def test_errors_in_one_line(folder, digits, tmp_path, capsys, arguments, words):
    for name, sizes in {"one": [(5, 5)], "sizes": [(5, 5), (5, 6)], "void": []}.items():
        (tmp_path / name).mkdir()
        for number, size in enumerate(sizes):
            Image.fromarray(np.zeros(size, np.uint8)).save(tmp_path / name / f"{number}.png")
    (tmp_path / "short.txt").write_text("ann\nbob\n")
    np.save(tmp_path / "nan.npy", np.full((3, 2, 2), np.nan))
    np.savez(tmp_path / "same.npz", images=np.eye(4).reshape(4, 2, 2), who=np.ones(4, int))
    assert main(["faces", *(one.format(tmp=tmp_path, folder=folder, digits=digits) for one in arguments)]) in (1, 2)
    told = capsys.readouterr().err.strip()
    assert words in told
    assert len(told.splitlines()) == 1


def test_ctrl_c(folder, tmp_path, monkeypatch, capsys):
    def stop(self):
        raise KeyboardInterrupt

    monkeypatch.setattr("foldwise.models.images.recognition.Recognising.split", stop)
    assert main(["faces", str(folder), "--model", str(tmp_path / "m.fw")]) == 130
    told = capsys.readouterr().out
    assert "Interrupted" in told
    assert "recognised, left out" in told
    assert (tmp_path / "m.fw").exists()
