"""The lesser instruction sets of this machine, each in its own process because the choice is made once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from foldwise import kernels

ORDER = ["baseline", "avx2", "avx512"]
LESSER = ORDER[: ORDER.index(kernels.instruction_set())]


@pytest.mark.parametrize("isa", LESSER)
def test_lesser_instruction_set_passes_the_same_tests(isa: str) -> None:
    here = Path(__file__).parent
    names = (
        "test_against_reference.py",
        "test_mixture_kernel.py",
        "test_promises.py",
        "test_similarity.py",
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
    code = "from foldwise import kernels; print(kernels.instruction_set())"
    for asked in ORDER:
        seen = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "FOLDWISE_ISA": asked},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        assert seen == ORDER[min(ORDER.index(asked), ORDER.index(kernels.instruction_set()))]
