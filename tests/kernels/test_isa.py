"""Every instruction set of this machine, each in its own process because the choice is made once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from foldwise import kernels

ORDER = ["baseline", "avx2", "avx512"]


def chosen(**asked: str) -> str:
    """The set of a new process, in which FOLDWISE_ISA is not set unless asked for."""
    code = "from foldwise import kernels; print(kernels.instruction_set())"
    others = {name: value for name, value in os.environ.items() if name != "FOLDWISE_ISA"}
    done = subprocess.run([sys.executable, "-c", code], env=others | asked, capture_output=True, text=True, check=True)
    return done.stdout.strip()


BEST = chosen()
OTHERS = [isa for isa in ORDER[: ORDER.index(BEST) + 1] if isa != kernels.instruction_set()]


@pytest.mark.parametrize("isa", OTHERS)
def test_other_instruction_sets_pass_the_same_tests(isa: str) -> None:
    """The one of this process has its turn when these files are run as such."""
    here = Path(__file__).parent
    names = (
        "test_small_shapes.py",
        "test_columns.py",
        "test_exact_ties.py",
        "test_fixed_sums.py",
        "test_int16_targets.py",
        "test_against_reference.py",
        "test_mixture_kernel.py",
        "test_products.py",
        "test_promises.py",
        "test_row_product.py",
        "test_similarity.py",
        "test_distance_sums.py",
        "test_sparse_targets.py",
        "test_targets.py",
        "test_targets_sums.py",
    )
    files = [str(here / name) for name in names]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    done = subprocess.run(
        command,
        env={**os.environ, "FOLDWISE_ISA": isa},
        cwd=here.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_variable_only_lowers() -> None:
    for asked in ORDER:
        assert chosen(FOLDWISE_ISA=asked) == ORDER[min(ORDER.index(asked), ORDER.index(BEST))]
