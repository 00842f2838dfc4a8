"""Components of images: recognition against scikit-learn, novelty, input of many kinds, bad input."""

import gzip
import struct
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from sklearn import decomposition
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import LeaveOneOut
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

import foldwise as fw
from foldwise.errors import DataError, FoldwiseWarning, MissingFileError, ParameterError
from foldwise.models.images.left_out import leading_without, nearest_without_itself
from foldwise.models.images.nearest import nearest
from foldwise.models.images.novelty import auc, residuals
from foldwise.prepare.other_images import like_images


@pytest.fixture(scope="module")
def people():
    """8 people, 6 images each, 12 x 10 pixels of 8 bits: a smooth face of their own, light from a side, noise."""
    rng = np.random.default_rng(3)
    y, x = np.mgrid[:12, :10] / 11
    waves = np.stack([np.sin(3 * (a * y + b * x) + c) for a, b, c in rng.uniform(0, 3, (5, 3))])
    faces = np.tensordot(rng.normal(size=(8, 5)), waves, 1)
    light = rng.normal(size=(8, 6, 1, 1)) * x + rng.normal(size=(8, 6, 1, 1)) * y
    images = 120 + 18 * (faces[:, None] + 0.9 * light) + rng.normal(0, 9, (8, 6, 12, 10))
    return np.clip(images, 0, 255).reshape(48, 12, 10).astype(np.uint8), np.repeat(np.arange(8), 6)


# ---------------------------------------------------------------- components


def test_two_images_by_hand():
    """The mean lies half-way, the only direction leads from one to the other, and one component keeps all."""
    images = np.array([[[0.0, 0.0], [0.0, 0.0]], [[0.0, 6.0], [8.0, 0.0]]])
    found = fw.eigenfaces(images)
    np.testing.assert_allclose(found.mean_image, [[0, 3], [4, 0]])
    np.testing.assert_allclose(found.components, [[[0, 0.6], [0.8, 0]]], atol=1e-15)
    np.testing.assert_allclose(found.pca.explained_variance_, [50.0])
    np.testing.assert_allclose(found.reconstruct(images), images, atol=1e-14)
    np.testing.assert_allclose(found.reconstruct(images[1], 0), found.mean_image)
    assert found.recognition is None
    assert found.reconstruct_counts == (1,)
    with pytest.raises(DataError, match="at least three images"):
        found.novelty_of(images)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_components_are_those_of_scikit_learn(people, dtype):
    images, labels = people
    images = images.astype(dtype) * dtype(100 if dtype == np.uint16 else 1)
    found = fw.eigenfaces(images, labels, n_components=[5, 10], reconstruct=[3], n_splits=1)
    theirs = decomposition.PCA(10, svd_solver="full").fit(images.reshape(48, -1).astype(np.float64))
    ours = found.components.reshape(10, -1)
    np.testing.assert_allclose(np.abs((ours * theirs.components_).sum(axis=1)), 1, atol=1e-5)
    np.testing.assert_allclose(found.pca.explained_variance_, theirs.explained_variance_, rtol=1e-5)
    rows = images[:4].reshape(4, -1).astype(np.float64)
    scores = theirs.transform(rows)
    scores[:, 3:] = 0
    expected = theirs.inverse_transform(scores).reshape(4, 12, 10)
    np.testing.assert_allclose(found.reconstruct(images[:4], 3), expected, rtol=1e-3)


def test_more_pixels_than_images_take_the_small_matrix(people):
    assert fw.eigenfaces(people[0]).pca.manifest_.algorithm == "gram"


def test_the_saved_components_work_on_new_images(people, tmp_path):
    images, labels = people
    found = fw.eigenfaces(images, labels, n_splits=1)
    fw.save(found.pca, tmp_path / "faces.fw")
    rows = images.reshape(48, -1).astype(np.float64)
    np.testing.assert_array_equal(fw.load(tmp_path / "faces.fw").transform(rows), found.pca.transform(rows))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(4, 12), st.integers(1, 5), st.integers(1, 5))
