"""What tests share: published data, small sources cut by the test itself, and a quiet Hypothesis."""

from __future__ import annotations

import csv
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from foldwise.data.block import Block, DenseBlock
from foldwise.data.source import Piece, RowRange

settings.register_profile("foldwise", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("foldwise")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of published data sets beside the repository."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the published data sets (../shared/data beside the repository) are not here")
    return folder


@pytest.fixture(scope="session")
def table(shared_data: Path) -> Callable[[str], np.ndarray]:
    """The number columns of tables/<name>.csv."""

    def read(name: str) -> np.ndarray:
        with (shared_data / "tables" / f"{name}.csv").open(newline="") as file:
            _, *rows = csv.reader(file)
        numeric = [j for j, cell in enumerate(rows[0]) if _is_number(cell)]
        return np.array([[float(row[j]) for j in numeric] for row in rows])

    return read


@pytest.fixture(scope="session")
def labels(shared_data: Path) -> Callable[[str], np.ndarray]:
    """The last column of tables/<name>.csv."""

    def read(name: str) -> np.ndarray:
        with (shared_data / "tables" / f"{name}.csv").open(newline="") as file:
            _, *rows = csv.reader(file)
        return np.array([row[-1] for row in rows])

    return read


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


class Pieces:
    """A source in memory that is cut every `step` rows, whatever its columns; `fail_at` breaks one piece.

    Unless it is `known` how many rows there are, a fold cannot take its short way for a single block.
    """

    names = None
    sparse = False
    slow = False
    in_memory = False
    left_out = ()
    where = "pieces"

    def __init__(self, x: np.ndarray, step: int, *, known: bool = False, fail_at: int | None = None) -> None:
        self.x, self.step, self.fail_at = x, step, fail_at
        self.n_rows = len(x) if known else None
        self.n_columns, self.dtype = x.shape[1], x.dtype
        self.loaded: list[int] = []

    def pieces(self, first: int = 0, last: int | None = None) -> Iterator[Piece]:
        for start in list(range(0, len(self.x), self.step))[first:last]:
            yield RowRange(self, start, start + self.step)

    def load(self, start: int, stop: int) -> Block:
        number = start // self.step
        self.loaded.append(number)
        if number == self.fail_at:
            raise OSError(f"piece {number} cannot be read")
        return DenseBlock(self.x[start : start + self.step], start)

    def fingerprint(self) -> str:
        return "pieces"


@pytest.fixture
def pieces() -> type[Pieces]:
    """The class of small sources."""
    return Pieces


@pytest.fixture
def planted() -> Callable[..., np.ndarray]:
    """Rows with the given spreads along random directions."""

    def make(spreads: list[float], n: int = 500, *, offset: float = 0.0, seed: int = 0) -> np.ndarray:
        rng = np.random.default_rng(seed)
        turn, _ = np.linalg.qr(rng.standard_normal((len(spreads), len(spreads))))
        return (rng.standard_normal((n, len(spreads))) * spreads) @ turn + offset

    return make


if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as for jobs in the background of a shell; some tests press Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
