"""A network as plain arrays, applied by NumPy: whoever uses a fitted autoencoder needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise import kernels
from foldwise.errors import ParameterError
from foldwise.models.autoencoder.activations import ACTIVATIONS, Floats32

_AT_ONCE = 256  # rows that are multiplied at a time: memory stays small


@dataclass(frozen=True, eq=False)
class Layer:
    """activation(weights @ x + bias); weights are out x in."""

    weights: Floats32
    bias: Floats32
    activation: str

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise ParameterError(f"activation={self.activation!r} is not known. Use one of {', '.join(ACTIVATIONS)}.")
        if self.weights.ndim != 2 or self.bias.shape != self.weights.shape[:1]:
            raise ParameterError(f"weights of shape {self.weights.shape} do not fit a bias of shape {self.bias.shape}.")

    def __call__(self, rows: Floats32) -> Floats32:
        """The outputs of some rows."""
        return ACTIVATIONS[self.activation].numpy(kernels.row_product(rows, self.weights) + self.bias)


@dataclass(frozen=True, eq=False)
class Network:
    """layers(x) + shortcut @ x; without a shortcut (None) only the layers."""

    layers: tuple[Layer, ...]
    shortcut: Floats32 | None = None

    def __post_init__(self) -> None:
        ends = (self.n_outputs, self.n_inputs)
        fits = all(one.weights.shape[0] == next_.weights.shape[1] for one, next_ in pairwise(self.layers))
        if not fits or (self.shortcut is not None and self.shortcut.shape != ends):
            raise ParameterError("the layers of this network do not fit each other.")

    @property
    def n_inputs(self) -> int:
        """The number of columns that it takes."""
        return int(self.layers[0].weights.shape[1])

    @property
    def n_outputs(self) -> int:
        """The number of columns that it gives."""
        return int(self.layers[-1].weights.shape[0])

    def __call__(self, rows: NDArray[Any]) -> Floats32:
        """The outputs of some rows, in float32.

        A row gives the same bits whatever the rows beside it.
        """
        rows = np.ascontiguousarray(rows, dtype=np.float32)
        out = np.empty((len(rows), self.n_outputs), dtype=np.float32)
        for start in range(0, len(rows), _AT_ONCE):
            out[start : start + _AT_ONCE] = self._apply(rows[start : start + _AT_ONCE])
        return out

    def _apply(self, rows: Floats32) -> Floats32:
        found = rows
        for layer in self.layers:
            found = layer(found)
        return found if self.shortcut is None else found + kernels.row_product(rows, self.shortcut)
