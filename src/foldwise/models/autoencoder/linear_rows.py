"""What a linear autoencoder says of rows, block by block: picklable, and no larger than it must be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.missing import UnknownIfBlank
from foldwise.data.source import Source
from foldwise.models.base import RowOutput
from foldwise.models.pca.normal_model import NormalModel
from foldwise.models.pca.projection import Projection


@dataclass(frozen=True)
class LinearCode:
    """Codes z = W1 u of rows, u = (x - mean) / scale, and their reconstructions W2 z, back in the units of the rows."""

    encoder: NDArray[Any]
    decoder: NDArray[Any]
    mean: Floats
    scale: Floats | None
    normal: NormalModel | None = None  # fills missing cells

    def codes(self, block: Block) -> NDArray[Any]:
        """The codes, in the dtype of the rows."""
        return Projection(self.encoder, self.mean, self.scale).scores(self._complete(block))

    def rows(self, block: Block) -> NDArray[Any]:
        """The rows that have these codes, in the dtype of the codes."""
        return Projection(self.decoder.T, self.mean, self.scale).rows(block)

    def reconstructed(self, block: Block) -> NDArray[Any]:
        """The reconstruction of each row, in its dtype."""
        return self.rows(block.with_rows(self.codes(block)))

    def errors(self, block: Block) -> Floats:
        """The squared distance of each row from its reconstruction, in the space of the fit, over the cells that it has.

        It is the squared distance from the span of the decoder plus, at right angles to it, that of the reconstruction from
        the nearest point there: sums of squares, without cancellation, and sparse rows stay sparse.
        """
        encoder, decoder = np.asarray(self.encoder, np.float64), np.asarray(self.decoder, np.float64)
        missing = None if self.normal is None or block.sparse else np.isnan(block.dense())
        if missing is not None and missing.any():
            rows = self._complete(block).times(np.eye(len(self.mean)), self.mean, self.scale)
            rest = np.where(missing, 0.0, rows - (rows @ encoder.T) @ decoder.T)
            return np.asarray(np.einsum("ij,ij->i", rest, rest))
        basis, triangle = np.linalg.qr(decoder)
        inside = block.times(basis, self.mean, self.scale) - block.times(encoder.T @ triangle.T, self.mean, self.scale)
        outside = block.residual_norms(basis.T, self.mean, self.scale)
        return np.asarray(outside + np.einsum("ij,ij->i", inside, inside))

    def output(self, source: Source, names: tuple[str, ...]) -> RowOutput:
        """The codes and the error of each row, as records."""
        dtype = np.dtype([*((name, source.dtype) for name in names), ("error", np.float64)])
        return RowOutput(source, dtype.names or (), dtype, CodesAndError(self, dtype))

    def _complete(self, block: Block) -> Block:
        return block if self.normal is None or block.sparse else self.normal.completed(block)


@dataclass(frozen=True)
class CodesAndError:
    """Records of the codes of each row and of the error of its reconstruction."""

    code: LinearCode
    dtype: np.dtype[Any]

    def __call__(self, block: Block) -> NDArray[Any]:
        """One record per row."""
        told = np.empty(block.n_rows, self.dtype)
        codes = self.code.codes(block)
        for name, column in zip(self.dtype.names or (), codes.T, strict=False):
            told[name] = column
        told["error"] = UnknownIfBlank(self.code.errors)(block)
        return told