def test_the_error_falls_with_the_number_of_components(seed, n, height, width):
    images = np.random.default_rng(seed).normal(size=(n, height, width))
    found = fw.eigenfaces(images, reconstruct=range(1, min(n - 1, height * width) + 1))
    errors = [np.square(found.reconstruct(images, k) - images).sum() for k in range(len(found.components) + 1)]
    assert all(after <= before + 1e-9 for before, after in pairwise(errors))
    assert errors[-1] < 1e-9


# ---------------------------------------------------------------- recognition


def left_out_by_hand(rows, labels, counts):
    """Components fitted again without each image: the slow way."""
    right = np.zeros(len(counts))
    with threadpool_limits(1):  # so small that threads would only wait for each other
        for train, test in LeaveOneOut().split(rows):
            pca = decomposition.PCA(max(counts), svd_solver="full").fit(rows[train])
            known, asked = pca.transform(rows[train]), pca.transform(rows[test])
            for place, k in enumerate(counts):
                near = np.square(known[:, :k] - asked[:, :k]).sum(axis=1).argmin()
                right[place] += labels[train][near] == labels[test][0]
    return right / len(rows)


def test_left_out_images_are_in_components_that_did_not_see_them(people):
    images, labels = people
    found = fw.eigenfaces(images, labels, n_components=[1, 2, 4, 8, 16], n_splits=1).recognition
    expected = left_out_by_hand(images.reshape(48, -1).astype(np.float64), labels, [1, 2, 4, 8, 16])
    np.testing.assert_allclose(found.left_out, expected)
    assert found.refitted
    assert 0.2 < expected[0] < expected[-1] < 1  # a case in which something can go wrong


def test_splits_are_those_of_scikit_learn(people):
    """The half is drawn from the seed: fitted again by others, it gives the same accuracies."""
    from foldwise.models.images.recognition import Recognising

    images, labels = people
    rows, counts = images.reshape(48, -1).astype(np.float64), (3, 5, 12)
    ours = Recognising(rows, labels, counts, 7, None)
    train, test = Recognising(rows, labels, counts, 7, None)._halves()
    assert np.bincount(labels[train]).tolist() == np.bincount(labels[test]).tolist() == [3] * 8
    ours.split()
    found = ours.result(np.arange(8))
    pca = decomposition.PCA(12, svd_solver="full").fit(rows[train])
    known, asked = pca.transform(rows[train]), pca.transform(rows[test])
    deviations = np.sqrt(pca.explained_variance_)

    def accuracy(a, b):
        return KNeighborsClassifier(1, algorithm="brute").fit(a, labels[train]).score(b, labels[test])

    for place, k in enumerate(counts):
        assert found.split[0, place] == accuracy(known[:, :k], asked[:, :k])
        assert found.whitened[0, place] == accuracy((known / deviations)[:, :k], (asked / deviations)[:, :k])
    assert np.isnan(found.without_light[0, 0])
    assert found.without_light[0, 1] == accuracy(known[:, 3:5], asked[:, 3:5])
    assert found.pixels_split[0] == accuracy(rows[train], rows[test])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_the_order_of_the_images_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    images = rng.normal(size=(14, 3, 3)) + 2 * rng.normal(size=(2, 3, 3)).repeat(7, axis=0)
    labels, order = np.repeat(["a", "b"], 7), rng.permutation(14)
    one = fw.eigenfaces(images, labels, n_splits=1).recognition
    other = fw.eigenfaces(images[order], labels[order], n_splits=1).recognition
    np.testing.assert_array_equal(one.left_out, other.left_out)
    assert one.pixels_left_out == other.pixels_left_out
    assert one.wrong == other.wrong


