"""What ties a checkpoint to its parameters: different values differ, equal ones are equal in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

from foldwise.models.parameters import identity

CODE = """
from functools import partial
import numpy as np
from foldwise.models.parameters import identity

class Holder:
    def __init__(self): self.value = {"a", "b", "c"}
    def method(self, x): return x

def outer():
    holder = Holder()
    def inner(x):
        return inner if x in {"p", "q", "r"} else (lambda y: holder)(x)
    return inner

print([identity(one) for one in (outer(), partial(outer(), 3), Holder(), Holder().method, {"s", "t"}, [np.eye(2), {"k": 1}])])
"""


def test_equal_in_every_process() -> None:
    printed = set()
    for seed in ("1", "2", "3"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
        printed.add(done.stdout)
    assert len(printed) == 1
    assert "0x" not in printed.pop()


def _one(x: Any) -> Any:
    return x + 1


def _other(x: Any) -> Any:
    return x + 2


LARGE = np.zeros((3, 20, 20))
CHANGED = LARGE.copy()
CHANGED[1, 10, 10] = 5.0


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-15])),
        (np.zeros(3), np.zeros((3, 1))),
        (np.zeros(3, np.float32), np.zeros(3)),
        ([{"means": LARGE}], [{"means": CHANGED}]),
        ([{"means": np.array([1.0])}], [{"means": np.array([1.0 + 1e-10])}]),
        (_one, _other),
        (partial(_one, 1), partial(_other, 1)),
        (partial(_one, 1), partial(_one, 2)),
        (lambda x, y=1: x, lambda x, y=2: x),
        ({"a"}, {"b"}),
        ("1", 1),
        (1, 1.0),
    ],
)
def test_different_values_differ(left: Any, right: Any) -> None:
    assert identity(left) != identity(right)
    assert identity(left) == identity(left)
