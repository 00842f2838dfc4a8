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

class Batch:
    """Some rows of a table, by column."""

    @property
    def rows(self) -> int: ...

class Stream:
    """An Arrow stream, batch by batch."""

    def __init__(self, capsule: object) -> None: ...
    @property
    def fields(self) -> list[tuple[str, str]]: ...
    def next(self) -> Batch | None: ...
    def close(self) -> None: ...

def batch_of(arrays: list[NDArray[Any]]) -> Batch: ...
def copy_into(
    batch: Batch, first: int, start: int, stop: int, out: NDArray[Any], out_row: int
) -> tuple[int, int] | None: ...