def test_threads_do_not_matter(people, monkeypatch):
    """Many tiles, of which some take longer, so that with several threads they are not done in order."""
    import importlib

    module = importlib.import_module("foldwise.models.images.nearest")
    plain, done = module._of_tile, []

    def slow(queries, *more):
        done.append(threading.get_ident())
        time.sleep(0.01 if len(done) % 3 == 1 else 0.0)
        return plain(queries, *more)

    monkeypatch.setattr(module, "_QUERIES", 5)
    monkeypatch.setattr(module, "_of_tile", slow)
    images, labels = people
    one = fw.eigenfaces(images, labels, n_splits=2, n_threads=1)
    assert set(done) == {threading.get_ident()}
    done.clear()
    other = fw.eigenfaces(images, labels, n_splits=2, n_threads=3)
    assert len(set(done)) > 1
    np.testing.assert_array_equal(one.recognition.table.values, other.recognition.table.values)
    np.testing.assert_array_equal(one.novelty.held_out, other.novelty.held_out)


def test_who_is_taken_for_whom():
    """Two pairs of points and one that lies with the others: the only wrong one."""
    images = np.array([0.0, 1.0, 10.0, 11.0, 10.4]).reshape(5, 1, 1)
    found = fw.eigenfaces(images, ["left", "left", "right", "right", "left"], n_splits=1)
    confused = {(one.label, one.taken_for, one.image, one.nearest) for one in found.recognition.confused}
    assert ("left", "right", 4, 2) in confused
    assert found.pairs.shape == (len(found.recognition.confused), 2, 1, 1)


def test_images_without_another_of_their_label_are_counted(people):
    images, labels = people
    labels = labels.copy()
    labels[0] = 99
    found = fw.eigenfaces(images, labels, n_splits=1)
    assert (found.recognition.alone, found.recognition.judged) == (1, 47)
    assert "1 image has no other" in "\n".join(found.notes)
    alone = fw.eigenfaces(images, np.arange(48))
    assert alone.recognition.judged == 0
    assert np.isnan(alone.recognition.left_out).all()
    assert "no other" in "\n".join(alone.notes)
    str(alone.report())


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 15), st.integers(1, 15), st.sampled_from([0.3, 0.9, 0.999]))
def test_directions_without_one_row(seed, d, k, share):
    """diag(D) - y y^T by secants, against a general solver."""
    rng = np.random.default_rng(seed)
    diagonal = np.sort(rng.exponential(size=d))[::-1] + np.arange(d, 0, -1) * 1e-3
    taken = rng.normal(size=d)
    taken *= np.sqrt(share / (taken**2 / diagonal).sum())  # so that nothing becomes negative
    ours = leading_without(diagonal, taken, k)
    matrix = np.diag(diagonal) - np.outer(taken, taken)
    expected = np.linalg.eigh(matrix)[0][::-1][: min(k, d)]
    np.testing.assert_allclose(ours.T @ ours, np.eye(min(k, d)), atol=1e-9)
    np.testing.assert_allclose(matrix @ ours, ours * expected, atol=1e-9)


def test_directions_without_one_row_where_nothing_changes():
    """Equal variances, and a row at the mean: the general solver's cases."""
    np.testing.assert_allclose(np.abs(leading_without(np.array([2.0, 2.0, 1.0]), np.zeros(3), 2)[2]), 0, atol=1e-15)
    found = leading_without(np.array([3.0, 2.0, 1.0]), np.array([0.0, 0.5, 0.0]), 3)
    np.testing.assert_allclose(np.abs(found), np.eye(3), atol=1e-15)
    assert leading_without(np.array([2.0]), np.array([1.0]), 1).tolist() == [[1.0]]


def test_equal_images_are_nearest_to_each_other():
    scores = np.array([[1.0, 1.0], [1.0, 1.0], [-1.0, 0.0], [-1.0, -2.0]])
    assert nearest_without_itself(scores, [1, 2])[:2].tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize("much", [0.0, 1e99])
