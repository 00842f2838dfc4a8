"""The kernels of superpixels against their NumPy twins, to the last bit."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from foldwise.kernels import reference_segments as reference
from foldwise.kernels import superpixels as kernel
from foldwise.models.images.colour import linear, rgb_to_lab
from foldwise.models.images.planes import as_planes


def planes_of(shape, channels, seed, kind="blocks"):
    """Planes of a picture with flat parts, edges and noise."""
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, (*shape, channels), dtype=np.uint8)
    if kind == "blocks":
        image[:] = ndimage.uniform_filter(image, (9, 9, 1)) // 16 * 16
    return as_planes(image, "raw", "array", 1)[0]


@settings(max_examples=60)
@given(
    st.tuples(st.integers(1, 70), st.integers(1, 90)),
    st.sampled_from([1, 2, 3, 4, 6]),
    st.integers(1, 60),
    st.sampled_from(["blocks", "noise"]),
    st.sampled_from([0.01, 3.0, 500.0]),
    st.sampled_from([(1, 1), (2, 1), (4, 2)]),
    st.integers(0, 1000),
)
def test_assignment(shape, channels, n, kind, weight, tile, seed):
    planes = planes_of(shape, channels, seed, kind)
    rng = np.random.default_rng(seed)
    centres = np.column_stack(
        [rng.integers(0, 25600, (n, channels)), rng.uniform(0, shape[0], n), rng.uniform(0, shape[1], n)]
    ).astype(np.float32)
    centres[n // 2 :] = centres[: n - n // 2]  # equal ones: the first gets all
    search = kernel.Search(weight * 1000, 25.0, *tile)
    labels, sums = np.full(shape, -1, np.int32), np.zeros((n, channels + 3), np.int64)
    rows = range(planes.bounds.shape[0])
    kernel.assign(planes.values, planes.bounds, centres, search, rows, shape[1], labels=labels, sums=sums)
    true_labels, true_sums = reference.assign(planes.values, centres, search, shape[1])
    np.testing.assert_array_equal(labels, true_labels)
    np.testing.assert_array_equal(sums, true_sums)


@settings(max_examples=40)
@given(st.tuples(st.integers(1, 30), st.integers(1, 40)), st.integers(1, 9), st.booleans(), st.integers(0, 1000))
def test_smoothing(shape, n, whole, seed):
    planes = planes_of(shape, 3, seed)
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n, (shape[0] // 3 + 1, shape[1] // 3 + 1)).repeat(3, 0).repeat(3, 1)
    labels = np.ascontiguousarray(labels[: shape[0], : shape[1]], np.int32)
    sums = np.zeros((n, 6), np.int64)
    kernel.plane_sums(planes.values, labels, range(shape[0]), sums)
    np.testing.assert_array_equal(sums, reference.plane_sums(planes.values, labels, n))
    centres = (sums[:, :-1] / np.maximum(sums[:, -1:], 1)).astype(np.float32)
    stamps = np.zeros((shape[0], kernel.stamp_columns(shape[1])), np.uint8)
    for visit in range(12):  # the twin looks at everything each time
        before = labels.copy()
        changed = kernel.smooth(labels, planes.values, centres, 1000.0, 3e5, whole, visit, stamps, range(shape[0]))
        expected = reference.smooth(before, planes.values, centres, 1000.0, 3e5, whole, visit)
        np.testing.assert_array_equal(labels, expected)
        assert changed == (labels != before).sum()
        if whole:
            assert set(np.unique(labels)) == set(np.unique(before))


@settings(max_examples=60)
@given(
    st.tuples(st.integers(1, 30), st.integers(1, 30)),
    st.integers(1, 6),
    st.sampled_from([1, 4, 30]),
    st.integers(1, 40),
    st.integers(0, 999),
)
def test_connection(shape, n, least, most, seed):
    rng = np.random.default_rng(seed)
    planes = planes_of(shape, 1, seed)
    given_labels = rng.integers(0, n, shape).astype(np.int32)
    labels = given_labels.copy()
    found = kernel.connect(labels, planes.values, least, most)
    sizes = np.bincount(labels.reshape(-1))
    assert len(sizes) == found
    assert sizes.min() >= min(least, labels.size)
    assert all(ndimage.label(labels == k)[1] == 1 for k in range(found))
    _, first = np.unique(labels, return_index=True)
    assert (np.diff(first) > 0).all()  # numbered in reading order
    assert found <= most
    parts = sum(ndimage.label(given_labels == k)[1] for k in range(n))
    if least == 1:
        assert found == min(parts, most)
    np.testing.assert_array_equal(kernel.shapes(labels, found), reference.shapes(labels, found))


def test_fragments_join_the_most_similar_neighbour():
    labels = np.zeros((6, 9), np.int32)
    labels[:, 4:] = 1
    labels[2:4, 3:5] = 2  # a speck between two segments, in the colour of the right one
    values = np.zeros((1, 6, 16), np.int16)
    values[0, :, 4:] = 2000
    values[0, 2:4, 3:5] = 1900
    assert kernel.connect(labels, values, 6, 10) == 2
    assert (labels[2:4, 3:5] == 1).all()


def test_lab_of_all_kinds_of_pixels():
    rng = np.random.default_rng(0)
    rgb = rng.integers(0, 256, (50, 61, 3), dtype=np.uint8)
    rgb[0, :8] = np.array(np.meshgrid([0, 255], [0, 255], [0, 255])).reshape(3, -1).T
    for image, steps in ((rgb, 255), (rgb.astype(np.uint16) * 257, 65535)):
        light = linear(np.arange(steps + 1) / steps).astype(np.float32)
        out = np.zeros((3, 50, 64), np.int16)
        kernel.lab_planes(image, light, range(50), out)
        true = rgb_to_lab(rgb / 255)
        assert np.abs(out[:, :, :61].transpose(1, 2, 0) / 256 - true).max() < 0.003  # half a step is 0.002
        grey = np.zeros((1, 50, 64), np.int16)
        kernel.lab_planes(np.ascontiguousarray(image[..., :1]), light, range(50), grey)
        true_grey = rgb_to_lab(np.repeat(rgb[..., :1], 3, 2) / 255)[..., 0]
        assert np.abs(grey[0, :, :61] / 256 - true_grey).max() < 0.003


_HASH = """
import hashlib, numpy as np, foldwise as fw
image = np.random.default_rng(0).integers(0, 256, (90, 130, 3), dtype=np.uint8) // 4
image[20:60, 30:90] += 90
print(hashlib.sha256(fw.superpixels(image, 60, 8.0).labels.tobytes()).hexdigest())
"""


def test_the_same_bits_on_every_instruction_set():
    found = {
        subprocess.run(
            [sys.executable, "-c", _HASH],
            env=os.environ | {"FOLDWISE_ISA": isa},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for isa in ("baseline", "avx2", "avx512")
    }
    assert len(found) == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_sums_of_pixels(dtype):
    rng = np.random.default_rng(1)
    image = (rng.uniform(0, 200, (20, 30, 2))).astype(dtype)
    labels = rng.integers(3, 7, (20, 30)).astype(np.int32)
    pivot = np.array([100.0, 3.0])
    sums, squares = kernel.pixel_sums(image, labels, pivot, range(5, 17), 3, 4)
    shifted, part = image[5:17].astype(np.float64) - pivot, labels[5:17]
    np.testing.assert_allclose(squares, (shifted**2).sum((0, 1)), rtol=1e-12)
    np.testing.assert_allclose(sums, [shifted[part == k].sum(0) for k in range(3, 7)], rtol=1e-10)
