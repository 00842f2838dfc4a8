"""Benchmarks: tables that compare Foldwise with other libraries in the same run."""

from __future__ import annotations

import os

# Before NumPy is imported: with kernels of another processor, which some machines ask for, other libraries would appear slow.
for _choice in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(_choice, None)
