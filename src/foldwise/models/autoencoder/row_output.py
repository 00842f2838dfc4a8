"""What a fitted autoencoder says of rows, block by block: picklable, and without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.block import Block, Floats
from foldwise.data.missing import UnknownIfBlank
from foldwise.models.autoencoder.activations import Floats32
from foldwise.models.autoencoder.inputs import Inputs
from foldwise.models.autoencoder.network import Network


@dataclass(frozen=True)
class Coder:
    """Encoder and decoder with the inputs they were trained on."""

    inputs: Inputs
    encoder: Network
    decoder: Network

    def codes(self, block: Block) -> NDArray[Any]:
        """The code of each row, in the dtype of the rows."""
        whole, _ = self.inputs.completed(block)
        return self._in_units(self.encoder(self.inputs.of(whole)), _dtype(block))

    def rows(self, block: Block) -> NDArray[Any]:
        """The rows that have these codes, in the dtype of the codes."""
        codes = (block.dense().astype(np.float64) / self.inputs.unit).astype(np.float32)
        return self.inputs.rows(self.decoder(codes), _dtype(block))

    def reconstructed(self, block: Block) -> NDArray[Any]:
        """Each row as its code tells it."""
        whole, _ = self.inputs.completed(block)
        return self.inputs.rows(self.decoder(self.encoder(self.inputs.of(whole))), _dtype(block))

    def errors(self, block: Block) -> Floats:
        """The squared distance of each row from its reconstruction, over the cells that it has."""
        return self._codes_and_errors(block)[1]

    def records(self, block: Block) -> NDArray[Any]:
        """Codes and error of each row as records."""
        codes, errors = self._codes_and_errors(block)
        errors = UnknownIfBlank(lambda _: errors)(block)
        dtype = record_dtype(codes.shape[1], codes.dtype)
        told = np.empty(len(codes), dtype)
        for name, column in zip(dtype.names or (), (*codes.T, errors), strict=True):
            told[name] = column
        return told

    def _in_units(self, codes: Floats32, dtype: np.dtype[Any]) -> NDArray[Any]:
        return (codes.astype(np.float64) * self.inputs.unit).astype(dtype, copy=False)

    def _codes_and_errors(self, block: Block) -> tuple[NDArray[Any], Floats]:
        whole, missing = self.inputs.completed(block)
        with np.errstate(over="ignore", invalid="ignore"):  # rows extremely far out
            inputs = self.inputs.of(whole)
            codes = self.encoder(inputs)
            away = (self.decoder(codes) - inputs).astype(np.float64)
            errors = np.einsum("ij,ij->i", away, away) * self.inputs.factor
            outside, gaps = self.inputs.outside(whole), self.inputs.gaps(whole, missing)
            errors = errors if outside is None else errors + outside
            if gaps is not None:
                errors[gaps.which] = gaps.squares(away[gaps.which]) * self.inputs.factor
        errors[np.isnan(errors)] = np.inf
        return self._in_units(codes, _dtype(block)), errors


def record_dtype(n_components: int, dtype: Any) -> np.dtype[Any]:
    """Fields autoencoder0, autoencoder1, ... and error."""
    return np.dtype([*((f"autoencoder{number}", dtype) for number in range(n_components)), ("error", np.float64)])


def _dtype(block: Block) -> np.dtype[Any]:
    dtype: np.dtype[Any] = block.unchecked.dtype
    return dtype
