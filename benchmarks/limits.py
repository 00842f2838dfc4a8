"""What this machine can do at most, on two threads: fused multiply-adds in registers, and reading memory once.

Compiled with the C compiler that builds the package, for the instruction set whose kernels are in use.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from foldwise import kernels

_FLAGS = {
    "avx512": ["-mavx512f", "-mfma", "-DBYTES=64"],
    "avx2": ["-mavx2", "-mfma", "-DBYTES=32"],
    "baseline": ["-DBYTES=16"],
}
_THREADS = 2
_VALUES = 64 << 20  # float32, 256 MB: larger than any cache
_ROUNDS = 4_000_000


class Limits(NamedTuple):
    """Both of them, in units of 1e9 a second."""

    flops: float
    bytes: float

    def seconds(self, flops: float, bytes_read: float) -> tuple[float, str]:
        """The least time that this work takes, and what binds."""
        products, reading = flops / self.flops / 1e9, bytes_read / self.bytes / 1e9
        return (products, "FMA") if products > reading else (reading, "reading")

    def __str__(self) -> str:
        return f"limits of {_THREADS} threads: {self.flops:.0f} GFLOP/s ({kernels.instruction_set()}), {self.bytes:.1f} GB/s"


class Meter:
    """Measures them again and again, since the machine may be shared: the best of all measurements counts."""

    def __init__(self) -> None:
        self._library = _compiled()
        self._memory = np.ones(_VALUES, np.float32)
        self.best = Limits(0.0, 0.0)

    def measure(self, times: int = 1) -> Limits:
        """Measure once more; returns the best so far."""
        for _ in range(times):
            flops = _together(lambda part: self._library.multiply_add(_ROUNDS))
            read = _together(self._read)
            each = _ROUNDS * 24 * _vector_floats()
            self.best = Limits(
                max(self.best.flops, _THREADS * each / flops / 1e9), max(self.best.bytes, self._memory.nbytes / read / 1e9)
            )
        return self.best

    def _read(self, part: int) -> None:
        size = _VALUES // _THREADS
        self._library.read_once(self._memory[part * size :].ctypes.data_as(ctypes.c_void_p), size)


def _vector_floats() -> int:
    return int(_FLAGS[kernels.instruction_set()][-1].split("=")[1]) // 4


def _together(work: Callable[[int], object]) -> float:
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(lambda part: time.sleep(0.01), range(_THREADS)))  # both threads are there
        began = time.perf_counter()
        list(pool.map(work, range(_THREADS)))
        return time.perf_counter() - began


def _compiled() -> Any:
    folder = tempfile.TemporaryDirectory()
    target = Path(folder.name, "limits.so")
    source = Path(__file__).with_name("limits.c")
    compiler = os.environ.get("CC", "cc")
    flags = _FLAGS[kernels.instruction_set()]
    subprocess.run([compiler, "-O3", *flags, "-shared", "-fPIC", str(source), "-o", str(target)], check=True)
    library = ctypes.CDLL(str(target))
    folder.cleanup()
    library.multiply_add.argtypes = [ctypes.c_long]
    library.read_once.restype = ctypes.c_float
    library.read_once.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return library


if __name__ == "__main__":
    print(Meter().measure(5))