def test_nearest_in_tiles(monkeypatch, much):
    """In either precision, in tiles that do not fit, and with the image itself left out."""
    import importlib

    module = importlib.import_module("foldwise.models.images.nearest")
    monkeypatch.setattr(module, "_QUERIES", 7)
    monkeypatch.setattr(module, "_REFERENCES", 11)
    monkeypatch.setattr(module, "_MUCH", much)
    rng = np.random.default_rng(0)
    points, asked = rng.normal(size=(2, 40, 6))
    for queries, own in ((asked, None), (points, np.arange(40))):
        found = nearest(queries, points, [2, 3, 6], own=own, n_threads=2)
        for place, k in enumerate([2, 3, 6]):
            gaps = np.square(queries[:, None, :k] - points[None, :, :k]).sum(axis=2)
            if own is not None:
                np.fill_diagonal(gaps, np.inf)
            np.testing.assert_array_equal(found[:, place], gaps.argmin(axis=1))


# ---------------------------------------------------------------- novelty


def test_auc_is_that_of_scikit_learn():
    rng = np.random.default_rng(1)
    members, others = rng.integers(0, 9, 50).astype(float), rng.integers(3, 12, 30).astype(float)
    truth = np.r_[np.zeros(50), np.ones(30)]
    assert auc(members, others) == pytest.approx(roc_auc_score(truth, np.r_[members, others]))


def test_what_is_none_of_the_images_scores_higher(people):
    images, labels = people
    found = fw.eigenfaces(images, labels, n_splits=1)
    novelty = found.novelty
    assert novelty.made
    assert [one.name for one in novelty.others] == ["noise", "faint noise", "shuffled tiles", "upside down"]
    assert novelty.all_auc > 0.99
    faint = novelty.others[1]
    assert faint.auc == 1.0
    assert faint.plain_auc < 0.5  # the residual of what has no contrast is small, whatever it is
    assert np.median(novelty.held_out) == pytest.approx(1.0, rel=0.3)
    assert (found.novelty_of(np.random.default_rng(0).integers(0, 255, (5, 12, 10)).astype(np.uint8)) > 2).all()
    assert (found.novelty_of(np.full((12, 10), 77, np.uint8)) > novelty.held_out.max()).all()


def test_the_score_by_hand():
    """Residual and share, each over its median, and the mean of both."""
    rng = np.random.default_rng(2)
    images = rng.normal(size=(9, 2, 3))
    novelty = fw.eigenfaces(images).novelty
    rows = rng.normal(size=(4, 6))
    pca = novelty.pca
    left = np.square(rows - pca.inverse_transform(pca.transform(rows))).sum(axis=1)
    own = np.square(rows - rows.mean(axis=1, keepdims=True)).sum(axis=1)
    np.testing.assert_allclose(residuals(pca, rows), [left, left / own])
    expected = (left / novelty.typical_residual + left / own / novelty.typical_share) / 2
    np.testing.assert_allclose(novelty.score(rows), expected)


def test_other_images_are_brought_to_the_same_size(people, tmp_path):
    images, _ = people
    rng = np.random.default_rng(5)
    Image.fromarray(rng.integers(0, 255, (30, 50, 3), np.uint8)).save(tmp_path / "colours.png")
    Image.fromarray(rng.integers(0, 65535, (7, 5), np.uint16)).save(tmp_path / "deep.png")
    found = fw.eigenfaces(images, novel=tmp_path)
    assert [(one.name, len(one.score)) for one in found.novelty.others] == [(tmp_path.name, 2)]
    assert not found.novelty.made
    several = fw.eigenfaces(images, novel={"bright": np.ones((3, 4, 4)), "dark": np.zeros((2, 12, 10))})
    assert [len(one.score) for one in several.novelty.others] == [3, 2]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no images in this folder"):
        fw.eigenfaces(images, novel=tmp_path / "empty")


