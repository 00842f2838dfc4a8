"""A network as plain arrays, applied by NumPy: whoever uses a fitted autoencoder needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.errors import ParameterError
from foldwise.fold import blas
from foldwise.models.autoencoder.activations import ACTIVATIONS, Floats32

# Rows are multiplied so many at a time, the last of them filled up with zeros: memory stays small, and as all products have
# one shape, a row's output does not depend on the rows around it.
_AT_ONCE = 128


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
        return ACTIVATIONS[self.activation].numpy(rows @ self.weights.T + self.bias)


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

        A row gives the same bits whatever the rows beside it, in the same process with the same BLAS.
        """
        rows = np.asarray(rows, dtype=np.float32)
        n = len(rows)
        out = np.empty((n, self.n_outputs), dtype=np.float32)
        with blas.single(float(n) * self.n_inputs * self.n_outputs):
            for start in range(0, n, _AT_ONCE):
                part = rows[start : start + _AT_ONCE]
                if len(part) < _AT_ONCE:
                    part = np.concatenate([part, np.zeros((_AT_ONCE - len(part), self.n_inputs), np.float32)])
                out[start : start + _AT_ONCE] = self._apply(part)[: n - start]
        return out

    def _apply(self, rows: Floats32) -> Floats32:
        found = rows
        for layer in self.layers:
            found = layer(found)
        return found if self.shortcut is None else found + rows @ self.shortcut.T
