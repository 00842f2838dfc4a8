"""IDX files of digits, and arrays of images in .npy and .npz files: rows of pixels, streamed, with labels where they are."""

from __future__ import annotations

import gzip
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import foldwise as fw
from foldwise.data.array_files import is_array_file
from foldwise.data.block import dense_rows
from foldwise.data.sniff import IDX_TYPES
from foldwise.errors import DataError, FoldwiseWarning, ParameterError, SourceChangedError

_TYPES = {np.dtype(kind).newbyteorder("="): byte for byte, kind in IDX_TYPES.items()}


def idx_bytes(array: np.ndarray) -> bytes:
    head = b"\0\0" + _TYPES[array.dtype] + bytes([array.ndim])
    return head + struct.pack(f">{array.ndim}I", *array.shape) + array.astype(array.dtype.newbyteorder(">")).tobytes()


def rows_of(source: fw.data.source.Source) -> np.ndarray:
    return np.concatenate([dense_rows(piece.load().rows) for piece in source.pieces()])


@pytest.fixture
def digits() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (40, 6, 5), dtype=np.uint8)


@pytest.mark.parametrize(
    "name", ["t10k-images-idx3-ubyte", "x.idx", "t10k-images-idx3-ubyte.gz", "x.idx.gz", "nothing"]
)
def test_plain_and_compressed_whatever_the_name(tmp_path: Path, digits: np.ndarray, name: str) -> None:
    content = idx_bytes(digits)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    source = fw.scan(tmp_path / name)
    assert (source.n_rows, source.n_columns, source.dtype) == (40, 30, np.float32)
    assert source.image_shape == (6, 5)
    assert np.array_equal(rows_of(source), digits.reshape(40, -1))
    assert np.array_equal(rows_of(pickle.loads(pickle.dumps(source))), digits.reshape(40, -1))
    assert is_array_file(tmp_path / name)
    array = digits.reshape(40, -1).astype(np.float32)
    expected = fw.KMeans(3, random_state=0).fit(array)
    for threads in (1, 2, 3):
        found = fw.KMeans(3, random_state=0, n_threads=threads).fit(str(tmp_path / name))
        assert np.array_equal(found.cluster_centers_, expected.cluster_centers_)


@given(
    kind=st.sampled_from(sorted(_TYPES, key=str)),
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    packed=st.booleans(),
)
def test_every_type_and_shape(
    tmp_path_factory: pytest.TempPathFactory, kind: np.dtype, shape: list[int], packed: bool
) -> None:
    array = np.random.default_rng(0).integers(0, 100, shape).astype(kind)
    path = tmp_path_factory.mktemp("idx") / ("x.idx.gz" if packed else "x.idx")
    path.write_bytes(gzip.compress(idx_bytes(array)) if packed else idx_bytes(array))
    source = fw.scan(path)
    assert np.array_equal(rows_of(source), array.reshape(shape[0], -1))
    assert source.image_shape == (tuple(shape[1:]) if len(shape) == 3 else None)


def test_labels_of_the_file_beside(tmp_path: Path, digits: np.ndarray) -> None:
    labels = np.arange(40, dtype=np.uint8) % 10
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_bytes(digits)))
    assert fw.scan(tmp_path / "train-images-idx3-ubyte.gz").labels is None
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx_bytes(labels[:-1]))
    with pytest.warns(FoldwiseWarning, match="labels beside the images is not used.*40 images, but 39 labels"):
        assert fw.scan(tmp_path / "train-images-idx3-ubyte.gz").labels is None
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx_bytes(labels)))
    source = fw.scan(tmp_path / "train-images-idx3-ubyte.gz")
    assert source.labels.tolist() == labels.tolist()
    column = fw.scan(tmp_path / "train-labels-idx1-ubyte.gz")
    assert column.n_columns == 1
    assert rows_of(column)[:, 0].tolist() == labels.tolist()


@pytest.mark.parametrize("packed", [False, True])
def test_truncated_labels_beside_are_not_used(tmp_path: Path, digits: np.ndarray, packed: bool) -> None:
    (tmp_path / "t-images-idx3-ubyte").write_bytes(idx_bytes(digits))
    beside = tmp_path / ("t-labels-idx1-ubyte.gz" if packed else "t-labels-idx1-ubyte")
    content = idx_bytes(np.arange(40, dtype=np.uint8))
    for part in (content[:-10], content[:6]):
        beside.write_bytes(gzip.compress(part) if packed else part)
        with pytest.warns(FoldwiseWarning, match=f"{beside.name}.*truncated"):
            assert fw.scan(tmp_path / "t-images-idx3-ubyte").labels is None
    if packed:
        beside.write_bytes(gzip.compress(content)[:-12])
        with pytest.warns(FoldwiseWarning, match="damaged"):
            assert fw.scan(tmp_path / "t-images-idx3-ubyte").labels is None


