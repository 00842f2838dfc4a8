"""A folder of images as rows: the pixels in order, in any number of threads, or one line that names the files."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_helpers import bomb, photograph, png_of_16_bits, save_all
from PIL import Image

import foldwise as fw
from foldwise.data.array_files import is_array_file
from foldwise.data.block import dense_rows
from foldwise.data.files import natural_order
from foldwise.errors import DataError, FoldwiseWarning, MissingFileError, ParameterError, SourceChangedError


def rows_of(source: fw.data.source.Source) -> np.ndarray:
    return np.concatenate([dense_rows(piece.load().rows) for piece in source.pieces()])


@pytest.fixture
def images() -> np.ndarray:
    """30 grey images of 5 x 7 pixels (height x width) in three groups."""
    random = np.random.default_rng(0)
    centres = random.integers(40, 216, (3, 5, 7))
    return np.stack([centres[k % 3] + random.integers(-20, 20, (5, 7)) for k in range(30)]).astype(np.uint8)


# ---------------------------------------------------------------- rows and columns


def test_one_row_per_image_with_pixels_line_by_line(tmp_path: Path, images: np.ndarray) -> None:
    save_all(tmp_path, images)
    source = fw.scan(tmp_path)
    assert (source.n_rows, source.n_columns, source.dtype) == (30, 35, np.float32)
    assert source.image_shape == (5, 7)
    assert source.labels is None
    assert source.names is None
    assert source.slow
    assert not source.in_memory
    assert np.array_equal(rows_of(source), images.reshape(30, -1))


def test_colours_are_the_last_axis(tmp_path: Path) -> None:
    images = np.stack([photograph(4, 6, seed) for seed in range(3)])
    save_all(tmp_path, images)
    source = fw.scan(tmp_path)
    assert source.image_shape == (4, 6, 3)
    assert np.array_equal(rows_of(source), images.reshape(3, -1))


@pytest.mark.parametrize("way", ["folder", "slash", "pattern", "recursive", "list", "path"])
def test_every_way_to_name_them_gives_the_same_rows(tmp_path: Path, images: np.ndarray, way: str) -> None:
    paths = save_all(tmp_path / "set", images)
    given = {
        "folder": str(tmp_path / "set"),
        "slash": f"{tmp_path / 'set'}{os.sep}",
        "pattern": str(tmp_path / "set" / "*.png"),
        "recursive": str(tmp_path / "**" / "*.png"),
        "list": [str(path) for path in paths],
        "path": tmp_path / "set",
    }[way]
    source = fw.scan(given)
    assert np.array_equal(rows_of(source), images.reshape(30, -1))
    assert [os.path.basename(path) for path in source.paths] == [path.name for path in paths]
    assert is_array_file(given)


def test_natural_order_and_the_order_of_a_list(tmp_path: Path, images: np.ndarray) -> None:
    paths = save_all(tmp_path, images[:12])
    assert [Path(path).name for path in fw.scan(tmp_path).paths] == [f"img{k}.png" for k in range(12)]
    backwards = [str(path) for path in reversed(paths)]
    assert list(fw.scan(backwards).paths) == backwards
    assert sorted(["a10", "a9", "A1", "a"], key=natural_order) == ["a", "A1", "a9", "a10"]


@given(st.lists(st.text("ab019/", min_size=1, max_size=6), unique=True))
def test_the_natural_order_does_not_depend_on_the_order_before(names: list[str]) -> None:
    backwards = names[::-1]
    assert sorted(names, key=natural_order) == sorted(backwards, key=natural_order)


def test_labels_are_the_subfolders(tmp_path: Path, images: np.ndarray) -> None:
    save_all(tmp_path / "cat", images[:2])
    save_all(tmp_path / "dog" / "old", images[2:3])
    save_all(tmp_path / ".hidden", images[3:4])
    (tmp_path / "cat" / "._img0.png").write_bytes(b"what some systems leave beside a file")
    (tmp_path / "notes.txt").write_text("not an image")
    assert fw.scan(tmp_path).labels.tolist() == ["cat", "cat", "dog/old"]
    assert fw.scan(f"{tmp_path}/*/*.png").labels is None


def test_images_that_cannot_be_read_are_counted(tmp_path: Path, images: np.ndarray) -> None:
    save_all(tmp_path / "set", images[:3])
    (tmp_path / "set" / "report.pdf").write_bytes(b"x")
    (tmp_path / "set" / ".x.heic").write_bytes(b"x")
    assert fw.scan(tmp_path / "set").n_rows == 3  # without a warning, which would be an error here
    (tmp_path / "set" / "x.HEIC").write_bytes(b"x")
    with pytest.warns(FoldwiseWarning, match=r"set: 1 file is left out, such as x.HEIC: a photograph in the HEIF"):
        assert fw.scan(tmp_path / "set").n_rows == 3
    (tmp_path / "set" / "more").mkdir()
    (tmp_path / "set" / "more" / "y.nef").write_bytes(b"x")
    with pytest.warns(FoldwiseWarning, match=r"2 files are left out") as caught:
        assert fw.scan(tmp_path / "set").n_rows == 3
    assert len(caught) == 1
    with pytest.raises(DataError, match="HEIF"):
        fw.scan(tmp_path / "set" / "x.HEIC")


def test_whole_numbers_of_32_bits_stay_as_they_are(tmp_path: Path) -> None:
    pixels = np.array([[2**24 + 1, 7], [2**30 + 3, 0]], np.int32)
    Image.fromarray(pixels).save(tmp_path / "x.tif")
    source = fw.scan(tmp_path / "x.tif")
    assert source.dtype == np.float64
    assert rows_of(source)[0].astype(np.int64).tolist() == pixels.ravel().tolist()


def test_a_folder_without_images_is_still_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"this is a folder.*pattern.*\*\.csv"):
        fw.scan(tmp_path)
    with pytest.raises(MissingFileError, match="no file matches"):
        fw.scan(f"{tmp_path}/*.png")
    with pytest.raises(MissingFileError):
        fw.scan(f"{tmp_path}/nothing.png")


# ---------------------------------------------------------------- sizes and kinds


def test_different_sizes_name_the_first_two_files_and_the_option(tmp_path: Path, images: np.ndarray) -> None:
    paths = save_all(tmp_path, images[:5])
    Image.new("L", (8, 5)).save(paths[3])
    with pytest.raises(DataError, match=r"img0.png has 7 x 5 and .*img3.png 8 x 5 .*image_size='7x5'") as error:
        fw.scan(tmp_path)
    assert "\n" not in str(error.value)
    assert fw.scan(tmp_path, image_size="7x5").n_rows == 5


def test_sizes_are_width_and_height(tmp_path: Path, images: np.ndarray) -> None:
    save_all(tmp_path, images[:3])
    for size in ((14, 10), "14x10", "14 X 10", [14, 10]):
        source = fw.scan(tmp_path, image_size=size)
        assert source.image_shape == (10, 14)
        expected = Image.fromarray(images[1]).resize((14, 10), Image.Resampling.LANCZOS)
        assert np.array_equal(rows_of(source)[1], np.asarray(expected).ravel())
    assert np.array_equal(rows_of(fw.scan(tmp_path, image_size=(7, 5))), images[:3].reshape(3, -1))
    for bad in ("14", "0x3", (1, 2, 3), 14, "axb", (2.5, 3)):
        with pytest.raises(ParameterError, match="image_size"):
            fw.scan(tmp_path, image_size=bad)


def test_large_photographs_are_made_small_well(tmp_path: Path) -> None:
    large = photograph(480, 640)
    Image.fromarray(large).save(tmp_path / "x.jpg", quality=95)
    source = fw.scan(tmp_path / "x.jpg", image_size=(32, 24))
    squares = large.reshape(24, 20, 32, 20, 3).mean((1, 3))
    assert np.abs(rows_of(source).reshape(24, 32, 3) - squares).max() < 4


def test_grey_as_pillow_makes_it_and_mixed_kinds(tmp_path: Path) -> None:
    Image.fromarray(photograph()).save(tmp_path / "a.png")
    source = fw.scan(tmp_path, grey=True)
    assert source.image_shape == (12, 16)
    grey = Image.fromarray(photograph()).convert("L")
    assert np.array_equal(rows_of(source)[0], np.asarray(grey).ravel())
    grey.save(tmp_path / "b.png")
    with pytest.raises(DataError, match=r"b.png is grey and .*a.png has colours. grey=True"):
        fw.scan(tmp_path)
    rows = rows_of(fw.scan(tmp_path, grey=True))
    assert np.array_equal(rows[0], rows[1])


def test_opacity_lies_on_white(tmp_path: Path) -> None:
    pixels = np.array([[[10, 20, 30, 255], [10, 20, 30, 0]]], np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    Image.fromarray(pixels[..., :3]).save(tmp_path / "b.png")
    source = fw.scan(tmp_path)  # with and without opacity can be compared
    assert source.image_shape == (1, 2, 3)
    assert rows_of(source).tolist() == [[10, 20, 30, 255, 255, 255], [10, 20, 30, 10, 20, 30]]
    Image.fromarray(np.array([[[7, 255], [7, 0]]], np.uint8), "LA").save(tmp_path / "c.png")
    assert rows_of(fw.scan(tmp_path / "c.png")).tolist() == [[7, 255]]


def test_16_bits_and_floats(tmp_path: Path) -> None:
    pixels = np.array([[0, 65535, 257]], np.uint16)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert rows_of(fw.scan(tmp_path / "a.png")).tolist() == [[0, 65535, 257]]
    assert rows_of(fw.scan(tmp_path / "a.png", image_size=(1, 1))).max() > 255
    Image.fromarray(np.array([[0.25, -1, 3]], np.float32)).save(tmp_path / "b.tif")
    assert rows_of(fw.scan(tmp_path / "b.tif")).tolist() == [[0.25, -1, 3]]
    with pytest.raises(DataError, match=r"16 bits.*float"):
        fw.scan(tmp_path)


def test_turned_by_the_camera_before_sizes_are_compared(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(photograph(8, 16)).save(tmp_path / "a.jpg", exif=exif, quality=95)
    Image.fromarray(photograph(16, 8)).save(tmp_path / "b.jpg", quality=95)
    assert fw.scan(tmp_path).image_shape == (16, 8, 3)


def test_one_warning_for_all_of_a_kind(tmp_path: Path) -> None:
    frames = [Image.new("L", (4, 4), shade) for shade in (0, 200)]
    for name in "abc":
        frames[0].save(tmp_path / f"{name}.gif", save_all=True, append_images=frames[1:])
    with pytest.warns(FoldwiseWarning, match=r"a.gif and 2 more have several pictures") as caught:
        rows_of(fw.scan(tmp_path))
    assert len(caught) == 1
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "x.png").write_bytes(png_of_16_bits(np.full((2, 2, 3), 0x1234, np.uint16)))
    with pytest.warns(FoldwiseWarning, match="upper 8"):
        fw.scan(tmp_path / "deep")


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"text", "not an image"),
        (bomb(), "30,000 x 30,000"),
        (b"\x89PNG\r\n\x1a\n" + bytes(20), "not an image|damaged"),
    ],
)
def test_a_bad_file_among_good_ones_is_named(tmp_path: Path, images: np.ndarray, content: bytes, words: str) -> None:
    save_all(tmp_path, images[:4])
    (tmp_path / "img2.png").write_bytes(content)
    with pytest.raises(DataError, match=words) as error:
        rows_of(fw.scan(tmp_path))
    assert "img2.png" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_truncated_file_is_named_when_it_is_read(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (4, 40, 40), dtype=np.uint8)
    paths = save_all(tmp_path, noise)
    content = paths[2].read_bytes()
    paths[2].write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"img2.png.*(damaged|incomplete)"):
        fw.KMeans(2).fit(str(tmp_path))


def test_what_changes_between_passes_is_noticed(tmp_path: Path, images: np.ndarray) -> None:
    paths = save_all(tmp_path, images)
    source = fw.scan(tmp_path)
    before = source.fingerprint()
    rows_of(source)
    Image.new("L", (7, 5), 9).save(paths[20])
    with pytest.raises(SourceChangedError, match="img20"):
        rows_of(source)
    assert fw.scan(tmp_path).fingerprint() != before
    paths[20].unlink()
    with pytest.raises(SourceChangedError, match="img20"):
        rows_of(source)


def test_other_formats_and_options_that_do_not_fit(tmp_path: Path, images: np.ndarray) -> None:
    save_all(tmp_path, images[:2])
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "x.svg").write_text("<svg/>")
    with pytest.raises(DataError, match="different formats"):
        fw.scan([f"{tmp_path}/img0.png", f"{tmp_path}/x.csv"])
    with pytest.raises(DataError, match=r"drawing.*PNG"):
        fw.scan(f"{tmp_path}/x.svg")
    (tmp_path / "x.svg").unlink()  # a folder with it warns
    with pytest.raises(DataError, match="list of the files"):
        fw.scan(tmp_path, where="x > 0")
    with pytest.raises(ParameterError, match="image_size= is for images"):
        fw.scan(f"{tmp_path}/x.csv", image_size="2x2")
    with pytest.raises(ParameterError, match="grey=True is for images"):
        fw.prepare(f"{tmp_path}/x.csv", grey=True)
    with pytest.raises(DataError, match="no columns with names"):
        fw.prepare(str(tmp_path))


# ---------------------------------------------------------------- models


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_same_bits_as_the_same_pixels_in_an_array(tmp_path: Path, images: np.ndarray, threads: int) -> None:
    save_all(tmp_path, images)
    array = images.reshape(30, -1).astype(np.float32)
    for make in (lambda: fw.KMeans(3, random_state=0, n_threads=threads), lambda: fw.PCA(4, n_threads=threads)):
        one, other = make().fit(str(tmp_path)), make().fit(array)
        for name in ("labels_", "cluster_centers_", "components_", "explained_variance_"):
            if hasattr(one, name):
                assert np.array_equal(getattr(one, name), getattr(other, name)), name
        assert one.image_shape_ == (5, 7)


def test_many_blocks_give_the_same_bits_in_any_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from foldwise.data import block_grid

    monkeypatch.setattr(block_grid, "_BYTES", 4 * 35 * 8)
    monkeypatch.setattr(block_grid, "_WIDE_ROWS", 8)
    images = np.random.default_rng(1).integers(0, 255, (100, 5, 7), dtype=np.uint8)
    save_all(tmp_path, images)
    assert len(list(fw.scan(tmp_path).pieces())) > 5
    found = [fw.PCA(4, n_threads=threads).fit(str(tmp_path)).components_ for threads in (1, 2, 3)]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    assert np.array_equal(found[0], fw.PCA(4).fit(images.reshape(100, -1).astype(np.float32)).components_)


def test_files_are_decoded_once_however_many_passes(
    tmp_path: Path, images: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    from foldwise.data import image_folder

    save_all(tmp_path, images)
    seen: list[str] = []
    plain = image_folder.image_row
    monkeypatch.setattr(
        image_folder, "image_row", lambda path, *rest, **more: seen.append(path) or plain(path, *rest, **more)
    )
    model = fw.KMeans(3, random_state=0, n_threads=1).fit(str(tmp_path))
    assert model.manifest_.passes > 2
    assert len(seen) == 31  # each once, and the first to learn its shape


def test_a_source_travels(tmp_path: Path, images: np.ndarray) -> None:
    save_all(tmp_path / "a", images[:15])
    save_all(tmp_path / "b", images[15:])
    source = fw.scan(tmp_path, weights=np.arange(1.0, 31.0))
    copy = pickle.loads(pickle.dumps(source))
    assert np.array_equal(rows_of(copy), images.reshape(30, -1))
    assert copy.fingerprint() == source.fingerprint()
    assert copy.labels.tolist() == source.labels.tolist()
    assert next(iter(copy.pieces())).load().weights.tolist() == list(range(1, 31))


def test_new_images_of_another_size_or_kind_are_refused(tmp_path: Path, images: np.ndarray) -> None:
    save_all(tmp_path / "fit", images)
    model = fw.KMeans(3, random_state=0).fit(str(tmp_path / "fit"))
    assert np.array_equal(model.predict(str(tmp_path / "fit")), model.labels_)
    save_all(tmp_path / "turned", images.transpose(0, 2, 1).copy())
    with pytest.raises(DataError, match=r"fitted to images of 7 x 5 .* these are 5 x 7.*image_size='7x5'"):
        model.predict(str(tmp_path / "turned"))
    assert len(model.predict(fw.scan(tmp_path / "turned", image_size=(7, 5)))) == 30
    save_all(tmp_path / "colour", np.stack([photograph(5, 7)]))
    with pytest.raises(DataError, match=r"grey images.*with colours.*grey=True"):
        model.predict(str(tmp_path / "colour"))
    fw.save(model, tmp_path / "m.fw")
    loaded = fw.load(tmp_path / "m.fw")
    assert loaded.image_shape_ == (5, 7)
    with pytest.raises(DataError, match="image_size"):
        loaded.predict(str(tmp_path / "turned"))
    assert np.array_equal(loaded.predict(images.reshape(30, -1).astype(np.float32)), model.labels_)
    assert not hasattr(model.fit(images.reshape(30, -1)), "image_shape_")


def test_columns_can_be_chosen_by_position(tmp_path: Path, images: np.ndarray) -> None:
    save_all(tmp_path, images)
    source = fw.scan(tmp_path, columns=[3, 0])
    assert source.image_shape is None
    assert np.array_equal(rows_of(source), images.reshape(30, -1)[:, [3, 0]])


@given(height=st.integers(1, 6), width=st.integers(1, 6), count=st.integers(1, 5), channels=st.sampled_from([0, 3]))
def test_any_shape(
    tmp_path_factory: pytest.TempPathFactory, height: int, width: int, count: int, channels: int
) -> None:
    shape = (count, height, width, channels) if channels else (count, height, width)
    images = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    folder = tmp_path_factory.mktemp("shapes")
    save_all(folder, images)
    source = fw.scan(folder)
    assert source.image_shape == shape[1:]
    assert np.array_equal(rows_of(source), images.reshape(count, -1))


def test_memory_holds_only_some_images(tmp_path: Path) -> None:
    """900 MB of pixels in 225 files; a pass may take a part of that."""
    base = np.random.default_rng(0).integers(0, 255, (25, 25), dtype=np.uint8)
    large = np.kron(base, np.ones((40, 40), np.uint8))
    Image.fromarray(large).save(tmp_path / "img0.png", compress_level=1)
    for number in range(1, 225):
        os.link(tmp_path / "img0.png", tmp_path / f"img{number}.png")
    code = (
        "import resource, foldwise as fw\n"
        f"source = fw.scan({str(tmp_path)!r})\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "total = 0.0\n"
        "for piece in source.pieces():\n"
        "    total += float(piece.load().rows.sum())\n"
        "print(source.n_rows * source.n_columns * 4 // 1024, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    whole, more = map(int, made.stdout.split())
    assert whole > 800_000  # kilobytes
    assert more < whole / 4
def test_a_folder_of_tables_is_an_error_that_names_a_pattern_for_them(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"this is a folder without files\. Name a file"):
        fw.scan(tmp_path)
    (tmp_path / "notes.xyz").write_text("words")
    (tmp_path / ".hidden.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match="without files of a kind that is read"):
        fw.scan(tmp_path)
    for name in ("a.csv", "b.CSV.gz", "c.csv.gz", "d.csv.gz", "e.parquet"):
        (tmp_path / name).write_text("a\n1\n")
    with pytest.raises(DataError, match=r"such as '.*\*\.csv\.gz'"):
        fw.scan(tmp_path)
