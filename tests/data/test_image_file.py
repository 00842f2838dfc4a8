"""Images in files: the right pixels, or one line that names the file."""

from __future__ import annotations

import concurrent.futures
import os
import resource
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_helpers import bomb, photograph, png_of_16_bits
from PIL import Image, ImageOps

from foldwise.data.image_file import MOST_PIXELS, as_image, encoded, image_header, read_image, write_image
from foldwise.data.reading import image_size
from foldwise.errors import DataError, FoldwiseWarning, MissingDependencyError, MissingFileError, ParameterError


def _one_line(error: BaseException, path: Path) -> str:
    text = str(error)
    assert "\n" not in text
    assert str(path) in text
    return text


# ---------------------------------------------------------------- pixels as they are


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16", "F"])
@pytest.mark.parametrize("size", [(1, 1), (5, 3)])
def test_every_mode_of_every_size(tmp_path: Path, mode: str, size: tuple[int, int]) -> None:
    path = tmp_path / ("x.tif" if mode == "F" else "x.png")
    picture = Image.new("1", size, 1) if mode == "1" else Image.new("L", size, 200).convert(mode)
    picture.save(path)
    pixels = read_image(path)
    channels = {"P": (3,), "RGB": (3,), "LA": (4,), "RGBA": (4,)}.get(mode, ())
    assert pixels.shape == (size[1], size[0], *channels)
    assert pixels.dtype == {"I;16": np.uint16, "F": np.float32}.get(mode, np.uint8)
    assert pixels.flags.c_contiguous
    values = {255} if mode == "1" else {200} | ({255} if channels == (4,) else set())
    assert set(pixels.ravel().tolist()) == values
    head = image_header(path)
    assert (head.width, head.height) == size
    assert head.grey == (mode not in ("P", "RGB", "RGBA"))


def test_cmyk_as_written_by_pillow_and_inverted_by_adobe(tmp_path: Path) -> None:
    path, other = tmp_path / "x.jpg", tmp_path / "y.jpg"
    red = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    red.save(path, quality=100)  # with the marker of Adobe, inverted, as Pillow writes it
    content = path.read_bytes()
    at = content.index(b"\xff\xee")
    assert content[at + 4 : at + 9] == b"Adobe"
    other.write_bytes(content[:at] + content[at + 2 + int.from_bytes(content[at + 2 : at + 4], "big") :])
    assert np.abs(read_image(path).astype(int) - [255, 0, 0]).max() <= 3
    plain = read_image(other).astype(int)  # without the marker, the same bytes are ink as it is
    assert plain.shape == (8, 8, 3)
    assert np.abs(plain - np.asarray(Image.open(other).convert("RGB")).astype(int)).max() == 0


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("ending", [".jpg", ".png", ".tif", ".webp"])
def test_turned_as_the_camera_says(tmp_path: Path, orientation: int, ending: str) -> None:
    path = tmp_path / f"x{ending}"
    picture = Image.fromarray(photograph(16, 24))
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture.save(path, exif=exif, **({"quality": 95} if ending in (".jpg", ".webp") else {}))
    seen = read_image(path)
    with Image.open(path) as opened:
        assert np.array_equal(seen, np.asarray(ImageOps.exif_transpose(opened)))
    assert seen.shape == ((16, 24, 3) if orientation < 5 else (24, 16, 3))
    corner = [(0, 0), (0, -1), (-1, -1), (-1, 0), (0, 0), (0, -1), (-1, -1), (-1, 0)][orientation - 1]
    assert (
        np.abs(seen[corner].astype(int) - photograph(16, 24)[0, 0]).max() < 30
    )  # where the first pixel must come to lie
    head = image_header(path)
    assert (head.height, head.width) == seen.shape[:2]


def test_damaged_notes_of_the_camera_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "x.jpg"
    Image.fromarray(photograph()).save(path, exif=b"Exif\0\0garbage that is no TIFF")
    assert read_image(path).shape == (12, 16, 3)


def test_palette_with_transparency(tmp_path: Path) -> None:
    pixels = np.arange(4, dtype=np.uint8).reshape(2, 2)
    palette = np.array([[255, 0, 0, 0], [0, 255, 0, 128], [0, 0, 255, 255], [9, 9, 9, 255]], np.uint8)
    write_image(tmp_path / "x.png", pixels, palette=palette)
    assert np.array_equal(read_image(tmp_path / "x.png"), palette.reshape(2, 2, 4))
    write_image(tmp_path / "y.png", pixels, palette=palette[:, :3])
    assert np.array_equal(read_image(tmp_path / "y.png"), palette[:, :3].reshape(2, 2, 3))


def test_one_transparent_colour_of_rgb_and_grey(tmp_path: Path) -> None:
    Image.new("RGB", (2, 1), (1, 2, 3)).save(tmp_path / "x.png", transparency=(1, 2, 3))
    assert read_image(tmp_path / "x.png").tolist() == [[[1, 2, 3, 0]] * 2]
    Image.new("L", (2, 1), 7).save(tmp_path / "y.png", transparency=7)
    assert read_image(tmp_path / "y.png").tolist() == [[[7, 7, 7, 0]] * 2]


