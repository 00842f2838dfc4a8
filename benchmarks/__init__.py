"""Benchmarks: tables that compare Foldwise with other libraries in the same run."""

from __future__ import annotations

import os

# Before NumPy is imported: with another processor's kernels, as some machines have set, all that calls BLAS is slower than it is.
for _choice in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(_choice, None)
