"""Superpixels: hand-worked pictures, invariants, independent measures, kinds of images, and what is refused."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

import foldwise as fw
from foldwise.errors import DataError, ParameterError
from foldwise.fold import events
from foldwise.models.images.planes import strips
from foldwise.models.images.slic import grid

KINDS = ["u1", "u2", "f4", "f8"]


def scene(height, width, channels=3, dtype="u1", seed=0):
    """A few flat shapes with a little noise, in a dtype."""
    rng = np.random.default_rng(seed)
    flat = rng.integers(0, 220, (height // 8 + 1, width // 11 + 1, channels)).repeat(8, 0).repeat(11, 1)
    image = flat[:height, :width] + rng.integers(0, 30, (height, width, channels))
    if dtype[0] == "f":
        return (image / 255).astype(dtype)
    return (image * (257 if dtype == "u2" else 1)).astype(dtype)


def is_connected(found):
    return all(ndimage.label(found.labels == k)[1] == 1 for k in range(found.n_segments))


def test_two_flat_halves():
    image = np.zeros((30, 50, 3), np.uint8)
    image[:, :19] = (200, 30, 30)
    image[:, 19:] = (20, 160, 30)
    found = fw.superpixels(image, 2, 1.0)
    assert (found.labels[:, :19] == 0).all()
    assert (found.labels[:, 19:] == 1).all()
    np.testing.assert_array_equal(found.means, [[200, 30, 30], [20, 160, 30]])
    np.testing.assert_array_equal(found.sizes, [570, 930])
    np.testing.assert_allclose(found.centres, [[14.5, 9], [14.5, 34]])
    np.testing.assert_array_equal(found.boxes, [[0, 0, 29, 18], [0, 19, 29, 49]])
    assert found.explained_variation == 1.0
    quotients = [4 * math.pi * 570 / (2 * (30 + 19)) ** 2, 4 * math.pi * 930 / (2 * (30 + 31)) ** 2]
    np.testing.assert_allclose(found.quotients, quotients)
    assert found.isoperimetric_quotient == pytest.approx((570 * quotients[0] + 930 * quotients[1]) / 1500)
    assert found.outcome.converged
    np.testing.assert_array_equal(found.mean_image(), image)


def test_one_colour_gives_the_grid():
    found = fw.superpixels(np.full((40, 60), 7, np.uint8), 6)
    squares = np.arange(6).reshape(2, 3).repeat(20, 0).repeat(20, 1)
    np.testing.assert_array_equal(found.labels, squares)
    assert found.explained_variation == 1.0
    assert found.isoperimetric_quotient == pytest.approx(math.pi / 4)


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.integers(1, 60), st.integers(1, 60)),
    st.sampled_from([0, 1, 2, 3, 4, 5]),
    st.sampled_from(KINDS),
    st.integers(1, 80),
    st.sampled_from([0.1, 10.0, 1000.0]),
    st.sampled_from([0.0, 1.0]),
    st.integers(0, 1000),
)
def test_invariants(shape, channels, dtype, n, compactness, smoothness, seed):
    image = scene(*shape, max(channels, 1), dtype, seed)
    image = image[..., 0] if channels == 0 else image
    n = min(n, shape[0] * shape[1])
    settings_ = {"smoothness": smoothness, "max_iter": 4}
    found = fw.superpixels(image, n, compactness, n_threads=1, **settings_)
    assert found.labels.shape == shape
    assert found.labels.dtype == np.int32
    assert 1 <= found.n_segments <= n
    sizes = np.bincount(found.labels.reshape(-1))
    np.testing.assert_array_equal(sizes, found.sizes)
    assert sizes.min() >= 0.1 * shape[0] * shape[1] / n
    assert is_connected(found)
    _, first = np.unique(found.labels, return_index=True)
    assert (np.diff(first) > 0).all()
    flat = image.reshape(shape[0] * shape[1], -1).astype(np.float64)
    for k in range(found.n_segments):
        np.testing.assert_allclose(found.means[k], flat[found.labels.reshape(-1) == k].mean(0), rtol=1e-6, atol=1e-9)
    for threads in (2, 7):
        again = fw.superpixels(image, n, compactness, n_threads=threads, **settings_)
        np.testing.assert_array_equal(again.labels, found.labels)
        np.testing.assert_array_equal(again.means, found.means)
        assert again.explained_variation == found.explained_variation


@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 200))
def test_the_grid_has_enough_points_inside(height, width, n):
    n = min(n, height * width)
    points = grid(height, width, n)
    assert n <= len(points) <= height * width
    assert len(points) <= n + max(height, width)
    assert (points >= -0.5).all()
    assert (points <= (height - 0.5, width - 0.5)).all()


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_strips_and_threads_do_not_matter(channels):
    """Of a picture in several strips; those of smaller ones are one."""
    image = np.random.default_rng(channels).integers(0, 256, (330, 150, channels), np.uint8)
    image[40:200, 30:110] //= 4
    assert len(strips(len(image))) > 4
    alone = fw.superpixels(image, 60, n_threads=1)
    for threads in (2, 7):
        found = fw.superpixels(image, 60, n_threads=threads)
        np.testing.assert_array_equal(found.labels, alone.labels)
        np.testing.assert_array_equal(found.means, alone.means)
        assert found.explained_variation == alone.explained_variation


@pytest.mark.parametrize("size", [1.01, 1e9, 1e300])
def test_a_least_size_above_the_mean_is_refused(size):
    with pytest.raises(ParameterError, match="min_size"):
        fw.superpixels(scene(20, 30), 5, min_size=size)


def test_asked_and_got():
    found = fw.superpixels(scene(200, 300), 150)
    assert found.asked == 150
    assert found.n_segments == 150


def test_measures_against_their_definitions():
    skimage = pytest.importorskip("skimage.measure")
    image = scene(120, 90, seed=3)
    found = fw.superpixels(image, 40)
    flat, labels = image.reshape(-1, 3).astype(float), found.labels.reshape(-1)
    rest = sum(((flat[labels == k] - flat[labels == k].mean(0)) ** 2).sum() for k in range(found.n_segments))
    explained = 1 - rest / ((flat - flat.mean(0)) ** 2).sum()
    assert found.explained_variation == pytest.approx(explained, abs=1e-12)
    assert fw.explained_variation(image, found.labels) == pytest.approx(explained, abs=1e-12)
    assert fw.explained_variation(image, found.labels * 5 - 100) == pytest.approx(explained, abs=1e-12)
    assert fw.isoperimetric_quotient(found.labels) == found.isoperimetric_quotient
    for region in skimage.regionprops(found.labels + 1):
        k = region.label - 1
        assert region.area == found.sizes[k]
        np.testing.assert_allclose(region.centroid, found.centres[k])
        top, left, bottom, right = region.bbox
        np.testing.assert_array_equal(found.boxes[k], [top, left, bottom - 1, right - 1])
        framed = np.pad(region.image.astype(int), 1)
        outline = np.abs(np.diff(framed, axis=0)).sum() + np.abs(np.diff(framed, axis=1)).sum()
        assert found.quotients[k] == pytest.approx(4 * math.pi * region.area / outline**2)


def test_not_worse_than_scikit_image():
    slic = pytest.importorskip("skimage.segmentation").slic
    image = ndimage.gaussian_filter(scene(160, 240, seed=5), (1, 1, 0))
    theirs = slic(image, 100, compactness=10, start_label=0)
    ours = fw.superpixels(image, int(theirs.max()) + 1, 10)
    assert ours.explained_variation >= fw.explained_variation(image, theirs)
    assert ours.isoperimetric_quotient >= fw.isoperimetric_quotient(theirs)


@pytest.mark.parametrize("turn", [np.fliplr, np.flipud, lambda x: np.swapaxes(x, 0, 1)])
def test_a_turned_picture_is_segmented_as_well(turn):
    image = scene(90, 120, seed=1)
    plain, turned = fw.superpixels(image, 200), fw.superpixels(np.ascontiguousarray(turn(image)), 200)
    assert min(plain.n_segments, turned.n_segments) >= 190
    assert turned.explained_variation == pytest.approx(plain.explained_variation, abs=0.03)
    assert turned.isoperimetric_quotient == pytest.approx(plain.isoperimetric_quotient, abs=0.05)


def test_the_number_of_bits_hardly_matters():
    eight = scene(60, 80)
    same = [eight.astype(np.uint16) * 257, (eight / 255).astype(np.float32), eight / 255]
    labels = [fw.superpixels(image, 30).labels for image in [eight, *same]]
    for other in labels[1:]:
        assert (other == labels[0]).mean() > 0.99


def test_grey_is_the_same_as_equal_channels():
    grey = scene(50, 70, 1)[..., 0]
    as_rgb = np.repeat(grey[..., None], 3, 2)
    assert (fw.superpixels(grey, 20).labels == fw.superpixels(as_rgb, 20).labels).mean() > 0.99


def test_what_is_transparent_does_not_count():
    image = np.zeros((30, 40, 4), np.uint8)
    image[..., :3] = np.random.default_rng(0).integers(0, 256, (30, 40, 3))  # hidden noise
    image[:, 17:, :3], image[:, 17:, 3] = (90, 120, 30), 255
    found = fw.superpixels(image, 2, 1.0)
    assert (found.labels == (np.arange(40) >= 17)).all()
    image[..., 3] = 255
    np.testing.assert_array_equal(
        fw.superpixels(image, 12).labels, fw.superpixels(np.ascontiguousarray(image[..., :3]), 12).labels
    )


def test_channels_as_they_are():
    image = np.zeros((20, 30, 7))
    image[:, 11:, 4] = 1e6
    found = fw.superpixels(image - 5e5, 2, 1.0)
    assert found.space == "raw"
    assert (found.labels == (np.arange(30) >= 11)).all()
    assert found.channels[4] == "channel_4"
    huge = np.where(np.arange(30) < 11, -1.5e308, 1.5e308) * np.ones((20, 1))
    for image in (huge, huge / 1e308 * 1e-300):
        same = fw.superpixels(image, 2, 1.0)
        assert (same.labels == found.labels).all()
        np.testing.assert_allclose(same.means[:, 0], [image[0, 0], image[0, -1]], rtol=1e-14)
        assert same.explained_variation == pytest.approx(1.0)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 3)])
def test_tiny_pictures(shape):
    image = np.arange(shape[0] * shape[1], dtype=np.uint8).reshape(shape) * 20
    for n in (1, image.size):
        found = fw.superpixels(image, n)
        assert 1 <= found.n_segments <= n
        assert is_connected(found)
    with pytest.raises(ParameterError, match=f"the image has {image.size} pixels"):
        fw.superpixels(image, image.size + 1)


@pytest.mark.parametrize(
    ("image", "error", "says"),
    [
        (np.full((3, 3, 3), np.nan), DataError, "not finite"),
        (np.full((3, 3, 3), 200.0), DataError, "or go from 0 to 1, but these go from 200 to 200.*uint8"),
        (np.full((3, 3, 3), 300), DataError, "whole numbers of 8 or 16 bits.*uint16"),
        (np.zeros((2, 3, 4, 5)), DataError, "an image is an array of shape"),
        (np.zeros((0, 3)), DataError, "an image is an array of shape"),
        ("no-such-file.png", DataError, "no such file"),
    ],
)
def test_bad_images(image, error, says):
    with pytest.raises(error, match=says) as told:
        fw.superpixels(image, 2)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_segments": 0},
        {"n_segments": 2.5},
        {"compactness": 0},
        {"compactness": 1e30},
        {"compactness": float("nan")},
        {"max_iter": 0},
        {"min_size": -1},
        {"smoothness": float("inf")},
        {"space": "hsv"},
        {"tol": "x"},
    ],
)
def test_bad_parameters(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        fw.superpixels(np.zeros((5, 5), np.uint8), **({"n_segments": 2} | wrong))


def test_lab_is_for_colours():
    with pytest.raises(ParameterError, match="not for 2 channels"):
        fw.superpixels(np.zeros((5, 5, 2), np.uint8), 2, space="lab")
    with pytest.raises(DataError, match="labels for"):
        fw.explained_variation(np.zeros((5, 5)), np.zeros((5, 4), int))
    with pytest.raises(DataError, match="labels are whole numbers"):
        fw.isoperimetric_quotient(np.zeros((5, 4)))


def test_events_and_the_end_of_iterations():
    heard = []
    with events.listening(heard.append):
        found = fw.superpixels(scene(60, 60), 20, max_iter=3, tol=0.0)
    assert [event.number for event in heard] == [1, 2, 3]
    assert found.outcome.reason == "capped"
    long = fw.superpixels(scene(60, 60), 20, max_iter=1000, tol=0.0)
    assert long.outcome.converged
    assert long.outcome.trace[-1]["moved"] == 0.0


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="Ctrl-C reaches the main thread")
def test_ctrl_c_keeps_what_there_is():
    def interrupt(event):
        if event.number == 2:
            raise KeyboardInterrupt

    with events.listening(interrupt), pytest.warns(fw.errors.NotFinishedWarning, match="interrupted"):
        found = fw.superpixels(scene(60, 60), 20, tol=0.0)
    assert found.outcome.reason == "interrupted"
    assert is_connected(found)


def test_pictures_tables_and_files(tmp_path):
    pytest.importorskip("PIL")
    from foldwise.data.image_file import read_image, write_image

    image = scene(40, 50)
    write_image(tmp_path / "scene.png", image)
    found = fw.superpixels(tmp_path / "scene.png", 12)
    np.testing.assert_array_equal(found.labels, fw.superpixels(image, 12).labels)
    drawn = found.boundaries()
    border = (drawn != image).any(2)
    inner = found.labels[:-1, :-1]
    differs = (inner != found.labels[1:, :-1]) | (inner != found.labels[:-1, 1:])
    np.testing.assert_array_equal(border[:-1, :-1], differs)
    assert (drawn[border] == (255, 221, 0)).all()
    frame = found.frame()
    assert list(frame["pixels"]) == list(found.sizes)
    assert list(frame.columns[:7]) == ["segment", "pixels", "row", "column", "mean_red", "mean_green", "mean_blue"]
    found.save_labels(tmp_path / "labels.png")
    found.save_labels(tmp_path / "labels.npy")
    np.testing.assert_array_equal(read_image(tmp_path / "labels.png"), found.labels)
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), found.labels)
    with pytest.raises(ParameterError, match=r"\.npy or \.png"):
        found.save_labels(tmp_path / "labels.csv")
    many = fw.superpixels(np.random.default_rng(0).integers(0, 256, (400, 400), dtype=np.uint8), 100_000, min_size=0.0)
    assert many.n_segments > 65536
    with pytest.raises(ParameterError, match="16 bits"):
        many.save_labels(tmp_path / "many.png")
    assert "12" in str(found.report(tmp_path / "page.html"))
    assert "Mean colours" in (tmp_path / "page.html").read_text()
    assert "<" in found._repr_html_()


@pytest.mark.parametrize("kind", [np.int32, np.int64, ">u2"])
def test_whole_numbers_of_other_kinds_are_the_same_image(kind):
    """As `quantize` takes them, too."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (12, 16, 3), dtype=np.uint16 if kind == ">u2" else np.uint8)
    other = pixels.astype(kind)
    np.testing.assert_array_equal(fw.superpixels(other, 6).labels, fw.superpixels(pixels, 6).labels)
    np.testing.assert_array_equal(fw.quantize(other, 4).palette, fw.quantize(pixels, 4).palette)
