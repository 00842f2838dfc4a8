"""Dask arrays and data frames: chunks of any length, even unknown, are cut into blocks on the grid."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data import check, column_selection
from foldwise.data.block import Block, DenseBlock
from foldwise.data.block_grid import rows_per_block
from foldwise.data.shard import LoadedBlocks
from foldwise.data.source import Loaded, Piece, like
from foldwise.errors import DataError


@dataclass(frozen=True)
class Chunks:
    """How the chunks of a collection become blocks: the columns, dtype and weights."""

    chosen: list[int]
    names: tuple[str, ...] | None
    dtype: np.dtype[np.floating]
    weights: NDArray[np.float64] | None
    weights_from: int = 0  # the row to which the first weight belongs

    def cut(self, chunks: Iterable[Any], at: int, first: int, last: int | None) -> Iterator[Block]:
        """Blocks `first` to `last` - 1, cut from chunks that begin at row `at`."""
        rows = rows_per_block(len(self.chosen), self.dtype)
        start, have, waiting = first * rows, 0, list[Block]()
        for chunk in chunks:
            values = self._values(chunk, at)
            here = max(start + have - at, 0)
            while here < len(values) and (last is None or start < last * rows):
                take = min(rows - have, len(values) - here)
                row = at + here
                weights = None if self.weights is None else self.weights[row - self.weights_from :][:take]
                waiting.append(DenseBlock(values[here : here + take], row, weights, self._finite))
                have, here = have + take, here + take
                if have == rows:
                    yield self._joined(waiting, start)
                    start, have, waiting = start + rows, 0, []
            at += len(values)
        if waiting:
            yield self._joined(waiting, start)

    def _joined(self, parts: list[Block], start: int) -> Block:
        """Neighbouring rows as one block, still to be checked: whoever allows missing cells does so before."""
        weights = (
            None
            if self.weights is None
            else np.concatenate([part.weights for part in parts if part.weights is not None])
        )
        return DenseBlock(np.concatenate([part.unchecked for part in parts]), start, weights, self._finite)

    def _values(self, chunk: Any, at: int) -> NDArray[Any]:
        """The chosen columns of a chunk, which is an array or a pandas data frame."""
        if hasattr(chunk, "iloc"):
            chosen = chunk.iloc[:, self.chosen]
            return np.ascontiguousarray(chosen.to_numpy(dtype=self.dtype, na_value=np.nan))
        values = np.asarray(chunk)[:, self.chosen]
        if values.dtype.kind in "OUST":
            values = check.as_numbers(values, self.dtype, start=at, where=DaskSource.where)
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(values, dtype=self.dtype)

    def _finite(self, values: NDArray[Any], start: int) -> None:
        check.Finite(DaskSource.where, self.names, self.chosen)(values, start)


class DaskSource:
    """The rows of a Dask collection, as delayed chunks in row order."""

    where = "Dask collection"
    sparse = False
    slow = True  # the graph behind a chunk may be long, so the rows are spooled for later passes
    in_memory = False

    def __init__(self, delayed: list[Any], lengths: list[int] | None, cut: Chunks, left_out: tuple[str, ...]) -> None:
        self._delayed, self._lengths, self._chunks = delayed, lengths, cut
        self.names, self.left_out, self.dtype, self.n_columns = cut.names, left_out, cut.dtype, len(cut.chosen)
        self.n_rows = None if lengths is None else sum(lengths)

    def count(self, most: int | None = None) -> int:
        """The number of rows; unknown chunk sizes are computed."""
        if self._lengths is None:
            import dask

            lengths = [dask.delayed(len)(chunk) for chunk in self._delayed]  # type: ignore[attr-defined]
            self._lengths = [int(n) for n in dask.compute(*lengths)]  # type: ignore[attr-defined,no-untyped-call]
            self.n_rows = sum(self._lengths)
        assert self.n_rows is not None
        check.not_empty(self.n_rows, self.n_columns, self.where)
        if self._chunks.weights is not None and len(self._chunks.weights) != self.n_rows:
            check.weight_count(len(self._chunks.weights), self.n_rows, self.where)
        return self.n_rows

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks, computed chunk by chunk with the scheduler that Dask uses in this process."""
        delayed, skipped = self._needed(first, last)
        yield from map(Loaded, self._chunks.cut((chunk.compute() for chunk in delayed), skipped, first, last))

    def _needed(self, first: int, last: int | None) -> tuple[list[Any], int]:
        """The chunks that contain blocks `first` to `last` - 1, and the number of rows before them."""
        self.count()
        rows, ends = rows_per_block(self.n_columns, self.dtype), np.cumsum(np.array(self._lengths))
        begin = int(np.searchsorted(ends, first * rows, side="right"))
        end = len(ends) if last is None else int(np.searchsorted(ends, last * rows, side="left")) + 1
        return self._delayed[begin:end], int(ends[begin - 1]) if begin else 0

    def collection_shard(self, first: int, last: int) -> tuple[list[Any], Any]:
        """The chunks of a range of blocks, to be computed on the cluster, and the object that cuts them into blocks there."""
        delayed, skipped = self._needed(first, last)
        cut, rows = self._chunks, rows_per_block(self.n_columns, self.dtype)
        if cut.weights is not None:  # weights of other rows are not sent
            cut = replace(cut, weights=cut.weights[first * rows : last * rows], weights_from=first * rows)
        return delayed, _ChunkShard(cut, skipped, like(self), self.count())

    def fingerprint(self) -> str:
        """A hash of Dask's keys of the chunks, which change with their graphs."""
        keys = [str(chunk.key) for chunk in self._delayed]
        digest = hashlib.sha256(" ".join(keys).encode()).hexdigest()
        return f"dask {digest} {self._chunks.chosen} {self.dtype.name}"


