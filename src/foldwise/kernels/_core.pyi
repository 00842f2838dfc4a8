"""The compiled kernels. They write to arrays made by the caller and convert nothing."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

def scatter(
    x: NDArray[Any], weights: NDArray[np.float64] | None, mean: NDArray[np.float64], out: NDArray[np.float64]
) -> float: ...
def merge_moments(
    left: NDArray[np.float64],
    left_scatter: NDArray[np.float64],
    left_weight: float,
    right: NDArray[np.float64],
    right_scatter: NDArray[np.float64],
    right_weight: float,
    centre: NDArray[np.float64],
    scatter: NDArray[np.float64],
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
    def chosen(self, columns: list[int]) -> Batch: ...

class Stream:
    """An Arrow stream, batch by batch."""

    def __init__(self, capsule: object) -> None: ...
    def fields(self) -> list[tuple[str, str]]: ...
    def next(self) -> Batch | None: ...
    def close(self) -> None: ...

def batch_of(arrays: list[NDArray[Any]]) -> Batch: ...
def copy_into(
    batch: Batch, first: int, start: int, stop: int, out: NDArray[Any], out_row: int
) -> tuple[int, int] | None: ...
