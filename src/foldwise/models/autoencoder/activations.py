"""Activations of hidden layers: for each its NumPy function, the name of torch's, and its ONNX operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats32: TypeAlias = NDArray[np.float32]
# One operator of ONNX and its operands: "x" is the input of the activation, a whole number the result of that step, a float a
# constant.
Step: TypeAlias = tuple[str, tuple[str | int | float, ...]]


@dataclass(frozen=True)
class Activation:
    """A function of one number that is applied to each output of a layer; `gain` is He's factor for the first weights."""

    name: str
    numpy: Callable[[Floats32], Floats32]
    onnx: tuple[Step, ...]
    gain: float = 1.0

    @property
    def torch(self) -> Callable[[Any], Any]:
        """The same function of torch's tensors."""
        import torch

        if self.name == "linear":
            return _linear
        found: Callable[[Any], Any] = getattr(torch.ops.aten, self.name)
        return found

    @property
    def torch_slope(self) -> Callable[[Any, Any, Any], Any]:
        """A function of the slope of the error by the output, the input and the output: the slope by the input."""
        import torch

        if self.name == "linear":
            return _linear
        slope = getattr(torch.ops.aten, f"{'threshold' if self.name == 'relu' else self.name}_backward")
        by_output = self.name in ("relu", "tanh", "sigmoid")
        constants = {"relu": (0,), "softplus": (1, 20)}.get(self.name, ())

        def found(outer: Any, x: Any, y: Any) -> Any:
            if self.name == "elu":
                return slope(outer, 1, 1, 1, False, x)
            return slope(outer, y if by_output else x, *constants)

        return found


def _linear(x: Any, *_: Any) -> Any:
    return x


def _relu(x: Floats32) -> Floats32:
    return np.maximum(x, np.float32(0))


def _elu(x: Floats32) -> Floats32:
    return np.where(x > 0, x, np.expm1(np.minimum(x, np.float32(0))))


def _sigmoid(x: Floats32) -> Floats32:
    tail = np.exp(-np.abs(x))  # never overflows
    return np.asarray(np.where(x >= 0, np.float32(1), tail) / (np.float32(1) + tail), dtype=np.float32)


def _silu(x: Floats32) -> Floats32:
    return x * _sigmoid(x)


def _gelu(x: Floats32) -> Floats32:
    from scipy.special import erf

    found: Floats32 = np.float32(0.5) * x * (np.float32(1) + erf(x * np.float32(math.sqrt(0.5))))
    return found


def _softplus(x: Floats32) -> Floats32:
    return np.maximum(x, np.float32(0)) + np.log1p(np.exp(-np.abs(x)))


_ALL = (
    Activation("relu", _relu, (("Relu", ("x",)),), gain=math.sqrt(2)),
    Activation("elu", _elu, (("Elu", ("x",)),), gain=math.sqrt(1.55)),
    Activation("silu", _silu, (("Sigmoid", ("x",)), ("Mul", ("x", 0))), gain=math.sqrt(2)),
    Activation(
        "gelu",
        _gelu,
        (
            ("Mul", ("x", math.sqrt(0.5))),
            ("Erf", (0,)),
            ("Add", (1, 1.0)),
            ("Mul", ("x", 2)),
            ("Mul", (3, 0.5)),
        ),
        gain=math.sqrt(2),
    ),
    Activation("tanh", np.tanh, (("Tanh", ("x",)),)),
    Activation("sigmoid", _sigmoid, (("Sigmoid", ("x",)),)),
    Activation("softplus", _softplus, (("Softplus", ("x",)),)),
    Activation("linear", _linear, ()),
)
ACTIVATIONS: dict[str, Activation] = {one.name: one for one in _ALL}
