"""The fixed order of merging: arrival, threads, batches and chunks cannot change a bit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import foldwise as fw
from foldwise.data.block import Block, DenseBlock
from foldwise.data.block_grid import rows_per_block
from foldwise.data.source import row_ranges
from foldwise.fold import fold
from foldwise.fold.partial_fold import PartialFold
from foldwise.fold.tree import Tree
from foldwise.stats.column_moments import ColumnMoments
from foldwise.stats.moments import Moments


@dataclass(frozen=True)
class Text:
    """A partial result that writes down how it was put together."""

    value: str

    def merge(self, other: Text) -> Text:
        return Text(f"({self.value} {other.value})")


def bracketing(first: int, n: int) -> str:
    """The rule in one line: the largest power of two that leaves something goes left."""
    if n == 1:
        return str(first)
    left = 1 << ((n - 1).bit_length() - 1)
    return f"({bracketing(first, left)} {bracketing(first + left, n - left)})"


def test_bracketing_of_seven_by_hand() -> None:
    assert bracketing(0, 7) == "(((0 1) (2 3)) ((4 5) 6))"


@given(n=st.integers(1, 40), data=st.data())
def test_any_arrival_gives_the_fixed_bracketing(n: int, data: st.DataObject) -> None:
    tree: Tree[Text] = Tree()
    for number in data.draw(st.permutations(range(n))):
        tree.add(number, Text(str(number)))
    assert tree.result() == Text(bracketing(0, n))


def test_any_arrival_gives_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    stats = [Moments.of(DenseBlock(rng.standard_normal((17, 3)) + 1e5)) for _ in range(13)]
    seen = set()
    for _ in range(20):
        tree: Tree[Moments] = Tree()
        for number in rng.permutation(13):
            tree.add(int(number), stats[number])
        result = tree.result()
        assert result is not None
        seen.add((result.mean.tobytes(), result.scatter.tobytes()))
    assert len(seen) == 1


def test_threads_may_add_at_once() -> None:
    for _ in range(20):
        tree: Tree[Text] = Tree()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number, tree=tree: tree.add(number, Text(str(number))), range(64)))
        assert tree.result() == Text(bracketing(0, 64))


@given(n=st.integers(1, 1000))
def test_few_results_are_held_when_blocks_come_in_order(n: int) -> None:
    tree: Tree[Text] = Tree()
    for number in range(n):
        tree.add(number, Text(""))
    assert len(tree.__getstate__()) == n.bit_count()


def test_a_copy_goes_its_own_way() -> None:
    tree: Tree[Text] = Tree()
    tree.add(0, Text("0"))
    twin = tree.copy()
    twin.add(1, Text("1"))
    assert tree.result() == Text("0")
    assert twin.result() == Text("(0 1)")


def test_a_tree_without_blocks_has_no_result() -> None:
    assert Tree().result() is None


@pytest.mark.parametrize("batch", [1, 7, 31, 34, 35, 90])
@pytest.mark.parametrize("weighted", [False, True])
def test_stream_of_columns_has_the_bits_of_one_fold(batch: int, weighted: bool) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((90, 60_000)) + 10  # so wide that a block is 34 rows
    w = rng.random(90) if weighted else None
    assert rows_per_block(60_000, x.dtype) == 34
    whole = fold(fw.scan(x, weights=w), ColumnMoments.of)
    parts = [(x[i : i + batch], None if w is None else w[i : i + batch]) for i in range(0, 90, batch)]
    stream: PartialFold[ColumnMoments] = PartialFold(ColumnMoments.of, fw.scan(parts[0][0], weights=parts[0][1]))
    for rows, weights in parts:
        stream = stream.pushed(fw.scan(rows, weights=weights))
    value = stream.value()
    assert value.weight == whole.weight
    assert value.mean.tobytes() == whole.mean.tobytes()
    assert value.squares.tobytes() == whole.squares.tobytes()


@pytest.mark.parametrize("batch", [997, 7000])
def test_stream_of_moments_has_the_bits_of_one_fold(batch: int) -> None:
    x = np.random.default_rng(4).standard_normal((7000, 600)).astype(np.float32)
    assert rows_per_block(600, x.dtype) < 7000
    whole = fold(fw.scan(x), Moments.of)
    stream: PartialFold[Moments] = PartialFold(Moments.of, fw.scan(x[:batch]))
    for start in range(0, len(x), batch):
        stream = stream.pushed(fw.scan(x[start : start + batch]))
        stream.value()  # to look in between changes nothing
    assert stream.value().mean.tobytes() == whole.mean.tobytes()
    assert np.triu(stream.value().scatter).tobytes() == np.triu(whole.scatter).tobytes()


def test_stream_does_not_keep_the_callers_memory() -> None:
    batch = np.arange(6.0).reshape(3, 2)
    stream: PartialFold[ColumnMoments] = PartialFold(ColumnMoments.of, fw.scan(batch))
    stream = stream.pushed(fw.scan(batch))
    batch[:] = 1e9
    np.testing.assert_array_equal(stream.value().mean, [2.0, 3.0])


@given(n_columns=st.integers(1, 300_000), dtype=st.sampled_from([np.float32, np.float64]))
def test_grid_is_made_of_whole_tiles_and_bounded_bytes(n_columns: int, dtype: type) -> None:
    rows = rows_per_block(n_columns, np.dtype(dtype))
    assert rows >= 1
    assert rows % 128 == 0 or rows < 128
    assert rows == 1 or rows * n_columns * np.dtype(dtype).itemsize <= 16 << 20


def cuts(n: int, rows: int) -> list[tuple[int, int]]:
    """The first row of each block, and that of the next."""
    return [(start, min(start + rows, n)) for start in range(0, n, rows)]


@given(n=st.integers(0, 60_000), data=st.data())
def test_pieces_cover_all_rows_once(n: int, data: st.DataObject) -> None:
    source = SimpleNamespace(n_rows=n, n_columns=200, dtype=np.dtype(np.float64), sparse=False)
    rows = rows_per_block(200, source.dtype)
    assert [(piece.start, piece.stop) for piece in row_ranges(source, 0, None)] == cuts(n, rows)
    first = data.draw(st.integers(0, 20))
    last = data.draw(st.integers(first, 20))
    assert [(piece.start, piece.stop) for piece in row_ranges(source, first, last)] == cuts(n, rows)[first:last]


@pytest.mark.parametrize("threads", ["1", "2", "5"])
@pytest.mark.parametrize("n", [60_000, 100_001])
def test_grid_depends_on_columns_and_dtype_alone(monkeypatch: pytest.MonkeyPatch, threads: str, n: int) -> None:
    monkeypatch.setenv("FOLDWISE_THREADS", threads)
    plain = np.random.default_rng(0).standard_normal((n, 10))
    layouts = [plain, np.asfortranarray(plain), np.repeat(plain, 2, axis=0)[::2], plain[::-1]]
    rows = rows_per_block(10, plain.dtype)
    expected = [(start, stop - start) for start, stop in cuts(n, rows)]
    assert len(expected) > 2
    for x in layouts:
        blocks: list[Block] = [piece.load() for piece in fw.scan(x).pieces()]
        assert [(block.start, block.n_rows) for block in blocks] == expected
