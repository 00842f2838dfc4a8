"""`foldwise quantize`: pictures, palettes and codebooks in and out."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import foldwise as fw
from foldwise.cli import main
from foldwise.data.image_file import read_image
from foldwise.data.palette_file import read_palette, write_palette
from foldwise.errors import DataError, ParameterError

CHINA = Path(__file__).parents[2] / "examples" / "china.jpg"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a photograph, whole and in halves, which is the current one."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(CHINA, "photo.jpg")
    Path("parts").mkdir()
    Path("out").mkdir()
    pixels = read_image(CHINA)
    Image.fromarray(pixels[:, :160]).save("parts/left.png")
    Image.fromarray(pixels[:, 160:]).save("parts/right.png")
    return tmp_path


def told(capsys: pytest.CaptureFixture[str]) -> str:
    """What was said instead of doing it: one line."""
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    assert "Traceback" not in said
    return said


def test_a_photograph_in_and_out(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quantize", "photo.jpg", "-k", "16", "--out", "q.png", "--report", "r.html"]) == 0
    text = capsys.readouterr().out
    made = fw.quantize("photo.jpg", 16, random_state=0)
    with Image.open("q.png") as opened:
        assert (opened.mode, opened.size) == ("P", (320, 214))
        np.testing.assert_array_equal(np.asarray(opened.convert("RGB")), made.pixels)
    assert f"PSNR               {made.psnr:.2f} dB" in text
    for size in (Path("photo.jpg").stat().st_size, Path("q.png").stat().st_size, made.plain_bytes):
        assert f"{size:,}" in text
    assert all(name in text for name in made.hex)
    assert "data:image/png" in Path("r.html").read_text()


def test_json(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quantize", "photo.jpg", "-k", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["tables"]["Palette"]["colour"]) == 3


def test_blocks_are_written_and_read_back(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quantize", "photo.jpg", "-k", "32", "--blocks", "4", "--out", "q.npz", "--codebook", "c.npy"]) == 0
    text = capsys.readouterr().out
    made = fw.quantize("photo.jpg", 32, block=4, random_state=0)
    assert f"{Path('q.npz').stat().st_size:,}" in text
    assert f"{made.plain_bytes:,}" in text
    np.testing.assert_array_equal(np.load("c.npy"), made.codebook)
    assert main(["quantize", "q.npz", "--out", "back.png", "--codebook", "c.png"]) == 0
    np.testing.assert_array_equal(read_image("back.png"), made.pixels)
    assert read_image("c.png").shape == (6 * 17 - 1, 6 * 17 - 1, 3)  # tiles are made larger


def test_a_palette_goes_out_and_in(here: Path) -> None:
    for ending in (".csv", ".gpl", ".hex", ".txt", ".png"):
        assert main(["quantize", "photo.jpg", "-k", "8", "--out", "q.png", "--palette-out", f"p{ending}"]) == 0
        assert main(["quantize", "photo.jpg", "--palette", f"p{ending}", "--out", "again.png"]) == 0
        np.testing.assert_array_equal(read_image("q.png"), read_image("again.png"))
    # The palette of a picture that has one goes from dark to light, which makes the file smaller.
    assert sorted(read_palette("q.png").tolist()) == sorted(read_palette("p.csv").tolist())
    light = read_palette("q.png") @ [0.299, 0.587, 0.114]
    assert (np.diff(light) >= 0).all()
    lines = Path("p.csv").read_text().splitlines()
    assert lines[0] == "color,red,green,blue,pixels,share"
    assert sum(int(line.split(",")[4]) for line in lines[1:]) == 320 * 214


def test_a_folder_goes_in_and_a_new_folder_comes_out(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quantize", "parts", "-k", "4", "--shared-palette", "--out", "new/", "--report", "r.html"]) == 0
    assert sorted(os.listdir("new")) == ["left.png", "right.png"]
    assert "share" in capsys.readouterr().out
    assert Path("r.html").read_text().count("<image") == 4  # before and after
    # The palette alone
    assert main(["quantize", "parts", "-k", "4", "--shared-palette", "--palette-out", "p.hex"]) == 0
    assert len(read_palette("p.hex")) == 4


def test_palettes_of_python_as_texts_and_files(here: Path) -> None:
    made = fw.quantize("photo.jpg", 4, random_state=0)
    Path("p.hex").write_text("\n".join(made.hex))
    for palette in (made.hex, "p.hex", Path("p.hex"), made.palette):
        np.testing.assert_array_equal(fw.quantize("photo.jpg", palette=palette).pixels, made.pixels)
    with pytest.raises(ParameterError, match="ImageQuantizer"):
        fw.quantize(["photo.jpg", "photo.jpg"], 4)
    with pytest.raises(DataError, match="no colours"):
        fw.quantize("photo.jpg", palette=["red"])


@pytest.mark.parametrize("shared", [False, True])
def test_folders(here: Path, capsys: pytest.CaptureFixture[str], shared: bool) -> None:
    more = ["--shared-palette", "--palette-out", "p.hex"] if shared else []
    assert main(["quantize", "parts/*.png", "-k", "8", "--out", "out", *more]) == 0
    left, right = (read_palette(f"out/{name}.png").tolist() for name in ("left", "right"))
    text = capsys.readouterr().out
    assert f"{sum(Path(f'out/{name}.png').stat().st_size for name in ('left', 'right')):,}" in text
    if shared:
        whole = fw.quantize("photo.jpg", 8, random_state=0)
        assert read_palette("p.hex").tolist() == whole.palette.tolist()
        assert {tuple(one) for one in left + right} <= {tuple(one) for one in whole.palette.tolist()}
        assert all(name in text for name in whole.hex)
    else:
        assert left != right


def test_one_picture_into_a_folder(here: Path) -> None:
    assert main(["quantize", "photo.jpg", "-k", "4", "--out", "out"]) == 0
    assert os.listdir("out") == ["photo.png"]


def test_several_names_without_a_pattern(here: Path) -> None:
    assert main(["quantize", "parts/left.png", "parts/right.png", "--blocks", "4", "--out", "out/"]) == 0
    assert sorted(os.listdir("out")) == ["left.npz", "right.npz"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give an image file"),
        (["nowhere.jpg"], "there is no such file"),
        (["nowhere/*.jpg"], "no file matches"),
        (["photo.jpg", "--out", "photo.jpg"], "this is the input file"),
        (["photo.jpg", "--out", "link.jpg"], "this is the input file"),
        (["photo.jpg", "--out", "missing/q.png"], "does not exist"),
        (["photo.jpg", "--out", "q"], "ends in .npz"),
        (["photo.jpg", "--out", "q.xyz"], ".xyz"),
        (["photo.jpg", "--palette-out", "p.pdf"], "palettes are written as"),
        (["photo.jpg", "--palette", "nowhere.gpl"], "there is no such file"),
        (["photo.jpg", "--palette", "photo.jpg"], "no palette"),
        (["photo.jpg", "--palette", "words.txt"], "no colours were found"),
        (["photo.jpg", "--palette", "c.hex", "-k", "3"], "give one of them"),
        (["photo.jpg", "--palette", "c.hex", "--palette-out", "c.hex"], "this is the input file"),
        (["photo.jpg", "--blocks", "4", "--dither"], "--dither is for colours"),
        (["photo.jpg", "--codebook", "c.png"], "--blocks"),
        (["photo.jpg", "--blocks", "4", "--codebook", "c.jpg"], ".png or .npy"),
        (["parts/*.png"], "give --out and a folder"),
        (["parts/*.png", "--out", "words.txt"], "must be a folder"),
        (["parts/*.png", "--out", "words.txt/there"], "words.txt"),
        (["empty"], "no images in this folder"),
        (["parts/*.png", "--out", "parts"], "this is the input file"),
        (["parts/left.png", "copy/left.png", "--out", "out"], "would both become"),
        (["parts/*.png", "--out", "out", "--palette-out", "p.csv"], "--shared-palette"),
        (["words.txt"], "not an image"),
        (["cut.jpg"], "cut.jpg"),
        (["words.npz"], "not a quantised image"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    Path("link.jpg").symlink_to("photo.jpg")
    Path("words.txt").write_text("only words\n")
    Path("words.npz").write_text("only words\n")
    Path("c.hex").write_text("#102030\n")
    Path("cut.jpg").write_bytes(Path("photo.jpg").read_bytes()[:9000])
    shutil.copytree("parts", "copy")
    Path("empty").mkdir()
    before = Path("photo.jpg").read_bytes()
    assert main(["quantize", *arguments]) == 2
    assert words in told(capsys)
    assert Path("photo.jpg").read_bytes() == before
    assert os.listdir("out") == []


def test_pictures_of_other_kinds(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photo = Image.fromarray(read_image("photo.jpg"))
    photo.convert("CMYK").save("cmyk.jpg")
    exif = Image.Exif()
    exif[0x0112] = 6
    photo.save("turned.jpg", exif=exif)
    Image.new("1", (1, 1)).save("dot.png")
    for name, shape in (("cmyk.jpg", (214, 320, 3)), ("turned.jpg", (320, 214, 3)), ("dot.png", (1, 1, 3))):
        assert main(["quantize", name, "-k", "4", "--out", "q.png"]) == 0
        assert read_image("q.png").shape == shape
    assert "all are kept exactly" in capsys.readouterr().out  # of the dot


@pytest.mark.filterwarnings("default")
def test_of_an_animation_the_first_picture_is_used(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photo = Image.fromarray(read_image("photo.jpg"))
    photo.save("moving.gif", save_all=True, append_images=[photo.rotate(90), photo.rotate(180)])
    assert main(["quantize", "moving.gif", "-k", "4", "--out", "q.png"]) == 0
    assert told(capsys) == "foldwise: moving.gif: 3 pictures in one file; the first is used.\n"


def test_a_full_disk_is_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("foldwise.data.atomic.Replacement.settle", full)
    assert main(["quantize", "photo.jpg", "-k", "4", "--out", "q.png"]) == 2
    assert "q.png: cannot be written: No space left on device" in told(capsys)
    assert sorted(os.listdir(".")) == ["out", "parts", "photo.jpg"]


def test_ctrl_c_leaves_no_file(here: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (1500, 1500, 3)).astype(np.uint8)
    Image.fromarray(noise).save("noise.bmp")
    command = [sys.executable, "-m", "foldwise", "quantize", "noise.bmp", "-k", "4096", "--out", "q.png"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        time.sleep(2.5)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert not Path("q.png").exists()


# ---------------------------------------------------------------- palettes in files


@pytest.mark.parametrize(
    "text",
    [
        "#ff8000\n#010203\n",
        "ff8000\n010203\n",
        "GIMP Palette\nName: two\nColumns: 2\n#\n255 128   0\torange\n  1   2   3\tUntitled\n",
        "JASC-PAL\n0100\n2\n255 128 0\n1 2 3\n",
        "red,green,blue\n255,128,0\n1,2,3\n",
        'name;color\n"one";"#FF8000"\n"two";"#010203"\n',
        "\ufeff255;128;0\r\n\r\n# a comment\r\n1;2;3\r\n",
    ],
)
def test_lists_of_colours(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.txt").write_text(text, encoding="utf-8")
    assert read_palette(tmp_path / "p.txt").tolist() == [[255, 128, 0], [1, 2, 3]]


def test_opacity_in_lists_of_colours(tmp_path: Path) -> None:
    palette = np.array([[255, 128, 0, 255], [1, 2, 3, 9]], np.uint8)
    for ending in (".hex", ".csv", ".png"):
        write_palette(tmp_path / f"p{ending}", palette)
        np.testing.assert_array_equal(read_palette(tmp_path / f"p{ending}"), palette)


@pytest.mark.parametrize(("text", "words"), [("255 128 0\n256 0 0\n", "row 1"), ("#ff8000\n#zzz\nred\n", "'#zzz'")])
def test_wrong_colours_are_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "p.txt").write_text(text)
    with pytest.raises(DataError, match=words):
        read_palette(tmp_path / "p.txt")
