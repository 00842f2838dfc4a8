"""The nearest of many images in the space of the first components, for several numbers of components in one go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data import n_threads as threads_to_use
from foldwise.fold import blas, events, serial, threads

_QUERIES, _REFERENCES = 512, 1024  # a tile of distances: up to 4 MB, which a cache holds
_MUCH = 3e10  # multiplications from which on float32 is used: twice as fast, and near ties may go the other way


def nearest(
    queries: NDArray[Any],
    references: NDArray[Any],
    counts: Sequence[int],
    *,
    own: NDArray[np.intp] | None = None,
    n_threads: int | None = None,
) -> NDArray[np.intp]:
    """For each query and each of the rising `counts`, the reference that is nearest in so many first columns.

    `own` has the number of the reference that each query itself is, which is then left out. Distances grow from one count to
    the next, so that all counts cost little more than the largest alone; they are worked out in tiles of bounded size, in
    float64 or, for very many, in float32. The lowest number wins a tie. Columns should be centred, for squares of large
    numbers lose the small differences.

    >>> points = np.array([[0.0, 0.0], [1.0, 9.0], [3.0, 0.0]])
    >>> nearest(points, points, [1, 2], own=np.arange(3)).tolist()
    [[1, 2], [0, 0], [1, 0]]
    """
    found = np.zeros((len(queries), len(counts)), np.intp)
    slabs = [slice(low, high) for low, high in zip((0, *counts[:-1]), counts, strict=True)]
    pieces = [slice(start, start + _QUERIES) for start in range(0, len(queries), _QUERIES)]
    work_ahead = float(len(queries)) * len(references) * counts[-1]
    dtype = np.float64 if work_ahead < _MUCH else np.float32
    done = 0

    def work(_: int, piece: slice) -> tuple[slice, NDArray[np.intp]]:
        return piece, _of_tile(queries[piece], references, slabs, None if own is None else own[piece], dtype)

    def take(_: int, result: tuple[slice, NDArray[np.intp]]) -> None:
        nonlocal done
        piece, places = result
        found[piece] = places
        done += len(places)
        if events.heard():
            events.emit(events.RowsRead(done, len(queries), 1))

    used = threads_to_use.count(n_threads)
    with blas.single():
        (serial.run if used == 1 else threads.run)(pieces, work, take, used)
    return found


def _of_tile(
    queries: NDArray[Any],
    references: NDArray[Any],
    slabs: list[slice],
    own: NDArray[np.intp] | None,
    dtype: type[np.floating],
) -> NDArray[np.intp]:
    rows = np.arange(len(queries))
    best = np.full((len(slabs), len(queries)), np.inf)
    place = np.zeros((len(slabs), len(queries)), np.intp)
    # The squared distance less the query's own square is (-2 q, 1) . (r, r . r): one product for each slab.
    asked = [_with_column(-2.0 * queries[:, slab].astype(dtype), 1.0) for slab in slabs]
    room = np.empty((2, len(queries), min(_REFERENCES, len(references))), dtype)
    for start in range(0, len(references), _REFERENCES):
        some = references[start : start + _REFERENCES]
        squares, more = room[:, :, : len(some)]
        for number, slab in enumerate(slabs):
            part = some[:, slab].astype(dtype)
            wider = _with_column(part, np.einsum("ij,ij->i", part, part)).T
            if number == 0:
                np.matmul(asked[0], wider, out=squares)
                if own is not None:
                    inside = (own >= start) & (own < start + len(some))
                    squares[rows[inside], own[inside] - start] = np.inf
            else:
                squares += np.matmul(asked[number], wider, out=more)
            here = squares.argmin(axis=1)
            least = squares[rows, here]
            better = least < best[number]
            best[number, better] = least[better]
            place[number, better] = here[better] + start
    return place.T


def _with_column(values: NDArray[Any], last: Any) -> NDArray[Any]:
    wider = np.empty((len(values), values.shape[1] + 1), values.dtype)
    wider[:, :-1], wider[:, -1] = values, last
    return wider