@pytest.mark.parametrize("packed", [False, True])
def test_truncated_damaged_and_changed(tmp_path: Path, digits: np.ndarray, packed: bool) -> None:
    path = tmp_path / ("x.idx.gz" if packed else "x.idx")
    for content in (idx_bytes(digits)[:-7], idx_bytes(digits)[:9], b"\1\2\3\4\5\6\7\x08" * 9):
        path.write_bytes(gzip.compress(content) if packed else content)
        with pytest.raises(DataError) as error:
            rows_of(fw.scan(path))
        assert str(path) in str(error.value)
        assert "\n" not in str(error.value)
    if packed:
        path.write_bytes(gzip.compress(idx_bytes(digits))[:-30])
        with pytest.raises(DataError, match="damaged"):
            rows_of(fw.scan(path))
    path.write_bytes(gzip.compress(idx_bytes(digits)) if packed else idx_bytes(digits))
    source = fw.scan(path)
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(SourceChangedError):
        rows_of(source)


def test_a_text_compressed_under_an_unknown_name_is_still_unknown(tmp_path: Path) -> None:
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    with pytest.raises(DataError, match="unknown file format"):
        fw.scan(tmp_path / "x.gz")


def test_mnist(shared_data: Path) -> None:
    source = fw.scan(shared_data / "digits" / "mnist-train-images-idx3-ubyte.gz")
    assert (source.n_rows, source.image_shape) == (60_000, (28, 28))
    assert source.labels[:5].tolist() == [5, 0, 4, 1, 9]
    first = next(iter(source.pieces())).load().rows
    assert first.max() == 255


# ---------------------------------------------------------------- .npy and .npz


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("channels", [0, 1, 3])
def test_npy_of_more_than_two_dimensions(tmp_path: Path, order: str, channels: int) -> None:
    shape = (9, 4, 5, channels) if channels else (9, 4, 5)
    array = np.asarray(np.random.default_rng(0).integers(0, 255, shape).astype(np.uint8), order=order)
    np.save(tmp_path / "x.npy", array)
    source = fw.scan(tmp_path / "x.npy")
    assert source.image_shape == ((4, 5, 3) if channels == 3 else (4, 5))
    assert source.dtype == np.float32
    assert np.array_equal(rows_of(source), array.reshape(9, -1))


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((48, 64, 3), "one image with colours"),
        ((9, 3, 32, 32), "channels not last.*transpose"),
        ((2, 2, 2, 2, 2), "Found array with dim 5"),
        ((7,), "Expected 2D array"),
    ],
)
def test_doubtful_shapes_are_refused(tmp_path: Path, shape: tuple[int, ...], words: str) -> None:
    np.save(tmp_path / "x.npy", np.zeros(shape, np.uint8))
    with pytest.raises(DataError, match=words):
        fw.scan(tmp_path / "x.npy")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_with_labels(tmp_path: Path, digits: np.ndarray, save: object) -> None:
    names = np.array([f"person {k % 4}" for k in range(40)])
    save(tmp_path / "x.npz", images=digits, who=names)
    source = fw.scan(tmp_path / "x.npz")
    assert source.image_shape == (6, 5)
    assert source.labels.tolist() == names.tolist()
    assert np.array_equal(rows_of(source), digits.reshape(40, -1))
    expected = fw.PCA(3).fit(digits.reshape(40, -1).astype(np.float32))
    assert np.array_equal(fw.PCA(3).fit(str(tmp_path / "x.npz")).components_, expected.components_)


def test_npz_with_several_arrays(tmp_path: Path, digits: np.ndarray) -> None:
    np.savez(tmp_path / "x.npz", x_train=digits, x_test=digits[:7], y_train=np.zeros(40, int), y_test=np.ones(7, int))
    with pytest.raises(DataError, match=r"several arrays of images: x_train.*table='x_train'"):
        fw.scan(tmp_path / "x.npz")
    source = fw.scan(tmp_path / "x.npz", table="x_test")
    assert source.n_rows == 7
    assert source.labels.tolist() == [1] * 7
    np.savez(tmp_path / "y.npz", data=digits.reshape(40, -1), images=digits)  # as scikit-learn has its digits
    plain = fw.scan(tmp_path / "y.npz")
    assert (plain.n_rows, plain.n_columns) == (40, 30)
    assert getattr(plain, "image_shape", None) is None
    assert fw.scan(tmp_path / "y.npz", table="images").image_shape == (6, 5)


def test_arrays_are_images_if_their_size_is_said(tmp_path: Path, digits: np.ndarray) -> None:
    flat = digits.reshape(40, -1)
    np.save(tmp_path / "x.npy", flat)
    for way in (flat, digits, flat.tolist(), str(tmp_path / "x.npy")):
        source = fw.scan(way, image_size=(5, 6))
        assert source.image_shape == (6, 5)
        assert np.array_equal(rows_of(source), flat)
    assert fw.PCA(2).fit(fw.scan(flat, image_size="5x6")).image_shape_ == (6, 5)
    assert fw.scan(np.zeros((4, 90)), image_size="5x6").image_shape == (6, 5, 3)
    with pytest.raises(ParameterError, match="there are 30 columns"):
        fw.scan(flat, image_size="6x6")
    with pytest.raises(ParameterError, match="Only files of images can be resized"):
        fw.scan(digits, image_size="6x5")
    with pytest.raises(ParameterError, match="grey"):
        fw.scan(digits, grey=True)
    with pytest.raises(DataError, match=r"Found array with dim 3.*image_size"):
        fw.scan(digits)
    import pandas as pd

    with pytest.raises(ParameterError, match="image_size="):
        fw.scan(fw.scan(flat), image_size="5x6")
    with pytest.raises(ParameterError, match="image_size="):
        fw.scan(pd.DataFrame(flat), image_size="5x6")
