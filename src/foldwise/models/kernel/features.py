"""Rows as features whose products are nearly the kernel: k-means on them is nearly kernel k-means, for any number of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data import block_grid
from foldwise.data.block import Block, DenseBlock, Floats
from foldwise.data.source import Piece, Source
from foldwise.fold import blas
from foldwise.kernels.targets import Rescaling
from foldwise.models.kernel import centring
from foldwise.models.kernel.functions import Function

_LEAST = 1e-10  # of the largest eigenvalue: what is below is rounding


def nystroem_basis(function: Function, landmarks: Any) -> Floats:
    """What the kernel with landmarks is multiplied by: K(x, L) basis has products K(x, L) K(L, L)^-1 K(L, y)."""
    from scipy.linalg import eigh

    seen = function.seen(landmarks)
    with blas.single():
        values, vectors = eigh(function.between(seen, seen))
        some = values > _LEAST * values[-1]
        return np.ascontiguousarray(vectors[:, some] / np.sqrt(values[some]))


def nystroem(function: Function, landmarks: Any, basis: Floats) -> Callable[[Any], Floats]:
    """Rows to features by landmarks (Williams and Seeger 2001)."""
    seen = function.seen(landmarks)
    return lambda rows: np.asarray(function.between(function.seen(rows), seen) @ basis)


def frequencies(d: int, n_features: int, rng: np.random.Generator) -> Floats:
    """Directions of random features, for gamma = 1/2."""
    return np.asarray(rng.standard_normal((d, max(n_features // 2, 1))))


def random_features(directions: Floats, gamma: float, frame: Rescaling) -> Callable[[Any], Floats]:
    """Waves along random directions, whose products are exp(-gamma |x - y|^2) on average (Rahimi and Recht 2007)."""
    turned = directions * np.sqrt(2 * gamma) / frame.scale

    def of(rows: Any) -> Floats:
        angles = np.asarray(centring.seen(rows, frame) @ turned)
        return np.asarray(np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(turned.shape[1]))

    return of


class FeatureSource:
    """A source of features: the rows of another source, cut anew for their number of columns, each passed through `of`."""

    sparse = False
    slow = True  # so that several passes keep them in a scratch file
    names: tuple[str, ...] | None = None

    def __init__(
        self,
        source: Source,
        of: Callable[[Any], Floats],
        n_columns: int,
        about: Any,
        dtype: np.dtype[np.floating] | None = None,
    ) -> None:
        self._source, self._of, self._about = source, of, about
        self.n_columns, self.dtype = n_columns, dtype or source.dtype
        self.where, self.left_out = source.where, source.left_out

    @property
    def n_rows(self) -> int | None:
        """How many rows there are, if that is known."""
        return self._source.n_rows

    @property
    def spooled_bytes(self) -> int:
        """How much a scratch file behind holds."""
        return int(getattr(self._source, "spooled_bytes", 0))

    in_memory = False

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        """The blocks to compute; rows are read in their order, features worked out by whoever calls the piece."""
        step = block_grid.rows_per_block(self.n_columns, self.dtype)
        waiting: list[tuple[Any, NDArray[np.float64] | None]] = []
        have, start = 0, 0
        for piece in self._source.pieces():
            block = piece.load()
            at = 0
            while at < block.n_rows:
                take = min(step - have, block.n_rows - at)
                some = slice(at, at + take)
                # Copied: the block's memory may be used again for the next one.
                waiting.append((block.rows[some].copy(), None if block.weights is None else block.weights[some].copy()))
                at, have = at + take, have + take
                if have == step:
                    yield self._piece(waiting, start)
                    waiting, have, start = [], 0, start + step
        if waiting:
            yield self._piece(waiting, start)

    def _piece(self, parts: list[tuple[Any, NDArray[np.float64] | None]], start: int) -> Piece:
        def load() -> DenseBlock:
            rows = parts[0][0] if len(parts) == 1 else _stacked([rows for rows, _ in parts])
            weights = [each for _, each in parts if each is not None]
            values = np.ascontiguousarray(self._of(rows), dtype=self.dtype)
            return DenseBlock(values, start, np.concatenate(weights) if weights else None)

        return _Lazy(load)

    def fingerprint(self) -> str:
        """That of the source, and what features are made by."""
        arrays = b"".join(np.ascontiguousarray(each).tobytes() for each in self._about)
        return f"{self._source.fingerprint()} features {hashlib.sha256(arrays).hexdigest()}"


class _Lazy:
    def __init__(self, load: Callable[[], Block]) -> None:
        self.load = load


def _stacked(rows: list[Any]) -> Any:
    if isinstance(rows[0], np.ndarray):
        return np.concatenate(rows)
    import scipy.sparse as sp

    return sp.vstack(rows, format="csr")