def test_other_images_of_any_size_in_a_list(people):
    images, _ = people
    found = fw.eigenfaces(images)
    scores = found.novelty_of([images[0], np.repeat(images[1], 2, axis=0), Image.fromarray(images[2])])
    np.testing.assert_allclose(scores[[0, 2]], found.novelty_of(images[[0, 2]]), atol=1e-20)
    for bad in ([np.zeros((8, 8)), np.zeros(9)], [[[1, 2], [3]], [[1, 2], [3, 4]]], []):
        with pytest.raises(DataError) as problem:
            found.novelty_of(bad)
        assert "\n" not in str(problem.value)


def test_transparent_and_hidden_files_are_the_same_from_a_folder_and_a_pattern(people, tmp_path):
    """Transparent pixels lie on white, as in a folder of images, and what a system leaves beside a file is not meant."""
    images, _ = people
    found = fw.eigenfaces(images)
    pixels = np.zeros((12, 10, 4), np.uint8)
    pixels[2:6, 2:6] = 200, 200, 200, 255
    Image.fromarray(pixels).save(tmp_path / "a.png")
    Image.fromarray(images[0].astype(np.uint16) * 257).save(tmp_path / "b.png")
    (tmp_path / "._a.png").write_bytes(b"what some systems leave")
    folder, note = like_images(tmp_path, found.images)
    assert note is None
    np.testing.assert_array_equal(folder, like_images(f"{tmp_path}/*.png", found.images)[0])
    np.testing.assert_array_equal(folder, like_images([tmp_path / "a.png", tmp_path / "b.png"], found.images)[0])
    assert folder[0].reshape(12, 10)[0, 0] == 255
    assert folder[0].reshape(12, 10)[3, 3] == 200
    np.testing.assert_allclose(folder[1].reshape(12, 10), images[0])


@pytest.mark.parametrize("kind", [np.float64, np.uint8])
def test_other_images_where_the_set_does_not_say_what_white_is(people, tmp_path, kind):
    """Digits from 0 to 16 beside photographs from 0 to 255: units alone must not tell them apart."""
    images, _ = people
    small = np.round(images / 255 * 16).astype(kind)
    Image.fromarray(images[0]).save(tmp_path / "a.png")
    found = fw.eigenfaces(small, novel=tmp_path)
    high = float(small.max())
    rows, _ = like_images(tmp_path, found.images)
    np.testing.assert_allclose(rows[0], images[0].ravel() / 255 * high)
    assert f"white of the other images became {high:g}" in "\n".join(found.notes)
    assert found.novelty.others[0].score[0] < 5
    with pytest.warns(FoldwiseWarning, match="which value is white"):
        found.novelty_of(tmp_path / "a.png")
    alike, note = like_images(small[:2], found.images)  # in the same units
    np.testing.assert_array_equal(alike, small[:2].reshape(2, -1))
    assert note is None


def test_dark_files_stay_dark(tmp_path):
    """Files of 8 bits say what white is, however dark they are."""
    rng = np.random.default_rng(0)
    for place, most in (("set", 20), ("other", 255)):
        (tmp_path / place).mkdir()
        for number in range(6):
            Image.fromarray(rng.integers(0, most, (4, 4), np.uint8)).save(tmp_path / place / f"{number}.png")
    found = fw.eigenfaces(tmp_path / "set", novel=tmp_path / "other")
    assert found.images.white == 255
    assert like_images(tmp_path / "other", found.images)[0].max() > 200
    assert found.notes == ()


def test_of_very_many_others_some_are_drawn(people):
    """From all of them, not the first ones."""
    images, _ = people
    noise = np.random.default_rng(0).integers(0, 256, (1000, 12, 10), np.uint8)
    others = np.concatenate([noise, np.repeat(images[:1], 1000, axis=0)])
    found = fw.eigenfaces(images, novel={"many": others})
    assert found.novelty.n_others == 1000
    assert "many: 1,000 of 2,000 images were drawn at random" in "\n".join(found.notes)
    ordinary = np.count_nonzero(found.novelty.others[0].score < 3)
    assert 400 < ordinary < 600


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_what_is_left_by_rounding_alone_is_no_novelty(offset):
    """40 images in 5 dimensions: components leave nothing of them, so that there are no units for a score."""
    rng = np.random.default_rng(0)
    images = (rng.normal(size=(40, 5)) @ rng.normal(size=(5, 64)) + offset).reshape(40, 8, 8)
    found = fw.eigenfaces(images)
    assert found.novelty is None
    assert "Novelty was not measured" in "\n".join(found.notes)
    with pytest.raises(DataError, match="novelty was not measured"):
        found.novelty_of(images[0])
    faint = images + 1e-4 * rng.normal(size=images.shape)
    assert fw.eigenfaces(faint).novelty is not None


