"""Pictures in a few colours and in a few tiles."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from PIL import Image

import foldwise as fw
from foldwise.data.image_file import read_image
from foldwise.data.palette_file import read_palette
from foldwise.errors import DataError, FoldwiseError, ParameterError
from foldwise.kernels import dither, reference
from foldwise.models.images.colour_counts import ColourCounts
from foldwise.models.images.palette import fit_palette, nearest
from foldwise.models.images.spaces import coordinates, rgb_to_oklab

CHINA = Path(__file__).parents[3] / "examples" / "china.jpg"


@pytest.fixture(scope="module")
def china() -> NDArray[np.uint8]:
    return read_image(CHINA)


def picture(seed: int, shape: tuple[int, ...], dtype: Any = np.uint8) -> NDArray[Any]:
    return np.random.default_rng(seed).integers(0, np.iinfo(dtype).max, shape, endpoint=True).astype(dtype)


def psnr(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> float:
    return 10 * math.log10(255**2 / np.mean((before.astype(np.float64) - after) ** 2))


# ---------------------------------------------------------------- by hand


def test_two_groups_of_grey_by_hand() -> None:
    made = fw.quantize(np.array([[0, 10, 200], [0, 12, 202]], np.uint8), 2)
    # (0 + 0 + 10 + 12) / 4 = 5.5, which rounds to even; (200 + 202) / 2
    assert made.palette.tolist() == [[6, 6, 6], [201, 201, 201]]
    assert made.pixels.tolist() == [[6, 6, 201], [6, 6, 201]]
    squares = 6**2 + 6**2 + 4**2 + 6**2 + 1 + 1
    assert made.psnr == pytest.approx(10 * math.log10(255**2 / (squares / 6)))
    assert made.counts.tolist() == [4, 2]
    assert made.code_bits == 1
    assert made.plain_bytes == 1 + 6  # 6 bits, and two colours
    assert made.hex == ["#060606", "#c9c9c9"]


def test_blocks_by_hand() -> None:
    """A picture of 4 x 4 pixels in blocks of 2: three blocks are alike, one is not."""
    dark, light = np.array([[0, 2], [4, 6]]), np.array([[200, 210], [220, 230]])
    given = np.block([[dark, light], [dark + 3, dark]]).astype(np.uint8)
    made = fw.quantize(given, 2, block=2)
    assert made.labels.tolist() == [[0, 1], [0, 0]]
    assert made.codebook[:, :, :, 0].tolist() == [[[1, 3], [5, 7]], [[200, 210], [220, 230]]]
    assert made.pixels[:2, 2:].tolist() == light.tolist()
    # Each pixel of the dark blocks is off by 1, 2 and 1.
    assert made.psnr == pytest.approx(10 * math.log10(255**2 / (4 * (1 + 4 + 1) / 16)))
    assert made.bits_per_pixel == 8 * (1 + 8) / 16
    assert made.entropy_bytes == pytest.approx((3 * math.log2(4 / 3) + math.log2(4)) / 8 + 8)


def test_edges_are_padded_by_repetition_and_cut_off_again() -> None:
    given = np.arange(15, dtype=np.uint8).reshape(3, 5)
    made = fw.quantize(given, 99, block=2)
    np.testing.assert_array_equal(made.pixels, given)
    corner = made.codebook[made.labels[1, 2], :, :, 0]
    assert corner.tolist() == [[14, 14], [14, 14]]


def test_one_row_of_error_diffusion_by_hand() -> None:
    # 100 becomes 0 and passes 7/16 on: 143.75 becomes 255, -111.25 * 7/16 = -48.7: 51.3 becomes 0.
    labels = dither(np.full((1, 3, 1), 100, np.uint8), np.array([[0], [255]], np.float32))
    assert labels.tolist() == [[0, 1, 0]]


# ---------------------------------------------------------------- independent references


def test_distances_agree_with_other_libraries(china: NDArray[np.uint8]) -> None:
    metrics = pytest.importorskip("skimage.metrics", reason="scikit-image is not installed")
    color = pytest.importorskip("skimage.color")
    for options in ({}, {"dither": True}, {"block": 3}):
        made = fw.quantize(china, 8, **options)
        assert made.psnr == pytest.approx(metrics.peak_signal_noise_ratio(china, made.pixels), rel=1e-6)
        difference = np.linalg.norm(color.rgb2lab(china) - color.rgb2lab(made.pixels), axis=-1).mean()
        assert made.color_difference == pytest.approx(difference, rel=1e-3)


def test_k_means_on_distinct_colours_is_k_means_on_pixels(china: NDArray[np.uint8]) -> None:
    counts = ColourCounts.of(china)
    distinct, x = counts.colours(), china.reshape(-1, 3).astype(np.float64)
    start = x[:: len(x) // 6][:6]
    few = fw.KMeans(6, init=start, tol=0).fit(distinct, sample_weight=counts.counts.astype(np.float64))
    all_pixels = fw.KMeans(6, init=start, tol=0).fit(x)
    np.testing.assert_allclose(few.cluster_centers_, all_pixels.cluster_centers_, rtol=1e-12)
    assert few.inertia_ == pytest.approx(all_pixels.inertia_, rel=1e-12)


def test_counts_of_colours_are_those_of_numpy(china: NDArray[np.uint8]) -> None:
    wanted, times = np.unique(china.reshape(-1, 3), axis=0, return_counts=True)
    for given in (china, np.tile(china, (5, 5, 1))):  # by a sort, and by a table
        found = ColourCounts.of(given)
        np.testing.assert_array_equal(found.colours(), wanted)
        np.testing.assert_array_equal(found.counts, times * (given.size // china.size))


def test_oklab_by_published_values() -> None:
    # Of the CSS Color 4 recommendation's examples: white, and red as oklch(62.8% 0.2577 29.23)
    np.testing.assert_allclose(rgb_to_oklab(np.ones(3)), [1, 0, 0], atol=1e-6)
    lightness, a, b = rgb_to_oklab(np.array([1.0, 0, 0]))
    assert (lightness, math.hypot(a, b), math.degrees(math.atan2(b, a))) == pytest.approx(
        (0.628, 0.2577, 29.23), rel=1e-3
    )


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("k", [1, 2, 9, 300])
def test_dithering_is_that_of_its_twin(channels: int, dtype: Any, k: int) -> None:
    pixels = picture(k, (9, 13, channels), dtype)
    palette = picture(k + 1, (k, channels)).astype(np.float32)
    np.testing.assert_array_equal(dither(pixels, palette), reference.dither(pixels, palette))


def test_the_kernel_refuses_arrays_that_do_not_fit() -> None:
    from foldwise.kernels import _core

    pixels, labels = np.zeros((2, 2, 3), np.uint8), np.zeros((2, 2), np.uint8)
    with pytest.raises(ValueError, match="number of colours"):
        _core.dither(pixels, np.zeros((300, 3), np.float32), 1.0, labels)
    with pytest.raises(ValueError, match="do not fit"):
        _core.dither(pixels, np.zeros((3, 1), np.float32), 1.0, labels)
    with pytest.raises(TypeError):
        _core.dither(pixels.astype(np.float64), np.zeros((3, 3), np.float32), 1.0, labels)


# ---------------------------------------------------------------- what must hold for any picture

pictures = st.one_of(
    arrays(np.uint8, st.tuples(st.integers(1, 7), st.integers(1, 7))),
    arrays(np.uint8, st.tuples(st.integers(1, 7), st.integers(1, 7), st.sampled_from([3, 4]))),
    arrays(np.uint16, st.tuples(st.integers(1, 5), st.integers(1, 5), st.sampled_from([1, 3, 4]))),
)


@settings(max_examples=60, deadline=None)
@hypothesis.given(pictures, st.integers(1, 12), st.booleans(), st.sampled_from(["auto", "rgb", "lab", "oklab"]))
def test_any_picture(given: NDArray[Any], k: int, dithering: bool, space: str) -> None:
    made = fw.quantize(given, k, dither=dithering, space=space)
    height, width = given.shape[:2]
    assert made.labels.shape == (height, width)
    assert made.palette.dtype == np.uint8
    assert 1 <= len(made.palette) <= k
    assert int(made.labels.max()) < len(made.palette)
    assert made.pixels.dtype == np.uint8
    assert made.pixels.shape[:2] == (height, width)
    assert made.grey == (given.ndim == 2 or given.shape[2] == 1)
    assert len(np.unique(made.palette, axis=0)) == len(made.palette)
    assert made.counts.sum() == height * width
    if not dithering and given.dtype == np.uint8 and made.colors_before <= k:
        assert made.psnr == math.inf


@settings(max_examples=30, deadline=None)
@hypothesis.given(pictures, st.integers(1, 9), st.integers(2, 4))
def test_any_picture_in_blocks(given: NDArray[Any], k: int, block: int) -> None:
    hypothesis.assume(block <= max(given.shape[:2]))
    made = fw.quantize(given, k, block=block)
    assert made.pixels.shape[:2] == given.shape[:2]
    assert made.labels.shape == (-(-given.shape[0] // block), -(-given.shape[1] // block))
    assert 1 <= made.n_codes <= k


@settings(max_examples=30, deadline=None)
@hypothesis.given(arrays(np.uint8, (6, 5, 3)), st.integers(1, 29), st.integers(1, 60))
def test_counts_merge(given: NDArray[np.uint8], cut: int, most: int) -> None:
    flat = given.reshape(1, 30, 3)
    whole = ColourCounts.of(flat)
    parts = ColourCounts.of(flat[:, :cut]).merge(ColourCounts.of(flat[:, cut:]))
    np.testing.assert_array_equal(parts.keys, whole.keys)
    np.testing.assert_array_equal(parts.counts, whole.counts)
    few = whole.at_most(most)
    assert few.pixels == 30
    assert len(few.keys) <= most or few.bits == 5


def test_counts_of_grey_rgb_and_16_bits_merge() -> None:
    grey = ColourCounts.of(np.array([[[7], [7]]], np.uint8))
    fine = ColourCounts.of(np.array([[[7 * 257] * 3, [9, 9, 9]]], np.uint16))
    clear = ColourCounts.of(np.array([[[7, 7, 7, 255], [1, 2, 3, 0]]], np.uint8))
    both = grey.merge(fine)
    assert (both.channels, both.bits, both.counts.tolist()) == (3, 16, [1, 3])
    all_three = both.merge(clear)
    assert (all_three.channels, sorted(all_three.counts.tolist())) == (4, [1, 1, 4])


def test_very_many_colours_are_counted_in_fewer_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foldwise.models.images.picture.MOST_COLOURS", 1000)
    made = fw.quantize(picture(0, (60, 60, 3), np.uint16), 4)
    assert any("were counted in 5 bits" in note or "were counted in 6 bits" in note for note in made.notes)
    assert made.colors_before == 3600  # of the picture itself, all


def test_dithering_conserves_the_mean_colour() -> None:
    """Inside the range of the palette, what a pixel loses its neighbours get."""
    slope = np.linspace(60, 190, 200)[None, :].repeat(100, axis=0).astype(np.uint8)
    colour = np.stack([slope, 255 - slope, np.full_like(slope, 120)], axis=2)
    corners = np.array([[r, g, b] for r in (0, 255) for g in (0, 255) for b in (0, 255)], np.uint8)
    for given, palette in ((slope, np.array([[0, 0, 0], [255, 255, 255]])), (colour, corners)):
        plain, dithered = (fw.quantize(given, palette=palette, dither=on).pixels for on in (False, True))
        assert np.abs(dithered.mean((0, 1)) - given.mean((0, 1))).max() < 1.0
        assert np.abs(plain.mean((0, 1)) - given.mean((0, 1))).max() > 2.0
        # ... also in each part of the picture.
        parts = [slice(j, j + 50) for j in range(0, 200, 50)]
        assert all(np.abs(dithered[:, p].mean((0, 1)) - given[:, p].mean((0, 1))).max() < 3.0 for p in parts)


def test_more_colours_are_nearer(china: NDArray[np.uint8]) -> None:
    found = [fw.quantize(china, k).psnr for k in (1, 2, 4, 8, 16)]
    assert found == sorted(found)


def test_spaces_trade_rgb_for_lab(china: NDArray[np.uint8]) -> None:
    rgb, both, lab = (fw.quantize(china, 32, space=space) for space in ("rgb", "balanced", "lab"))
    assert rgb.psnr > both.psnr > lab.psnr
    assert rgb.color_difference > both.color_difference > lab.color_difference


def test_same_bits_for_any_number_of_threads(china: NDArray[np.uint8]) -> None:
    for options in ({}, {"block": 4}):
        one, two = (fw.quantize(china, 16, n_threads=n, **options) for n in (1, 3))
        np.testing.assert_array_equal(one.labels, two.labels)
        np.testing.assert_array_equal(one._codes, two._codes)


def test_palette_and_labels_are_consistent(china: NDArray[np.uint8]) -> None:
    """Each pixel has the nearest colour of the palette, colours come by share, and a second time nothing changes."""
    made = fw.quantize(china, 12)
    flat = china.reshape(-1, 3)
    gaps = np.linalg.norm(coordinates(flat, "balanced")[:, None] - coordinates(made.palette, "balanced"), axis=2)
    chosen = gaps[np.arange(len(gaps)), made.labels.reshape(-1)]
    np.testing.assert_allclose(chosen, gaps.min(axis=1), rtol=1e-12)
    assert (np.diff(made.counts) <= 0).all()
    again = fw.quantize(made.pixels, 12)
    assert again.psnr == math.inf
    np.testing.assert_array_equal(again.palette, made.palette)


def test_the_search_over_cells_is_as_good_as_over_all_colours(china: NDArray[np.uint8]) -> None:
    counts = ColourCounts.of(china)
    x, weights = coordinates(counts.colours(), "balanced"), counts.counts.astype(np.float64)
    full = fw.KMeans(16, search="breathing", random_state=0).fit(x, sample_weight=weights)
    palette = fit_palette(counts, 16, "balanced", 0)
    ours = fw.KMeans(16, init=coordinates(palette, "balanced"), max_iter=300).fit(x, sample_weight=weights)
    assert ours.inertia_ < 1.01 * full.inertia_


# ---------------------------------------------------------------- kinds of pictures


@pytest.mark.parametrize("k", [1, 2, 300])
def test_one_pixel_and_one_colour(k: int) -> None:
    for given in (np.full((1, 1), 7, np.uint8), np.full((5, 4, 3), 9, np.uint8)):
        made = fw.quantize(given, k)
        assert made.psnr == math.inf
        assert len(made.palette) == 1
        np.testing.assert_array_equal(made.pixels, given)


def test_16_bits_are_quantised_in_16_bits() -> None:
    """Two groups that no 8-bit picture could tell apart from one value."""
    given = np.repeat(np.array([[1000, 1010, 40000, 40010]], np.uint16), 4, axis=0)
    made = fw.quantize(given, 2)
    assert made.palette[:, 0].tolist() == [round(1005 / 257), round(40005 / 257)]
    assert made.colors_before == 4
    assert "the picture has 16 bits, its palette 8" in made.notes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_from_0_to_1(china: NDArray[np.uint8], dtype: Any) -> None:
    found = fw.quantize((china / 255.0).astype(dtype), 8)
    np.testing.assert_array_equal(found.palette, fw.quantize(china, 8).palette)


def test_opaque_rgba_is_rgb(china: NDArray[np.uint8]) -> None:
    clear = np.concatenate([china, np.full((*china.shape[:2], 1), 255, np.uint8)], axis=2)
    np.testing.assert_array_equal(fw.quantize(clear, 8).pixels, fw.quantize(china, 8).pixels)


def test_the_colour_of_what_cannot_be_seen_makes_no_difference() -> None:
    given = picture(3, (8, 8, 4))
    given[:, 4:, 3] = 0
    given[:, :4, 3] = 255
    other = given.copy()
    other[:, 4:, :3] = 77
    one, two = fw.quantize(given, 5), fw.quantize(other, 5)
    np.testing.assert_array_equal(one.palette[one.palette[:, 3] > 0], two.palette[two.palette[:, 3] > 0])
    assert one.psnr == pytest.approx(two.psnr)


def test_a_palette_without_opacity_makes_a_picture_opaque_and_says_so() -> None:
    made = fw.quantize(picture(3, (4, 4, 4)), palette=[[0, 0, 0], [255, 255, 255]])
    assert made.pixels.shape == (4, 4, 3)
    assert any("becomes opaque" in note for note in made.notes)


def test_a_given_palette_keeps_its_order_and_its_unused_colours() -> None:
    palette = [[255, 255, 255], [1, 2, 3], [0, 0, 0]]
    made = fw.quantize(np.array([[0, 250]], np.uint8), palette=palette)
    assert made.palette.tolist() == palette
    assert made.labels.tolist() == [[2, 0]]


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        (np.zeros((3, 3, 2), np.uint8), {}, "2 channels"),
        (np.full((3, 3), 2.5), {}, "pixels from 2.5 to 2.5"),
        (np.array([[np.nan, 1.0]]), {}, "not finite"),
        (np.zeros((0, 3), np.uint8), {}, "not"),
        (np.zeros((3, 3), np.uint8), {"n_colors": 0}, "n_colors"),
        (np.zeros((3, 3), np.uint8), {"n_colors": 100_000}, "at most 65,536"),
        (np.zeros((3, 3), np.uint8), {"space": "hsv"}, "space"),
        (np.zeros((3, 3), np.uint8), {"block": 2, "dither": True}, "dither is for colours"),
        (np.zeros((3, 3), np.uint8), {"palette": [[300, 0, 0]]}, "0 to 255"),
        (np.zeros((3, 3), np.uint8), {"palette": [[0, 0]]}, "3 or 4 columns"),
        ("nowhere.png", {}, "there is no such file"),
        ("nowhere/*.png", {}, "no"),
    ],
)
def test_bad_input_is_one_line(given: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(FoldwiseError, match=words) as caught:
        fw.quantize(given, **options)
    assert "\n" not in str(caught.value)


# ---------------------------------------------------------------- many pictures, files


def test_one_palette_for_several_pictures(china: NDArray[np.uint8], tmp_path: Path) -> None:
    left, right = china[:, :160], china[:, 160:]
    Image.fromarray(left).save(tmp_path / "a.png")
    Image.fromarray(right).save(tmp_path / "b.png")
    whole = fw.ImageQuantizer(16, random_state=0).fit(china)
    for given in ([left, right], str(tmp_path / "*.png"), [tmp_path / "a.png", tmp_path / "b.png"]):
        shared = fw.ImageQuantizer(16, random_state=0).fit(given)
        np.testing.assert_array_equal(shared.palette_, whole.palette_)
    np.testing.assert_array_equal(shared.transform(left).pixels, whole.transform(china).pixels[:, :160])
    assert (shared.n_images_, shared.n_pixels_) == (2, china.shape[0] * china.shape[1])


def test_grey_and_colour_pictures_share_tiles(china: NDArray[np.uint8]) -> None:
    model = fw.ImageQuantizer(8, block=4).fit([china, china[:, :, 0]])
    assert model.codebook_.shape == (8, 4, 4, 3)
    assert model.transform(china[:, :, 0]).pixels.shape == china.shape
    grey = fw.ImageQuantizer(8, block=4).fit(china[:, :, 0])
    with pytest.raises(DataError, match="3 channels, but 1 in the tiles"):
        grey.transform(china)


def test_a_large_codebook_is_fitted_to_some_blocks(monkeypatch: pytest.MonkeyPatch, china: NDArray[np.uint8]) -> None:
    monkeypatch.setattr("foldwise.models.images.blocks.MOST_BLOCKS", 500)
    made = fw.quantize(china, 8, block=4)
    assert "evenly from all" in made.notes[0]
    assert made.psnr > fw.quantize(china, 2, block=4).psnr


@pytest.mark.parametrize("block", [None, 3])
def test_models_are_saved_and_loaded(china: NDArray[np.uint8], tmp_path: Path, block: int | None) -> None:
    model = fw.ImageQuantizer(8, block=block, random_state=0).fit(china)
    fw.save(model, tmp_path / "p.fw")
    again = fw.load(tmp_path / "p.fw").transform(china[:50])
    np.testing.assert_array_equal(again.pixels, model.transform(china[:50]).pixels)


def test_an_unfitted_model_says_so(china: NDArray[np.uint8]) -> None:
    with pytest.raises(Exception, match="not fitted"):
        fw.ImageQuantizer().transform(china)


@pytest.mark.parametrize("options", [{}, {"block": 4}])
def test_npz_is_read_back(china: NDArray[np.uint8], tmp_path: Path, options: dict[str, Any]) -> None:
    made = fw.quantize(china, 20, **options)
    size = made.save(tmp_path / "q.npz")
    assert size == (tmp_path / "q.npz").stat().st_size < made.plain_bytes
    again = fw.QuantizedImage.load(tmp_path / "q.npz")
    np.testing.assert_array_equal(again.pixels, made.pixels)
    assert again.block == made.block
    assert math.isnan(again.psnr)


def test_damaged_npz_files_are_refused(tmp_path: Path, china: NDArray[np.uint8]) -> None:
    place = tmp_path / "q.npz"
    made = fw.quantize(china, 4, block=4)
    content = made.encoded(".npz")
    place.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"q\.npz: not a quantised image"):
        fw.QuantizedImage.load(place)
    about = np.array([1, 214, 320, 0])
    for wrong in (
        {"labels": made.labels + np.uint8(200)},
        {"labels": made.labels[1:]},
        {"about": np.array([1, -214, -320, 0])},
        {"codes": made.codebook.astype(np.float64)},
        {"codes": made.codebook[:, :, :3]},
        {"about": np.array([9, 214, 320, 0])},
    ):
        np.savez(place, **({"about": about, "codes": made.codebook, "labels": made.labels} | wrong))
        with pytest.raises(DataError, match=r"q\.npz: not a quantised image"):
            fw.QuantizedImage.load(place)
    with pytest.raises(DataError, match="no such file"):
        fw.QuantizedImage.load(tmp_path / "x.npz")


@pytest.mark.parametrize(("k", "bits"), [(2, 1), (4, 2), (16, 4), (17, 8), (256, 8)])
def test_palette_png_in_as_few_bits_as_possible(china: NDArray[np.uint8], tmp_path: Path, k: int, bits: int) -> None:
    made = fw.quantize(china, k)
    made.save(tmp_path / "q.png")
    assert (tmp_path / "q.png").read_bytes()[24] == bits  # the bit depth in the header of a PNG
    with Image.open(tmp_path / "q.png") as opened:
        assert opened.mode == "P"
        np.testing.assert_array_equal(np.asarray(opened.convert("RGB")), made.pixels)


def test_opacity_is_written_and_read_back(tmp_path: Path) -> None:
    made = fw.quantize(picture(5, (20, 20, 4)), 8)
    for ending in (".png", ".webp", ".tif"):
        made.save(tmp_path / f"q{ending}")
    with Image.open(tmp_path / "q.png") as opened:
        assert opened.mode == "P"
        np.testing.assert_array_equal(np.asarray(opened.convert("RGBA")), made.pixels)
    with Image.open(tmp_path / "q.tif") as opened:
        np.testing.assert_array_equal(np.asarray(opened), made.pixels)
    with pytest.raises(ParameterError, match="no opacity"):
        made.save(tmp_path / "q.jpg")


@pytest.mark.parametrize("ending", [".gif", ".bmp", ".tif", ".webp", ".jpg", ".ppm"])
def test_other_formats(china: NDArray[np.uint8], tmp_path: Path, ending: str) -> None:
    for given in (china, china[:, :, 0]):
        made = fw.quantize(given, 8)
        made.save(tmp_path / f"q{ending}")
        with Image.open(tmp_path / f"q{ending}") as opened:
            again = np.asarray(opened.convert("RGB")).astype(int)
        wanted = made.pixels if made.pixels.ndim == 3 else made.pixels[:, :, None].repeat(3, axis=2)
        error = np.abs(again - wanted).mean()
        assert error == 0 if ending not in (".webp", ".jpg") else error < 12


def test_more_than_256_colours_are_written_in_full_colour(tmp_path: Path, china: NDArray[np.uint8]) -> None:
    made = fw.quantize(china, 300)
    assert made.labels.dtype == np.uint16
    made.save(tmp_path / "q.png")
    with Image.open(tmp_path / "q.png") as opened:
        assert opened.mode == "RGB"
        np.testing.assert_array_equal(np.asarray(opened), made.pixels)
    assert "written in full colour" in str(made.report())


def test_the_report_has_palette_sizes_and_pictures(china: NDArray[np.uint8], tmp_path: Path) -> None:
    made = fw.quantize(CHINA, 6)
    text = str(made.report(tmp_path / "r.html"))
    assert f"{CHINA.stat().st_size:,}" in text
    assert all(name in text for name in made.hex)
    page = (tmp_path / "r.html").read_text()
    assert page.count("data:image/png") == 2
    assert "codebook" in str(fw.quantize(china, 6, block=4).report()).lower()
    assert made._repr_html_()


def test_nearest_breaks_ties_by_the_lowest_number() -> None:
    assert nearest(np.array([[5.0, 5, 5]]), np.array([[0, 5, 5], [10, 5, 5]], np.uint8), "rgb").tolist() == [0]


# ---------------------------------------------------------------- against others


@pytest.mark.parametrize("name", ["flower.jpg", "astronaut.png", "camera.png"])
def test_psnr_is_higher_than_others(name: str, shared_data: Path) -> None:
    pixels = read_image(shared_data / "images" / name)
    rgb = Image.fromarray(pixels).convert("RGB")
    before = np.asarray(rgb)
    for k in (8, 64):
        ours = fw.quantize(pixels, k).psnr
        for method in (Image.Quantize.MEDIANCUT, Image.Quantize.MAXCOVERAGE, Image.Quantize.FASTOCTREE):
            after = np.asarray(rgb.quantize(k, method, dither=Image.Dither.NONE).convert("RGB"))
            assert ours > psnr(before, after)


def test_hidden_colours_of_transparent_pixels_do_not_show_in_tiles():
    """The mean of a tile weighs colours by their opacity, as a palette does."""
    pixels = np.zeros((8, 8, 4), np.uint8)
    pixels[:, :4] = [255, 0, 0, 255]
    pixels[:, 4:] = [0, 255, 0, 0]
    found = fw.quantize(pixels, 1, block=2)
    assert (found.codebook[0, :, :, :3] == [255, 0, 0]).all()
    assert (found.codebook[0, :, :, 3] == 128).all()


def test_a_block_that_is_larger_than_the_picture_is_refused():
    with pytest.raises(ParameterError, match="block=9"):
        fw.quantize(np.zeros((4, 8, 3), np.uint8), 2, block=9)


def test_the_note_on_coarse_counts_says_the_coarsest_bits():
    fine = ColourCounts.of(np.arange(12, dtype=np.uint16).reshape(2, 2, 3) * 5000)
    coarse = ColourCounts.of(np.random.default_rng(0).integers(0, 1 << 16, (20, 20, 3)).astype(np.uint16), 200)
    assert coarse.coarsest == coarse.bits < 16
    assert fine.merge(coarse).coarsest == coarse.bits
    assert fine.coarsest is None


@pytest.mark.parametrize(
    ("text", "colours"),
    [
        ("id,r,g,b\n0,255,0,0\n1,0,255,0\n", [[255, 0, 0], [0, 255, 0]]),
        ("#ff0000\n#0f0\n", [[255, 0, 0], [0, 255, 0]]),
        ("red,green,blue,opacity\n1,2,3,128\n", [[1, 2, 3, 128]]),
        ("1 2 3 128\n4 5 6\n", [[1, 2, 3, 128], [4, 5, 6, 255]]),
        ("GIMP Palette\nName: x y\n#\n  1   2   3\tno name\n", [[1, 2, 3]]),
        ("JASC-PAL\nff0000\n", [[255, 0, 0]]),
    ],
)
def test_palettes_as_people_write_them(tmp_path: Path, text: str, colours: list[list[int]]) -> None:
    (tmp_path / "p.txt").write_text(text)
    assert read_palette(tmp_path / "p.txt").tolist() == colours


@pytest.mark.parametrize(
    "text", ["#ff0000\n#gggggg\n", "300 1\n4 5 6\n", "1.5 2 3\n4 5 6\n", "1 2 3\n1 2\n", "only words\n"]
)
def test_palettes_that_are_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.txt").write_text(text)
    with pytest.raises(DataError):
        read_palette(tmp_path / "p.txt")
    with pytest.raises(DataError, match="cannot be read"):
        read_palette(tmp_path)


def test_files_hold_what_is_told_of_them(tmp_path: Path) -> None:
    """Formats without loss give the pixels back; those that cannot hold the colours are refused."""
    rng = np.random.default_rng(0)
    clear = fw.quantize(rng.integers(0, 256, (20, 30, 4)).astype(np.uint8), 12)
    many = fw.quantize(rng.integers(0, 256, (30, 30, 3)).astype(np.uint8), 300)
    few = fw.quantize(rng.integers(0, 256, (30, 30, 3)).astype(np.uint8), 20)
    for made, endings in (
        (clear, [".png", ".webp"]),
        (many, [".png", ".webp", ".bmp"]),
        (few, [".gif", ".webp", ".tif"]),
    ):
        for ending in endings:
            made.save(tmp_path / f"q{ending}")
            np.testing.assert_array_equal(read_image(tmp_path / f"q{ending}"), made.pixels)
    for made in (clear, many):
        with pytest.raises(ParameterError, match=r"\.gif"):
            made.save(tmp_path / "q.gif")


def test_damaged_results_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    fw.quantize(rng.integers(0, 256, (20, 30, 3)).astype(np.uint8), 12).save(tmp_path / "q.npz")
    whole = (tmp_path / "q.npz").read_bytes()
    for _ in range(300):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            damaged[place] = rng.integers(0, 256)
        (tmp_path / "d.npz").write_bytes(bytes(damaged))
        with contextlib.suppress(DataError):
            fw.QuantizedImage.load(tmp_path / "d.npz")