@dataclass(frozen=True)
class _ChunkShard:
    """Cuts the chunks of a range of blocks into those blocks, on the worker that holds them."""

    cut: Chunks
    skipped: int
    about: dict[str, Any]
    n_rows: int

    def with_chunks(self, chunks: list[Any], first: int, last: int) -> LoadedBlocks:
        """The blocks."""
        return LoadedBlocks(list(self.cut.cut(chunks, self.skipped, first, last)), first, self.about, self.n_rows)


def open_dask(x: Any, *, columns_: Any, where: Any, weights: Any, dtype: Any) -> DaskSource:
    """A source over a Dask array or data frame."""
    if where is not None:
        raise DataError("where= is not possible for a Dask collection", advice="Filter it first: x[x.a > 0]")
    if hasattr(x, "iloc"):
        return _open_frame(x, columns_, weights, dtype)
    check.two_dimensional(x.shape, DaskSource.where)
    check.number_kind(x.dtype, DaskSource.where)
    x = x.rechunk({1: -1})
    chosen = list(range(x.shape[1]))
    if not column_selection.all_numeric(columns_):
        chosen = column_selection.positions(columns_, None, x.shape[1], DaskSource.where)
    lengths = None if any(np.isnan(n) for n in x.chunks[0]) else [int(n) for n in x.chunks[0]]
    chunks = list(x.to_delayed().ravel())
    return DaskSource(chunks, lengths, Chunks(chosen, None, _float(x.dtype, dtype), _weights(weights, lengths)), ())


def _open_frame(frame: Any, columns_: Any, weights: Any, dtype: Any) -> DaskSource:
    names = check.names(list(frame.columns), DaskSource.where)
    kinds = [
        np.dtype(kind) if isinstance(kind, np.dtype) else getattr(kind, "numpy_dtype", None) for kind in frame.dtypes
    ]
    are_numbers = [kind is not None and kind.kind in "biuf" for kind in kinds]
    if isinstance(weights, str):
        weights = frame[weights].to_dask_array(lengths=True).compute()
    left_out: tuple[str, ...] = ()
    texts = [str(name) for name in frame.columns]
    if column_selection.all_numeric(columns_):
        chosen, left_out = column_selection.numeric(texts, are_numbers, None, DaskSource.where)
    else:
        chosen = column_selection.positions(columns_, names, len(texts), DaskSource.where)
        for j in chosen:
            if not are_numbers[j]:
                raise DataError("this column does not hold numbers", where=DaskSource.where, column=texts[j])
    single = all(kinds[j] == np.float32 for j in chosen)
    cut = Chunks(
        chosen,
        None if names is None else tuple(names[j] for j in chosen),
        check.float_dtype(dtype) or np.dtype(np.float32 if single else np.float64),
        _weights(weights, None),
    )
    return DaskSource(frame.to_delayed(), None, cut, left_out)


def _float(kind: np.dtype[Any], dtype: Any) -> np.dtype[np.floating]:
    return check.float_dtype(dtype) or np.dtype(np.float32 if kind == np.float32 else np.float64)


def _weights(given: Any, lengths: list[int] | None) -> NDArray[np.float64] | None:
    if given is None:
        return None
    given = given.compute() if hasattr(given, "dask") else given
    return check.weights(given, DaskSource.where, None if lengths is None else sum(lengths))
