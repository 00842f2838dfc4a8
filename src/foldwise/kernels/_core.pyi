"""The compiled kernels. They write to arrays made by the caller and convert nothing."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

def scatter(
    x: NDArray[Any], weights: NDArray[np.float64] | None, mean: NDArray[np.float64], out: NDArray[np.float64]
) -> float: ...
def merge_scatter(
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    delta: NDArray[np.float64],
    factor: float,
    out: NDArray[np.float64],
) -> None: ...
def columns(
    x: NDArray[Any], weights: NDArray[np.float64] | None, mean: NDArray[np.float64], out: NDArray[np.float64]
) -> float: ...
def finite(x: NDArray[Any]) -> int: ...
def centred(
    x: NDArray[Any], centre: NDArray[np.float64], scale: NDArray[np.float64] | None, out: NDArray[Any]
) -> None: ...
def isa() -> str: ...
