from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for data_helpers, as tests are imported by path


@pytest.fixture(scope="session")
def table():
    """Rows for three blocks of 5 float64 columns."""
    return np.random.default_rng(0).normal(size=(110_000, 5))


@pytest.fixture
def small():
    return np.random.default_rng(1).normal(size=(40, 3))