@pytest.mark.parametrize("ending", [".png", ".tif"])
def test_grey_of_16_bits_keeps_all(tmp_path: Path, ending: str) -> None:
    pixels = np.array([[0, 1, 257], [65535, 4660, 2]], np.uint16)
    write_image(tmp_path / f"x{ending}", pixels)
    assert np.array_equal(read_image(tmp_path / f"x{ending}"), pixels)
    assert image_header(tmp_path / f"x{ending}").kind == "16 bits"


def test_grey_of_16_bits_in_the_other_order_of_bytes(tmp_path: Path) -> None:
    pixels = np.array([[0, 1, 257], [65535, 4660, 2]], np.uint16)
    Image.frombytes("I;16B", (3, 2), pixels.astype(">u2").tobytes()).save(tmp_path / "x.tif")
    found = read_image(tmp_path / "x.tif")
    assert found.dtype == np.uint16
    assert found.dtype.isnative
    assert np.array_equal(found, pixels)


def test_whole_numbers_of_32_bits(tmp_path: Path) -> None:
    for values, kind in (([[0, 65535]], np.uint16), ([[-1, 2**24 + 1]], np.float64)):
        Image.fromarray(np.array(values, np.int32)).save(tmp_path / "x.tif")
        found = read_image(tmp_path / "x.tif")
        assert found.dtype == kind
        assert found.tolist() == values


@pytest.mark.parametrize("channels", [3, 4])
def test_colours_of_16_bits_lose_8_and_say_so(tmp_path: Path, channels: int) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(png_of_16_bits(np.full((2, 3, channels), 0x1234, np.uint16)))
    with pytest.warns(FoldwiseWarning, match="upper 8"):
        pixels = read_image(path)
    assert pixels.dtype == np.uint8
    assert set(pixels.ravel().tolist()) == {0x12}


def test_float_and_not_finite(tmp_path: Path) -> None:
    pixels = np.array([[0.5, -1.25], [1e6, 3.0]], np.float32)
    Image.fromarray(pixels).save(tmp_path / "x.tif")
    assert np.array_equal(read_image(tmp_path / "x.tif"), pixels)
    pixels[0, 0] = np.nan
    Image.fromarray(pixels).save(tmp_path / "x.tif")
    with pytest.raises(DataError, match="not finite") as error:
        read_image(tmp_path / "x.tif")
    _one_line(error.value, tmp_path / "x.tif")


def test_values_are_those_of_the_file_whatever_its_colour_profile(tmp_path: Path) -> None:
    from PIL import ImageCms

    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    Image.fromarray(photograph()).save(tmp_path / "x.png", icc_profile=profile)
    assert np.array_equal(read_image(tmp_path / "x.png"), photograph())