def test_the_units_of_the_score_come_from_images_that_are_not_scored(people):
    images, _ = people
    novelty = fw.eigenfaces(images, random_state=4).novelty
    order = np.random.default_rng(4).permutation(48)
    assert (novelty.n_typical, len(novelty.held_out)) == (6, 18)
    rows = images.reshape(48, -1).astype(np.float64)
    left, share = residuals(novelty.pca, rows[np.sort(order[24:30])])
    assert (novelty.typical_residual, novelty.typical_share) == (np.median(left), np.median(share))
    np.testing.assert_allclose(novelty.held_out, novelty.score(rows[np.sort(order[30:])]))
    few = fw.eigenfaces(images[:12])
    assert (few.novelty.n_typical, len(few.novelty.held_out)) == (0, 6)
    assert "the held-out images themselves" in " ".join(str(few.report()).split())


# ---------------------------------------------------------------- where images are


def test_the_same_from_everywhere(people, tmp_path):
    """A folder, .npy, .npz, IDX, a table, rows of pixels: the same images, and the same labels."""
    images, labels = people
    expected = fw.eigenfaces(images, labels, n_splits=1)
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        (tmp_path / "people" / f"p{label}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(tmp_path / "people" / f"p{label}" / f"{number:02}.png")
    np.save(tmp_path / "x.npy", images)
    np.savez(tmp_path / "x.npz", images=images, subject=labels)
    content = struct.pack(">HBBIII", 0, 8, 3, 48, 12, 10) + images.tobytes()
    (tmp_path / "faces-idx3-ubyte.gz").write_bytes(gzip.compress(content))
    (tmp_path / "who-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, 48) + labels.astype(np.uint8).tobytes())
    (tmp_path / "who.txt").write_text("\n".join(f"p{label}" for label in labels))
    table = np.column_stack([images.reshape(48, -1), labels])
    head = ",".join([*(f"p{i}" for i in range(120)), "who"])
    np.savetxt(tmp_path / "x.csv", table, "%d", ",", header=head, comments="")
    given = [
        (tmp_path / "people", None, {}),
        (tmp_path / "x.npy", tmp_path / "who.txt", {}),
        (tmp_path / "x.npz", "subject", {}),
        (tmp_path / "x.npz", None, {}),
        (tmp_path / "faces-idx3-ubyte.gz", tmp_path / "who-idx1-ubyte", {}),
        (tmp_path / "x.csv", "who", {"image_size": "10x12"}),
        (images.reshape(48, -1), labels, {"image_size": (10, 12)}),
        (list(images), labels.astype(float), {}),
        (fw.scan(tmp_path / "x.npy"), labels, {}),
    ]
    for where, who, more in given:
        found = fw.eigenfaces(where, who, n_splits=1, **more)
        assert found.shape == (12, 10), where
        np.testing.assert_allclose(found.components, expected.components, atol=1e-9)
        np.testing.assert_array_equal(found.recognition.left_out, expected.recognition.left_out)
        np.testing.assert_array_equal(found.recognition.split, expected.recognition.split)


def test_colours():
    images = np.random.default_rng(0).integers(0, 256, (12, 5, 4, 3), np.uint8)
    found = fw.eigenfaces(images)
    assert found.components.shape == (11, 5, 4, 3)
    assert found.mean_image.shape == (5, 4, 3)
    assert "<svg" in found.report()._repr_html_()


def test_of_very_many_some_are_drawn(people):
    images, labels = people
    found = fw.eigenfaces(images, labels, max_images=20, n_splits=1)
    assert len(found.images.values) == 20
    assert found.images.total == 48
    assert "20 of 48 images were drawn" in found.notes[0]
    again = fw.eigenfaces(images, labels, max_images=20, n_splits=1)
    np.testing.assert_array_equal(found.images.values, again.images.values)


@pytest.mark.parametrize(
    ("images", "labels", "more", "error", "words"),
    [
        (np.zeros((1, 2, 2)), None, {}, DataError, "only one image"),
        (np.zeros((3, 7)), None, {}, DataError, "no square image"),
        (np.zeros((3, 6)), None, {"image_size": "4x2"}, ParameterError, "8 pixels"),
        (np.zeros((3, 2, 3)), None, {"image_size": "4x2"}, ParameterError, "3 x 2 pixels"),
        (np.zeros(3), None, {}, DataError, "not \\(3,\\)"),
        (np.array([["a"]]), None, {}, DataError, "pixels are numbers"),
        ([np.zeros((2, 2)), np.zeros((2, 3))], None, {}, DataError, "image 1 is 3 x 2"),
        (np.full((3, 2, 2), np.nan), None, {}, DataError, "row 0"),
        (np.eye(4).reshape(4, 2, 2), ["a", "b"], {}, DataError, "4 images, but labels of shape \\(2,\\)"),
        (np.eye(4).reshape(4, 2, 2), ["a"] * 4, {}, DataError, "all images have the label a"),
        (np.eye(4).reshape(4, 2, 2), [1.0, np.nan, 2, 2], {}, DataError, "row 1"),
        (np.eye(4).reshape(4, 2, 2), "nobody.txt", {}, MissingFileError, "no such file of labels"),
        (np.eye(4).reshape(4, 2, 2), None, {"n_components": [9]}, ParameterError, "at most 3 components"),
        (np.eye(4).reshape(4, 2, 2), None, {"n_components": [0, 2]}, ParameterError, "from 1"),
        (np.eye(4).reshape(4, 2, 2), None, {"n_splits": 0}, ParameterError, "at least 1"),
        (np.eye(4).reshape(4, 2, 2), None, {"novel": {}}, ParameterError, "at least one"),
        ("nowhere.npy", None, {}, MissingFileError, "nowhere.npy"),
        (np.eye(4).reshape(4, 2, 2), None, {"n_components": [1, 2.7]}, ParameterError, "2.7.*whole numbers"),
        (np.eye(4).reshape(4, 2, 2), None, {"n_components": "many"}, ParameterError, "whole numbers"),
        (
            np.eye(4).reshape(4, 2, 2),
            None,
            {"max_images": None},
            ParameterError,
            "max_images=None: give a whole number",
        ),
        (np.eye(4).reshape(4, 2, 2), None, {"n_splits": "x"}, ParameterError, "n_splits='x'"),
        (np.eye(4).reshape(4, 2, 2), None, {"grey": True}, ParameterError, "grey=True is for files"),
        (fw.scan(np.eye(4)), None, {"grey": True}, ParameterError, "grey=True is for files"),
        (np.eye(4).reshape(4, 2, 2), [[1], [2, 3], [4], [5]], {}, DataError, "no plain list"),
        ([[[1, 2], [3]], [[1, 2], [3, 4]]], None, {}, DataError, "different lengths"),
        (fw.scan(np.eye(4), weights=np.arange(4.0)), None, {}, ParameterError, "weights"),
    ],
)
def test_bad_input(images, labels, more, error, words):
    with pytest.raises(error, match=words) as problem:
        fw.eigenfaces(images, labels, **more)
    assert "\n" not in str(problem.value)


def test_labels_that_cannot_be_read(people, tmp_path):
    images, labels = people
    objects = np.array(["a", None] * 24, object)
    np.save(tmp_path / "objects.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "objects.npz", images=images, who=objects)
    (tmp_path / "latin.txt").write_bytes(b"\xff\xfe\n" * 48)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "objects.npy").read_bytes()[:40])
    content = struct.pack(">HBBI", 0, 8, 1, 48) + labels.astype(np.uint8).tobytes()
    (tmp_path / "who-idx1-ubyte").write_bytes(content[:-20])
    bad = {"objects.npy": "objects", "latin.txt": "UTF-8", "cut.npy": "cannot be read", "who-idx1-ubyte": "28 values"}
    for name, words in bad.items():
        with pytest.raises(DataError, match=f"{name}.*{words}") as problem:
            fw.eigenfaces(images, tmp_path / name)
        assert "\n" not in str(problem.value)
    with pytest.raises(DataError, match=r"objects.npz \(who\).*objects"):
        fw.eigenfaces(tmp_path / "objects.npz", "who")


def test_equal_images_have_no_components():
    """All the same: nothing to recognise by and nothing that could be new, but no accident either."""
    found = fw.eigenfaces(np.full((6, 3, 3), 7.0), ["a", "b"] * 3, n_splits=1)
    assert found.pca.explained_variance_.max() < 1e-12
    assert found.novelty is None
    str(found.report())


def test_ctrl_c_gives_what_is_done(people, monkeypatch):
    images, labels = people
    from foldwise.models.images.recognition import Recognising

    before = Recognising.split
    done = []

    def interrupted(self):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(1)
        before(self)

    monkeypatch.setattr(Recognising, "split", interrupted)
    found = fw.eigenfaces(images, labels, n_splits=5)
    assert found.interrupted
    assert len(found.recognition.split) == 2
    assert "Interrupted" in found.notes[0]


# ---------------------------------------------------------------- what is shown


def test_the_frame_and_the_tables(people):
    pytest.importorskip("pandas")
    images, labels = people
    found = fw.eigenfaces(images, labels, n_components=[2, 5], n_splits=2)
    frame = found.frame()
    assert list(frame.index) == ["2", "5", "all pixels"]
    assert frame.loc["5", "left_out"] == found.recognition.left_out[1]
    assert list(fw.eigenfaces(images).frame().columns) == ["variance", "share", "total"]
    assert repr(found).startswith("Eigenfaces(48 images of 10 x 12 pixels")
    for one in (found, found.recognition, found.novelty):
        assert "<" in one._repr_html_()
        assert str(one.report())


def test_olivetti(shared_data):
    """Published faces: 95 % by the nearest neighbour, and patches that are no faces stand out."""
    found = fw.eigenfaces(shared_data / "faces" / "olivetti_64x64.npz", "subject", n_components=[10, 40], n_splits=3)
    np.testing.assert_allclose(found.recognition.left_out * 400, [361, 380])  # as scikit-learn's, refitted 400 times
    assert 0.82 < found.recognition.split.mean(axis=0)[1] < 0.92
    assert found.novelty.all_auc > 0.999
    assert found.novelty.misplaced == 0


def test_new_images_are_recognised_and_one_of_another_size_is_brought_to_it():
    rng = np.random.default_rng(0)
    people = rng.uniform(0, 200, (4, 6, 8))
    images = np.concatenate([people + rng.normal(0, 4, people.shape) for _ in range(5)])
    found = fw.eigenfaces(images, np.tile(["ann", "bob", "cem", "dan"], 5), n_components=[2, 3], n_splits=2)
    assert found.predict(people).tolist() == ["ann", "bob", "cem", "dan"]
    assert found.predict(people[2], n=3).tolist() == ["cem"]
    large = people[1].repeat(2, 0).repeat(2, 1)
    assert found.predict(large).tolist() == ["bob"]
    assert found.novelty_of(large).shape == (1,)
    assert repr(found.recognition).startswith("Recognition(100.0% left out")
    with pytest.raises(ParameterError, match="predict"):
        found.predict(people, n=99)
    with pytest.raises(DataError, match="no labels"):
        fw.eigenfaces(images).predict(people)
