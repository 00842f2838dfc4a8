"""Damaged files of every format: an error that names the file and says what to do, or a reading; never anything else."""

from __future__ import annotations

import random
import signal

import pytest

from foldwise.data.duckdb_connection import duckdb_errors
from foldwise.data.tables import open_table
from foldwise.errors import DataError

FILES = [
    "two_sheets.xlsx",
    "shop.sqlite",
    "lab.duckdb",
    "penguins.feather",
    "planets.arrow",
    "types.parquet",
    "missing_keys.jsonl",
    "arrays.npz",
]


def damaged(data: bytes, seed: int) -> bytes:
    """Cut off, with other bits or bytes in some places, or with a stretch that is blank or lost."""
    draw = random.Random(seed)
    made = bytearray(data)
    if seed % 4 == 0:
        return bytes(made[: draw.randrange(1, len(made))])
    if seed % 4 == 1:
        for _ in range(draw.choice([1, 2, 8])):
            made[draw.randrange(len(made))] ^= 1 << draw.randrange(8)
    elif seed % 4 == 2:
        for _ in range(draw.choice([1, 4, 32])):
            made[draw.randrange(len(made))] = draw.randrange(256)
    else:
        at, length = draw.randrange(len(made)), draw.choice([4, 64, 600])
        made[at : at + length] = draw.choice([b"\0" * length, b"\xff" * length, b""])
    return bytes(made)


def error_of(path) -> DataError | None:
    """The error that a file is refused with, if it is."""
    signal.alarm(30)  # a hang ends the tests
    try:
        table = open_table(path)
        try:
            table.relation().fetchall()
        except duckdb_errors() as problem:
            table.explain(problem, [], None)
    except DataError as error:
        return error
    finally:
        signal.alarm(0)
    return None


@pytest.mark.parametrize("name", FILES)
def test_a_hundred_kinds_of_damage(shared_data, tmp_path, name):
    if not (shared_data / "messy").is_dir():
        pytest.skip("the messy tables are not here")
    data = (shared_data / "messy" / name).read_bytes()
    path = tmp_path / name
    errors = []
    for seed in range(100):
        path.write_bytes(damaged(data, seed))
        errors.append(error_of(path))
    told = [str(error) for error in errors if error is not None]
    assert all(name in text and len(text) < 1000 for text in told)
    assert len(told) > 30  # most damage is noticed, and where cells have no checksum, some cannot be