@pytest.mark.parametrize("ending", [".gif", ".tif", ".webp", ".png"])
def test_the_first_of_several_pictures_with_one_warning(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x{ending}"
    frames = [Image.new("RGB", (6, 4), colour) for colour in ("red", "lime", "blue")]
    frames[0].save(path, save_all=True, append_images=frames[1:], **({"lossless": True} if ending == ".webp" else {}))
    with pytest.warns(FoldwiseWarning, match="3 pictures in one file; the first is used") as caught:
        pixels = read_image(path)
    assert len(caught) == 1
    assert pixels.shape[:2] == (4, 6)
    assert (pixels[..., :3] == [255, 0, 0]).all()


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize("ending", [".jpg", ".png", ".gif", ".bmp", ".tif", ".webp", ".ppm"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_truncated(tmp_path: Path, ending: str, share: float) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    path = tmp_path / f"x{ending}"
    write_image(path, noise)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some readers warn first
        with pytest.raises(DataError) as error:
            read_image(path)
    _one_line(error.value, path)


def test_a_bomb_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(bomb())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError, match="30,000 x 30,000") as error:
        read_image(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes
    _one_line(error.value, path)
    assert 100_000_000 < MOST_PIXELS < 30_000 * 30_000


def test_a_large_photograph_is_read_without_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "x.png"  # more than Pillow itself accepts in silence
    Image.new("L", (10_000, 10_000)).save(path, compress_level=1)
    assert read_image(path).shape == (10_000, 10_000)


def test_a_file_that_is_no_image(tmp_path: Path) -> None:
    for content, words in ((b"", "empty"), (b"a,b\n1,2\n", "not an image"), (b"\x89PNG\r\n\x1a\n", "not an image|dam")):
        path = tmp_path / "x.png"
        path.write_bytes(content)
        with pytest.raises(DataError, match=words) as error:
            read_image(path)
        _one_line(error.value, path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>", "drawing.*PNG"),
        ("x.png", b"<?xml version='1.0'?><svg/>", "drawing.*PNG"),
        ("x.heic", b"\0\0\0\x18ftypheic\0\0\0\0", "HEIF.*JPEG"),
        ("x.jpg", b"\0\0\0\x18ftypheic\0\0\0\0", "HEIF.*JPEG"),
        ("x.nef", b"anything", "raw"),
    ],
)
def test_kinds_that_cannot_be_read_with_what_to_do(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=words) as error:
        read_image(path)
    _one_line(error.value, path)


def test_folder_nothing_and_no_permission(tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(DataError, match="folder"):
        read_image(tmp_path / "folder.png")
    with pytest.raises(MissingFileError, match="no such file"):
        read_image(tmp_path / "nothing.png")


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:  # those who run tests may often read everything
        raise PermissionError(13, "Permission denied")

    (tmp_path / "x.png").touch()
    monkeypatch.setattr("foldwise.data.image_file.open", refused, raising=False)
    with pytest.raises(DataError, match="permission denied") as error:
        read_image(tmp_path / "x.png")
    _one_line(error.value, tmp_path / "x.png")


def test_without_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingDependencyError, match=r"pip install \"foldwise\[image\]\""):
        read_image(tmp_path / "x.png")


@given(where=st.integers(0, 400), value=st.integers(0, 255), ending=st.sampled_from([".png", ".jpg", ".gif", ".tif"]))
def test_any_damaged_byte_gives_pixels_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, where: int, value: int, ending: str
) -> None:
    content = bytearray(encoded(photograph(), ending))
    content[where % len(content)] = value
    path = tmp_path_factory.getbasetemp() / f"damaged{ending}"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            assert read_image(path).ndim in (2, 3)
        except DataError as error:
            _one_line(error, path)


# ---------------------------------------------------------------- threads, other input, writing


def test_many_threads_leave_the_filters_of_warnings_alone(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.png" for number in range(40)]
    for number, path in enumerate(paths):
        Image.new("L", (8, 8), number).save(path)
    before = list(warnings.filters)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(read_image, paths * 5))
    assert [int(pixels[0, 0]) for pixels in found] == list(range(40)) * 5
    assert warnings.filters == before


def test_pictures_and_arrays_as_images() -> None:
    picture = Image.fromarray(photograph())
    pixels, name = as_image(picture)
    assert name == "image"
    assert np.array_equal(pixels, photograph())
    assert as_image(np.eye(3, dtype=bool))[0].tolist() == (np.eye(3) * 255).tolist()
    assert as_image([[0.1, 2], [3, 4]])[0].dtype == np.float64
    for bad in (np.zeros(3), np.zeros((0, 2)), np.array([["a"]]), np.array([[np.inf]])):
        with pytest.raises(DataError):
            as_image(bad)


@pytest.mark.parametrize(
    ("kind", "most", "expected"),
    [
        (">u2", 65535, np.uint16),
        (">f8", 1, np.float64),
        (">f4", 1, np.float32),
        ("i8", 255, np.uint8),
        (">i4", 255, np.uint8),
        ("u4", 255, np.uint8),
        ("i2", 256, np.float32),
        ("i8", 2**40 + 1, np.float64),
    ],
)
def test_orders_of_bytes_and_other_widths(kind: str, most: int, expected: type) -> None:
    """An order of bytes says nothing of the values; whole numbers of any width up to 255 are 8 bits; nothing is rounded."""
    pixels = np.array([[0, 1], [1, most]], kind)
    found, _ = as_image(pixels)
    assert found.dtype == np.dtype(expected)
    assert found.dtype.isnative
    assert found.tolist() == pixels.tolist()
    assert as_image(np.array([[-1, 255]], np.int64))[0].dtype == np.float64


def test_what_a_format_cannot_hold_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"\.jpg"):
        write_image(tmp_path / "x.jpg", np.zeros((2, 2, 4), np.uint8))
    with pytest.raises(ParameterError, match=r"\.png"):
        write_image(tmp_path / "x.png", np.zeros((2, 2, 5), np.uint8))
    with pytest.raises(ParameterError, match="images are written as"):
        write_image(tmp_path / "x.csv", np.zeros((2, 2), np.uint8))
    assert list(tmp_path.iterdir()) == []


@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from([0, 3, 4])),
    ending=st.sampled_from([".png", ".tif"]),
    seed=st.integers(0, 99),
)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, shape: tuple[int, int, int], ending: str, seed: int
) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, shape if shape[2] else shape[:2], dtype=np.uint8)
    path = tmp_path_factory.getbasetemp() / f"x{ending}"
    assert write_image(path, pixels) == path.stat().st_size
    assert np.array_equal(read_image(path), pixels)


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(DataError, match="a pipe"):
        read_image(tmp_path / "pipe.png")


def test_arrays_and_pictures_that_are_no_images(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (90, 90, 3)).astype(np.uint8)
    Image.fromarray(noise).save(tmp_path / "whole.jpg")
    (tmp_path / "cut.jpg").write_bytes((tmp_path / "whole.jpg").read_bytes()[:4000])
    with Image.open(tmp_path / "cut.jpg") as lazy, pytest.raises(DataError, match="incomplete"):
        as_image(lazy)
    with pytest.raises(DataError, match="masked"):
        as_image(np.ma.masked_equal(np.eye(3), 1))
    with pytest.raises(DataError, match="lengths"):
        as_image([[1, 2], [3]])
    with pytest.raises(ParameterError, match="at most"):
        image_size("100000x100000")
