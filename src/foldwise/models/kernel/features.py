"""Rows as features whose products are nearly the kernel: k-means on them is nearly kernel k-means, for any number of rows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from foldwise.data.block import Block, Floats, block_of
from foldwise.data.block_grid import rows_per_block
from foldwise.data.mapped import MappedSource
from foldwise.data.recut import RecutSource
from foldwise.data.row_pairs import from_arrays, rescaled, stored_like
from foldwise.data.source import Source
from foldwise.fold import blas
from foldwise.kernels.targets import Rescaling
from foldwise.models.kernel.functions import Kernel, kernel_class

_LEAST = 1e-10  # of the largest eigenvalue: what is below is rounding


class FeatureMap(Protocol):
    """How features are made of rows."""

    n_features: int

    def __call__(self, block: Block) -> Floats:
        """The features of a block's rows."""


class Nystroem:
    """Features by landmarks L: K(x, L) basis, whose products are K(x, L) K(L, L)^-1 K(L, y) (Williams and Seeger 2001)."""

    def __init__(self, kernel: Kernel, landmarks: Block, basis: Floats) -> None:
        self._kernel, self._landmarks, self._basis = kernel, kernel.prepare(landmarks), basis
        self.n_features = basis.shape[1]

    @staticmethod
    def basis_of(kernel: Kernel, landmarks: Block) -> Floats:
        """The inverse root of K(L, L), without directions that are rounding alone."""
        from scipy.linalg import eigh

        prepared = kernel.prepare(landmarks)
        with blas.single():
            values, vectors = eigh(kernel.matrix(prepared, prepared))
            some = values > _LEAST * values[-1]
            return np.ascontiguousarray(vectors[:, some] / np.sqrt(values[some]))

    def __call__(self, block: Block) -> Floats:
        """The features of a block's rows."""
        prepared = self._kernel.prepare(stored_like(self._landmarks, block))
        return np.asarray(self._kernel.matrix(prepared, self._landmarks) @ self._basis)


class RandomFeatures:
    """Waves along random directions, whose products are the kernel on average (Rahimi and Recht 2007)."""

    def __init__(self, kernel: Kernel, directions: Floats) -> None:
        self._frequencies, self._rescaling = kernel.frequencies(directions)
        self.n_features = 2 * directions.shape[1]

    def __call__(self, block: Block) -> Floats:
        """The features of a block's rows."""
        angles = np.asarray(rescaled(block, self._rescaling).unchecked @ self._frequencies)
        return np.asarray(np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(angles.shape[1]))


def feature_map(model: Any) -> FeatureMap:
    """How a fitted approximate model makes features of rows."""
    rescaling = Rescaling(model.pivot_, model.frame_scale_)
    kernel = kernel_class(model.kernel).of(model, model.gamma_ or 1.0, rescaling)
    if model.landmarks_ is None:
        return RandomFeatures(kernel, model.basis_)
    return Nystroem(kernel, from_arrays(model.landmarks_), model.basis_)


@dataclass(frozen=True)
class _Features:
    of: FeatureMap
    dtype: np.dtype[np.floating]

    def __call__(self, block: Block) -> Block:
        return block_of(np.ascontiguousarray(self.of(block), dtype=self.dtype), block.start, block.weights)


class FeatureSource(MappedSource):
    """A source of features: the rows of another source, cut anew for their number of columns, each passed through a map."""

    def __init__(
        self, source: Source, of: FeatureMap, about: tuple[Any, ...] = (), dtype: np.dtype[np.floating] | None = None
    ) -> None:
        dtype = dtype or source.dtype
        super().__init__(RecutSource(source, rows_per_block(of.n_features, dtype)), _Features(of, dtype), dtype)
        self.n_columns, self.names, self.sparse = of.n_features, None, False
        self._about = about

    @property
    def slow(self) -> bool:
        """They are, so that several passes keep them in a scratch file."""
        return True

    @property
    def in_memory(self) -> bool:
        """They are not, even if the rows are: they may be many more values."""
        return False

    def fingerprint(self) -> str:
        """That of the source, and what features are made by."""
        arrays = b"".join(np.ascontiguousarray(each).tobytes() for each in self._about)
        return f"{self.source.fingerprint()} features {hashlib.sha256(arrays).hexdigest()}"
